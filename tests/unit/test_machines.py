"""Several machines share one database; each has its own files."""

import shutil

import pytest
import sqlalchemy as sa
from store_actors import epoch_event, small_data
from typer.testing import CliRunner

from core.cli import app
from core.engine.config import PlainConfig
from core.errors import FilesElsewhere
from core.runs import worker
from core.store import Workspace, schema


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request, tmp_path, monkeypatch):
    """The address of a database that is in none of the workspaces' folders."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    monkeypatch.setenv("PLAIN_DATABASE_URL", url)
    return url


def test_only_the_machine_with_the_files_claims_a_run_and_the_others_say_so(shared, open_on):
    anna, lab = open_on("anna-laptop"), open_on("lab-2")
    data = anna.add_dataset(small_data(), "small")
    run = anna.runs.create(data, PlainConfig(), "hers")
    assert lab.runs.elsewhere(run) == "anna-laptop"
    assert anna.runs.elsewhere(run) is None
    assert lab.runs.claim_next(5, 1, 1.0) is None
    worker.start_queued(lab)
    for use in (
        lambda: lab.runs.claim(run.id, 1, 1.0),
        lambda: lab.runs.folder(run.id),
        lambda: lab.runs.create(data, PlainConfig()),
        lambda: lab.load_dataset(data),
        lambda: worker.run_training(lab, run.id),
    ):
        with pytest.raises(FilesElsewhere, match=r"The files are on anna-laptop\."):
            use()
    assert not (lab.folder / "runs").exists()
    assert anna.runs.claim_next(5, 1, 1.0).id == run.id


def test_a_run_on_another_machine_is_watched_and_steered_but_not_taken(shared, open_on):
    anna, lab = open_on("anna-laptop"), open_on("lab-2")
    run = anna.runs.create(anna.add_dataset(small_data(), "small"), PlainConfig())
    claimed = anna.runs.claim(run.id, 1, 1.0)
    anna.runs.append_events(run.id, [(0, epoch_event(1))], claim=claimed.claim)
    assert lab.runs.last_seq(run.id) == 0
    assert not worker.is_interrupted(lab, lab.runs.get(run.id))
    lab.runs.command(run.id, "pause")
    assert anna.runs.pending_command(run.id) == "pause"
    silent = {"heartbeat": schema.runs.c.heartbeat - 2 * worker.SILENT_SECONDS}
    with anna.database.write() as connection:
        connection.execute(sa.update(schema.runs).values(silent))
    seen = lab.runs.get(run.id)
    assert worker.is_interrupted(lab, seen)
    for take in (lambda: lab.runs.requeue(seen), lambda: worker.launch(lab, run.id)):
        with pytest.raises(FilesElsewhere):
            take()
    anna.runs.append_events(run.id, [(1, epoch_event(2))], claim=claimed.claim)


def test_data_loaded_on_two_machines_is_trained_on_both_each_with_its_own_limit(shared, open_on):
    anna, lab = open_on("anna-laptop"), open_on("lab-2")
    for space in (anna, lab):
        data = space.add_dataset(small_data(), "small")
        space.runs.create(data, PlainConfig())
        assert space.load_dataset(data).n_instances == 4
    assert anna.runs.claim_next(1, 1, 1.0).machine == anna.machines.here
    assert lab.runs.claim_next(1, 1, 1.0).machine == lab.machines.here
    assert anna.runs.claim_next(1, 1, 1.0) is None


def test_rows_from_before_there_were_machines_belong_to_who_has_the_files(shared, open_on):
    anna = open_on("anna-laptop")
    data = anna.add_dataset(small_data(), "small")
    waiting, begun = (anna.runs.create(data, PlainConfig()) for _ in range(2))
    anna.runs.folder(begun.id)
    with anna.database.write() as connection:
        connection.execute(sa.delete(schema.machines))
        for table in (schema.runs, schema.datasets):
            connection.execute(sa.update(table).values(machine=None))
    lab = open_on("lab-2")
    assert lab.runs.elsewhere(lab.runs.get(begun.id)) == "another machine"
    anna = open_on("anna-laptop")
    assert {anna.runs.get(run.id).machine for run in (waiting, begun)} == {anna.machines.here}
    assert lab.runs.elsewhere(lab.runs.get(begun.id)) == "anna-laptop"


def test_a_moved_folder_stays_the_same_machine_under_its_new_name(shared, open_on, tmp_path):
    old = open_on("old")
    run = old.runs.create(old.add_dataset(small_data(), "small"), PlainConfig())
    old.close()
    shutil.move(tmp_path / "old", tmp_path / "new")
    new, lab = open_on("new"), open_on("lab-2")
    assert new.runs.elsewhere(run) is None
    assert lab.runs.elsewhere(run) == "new"


def test_a_database_in_its_folder_belongs_to_it_wherever_it_was_copied_from(tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    first = Workspace(tmp_path / "first")
    run = first.runs.create(first.add_dataset(small_data(), "small"), PlainConfig())
    first.close()
    (tmp_path / "second").mkdir()
    shutil.copy(tmp_path / "first" / "plain.db", tmp_path / "second")
    second = Workspace(tmp_path / "second")
    assert second.machines.here != first.machines.here
    assert second.runs.elsewhere(second.runs.get(run.id)) is None
    second.close()


def test_the_command_line_says_which_machine_has_the_files(shared, open_on):
    anna, lab = open_on("anna-laptop"), open_on("lab-2")
    run = anna.runs.create(anna.add_dataset(small_data(), "small"), PlainConfig(), "hers")

    def plain(*arguments):
        return CliRunner().invoke(app, [*arguments, "--workspace", str(lab.folder)])

    assert "anna-laptop" in plain("runs").stdout
    with pytest.raises(FilesElsewhere, match="files are on anna-laptop"):
        raise plain("resume", run.id).exception
    assert "files are on anna-laptop" in plain("resume", run.id, "--background").stderr
    assert plain("log", run.id).exit_code == 0
