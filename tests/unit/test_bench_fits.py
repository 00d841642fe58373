"""The grid of methods, sets, noise and folds: kept, resumed, limited, compared."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core.bench import fits
from core.bench.comparison import PAPER, PAPER_METHODS, Comparison
from core.bench.data import clusters, find_sets
from core.bench.tuning import convergence
from core.cli import app
from core.cli.compare import chosen_methods
from core.cli.screen import Reports
from core.engine.config import PlainConfig
from core.errors import PlainError
from core.methods import METHODS
from plain_app import method_report
from plain_app.charts.methods import (
    convergence_points,
    critical_figure,
    critical_points,
    curve_figure,
    sensitivity_points,
)


@pytest.fixture
def folder(tmp_path):
    for name, seed in (("one", 0), ("two", 1)):
        made = clusters(60, 6, 4, seed)
        np.savez(tmp_path / f"{name}.npz", X=made.X, Y=made.truth)
    own = clusters(60, 6, 4, 2)
    np.savez(tmp_path / "own.npz", X=own.X, Y=own.truth, Yp=own.noisy(1, 0))
    return tmp_path


def run(wanted, folder, path, limit=60.0, workers=1):
    done = []
    file = fits.FitFile(path)
    fits.run(wanted, folder, file, limit, workers, done.append)
    return done, file


def test_a_set_with_its_own_candidates_has_just_those(folder):
    wanted = fits.all_fits(folder, ["one", "own"], [1, 3], ["ml-knn"], 2, 0)
    assert [(fit.set, fit.r, fit.fold) for fit in wanted] == [
        ("one", 1, 1),
        ("one", 1, 2),
        ("one", 3, 1),
        ("one", 3, 2),
        ("own", None, 1),
        ("own", None, 2),
    ]


def test_finished_fits_are_never_computed_again_also_after_a_kill(folder, tmp_path):
    path = tmp_path / "fits.jsonl"
    names = ["ml-knn", "pml-ni", "label-frequency"]
    wanted = fits.all_fits(folder, ["one", "two"], [1], names, 2, 0)
    done, _ = run(wanted[:5], folder, path)
    assert len(done) == 5
    assert {one["state"] for one in done} == {fits.DONE}
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[0][:50])  # killed while writing
    done, file = run(wanted, folder, path, workers=2)
    assert len(done) == len(wanted) - 5
    assert path.read_text().startswith(whole)
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert run(wanted, folder, path)[0] == []
    tables = dict(Comparison(file.results[fit] for fit in wanted).tables())
    assert len(tables["one, r = 1: mean and deviation over folds"]) == 4
    assert any("Friedman" in title for title in tables)
    np.savez(folder / "one.npz", X=clusters(60, 6, 4, 5).X, Y=clusters(60, 6, 4, 5).truth)
    changed = fits.all_fits(folder, ["one"], [1], ["ml-knn"], 2, 0)
    assert not any(file.is_done(fit, 60.0) for fit in changed)  # other data, other fits


def test_a_fit_is_what_its_method_gives_in_this_process(folder, tmp_path):
    (fit, *_) = fits.all_fits(folder, ["one"], [1], ["pml-ni"], 2, 0)
    (done, *_), _ = run([fit], folder, tmp_path / "fits.jsonl")
    here = fits.compute(fit, fits.load_set(folder / "one.npz"))
    for measure in ("average_precision", "hamming_loss", "micro_f1", "confidence_auc"):
        assert done[measure] == pytest.approx(here[measure])


def test_a_method_that_is_too_slow_is_ended_said_and_tried_again_with_more_time(folder, tmp_path):
    path = tmp_path / "fits.jsonl"
    wanted = fits.all_fits(folder, ["one"], [1], ["particle"], 2, 0)
    done, file = run(wanted, folder, path, limit=0.05)
    assert [one["state"] for one in done] == [fits.SLOW, fits.SLOW]
    rows = dict(Comparison(done).tables())["Not finished"]
    assert ["particle", "one, r = 1", "a fit took over 0.05 s"] in rows
    assert file.is_done(wanted[0], 0.05)
    assert not file.is_done(wanted[0], 60.0)


def test_a_method_that_fails_does_not_end_the_others(folder, tmp_path):
    np.savez(folder / "tiny.npz", X=np.zeros((4, 2)), Y=np.eye(4, 2, dtype=np.uint8))
    wanted = fits.all_fits(folder, ["tiny", "one"], [1], ["ml-knn"], 2, 0)
    done, _ = run(wanted, folder, tmp_path / "fits.jsonl")
    assert [one["state"] for one in done] == [fits.FAILED] * 2 + [fits.DONE] * 2
    assert "at least 3 instances" in done[0]["error"]
    again, _ = run(wanted, folder, tmp_path / "fits.jsonl")
    assert [one["set"] for one in again] == ["tiny", "tiny"]


def test_another_file_is_not_taken_for_fits(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(PlainError, match="Line 1"):
        fits.FitFile(path)


def test_methods_are_named_or_all():
    assert chosen_methods("all") == list(METHODS)
    assert chosen_methods("pml-ni, ml-knn") == ["pml-ni", "ml-knn"]
    with pytest.raises(PlainError, match="pml-in"):
        chosen_methods("pml-in")


def test_the_papers_figures_have_a_method_each():
    assert set(PAPER_METHODS) <= set(METHODS)
    for measures in PAPER.values():
        assert all(len(values) == len(PAPER_METHODS) for values in measures.values())


def test_the_command_compares_keeps_and_goes_on(folder, tmp_path):
    runner, path = CliRunner(), tmp_path / "kept.jsonl"
    command = ["bench", "quality", "--data", str(folder), "--sets", "own", "--folds", "2"]
    command += ["--methods", "ml-knn,label-frequency", "--cells", str(path)]  # as it was called
    first = runner.invoke(app, [*command, "--json"])
    assert first.exit_code == 0, first.output
    assert len(json.loads(first.stdout)) == len(path.read_text().splitlines()) == 4
    again = runner.invoke(app, [*command, "--write", str(tmp_path / "report.md")])
    assert "4 fits, 4 of them in" in again.stderr
    assert "own candidates: mean and deviation over folds" in (tmp_path / "report.md").read_text()
    wrong = runner.invoke(app, [*command[:-3], "knn"])
    assert wrong.exit_code != 0


def test_an_interruption_ends_at_once_and_keeps_what_was_finished(folder, tmp_path):
    wanted = fits.all_fits(folder, ["one"], [1], ["label-frequency"], 10, 0)
    file = fits.FitFile(tmp_path / "fits.jsonl")

    def press(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fits.run(wanted, folder, file, 60.0, 2, press)
    assert 1 <= len(file.results) <= 2  # one of each process at most
    assert {one["state"] for one in file.results.values()} == {fits.DONE}


def test_any_file_with_truth_is_a_set_also_sparse(tmp_path):
    made = clusters(40, 5, 4, 3)
    names = [f"l{j}" for j in range(4)]
    table = pd.DataFrame(made.X, columns=[f"f{k}" for k in range(5)])
    table["candidates"] = ["|".join(np.array(names)[row > 0]) for row in made.noisy(1, 0)]
    table["truth"] = ["|".join(np.array(names)[row > 0]) for row in made.truth]
    table.to_csv(tmp_path / "unseen.csv", index=False)
    sparse = [
        " ".join(
            [",".join(map(str, np.flatnonzero(labels)))]
            + [f"{at + 1}:{value:.3f}" for at, value in enumerate(row)]
        )
        for row, labels in zip(made.X, made.truth, strict=True)
    ]
    (tmp_path / "words.svm").write_text("\n".join(sparse) + "\n")
    (tmp_path / "notes.md").write_text("not data")
    assert list(find_sets(tmp_path)) == ["unseen", "words"]
    wanted = fits.all_fits(tmp_path, ["unseen", "words"], [1], ["ml-knn"], 2, 0)
    assert [(one.set, one.r) for one in wanted[::2]] == [("unseen", None), ("words", 1)]
    done, _ = run(wanted, tmp_path, tmp_path / "fits.jsonl")
    assert {one["state"] for one in done} == {fits.DONE}
    alone = fits.all_fits(tmp_path / "words.svm", ["words"], [2], ["ml-knn"], 2, 0)
    assert len(alone) == 2


def test_with_other_defaults_a_method_is_computed_again(folder, monkeypatch):
    before = fits.all_fits(folder, ["one"], [1], ["ml-knn"], 2, 0)
    own = METHODS["ml-knn"]
    monkeypatch.setitem(METHODS, "ml-knn", own._replace(settings={"k": 3}))
    assert not set(before) & set(fits.all_fits(folder, ["one"], [1], ["ml-knn"], 2, 0))


def test_the_report_is_one_page_that_loads_nothing(folder, tmp_path):
    target = tmp_path / "report.html"
    asked = ["bench", "quality", "--data", str(folder), "--methods", "ml-knn,pml-ni,hale-style"]
    asked += ["--r", "1", "--folds", "2", "--fits", str(tmp_path / "fits.jsonl")]
    asked += ["--report", str(target)]
    reports = Reports(lambda *_: None, method_report.write)
    done = CliRunner().invoke(app, asked, obj=reports)
    assert done.exit_code == 0, done.output
    page = target.read_text()
    assert "Mean ranks: average precision" in page
    assert "Seconds of one fit" in page
    assert not re.search(r"<(script[^>]* src|link|img|iframe)\b", page[:3000] + page[-20000:])
    assert isinstance(CliRunner().invoke(app, asked).exception, PlainError)  # nobody draws


@pytest.mark.parametrize("option", ["--report", "--fits"])
def test_a_file_of_the_users_is_never_replaced(option, folder, tmp_path):
    mine = tmp_path / "mine" / "notes"  # not among the data
    mine.parent.mkdir()
    mine.write_text("one line of mine")
    asked = ["bench", "quality", "--data", str(folder), "--methods", "ml-knn", "--r", "1"]
    asked += ["--folds", "2", "--fits", str(tmp_path / "fits.jsonl"), option, str(mine)]
    done = CliRunner().invoke(app, asked, obj=Reports(lambda *_: None, method_report.write))
    said = {"--report": "has this name already", "--fits": "not a file of finished fits"}
    assert said[option] in str(done.exception)
    assert mine.read_text() == "one line of mine"
    assert not (tmp_path / "fits.jsonl").exists()  # told before any work


def test_methods_that_cannot_be_told_apart_are_joined():
    points = critical_points(["a", "b", "c", "d"], [4.0, 1.0, 1.5, 2.6], 1.2)
    assert points.names == ["b", "c", "d", "a"]
    assert points.groups == [(1.0, 1.5), (1.5, 2.6)]
    assert critical_figure(points).data


def test_curves_have_what_they_run_along():
    found = [
        {"set": "one", "setting": "k", "value": k, "average_precision": 0.5, "auc": 0.6}
        for k in (5, None)
    ]
    (points,) = sensitivity_points(found)
    assert (points.along, points.x) == ("k", ["5", "∞"])
    (points,) = convergence_points({"one": {"objective": [4.0, 2.0, 1.0]}})
    assert points.lines == {"objective": [1.0, 0.5, 0.25]}
    assert len(curve_figure(points).data) == 1


def test_training_converges_on_a_made_set():
    base = PlainConfig(epochs=4)
    (lines,) = convergence([clusters(60, 6, 4, 0)], 1, base).values()
    assert len(lines["objective"]) == 4
    assert lines["objective"][-1] < lines["objective"][0]
