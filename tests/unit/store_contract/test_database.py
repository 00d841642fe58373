"""What holds of lanes, names of labels and the database itself on every database."""

import json
import time

import numpy as np
import pytest
import sqlalchemy as sa
from store_actors import PATIENCE, answer, start, start_all
from store_integrity import integrity

from core.errors import StoreError
from core.store import Database, Decision, Workspace, schema


class TestLanes:
    def test_names_that_no_database_takes_are_given_to_nobody(self, workspace, data):
        assert workspace.lanes.claim(data, "ann", ["\ud800", "a\0b", "c"], 3) == ["c"]

    def test_no_instance_is_given_to_two_people(self, folder, workspace, data):
        actors = [start("lease", folder, f"ann{i}", 60) for i in range(3)]
        taken = [json.loads(out) for out in start_all(actors)]
        assert sorted((one for got in taken for one in got), key=int) == [str(i) for i in range(60)]

    def test_a_lease_is_renewed_released_and_runs_out(self, workspace, data):
        lanes, ids = workspace.lanes, ["a", "b", "c"]
        assert lanes.claim(data, "ann", ids, 2) == ["a", "b"]
        assert lanes.claim(data, "ann", ids, 2) == ["a", "b"]
        assert lanes.claim(data, "bob", ids, 2, seconds=-1) == ["c"]
        assert lanes.claim(data, "cy", ids, 2) == ["c"]
        lanes.release(data, "ann", ["a"])
        assert lanes.claim(data, "bob", ids, 5) == ["a"]
        answer(workspace, data, "ann", ["b"])
        lanes.release(data, "ann")
        assert lanes.claim(data, "bob", ids, 5) == ["a"]

    def test_with_overlap_a_share_of_the_instances_goes_to_two(self, workspace, data):
        lanes, ids = workspace.lanes, [f"i{k}" for k in range(400)]
        for who in ("ann", "bob", "cy"):
            answer(workspace, data, who, lanes.claim(data, who, ids, 400, overlap=0.25))
        assert lanes.claim(data, "ann", ids, 400, overlap=0.25) == ids
        both = lanes.claim(data, "bob", ids, 400, overlap=0.25)
        assert 70 < len(both) < 130
        assert lanes.claim(data, "cy", ids, 400, overlap=0.25) == []

    def test_what_one_other_answered_waits_for_a_second_opinion(self, workspace, data):
        lanes = workspace.lanes
        answer(workspace, data, "ann", lanes.claim(data, "ann", ["a", "b"], 2))
        lanes.claim(data, "bob", ["c"], 1)
        assert lanes.second_opinions(data, "bob", 1.0) == ["a", "b"]
        assert lanes.second_opinions(data, "ann", 1.0) == []
        assert lanes.second_opinions(data, "bob", 0.0) == []
        assert lanes.claim(data, "bob", ["a"], 1, overlap=1.0) == ["a"]
        assert lanes.second_opinions(data, "cy", 1.0) == ["b"]


class TestLabelNames:
    LABELS = ("cat", "dog", "kitten")

    def test_labels_are_renamed_and_merged_and_each_step_is_undone(self, workspace, data):
        store = workspace.labels
        store.rename(data, self.LABELS, "cat", "Felis", "ann")
        store.merge(data, self.LABELS, "kitten", "Felis", "ann")
        assert store.names(data, self.LABELS) == ["Felis", "dog", "Felis"]
        assert store.undo(data, "bob").kind == "merge"
        assert store.names(data, self.LABELS) == ["Felis", "dog", "kitten"]
        assert store.undo(data, "bob").label == "cat"
        assert store.undo(data, "bob") is None
        assert store.names(data, self.LABELS) == list(self.LABELS)
        assert [row.kind for row in store.history(data)] == ["rename", "merge", "undo", "undo"]

    def test_what_cannot_be_renamed_or_merged_is_told(self, workspace, data):
        with pytest.raises(StoreError, match="taken"):
            workspace.labels.rename(data, self.LABELS, "cat", "dog", "ann")
        with pytest.raises(StoreError, match="no label to merge"):
            workspace.labels.merge(data, self.LABELS, "cat", "cow", "ann")
        with pytest.raises(StoreError, match="needed"):
            workspace.labels.rename(data, self.LABELS, "cow", "bull", "ann")
        assert workspace.labels.history(data) == []


class TestDatabase:
    def test_a_database_of_version_1_gets_what_reviewing_and_several_machines_need(
        self, workspace, folder, data, run
    ):
        new = ("sampled", "adjudicates", "batch")
        later = [f"decisions DROP COLUMN {name}" for name in (*new, "received")]
        workspace.runs.folder(run.id)
        later += ["datasets DROP COLUMN machine", "runs DROP COLUMN machine"]
        with workspace.database.write() as connection:
            for table in ("leases", "label_changes", "machines"):
                connection.execute(sa.text(f"DROP TABLE {table}"))
            for column in (*later, "runs DROP COLUMN claim"):
                connection.execute(sa.text(f"ALTER TABLE {column}"))
            connection.execute(sa.text("UPDATE schema_version SET version = 1"))
        workspace.close()
        again = Workspace(folder)
        cell = {"fingerprint": data, "instance_id": "1", "label": "a", "annotator": "b"}
        again.decisions.add(Decision(verdict="keep", sampled=True, batch="c", **cell))
        (stored,) = again.decisions.latest(data)
        assert [getattr(stored, name) for name in new] == [True, False, "c"]
        assert again.lanes.claim(data, "b", ["1"], 1) == ["1"]
        assert again.runs.elsewhere(again.runs.get(run.id)) is None
        assert again.runs.requeue(again.runs.get(run.id))
        assert integrity(again.database) == []
        again.close()

    def test_a_failed_write_leaves_nothing(self, workspace, data):
        def fail():
            with workspace.database.write() as connection:
                connection.execute(sa.update(schema.datasets).values(name="changed"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert workspace.datasets()[0].name == "small"

    def test_a_reader_sees_one_moment_and_does_not_wait(self, workspace, data):
        name = sa.select(schema.datasets.c.name)
        with workspace.database.write() as writer:
            writer.execute(sa.update(schema.datasets).values(name="changed"))
            with workspace.database.read() as reader:
                assert reader.scalar(name) == "small"
        with workspace.database.read() as reader:
            assert reader.scalar(name) == "changed"
            with workspace.database.write() as writer:
                writer.execute(sa.update(schema.datasets).values(name="again"))
            assert reader.scalar(name) == "changed"

    def test_two_processes_may_open_a_fresh_workspace_at_once(self, folder):
        openers = [start("open_fresh", folder) for _ in range(2)]
        assert len(set(start_all(openers))) == 1
        workspace = Workspace(folder)
        assert [row.name for row in workspace.datasets()] == ["raced"]
        assert integrity(workspace.database) == []
        with workspace.database.read() as connection:
            versions = connection.scalars(sa.select(schema.schema_version.c.version)).all()
            machines = connection.scalars(sa.select(schema.machines.c.id)).all()
        assert versions == [schema.latest_version()]
        assert machines == [workspace.machines.here]

    def test_an_older_database_is_brought_up_to_date_once(self, workspace, data, monkeypatch):
        calls = []

        def add_a_column(connection):
            calls.append(1)
            connection.execute(sa.text("ALTER TABLE datasets ADD COLUMN colour TEXT DEFAULT 'red'"))

        monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, add_a_column])
        for _ in range(2):
            database = Database.for_folder(workspace.folder, before_migration=calls.append)
            with database.read() as connection:
                assert connection.scalar(sa.text("SELECT colour FROM datasets")) == "red"
                assert schema.stored_version(connection) == schema.latest_version()
            database.close()
        assert calls == [calls[0], 1]  # first the chance of a copy, then the change, both once

    def test_a_migration_that_fails_changes_nothing(self, workspace, data, monkeypatch):
        def break_down(connection):
            connection.execute(sa.text("ALTER TABLE datasets ADD COLUMN colour TEXT"))
            raise ZeroDivisionError

        monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, break_down])
        with pytest.raises(ZeroDivisionError):
            Database.for_folder(workspace.folder)
        with workspace.database.read() as connection:
            columns = {c["name"] for c in sa.inspect(connection).get_columns("datasets")}
        assert "colour" not in columns

    def test_a_database_of_a_newer_version_is_refused(self, workspace, data):
        with workspace.database.write() as connection:
            newer = {"version": schema.latest_version() + 1, "applied": schema.now()}
            connection.execute(sa.insert(schema.schema_version).values(newer))
        with pytest.raises(StoreError, match="newer version"):
            Database.for_folder(workspace.folder)

    def test_a_foreign_database_is_refused(self, workspace):
        with workspace.database.write() as connection:
            connection.execute(sa.text("DROP TABLE schema_version"))
        with pytest.raises(StoreError, match="not made by PLAIN"):
            Database.for_folder(workspace.folder)

    def test_four_annotators_a_training_and_a_reader_lose_nothing(
        self, folder, workspace, data, run
    ):
        trainer = start("train", folder, run.id, 60)
        writers = [start("decide", folder, f"annotator{i}", 200) for i in range(4)]
        for actor in (trainer, *writers):
            assert actor.stdout.readline() == "ready\n", actor.stderr.read()
        for actor in (trainer, *writers):
            actor.stdin.write("go\n")
            actor.stdin.flush()
        seen = [0]
        while any(actor.poll() is None for actor in writers):
            seen.append(workspace.decisions.count(data))
            workspace.runs.events_after(run.id, workspace.runs.last_seq(run.id) - 1)
            time.sleep(0.02)
        outputs = [actor.communicate(timeout=PATIENCE) for actor in (trainer, *writers)]
        assert [error for _, error in outputs if error] == []
        assert seen == sorted(seen)
        stored = workspace.decisions.history(data)
        assert len({d.uid for d in stored}) == len(stored) == 800
        assert [d.id for d in stored] == sorted(d.id for d in stored)
        assert [seq for seq, _ in workspace.runs.events_after(run.id)] == list(range(60))
        assert integrity(workspace.database) == []
        spent = np.concatenate([json.loads(out) for out, _ in outputs[1:]]) * 1000
        p50, p95 = np.quantile(spent, [0.5, 0.95])
        place = "SQLite" if workspace.database.is_sqlite else "PostgreSQL"
        print(f"\n{place}: a write took p50 {p50:.1f}, p95 {p95:.1f}, at most {spent.max():.0f} ms")
