"""A method is a run: trained, resumed, stopped, reviewed and exported like any other."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from core.cli import app
from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer
from core.errors import ConfigError, DatasetError, PlainError, RunNotFound, StoreError
from core.methods import METHODS, NEEDS_VERIFIED, make_method
from core.methods.choice import method_config, method_form, other_methods
from core.review.load import load_reviewer
from core.runs import worker
from core.store import Decision, Workspace

ITERATING = (
    {"pml-ni": {}, "schirn": {"n_iter": 6}, "pml-lc-style": {"rounds": 3}}
    | {"comes-hl": {"epochs": 3}, "propml": {"epochs": 3}}
    | {"apml-style": {"epochs": 3}, "pml-mt-style": {"epochs": 3, "warm_up": 1}}
)


@pytest.fixture(scope="module")
def demo():
    return load_demo(n_instances=120)


def trained(config, dataset, **options):
    trainer = PlainTrainer(config)
    return trainer, list(trainer.epochs(dataset, **options))


@pytest.mark.parametrize("name", ITERATING)
def test_an_iterating_method_goes_on_bit_for_bit(name, demo):
    config = method_config(name, ITERATING[name])
    whole, events = trained(config, demo)
    assert events[-1].state == "finished"
    losses = [one.loss for one in events if one.kind == "epoch"]
    assert 1 < len(losses) <= config.epochs
    assert np.isfinite(losses).all()
    assert any(losses)
    first = PlainTrainer(config)
    stream = first.epochs(demo)
    for event in stream:
        if event.kind == "epoch":
            kept = first.checkpoint()  # after the first step
            break
    stream.close()
    again, events = trained(config, demo, resume=kept)
    assert next(one for one in events if one.kind == "epoch").epoch == 2
    np.testing.assert_array_equal(again.confidences, whole.confidences)
    np.testing.assert_array_equal(again.predictions, whole.predictions)


@pytest.mark.parametrize("name", ["ml-knn", "glocal", "hale-style", "particle", "kernel-ridge"])
def test_a_run_predicts_a_candidate_with_the_methods_own_number(name, demo):
    trainer, events = trained(method_config(name), demo)
    assert [one.kind for one in events].count("epoch") == 1
    model = make_method(name).fit(demo.features, demo.candidates)
    offered = demo.candidates > 0
    np.testing.assert_allclose(trainer.predictions[offered], model.confidences_[offered], atol=1e-5)
    assert (trainer.confidences[~offered] == 0).all()
    assert trainer.level.share_high > 0
    np.testing.assert_allclose(
        trainer.predict_proba(demo.features[:5]), model.predict_proba(demo.features[:5]), atol=1e-5
    )


@pytest.mark.parametrize("name", [one for one in METHODS if not one.startswith("cleanlab")])
def test_every_method_has_a_configuration_that_survives_json(name):
    config = method_config(name)
    assert PlainConfig(**json.loads(config.model_dump_json())) == config
    assert hash(config)
    if config.method is not None:
        form = method_form(name)
        assert form.assumes.endswith(".")
        assert form.needs_verified == (name in NEEDS_VERIFIED)
        assert form.iterates == (config.epochs > 1)
        defaults = dict(config.method.settings)
        for one in form.settings:
            assert one.help.endswith(".")
            assert defaults[one.name] == one.default
            assert one.choices or one.low <= one.default <= one.high
        for one in form.settings[:1]:
            low = int(one.low) if one.is_whole else one.low
            changed = method_config(name, {one.name: low, "seed": 3})
            assert dict(changed.method.settings)[one.name] == low
            assert changed.seed == 3


def test_settings_that_cannot_be_are_refused_with_those_that_can():
    with pytest.raises(PlainError, match="No such method"):
        method_config("magic")
    with pytest.raises(ConfigError, match="no such setting") as error:
        method_config("pml-ni", {"alpha": 1, "lam": 2})
    assert "lam" in error.value.hint
    for wrong in ({"lam": -1}, {"max_iter": 2.5}, {"lam": "much"}, {"scale": "big"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            method_config("pml-ni", wrong)


def test_the_presets_are_methods_too():
    assert method_config("studio") == PlainConfig.preset("studio")
    assert method_config("network") == PlainConfig(disambiguation="none")
    assert not {"studio", "plain", "network"} & set(other_methods())


def test_a_method_is_trained_shown_cleaned_and_exported_by_commands(tmp_path):
    run = CliRunner()
    space = ["--workspace", str(tmp_path / "w")]
    done = run.invoke(
        app, ["train", "demo", "--method", "pml-ni", "--set", "lam=1", *space, "--json"]
    )
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["name"] == "pml-ni"
    assert ["lam", 1] in facts["config"]["method"]["settings"]
    out = tmp_path / "out.csv"
    done = run.invoke(app, ["export", facts["run"], str(out), *space])
    assert done.exit_code == 0, done.output
    assert out.exists()
    cleaned = tmp_path / "clean.csv"
    done = run.invoke(app, ["clean", "demo", str(cleaned), "--method", "ml-knn"])
    assert done.exit_code == 0, done.output
    done = run.invoke(app, ["train", "demo", "--method", "magic", *space])
    assert isinstance(done.exception, PlainError)
    assert "pml-ni" in done.exception.hint


def test_a_methods_run_is_reviewed_but_not_gone_on_from(tmp_path, demo):
    space = Workspace(tmp_path)
    run = space.runs.create(space.add_dataset(demo, "demo"), method_config("ml-knn"))
    worker.run_training(space, run.id)
    run = space.runs.get(run.id)
    assert run.state == "finished"
    reviewer = load_reviewer(space, run)
    assert reviewer.confidences.shape == demo.candidates.shape
    with pytest.raises(StoreError, match="cannot go on from decisions"):
        worker.retrain(space, run.id)


def test_a_consensus_of_runs_that_are_gone_has_failed_and_says_why(tmp_path, demo):
    space = Workspace(tmp_path)
    config = method_config("consensus", {"runs": "0000000000001 0000000000002"})
    run = space.runs.create(space.add_dataset(demo, "demo"), config)
    with pytest.raises(RunNotFound):
        worker.run_training(space, run.id)
    failed = space.runs.get(run.id)
    assert (failed.state, "no such run" in failed.error) == ("failed", True)


def test_pml_md_learns_from_rows_that_are_decided(tmp_path, demo):
    space = Workspace(tmp_path)
    fingerprint = space.add_dataset(demo, "demo")
    config = method_config("pml-md", {"epochs": 2})
    run = space.runs.create(fingerprint, config)
    with pytest.raises(DatasetError, match="verified"):
        worker.run_training(space, run.id)
    for row in range(12):
        for label in np.flatnonzero(demo.candidates[row]):
            verdict = "keep" if demo.truth[row, label] else "reject"
            space.decisions.add(
                Decision(
                    fingerprint=fingerprint,
                    instance_id=demo.ids[row],
                    label=demo.label_names[label],
                    verdict=verdict,
                    annotator="a",
                )
            )
    run = space.runs.create(fingerprint, config)
    assert worker.run_training(space, run.id).state == "finished"
    decided = demo.candidates[:12] > 0
    predicted = np.load(space.runs.folder(run.id) / "predictions.npy")[:12]
    np.testing.assert_array_equal(predicted[decided], demo.truth[:12][decided])
