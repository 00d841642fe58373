"""The database alone was restored: commands say what is missing and what still works."""

import json

import pytest
from finished_run import finished_run
from typer.testing import CliRunner

from core import cli
from core.data.demo import load_demo
from core.errors import PlainError, StoreError
from core.runs.results import lost_files
from core.runs.worker import retrain
from core.store import Decision, Workspace, backup, restore

RUNNER = CliRunner()


@pytest.fixture
def restored(tmp_path, monkeypatch):
    """A workspace that has the database of another, and nothing else."""
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    here, dataset = Workspace(tmp_path / "here"), load_demo(n_instances=60)
    finished_run(here, dataset)
    cell = {"instance_id": dataset.ids[0], "label": dataset.label_names[0]}
    one = Decision(fingerprint=dataset.fingerprint, verdict="keep", annotator="ann", **cell)
    here.decisions.add(one)
    copy = backup(here)
    here.close()
    (tmp_path / "there").mkdir()
    restore(tmp_path / "there", copy)
    space = Workspace(tmp_path / "there")
    yield space
    space.close()


def test_the_list_says_which_runs_lost_their_files(restored):
    place = ["--workspace", str(restored.folder)]
    done = RUNNER.invoke(cli.app, ["runs", *place], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    assert "gone" in done.output  # the cell may be folded in a narrow terminal
    assert "1 decisions" in done.output
    assert "rain again" in done.output
    (row,) = json.loads(RUNNER.invoke(cli.app, ["runs", "--json", *place]).stdout)
    assert "predictions.npy" in row["lost"]


def test_an_export_says_what_is_gone_and_what_to_do(restored, tmp_path):
    (run,) = restored.runs.list()
    arguments = ["export", run.id, str(tmp_path / "out.csv"), "--workspace", str(restored.folder)]
    done = RUNNER.invoke(cli.app, arguments)
    assert isinstance(done.exception, PlainError)
    assert "gone" in done.exception.title
    assert "again, unchanged" in done.exception.hint
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(StoreError, match="gone"):
        retrain(restored, run.id)


def test_the_data_loaded_again_serves_for_a_new_run_with_the_decisions(restored):
    (run,) = restored.runs.list()
    dataset = load_demo(n_instances=60)
    with pytest.raises(StoreError, match="again, unchanged"):
        restored.load_dataset(run.fingerprint)
    restored.add_dataset(dataset, "again")
    lost = lost_files(restored, run)
    assert lost is not None
    assert lost.hint.startswith("Train again")
    new = restored.runs.get(finished_run(restored, dataset))
    assert lost_files(restored, new) is None
    assert restored.decisions.count(new.fingerprint) == 1
