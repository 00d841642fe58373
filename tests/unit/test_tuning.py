"""Studies: honest parts, exact budgets, and nothing finished is ever lost."""

import json
import os
import signal
from dataclasses import replace
from time import monotonic, sleep

import numpy as np
import pytest
from command_line import plain

from core import tuning
from core.engine.config import PlainConfig
from core.errors import ConfigError, PlainError
from core.store import Decision, Workspace
from core.tuning import search, studies
from core.tuning.objectives import Judge, read_verdicts, split
from core.tuning.search import work
from core.tuning.space import Parameter, StudySettings

FAST = PlainConfig(epochs=2, device="cpu")


@pytest.fixture
def space(tmp_path):
    opened = Workspace(tmp_path / "space")
    yield opened
    opened.close()


@pytest.fixture
def fingerprint(space, demo):
    return space.add_dataset(demo, "demo")


def decide(space, dataset, n: int) -> None:
    cells = list(zip(*np.nonzero(dataset.candidates), strict=True))[: 3 * n : 3]
    space.decisions.add_many(
        Decision(
            fingerprint=dataset.fingerprint,
            instance_id=dataset.ids[i],
            label=dataset.label_names[j],
            verdict="keep" if dataset.truth[i, j] else "reject",
            annotator="ann",
        )
        for i, j in cells
    )


def settle(space, study_id: str, until, seconds: float = 240) -> tuning.Study:
    end = monotonic() + seconds
    while monotonic() < end:
        study = tuning.read_study(space, study_id)
        if until(study):
            return study
        sleep(0.2)  # reading a study takes time from those who work on it
    log = space.studies.folder(study_id) / "worker.log"
    raise AssertionError(log.read_text() if log.exists() else "nothing was launched")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"parameters": ()}, "at least one"),
        ({"n_trials": None}, "budget"),
        ({"parameters": ({"name": "seed", "low": 0, "high": 1},)}, "seed cannot be searched"),
        ({"parameters": ({"name": "alpha", "low": 1, "high": 0.1},)}, "low below high"),
        ({"parameters": ({"name": "beta", "low": 0, "high": 1, "log": True},)}, "above 0"),
        ({"parameters": ({"name": "k", "low": 0, "high": 9},)}, "k"),
        ({"parameters": ({"name": "loss", "choices": ("bce", "l2")},)}, "loss"),
    ],
)
def test_a_study_that_cannot_be_is_refused(values, says):
    with pytest.raises(ConfigError, match=says):
        StudySettings(**values)


def test_a_study_that_can_judge_nothing_ends_and_says_why(space, demo, monkeypatch):
    fingerprint = space.add_dataset(replace(demo, truth=demo.candidates), "all candidates are true")
    row = tuning.create_study(space, fingerprint, StudySettings(base=FAST, n_trials=2, prune=False))
    trained, run = [], search._run

    def count(*given):
        trained.append(given)
        assert len(trained) <= 2
        run(*given)

    monkeypatch.setattr(search, "_run", count)
    search.work(space, row.id)
    study = tuning.read_study(space, row.id)
    assert (study.status, study.best) == ("finished", None)
    assert ["nothing to judge by" in trial.note for trial in study.trials] == [True, True]


def test_a_worker_that_fails_leaves_no_lock(tmp_path):
    with pytest.raises(ConfigError), studies.worker_place(tmp_path):
        raise ConfigError("The data is gone.")
    assert not list(tmp_path.iterdir())


def test_the_papers_grid_and_the_own_settings_come_first():
    settings = StudySettings(base=PlainConfig.preset("studio"))
    assert [one.name for one in settings.parameters] == ["alpha", "beta", "eta"]
    own = settings.first_points[0]
    assert own == {name: getattr(settings.base, name) for name in ("alpha", "beta", "eta")}


def test_a_sensitivity_study_tries_each_value_that_is_possible_once():
    settings = tuning.sensitivity("n_steps", FAST)
    assert settings.points[0] == {"n_steps": 0}
    assert settings.points[-1] == {"n_steps": None}
    assert settings.n_trials == len(settings.points)
    steep = tuning.sensitivity("gamma", PlainConfig(eta=10))
    assert max(point["gamma"] for point in steep.points) < 0.3  # more would diverge
    assert tuning.sensitivity("gamma", PlainConfig(n_steps=None)).base.n_steps == 200


@pytest.mark.parametrize("objective", ["truth", "decisions", "consistency"])
def test_what_is_reported_was_neither_trained_nor_tuned_on(space, demo, fingerprint, objective):
    decide(space, demo, 200)
    settings = StudySettings(base=FAST, objective=objective)
    verdicts = read_verdicts(space, demo)
    parts = split(settings, demo, verdicts)
    assert not set(parts.tuned) & set(parts.reported)
    judge = Judge(settings, demo, verdicts)
    assert judge.training.truth is None
    if objective == "consistency":
        assert not set(parts.trained) & {*parts.tuned, *parts.reported}
        assert judge.training.n_instances == len(parts.trained)
    other = split(settings.model_copy(update={"seed": 1}), demo, verdicts)
    assert parts.tuned.tolist() != other.tuned.tolist()


def test_what_judges_depends_on_what_is_there(space, demo, fingerprint):
    assert tuning.available(space, fingerprint) == ["truth", "consistency"]
    with pytest.raises(ConfigError, match="Too few decisions"):
        tuning.create_study(space, fingerprint, StudySettings(objective="decisions"))
    decide(space, demo, 200)
    assert tuning.available(space, fingerprint) == ["truth", "decisions", "consistency"]
    told = {tuning.explain(one, space, fingerprint) for one in tuning.available(space, fingerprint)}
    assert len(told) == 3


@pytest.mark.parametrize("objective", ["truth", "decisions", "consistency"])
def test_every_objective_finishes_its_trials(space, demo, fingerprint, objective):
    decide(space, demo, 200)
    settings = StudySettings(base=FAST, objective=objective, n_trials=3)
    row = tuning.create_study(space, fingerprint, settings)
    work(space, row.id)
    study = tuning.read_study(space, row.id)
    assert (study.status, study.n_done) == ("finished", 3)
    assert study.best.value == max(one.value for one in study.finished)
    for trial in study.finished:
        assert 0 < trial.value <= 1
        assert 0 < trial.reported <= 1
        cells = tuning.trial_confidences(space, row.id, trial.number)
        assert cells.shape == (int(demo.candidates.sum()),)
        assert [epoch for epoch, _ in trial.curve] == [1, 2]


def test_a_trial_is_the_run_with_its_settings(space, demo, fingerprint):
    from core.engine.trainer import PlainTrainer

    settings = StudySettings(base=FAST, n_trials=2)
    row = tuning.create_study(space, fingerprint, settings)
    work(space, row.id)
    trial = tuning.read_study(space, row.id).finished[-1]
    trainer = PlainTrainer(settings.config(trial.values))
    list(trainer.epochs(demo))
    cells = trainer.confidences[demo.candidates > 0].astype(np.float16)
    np.testing.assert_array_equal(tuning.trial_confidences(space, row.id, trial.number), cells)


def test_settings_that_do_not_work_are_a_result_and_do_not_end_the_study(space, fingerprint):
    settings = StudySettings(
        base=PlainConfig(epochs=2, gamma=0.1),
        parameters=(Parameter(name="eta", choices=(100.0, 1.0)),),
        n_trials=2,
        points=({"eta": 100.0}, {"eta": 1.0}),
    )
    row = tuning.create_study(space, fingerprint, settings)
    work(space, row.id)
    broken, fine = tuning.read_study(space, row.id).trials
    assert (broken.state, fine.state) == ("pruned", "finished")
    assert "gamma must be below" in broken.note


def test_a_time_budget_ends_the_study(space, fingerprint):
    settings = StudySettings(base=FAST, n_trials=None, timeout=0.2)
    row = tuning.create_study(space, fingerprint, settings)
    work(space, row.id)
    study = tuning.read_study(space, row.id)
    assert study.status == "finished"
    assert study.n_done >= 1


def test_a_killed_study_goes_on_and_loses_no_finished_trial(space, fingerprint):
    settings = StudySettings(base=PlainConfig(epochs=60, device="cpu"), n_trials=5, prune=False)
    row = tuning.create_study(space, fingerprint, settings)
    tuning.launch(space, row.id)
    before = settle(space, row.id, lambda one: len(one.finished) >= 2 and has_running(one))
    os.kill(studies._children[-1].pid, signal.SIGKILL)
    studies._children[-1].wait()
    killed = tuning.read_study(space, row.id)
    assert killed.status == "interrupted"
    tuning.launch(space, row.id)
    after = settle(space, row.id, lambda one: one.status == "finished")
    assert after.n_done == len(after.finished) == 5
    kept = {one.number: one for one in after.trials}
    assert all(kept[one.number] == one for one in before.finished)
    lost = [one for one in after.trials if one.state == "failed"]
    assert len(lost) <= 1
    for one in lost:  # what it had been given so far is tried again
        assert any(one.values.items() <= other.values.items() for other in after.finished)
    assert not [one for one in after.trials if one.state in ("running", "waiting")]
    for trial in after.finished:
        assert tuning.trial_confidences(space, row.id, trial.number) is not None


def has_running(study) -> bool:
    return any(one.state == "running" and one.values for one in study.trials)


def test_a_stopped_study_ends_soon_and_can_go_on(space, fingerprint):
    settings = StudySettings(base=PlainConfig(epochs=2000, device="cpu"), n_trials=3, n_workers=2)
    row = tuning.create_study(space, fingerprint, settings)
    tuning.launch(space, row.id)
    settle(space, row.id, has_running)
    tuning.stop(space, row.id)
    study = settle(space, row.id, lambda one: one.status != "working")
    assert study.status == "stopped"
    assert study.n_done == 0
    waiting = [one for one in study.trials if one.state == "waiting"]
    assert waiting  # what was at work is tried again
    assert not [one for one in study.trials if one.state == "running"]


def test_two_workers_keep_the_budget_to_the_trial(space, fingerprint):
    settings = StudySettings(base=FAST, n_trials=7, n_workers=2)
    row = tuning.create_study(space, fingerprint, settings)
    tuning.launch(space, row.id)
    study = settle(space, row.id, lambda one: one.status == "finished")
    assert study.n_done == len(study.trials) == 7


def test_robustness_tells_where_the_good_trials_agree(space, demo, fingerprint):
    row = tuning.create_study(space, fingerprint, StudySettings(base=FAST, n_trials=6))
    assert not tuning.robustness(space, row.id).any()
    work(space, row.id)
    study = tuning.read_study(space, row.id)
    codes = tuning.robustness(space, row.id)
    offered = demo.candidates > 0
    assert codes.dtype == np.int8
    assert (codes[~offered] == tuning.NOT_OFFERED).all()
    read = [tuning.trial_confidences(space, row.id, one.number) for one in study.good]
    kept = np.mean([cells >= 0.5 for cells in read], axis=0)
    np.testing.assert_array_equal(codes[offered] == tuning.ROBUST_TRUE, kept >= 0.9)
    np.testing.assert_array_equal(codes[offered] == tuning.ROBUST_FALSE, kept <= 0.1)
    assert (codes[offered] != tuning.NOT_OFFERED).all()
    np.testing.assert_array_equal(tuning.robustness(space, row.id), codes)  # as stored


def test_a_study_is_shared_through_postgresql(tmp_path, postgres_url, monkeypatch, demo):
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    here, there = Workspace(tmp_path / "here"), Workspace(tmp_path / "there")
    fingerprint = here.add_dataset(demo, "demo")
    there.add_dataset(demo, "demo")
    row = tuning.create_study(here, fingerprint, StudySettings(base=FAST, n_trials=4))
    monkeypatch.setattr(studies, "host", lambda: "there")
    work(there, row.id)
    study = tuning.read_study(here, row.id)
    assert (study.status, study.n_done) == ("finished", 4)
    assert tuning.kept_shares(here, row.id).size == 0  # the arrays are on the other machine
    assert tuning.kept_shares(there, row.id).size == int(demo.candidates.sum())
    here.close()
    there.close()


def test_the_command_searches_reports_and_resumes(tmp_path):
    table = "x1,x2,label_a,label_b,label_c\n"
    rows = [(i % 7, i % 5, i % 2, i % 3 == 0, 1) for i in range(60)]
    table += "\n".join(",".join(str(int(cell)) for cell in row) for row in rows)
    (tmp_path / "data.csv").write_text(table)
    place = ["--workspace", str(tmp_path / "space"), "--json"]

    asked = ["--trials", "2", "--workers", "1", "--set", "epochs=1", "--search", "k=3:6"]
    done = plain("tune", str(tmp_path / "data.csv"), *asked, *place)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["state"], told["objective"]) == ("finished", "consistency")
    assert told["finished"] + told["pruned"] == 2
    again = plain("tune", "--report", str(tmp_path / "report.html"), *place)
    assert again.returncode == 0, again.stderr
    page = (tmp_path / "report.html").read_text()
    assert "trust it little" in page
    assert "<script src" not in page  # nothing is fetched
    (tmp_path / "mine.html").write_text("<p>mine")
    assert plain("tune", "--report", str(tmp_path / "mine.html"), *place).returncode == 2
    assert (tmp_path / "mine.html").read_text() == "<p>mine"
    again = plain("tune", "--report", str(tmp_path / "report.html"), *place)
    assert again.returncode == 0, again.stderr
    refused = plain("tune", "--resume", "nothing", *place)
    assert refused.returncode == 2
    assert "no such study" in refused.stderr


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["demo", "--search", "alpha=1:x"], "NAME=LOW:HIGH"),
        (["demo", "--search", "seed"], "cannot be searched"),
        (["demo", "--sensitivity", "beta"], "Unknown study"),
        ([], "What shall be tuned on"),
    ],
)
def test_a_bad_command_is_a_message(tmp_path, asked, says):
    from typer.testing import CliRunner

    from core import cli

    with pytest.raises(PlainError) as caught:
        CliRunner().invoke(
            cli.app,
            ["tune", *asked, "--workspace", str(tmp_path)],
            catch_exceptions=False,
            standalone_mode=False,
        )
    assert says in str(caught.value)


def test_review_asks_first_what_depends_on_a_setting(space, demo, fingerprint):
    from core.engine.graphs import build_instance_graph, build_label_graph
    from core.engine.propagation import Propagator
    from core.review import Reviewer

    assert tuning.dependence(space, fingerprint) is None
    row = tuning.create_study(space, fingerprint, StudySettings(base=FAST, n_trials=6))
    work(space, row.id)
    divided = tuning.dependence(space, fingerprint)
    assert divided.shape == demo.candidates.shape
    shares = tuning.kept_shares(space, row.id)
    offered = demo.candidates > 0
    np.testing.assert_allclose(divided[offered], np.minimum(shares, 1 - shares))
    graphs = build_instance_graph(demo.features), build_label_graph(demo.candidates)
    rng = np.random.default_rng(0)
    Y_hat = rng.random(demo.candidates.shape).astype(np.float32)
    divided = np.where(offered, rng.random(offered.shape), 0).astype(np.float32)
    divided[:, 3:] = 0
    reviewer = Reviewer(demo, Propagator(*graphs), Y_hat, dependence=divided)
    asked = reviewer.questions(order="depends", limit=5)
    assert all(label < 3 for one in asked for label in one.cells[:1])
    first = [divided[one.row, one.cells[0]] for one in asked]
    assert first == sorted(first, reverse=True)
