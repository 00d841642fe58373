import os

import numpy as np
import psutil
import pytest
from typer.testing import CliRunner

from core.bench import disambiguation, effort, finding, harm, report, scale, speed
from core.bench.data import clusters
from core.bench.reference import Reference
from core.cli import app as command_line
from core.data.dataset import CandidateDataset
from core.data.noise import false_share_candidates
from core.engine.config import PlainConfig
from core.engine.scaling import Standardizer
from core.engine.trainer import PlainTrainer
from core.errors import ConfigError, PlainError
from core.methods.cleanlab_scores import self_confidence


def test_the_reference_computes_the_same_pseudo_labels_as_the_engine():
    one = clusters(300, 12, 5)
    Y = one.noisy(1, seed=0)
    X = np.asarray(Standardizer.fit(one.X).apply(one.X))
    reference = Reference(X, Y.astype(np.float32), PlainConfig())
    reference.build()
    trainer = PlainTrainer(PlainConfig(learning_rate=1e-30, epochs=1))
    list(trainer.epochs(CandidateDataset(one.X, Y)))
    assert np.abs(reference.propagate(trainer.predictions) - trainer.pseudo_labels).max() < 1e-5


def test_speed_comparison_reports_every_stage():
    result = speed.compare(clusters(200, 10, 4), epochs=2)
    assert set(result["ratio"]) == {"graph", "propagate", "train", "predict", "total"}
    assert all(ratio > 0 for ratio in result["ratio"].values())
    propagation = speed.compare_propagation(clusters(300, 10, 5))
    assert propagation["max_difference"] <= 1e-5


def test_growth_measures_each_size_in_its_own_process():
    growth = list(speed.grow((300, 600)))
    assert [one["n"] for one in growth] == [300, 600]
    assert all(one["peak_gb"]["epochs"] > 0 for one in growth)
    assert isinstance(speed.exponent(growth), float)


def test_recording_is_timed_beside_the_same_training_alone():
    result = speed.compare_recording(epochs=2)
    assert result["overhead"] == result["recorded"] / result["alone"] - 1


def test_a_section_is_replaced_and_the_rest_kept(tmp_path):
    path = tmp_path / "benchmarks.md"
    report.write_section(path, "one", "first")
    report.write_section(path, "two", "second")
    report.write_section(path, "one", r"new \1 text")
    text = path.read_text()
    assert r"new \1 text" in text
    assert "first" not in text
    assert "second" in text


def test_reviewing_in_our_order_takes_fewer_decisions_than_in_others():
    one = clusters(250, 12, 4, seed=2)
    data = CandidateDataset(one.X, one.noisy(1, seed=0), truth=one.truth)
    (result,) = effort.run([("small", data)], preset="paper")
    needed = {name: counts["0.95"] for name, counts in result["decisions"].items()}
    assert needed["ours"] < min(needed["random"], needed["least confident first"])
    curve = result["curves"]["random"]
    assert curve[0][0] == 40  # the first lap
    assert curve[-1] == (result["n_cells"], 1.0)
    assert result["share_of_random"]["random"] == {"0.95": 1.0, "0.99": 1.0}
    assert len(report.effort_table([result])) == 6


def test_accepting_the_rest_is_tried():
    one = clusters(250, 12, 4, seed=2)
    data = CandidateDataset(one.X, one.noisy(1, seed=0), truth=one.truth)
    found = effort.try_guarantee("small", data, trials=2, preset="paper")
    assert 0 <= found["held"] <= found["granted"] == len(found["accepted"]) <= 2
    assert len(report.guarantee_table([found])) == 2


def test_single_decisions_are_timed():
    timed = effort.time_decisions(400, 8, 5, count=3)
    assert all(seconds > 0 for seconds in timed["seconds"].values())
    assert len(report.decision_table([timed])) == 2


def test_disambiguation_scores_all_methods_on_the_same_candidates():
    one = clusters(600, 8, 5)
    methods = [name for name in disambiguation.METHODS if not name.startswith("cleanlab")]
    results = list(disambiguation.run([one], ["2", "confusable"], methods, 0, lambda _: None))
    assert {result["noise"] for result in results} == {"r=2", "confusable"}
    assert len({result["candidate_f1"] for result in results}) == 2
    by_name = {result["method"]: result for result in results if result["noise"] == "r=2"}
    assert by_name["studio"]["auc"] > by_name["label frequency"]["auc"]
    assert by_name["label frequency"]["macro_auc"] == 0.5
    assert by_name["studio + 200"]["ece"] < 0.1
    tables = report.disambiguation_tables(results, "")
    assert [title for title, _ in tables] == ["600x8x5, r=2", "600x8x5, confusable"]


def test_cleanlabs_self_confidence_is_the_probability_of_the_candidate():
    pytest.importorskip("cleanlab")
    case = next(disambiguation.Case.all_of(clusters(60, 8, 4), ["1"], 0))
    probabilities = np.random.default_rng(0).random(case.candidates.shape)
    found = self_confidence(case.candidates, probabilities)
    offered = case.candidates > 0
    assert np.allclose(found[offered], probabilities[offered])


def test_an_audit_shows_the_truth_of_random_candidates_only():
    case = next(disambiguation.Case.all_of(clusters(60, 8, 4), ["1"], 0))
    decided = disambiguation.audit(case, 3, 0, seed=0)
    known = ~np.isnan(decided)
    assert (known.sum(axis=0) == 3).all()
    assert (case.candidates[known] > 0).all()
    assert np.array_equal(decided[known], case.one.truth[known])
    assert (~np.isnan(disambiguation.audit(case, None, 7, seed=0))).sum() == 7


def test_cleanlabs_order_is_cleanlabs():
    pytest.importorskip("cleanlab")
    from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class

    one = clusters(120, 6, 4, seed=1)
    data = CandidateDataset(one.X, one.noisy(1, seed=0), truth=one.truth)
    reviewer = effort.trained_reviewer(data, PlainConfig(epochs=2), 0)
    given = [np.flatnonzero(row).tolist() for row in data.candidates]
    theirs = get_label_quality_scores_per_class(given, reviewer.confidences.astype(float))
    ours = effort._fixed_orders(reviewer, 0)["cleanlab"]
    np.testing.assert_allclose(theirs[reviewer.offered], ours[reviewer.offered], atol=1e-6)


def test_harm_compares_labels_as_given_with_resolved_ones():
    results = list(
        harm.run([clusters(400, 8, 5)], ["uniform"], [0.0, 0.2], ["studio"], 0, lambda _: None)
    )
    assert [round(one["false_share"], 2) for one in results] == [0.0, 0.2]
    assert results[0]["given"] == 1
    for one in results:
        assert one["studio"] >= -0.005
        assert one["low"] <= one["false_share"] <= one["high"]
        assert one["answered"] >= one["studio"] - 0.002
        assert one["ece_answered"] < 0.1
    assert len(report.harm_tables(results, ["studio"])[0][1]) == 3


@pytest.mark.parametrize("like", [None, "weighted"])
def test_a_share_of_false_candidates_is_that_share(like):
    truth = np.random.default_rng(0).random((300, 6)) < 0.2
    weight = None if like is None else np.random.default_rng(1).random(truth.shape)
    made = false_share_candidates(truth, 0.35, 0, weight) > 0
    assert made[truth].all()
    assert 1 - truth[made].mean() == pytest.approx(0.35, abs=0.005)
    with pytest.raises(ConfigError):
        false_share_candidates(truth, 1.0)


def test_false_labels_are_found_sooner_than_at_random():
    pytest.importorskip("cleanlab")
    made = clusters(400, 12, 4, seed=2)
    (result,) = finding.run([made], 0.1, "paper", 0, lambda _: None)
    counts = result["decisions"]
    assert result["n_false"] == round(result["n_cells"] * 0.1)
    assert set(counts) >= {"ours", "ours, as trained", "cleanlab", "cleanlab, by instance"}
    assert result["n_false"] * 0.9 <= counts["ours"]["0.9"] < counts["random"]["0.9"]
    assert all(one["0.5"] <= one["0.75"] <= one["0.9"] for one in counts.values())
    table = report.finding_table([result])
    assert len(table) == 1 + len(counts)


def test_the_share_to_be_found_must_be_one():
    done = CliRunner().invoke(command_line, ["bench", "effort", "--noise", "5-20%"])
    assert isinstance(done.exception, PlainError)


def test_scale_tells_exponents_and_where_they_lead():
    growth = [scale.measure(n, 1, "cpu") for n in (400, 800)]
    assert all(set(one["seconds"]) == set(scale.STAGES) for one in growth)
    for one in growth:  # as if time grew with n^1.5 and memory by a KB per row
        one["seconds"] = dict.fromkeys(scale.STAGES, one["n"] ** 1.5)
        one["total"], one["peak_gb"]["epochs"] = one["n"] ** 1.5, 1 + one["n"] / 1e6
    powers = scale.exponents(growth)
    assert all(powers[stage] == pytest.approx(1.5) for stage in (*scale.STAGES, "total"))
    far = scale.extrapolate(growth, 10**6, nodes=4)
    others = (len(scale.STAGES) - 1) * 10**9 / 3600
    assert far["hours"] == pytest.approx(others + far["graph_hours"])
    assert far["graph_hours"] > 800**1.5 * 10**6 / 800 / 3600  # more cells for every row
    assert far["peak_gb"] == pytest.approx(2)
    assert far["moved_gb"] == pytest.approx(2 * 4 * 10**6 * 50 * 3 / 4 / 1e9)
    result = {"growth": growth, "exponents": powers, "farther": [far]}
    assert [rows[0][-1] for _, rows in scale.tables(result)] == ["n^", "1,000,000"]
    busy = {**growth[-1], "total": 3 * growth[-1]["total"], "n_programs": 2}
    (_, rows) = scale.tables(result | {"busy": busy})[1]
    assert [row[-1] for row in rows] == ["", "ratio", "3.00", "1.00", ""]


def test_a_busy_machine_is_busy_until_it_is_measured():
    before = {one.pid for one in psutil.Process().children()}
    with scale.busy_machine() as n_programs:
        programs = [one for one in psutil.Process().children() if one.pid not in before]
        assert len(programs) == n_programs == os.cpu_count()
    assert not any(one.is_running() for one in programs)


def test_sizes_of_scale_are_numbers():
    done = CliRunner().invoke(command_line, ["bench", "scale", "--sizes", "many"])
    assert done.exit_code != 0
