import json

import numpy as np
import pytest
from finished_run import finished_run
from typer.testing import CliRunner

from core import cli
from core.data.demo import load_demo
from core.review import Reviewer, beginning, difference
from core.review.load import keep_beginning, load_reviewer, make_lens
from core.runs.results import load_results
from core.store import Decision, Workspace


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    run_id = finished_run(workspace, load_demo(n_instances=200))
    yield workspace, run_id
    workspace.close()


@pytest.fixture(scope="module")
def decided(space):
    """Two people decide the same random cells; the second one errs on the first cell."""
    workspace, run_id = space
    run = workspace.runs.get(run_id)
    before = load_reviewer(workspace, run)
    data = before.dataset
    cells = np.random.default_rng(0).permutation(np.argwhere(data.candidates))[:60]
    for who, wrong in (("bob", 1), ("ann", 0)):
        for at, (i, j) in enumerate(cells):
            keep = bool(data.truth[i, j]) ^ (at < wrong)
            workspace.decisions.add(
                Decision(
                    fingerprint=run.fingerprint,
                    instance_id=data.ids[i],
                    label=data.label_names[j],
                    verdict="keep" if keep else "reject",
                    annotator=who,
                    sampled=True,
                )
            )
    return before, load_reviewer(workspace, run)


def test_a_run_is_reviewed_with_the_decisions_that_stand(decided):
    _, after = decided
    assert isinstance(after, Reviewer)
    known = ~np.isnan(after.decided)
    assert known.sum() == 60
    np.testing.assert_array_equal(after.decided[known], after.dataset.truth[known])
    assert after.variability()[after.offered].max() > 0


def test_the_difference_tells_what_decisions_settled_and_which(decided):
    before, after = decided
    found = difference(before, after)
    assert found.settled or found.flipped
    for i, j in found.settled:
        assert 0.05 < before.confidences[i, j] < 0.95
        assert not 0.05 < after.confidences[i, j] < 0.95
    assert all(before.proposed[cell] != after.proposed[cell] for cell in found.flipped)
    answered = int((~np.isnan(after.decided) & (before.states() == 0)).sum())
    still = found.n_open_before - answered - len(found.settled) + len(found.opened)
    assert found.n_open_after == still
    named = [cell for cell in found.because.values() if cell is not None]
    assert named
    assert all(not np.isnan(after.decided[cell]) for cell in named)
    assert sum(count for _, count in found.credit) == len(named)


def test_review_stats_tell_progress_agreement_and_what_is_still_wrong(space, decided):
    workspace, run_id = space
    command = ["review-stats", "--workspace", str(workspace.folder)]
    done = CliRunner().invoke(cli.app, [*command, "--json"])
    (row,) = json.loads(done.stdout)
    assert sum(row["annotators"]["ann"].values()) == 60
    assert row["progress"]["run"] == run_id
    assert row["progress"]["decided"] == 60
    false = row["progress"]["remaining_false"]
    assert false["low"] <= false["estimate"] <= false["high"]
    assert (row["agreement"]["n_shared"], row["agreement"]["n_disagreed"]) == (60, 1)
    assert 0.9 < row["agreement"]["alpha"] < 1
    assert row["unsettled_disagreements"] == 1
    shown = CliRunner().invoke(cli.app, command)
    assert "false candidates would be kept" in shown.stderr
    assert "alpha" in shown.stdout


def test_a_large_run_begins_with_what_was_kept_of_it_and_says_the_same(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    run = workspace.runs.get(finished_run(workspace, load_demo(n_instances=200)))
    data, folder = workspace.load_dataset(run.fingerprint), workspace.runs.folder(run.id)
    made = [
        Decision(
            fingerprint=run.fingerprint,
            instance_id=data.ids[i],
            label=data.label_names[j],
            verdict="keep" if (i + j) % 3 else "reject",
            annotator="ann",
            sampled=True,
        )
        for i, j in np.argwhere(data.candidates)[::40]
    ]

    def said():
        results = load_results(workspace, run)
        reviewers = [load_reviewer(workspace, run, some) for some in ((), made)]
        asked = [[(q.row, q.cells) for q in one.questions(limit=20)] for one in reviewers]
        values = [value for one in reviewers for value in (one.confidences, one.log_odds)]
        return [*values, make_lens(results).look(run.config)], asked

    keep_beginning(workspace, run)
    assert not list(folder.glob("*_start.npz"))  # it is small
    anew, asked = said()
    monkeypatch.setattr(beginning, "LARGE", 100)
    keep_beginning(workspace, run)
    assert {path.name for path in folder.glob("*_start.npz")} == {
        "lens_start.npz",
        "review_start.npz",
    }
    monkeypatch.setattr("core.review.reviewer.Told", None)  # only answers need it
    load_reviewer(workspace, run, ())
    monkeypatch.undo()
    kept, asked_then = said()
    assert asked_then == asked
    for one, other in zip(anew, kept, strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(beginning, "version", lambda _: "another")
    assert beginning.read_beginning(folder) is beginning.read_lens_beginning(folder) is None
    workspace.close()
