"""What holds of the store on every database it runs on."""

import json
import time

import numpy as np
import pytest
import sqlalchemy as sa
from store_actors import answer, epoch_event, killed_at, small_data, start, start_all

from core.engine.config import PlainConfig
from core.engine.events import GraphsBuilt, RunEnded, RunStarted
from core.errors import ClaimLost, DatasetNotFound, RunEndedError, RunNotFound, StoreError
from core.store import CurrentDecisions, Database, Decision, RunState, Workspace, schema

ENDED = [RunState.FINISHED, RunState.STOPPED, RunState.FAILED]
ME = (1, 1.0)  # a process that launches


@pytest.fixture(params=["sqlite", "postgresql"])
def folder(request, tmp_path, monkeypatch):
    """The folder of a workspace; PLAIN_DATABASE_URL is set where its database is PostgreSQL."""
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    if request.param == "postgresql":
        monkeypatch.setenv("PLAIN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    return tmp_path / "workspace"


@pytest.fixture
def workspace(folder):
    workspace = Workspace(folder)
    yield workspace
    workspace.close()


@pytest.fixture
def data(workspace) -> str:
    return workspace.add_dataset(small_data(), "small")


@pytest.fixture
def runs(workspace):
    return workspace.runs


@pytest.fixture
def run(runs, data):
    """A run at work."""
    return runs.claim(runs.create(data, PlainConfig()).id, 100, 1.0)


class TestRuns:
    def test_a_new_run_waits_with_its_settings(self, runs, data):
        config = PlainConfig(alpha=0.25, hidden=(8, 9), n_steps=None)
        run = runs.create(data, config, "first", "a note")
        assert runs.get(run.id) == run
        assert (run.config, run.name, run.note) == (config, "first", "a note")
        assert (run.state, run.epoch, run.started, run.deleted) == ("queued", 0, None, None)

    def test_ids_sort_by_age_and_fit_paths_and_addresses(self, runs, data):
        ids = []
        for _ in range(5):
            ids.append(runs.create(data, PlainConfig()).id)
            time.sleep(0.002)
        assert ids == sorted(ids)
        assert all(one.isalnum() and one == one.lower() and len(one) == 13 for one in ids)
        assert [run.id for run in runs.list()] == ids[::-1]

    def test_a_run_is_found_by_the_beginning_of_its_id(self, runs, data):
        run = runs.create(data, PlainConfig())
        assert runs.get(run.id[:6]).id == run.id
        runs.create(data, PlainConfig())
        with pytest.raises(RunNotFound, match="Which run"):
            runs.get(run.id[:3])
        assert runs.get(run.id).id == run.id

    @pytest.mark.parametrize("unknown", ["zzz", "", "%", "_" * 13])
    def test_an_unknown_run_is_not_found(self, runs, run, unknown):
        with pytest.raises(RunNotFound):
            runs.get(unknown)
        with pytest.raises(RunNotFound):
            runs.rename(unknown, "x")

    def test_a_run_needs_data_of_this_workspace(self, runs):
        with pytest.raises(DatasetNotFound):
            runs.create("0" * 64, PlainConfig())

    def test_the_folder_is_made_with_its_settings(self, runs, run, folder):
        path = runs.folder(run.id)
        assert path == folder / "runs" / run.id
        assert PlainConfig(**json.loads((path / "config.json").read_text())) == run.config

    def test_any_text_can_be_a_name_or_note(self, runs, run):
        runs.rename(run.id, "naïve \U0001f600 \0 \ud800 '; DROP TABLE runs; --")
        runs.annotate(run.id, "line\nline")
        assert runs.get(run.id).name.startswith("naïve \U0001f600 � ? ';")
        assert runs.get(run.id).note == "line\nline"

    def test_delete_hides_restore_undoes_and_purge_is_final(self, runs, run, workspace, data):
        with pytest.raises(StoreError, match="running"):
            runs.delete(run.id)
        runs.append_events(run.id, [(0, epoch_event(1))])
        runs.finish(run.id, RunState.FINISHED)
        with pytest.raises(StoreError, match="deleted"):
            runs.purge(run.id)
        path = runs.folder(run.id)
        runs.delete(run.id)
        assert runs.list() == []
        assert runs.list(include_deleted=True)[0].deleted
        runs.restore(run.id)
        assert len(runs.list()) == 1
        decision = Decision(
            fingerprint=data,
            instance_id="1",
            label="a",
            verdict="keep",
            annotator="x",
            run_id=run.id,
        )
        workspace.decisions.add(decision)
        runs.delete(run.id)
        runs.purge(run.id)
        assert not path.exists()
        assert runs.events_after(run.id) == []
        with pytest.raises(RunNotFound):
            runs.get(run.id)
        assert workspace.decisions.latest(data)[0].run_id == run.id


class TestQueue:
    def test_the_oldest_waiting_run_is_taken_up_to_the_limit(self, runs, data):
        first, second, third = (runs.create(data, PlainConfig()) for _ in range(3))
        runs.delete(first.id)
        assert runs.claim_next(1, *ME).id == second.id
        assert runs.claim_next(1, *ME) is None
        assert runs.claim_next(2, *ME).id == third.id
        assert runs.claim_next(9, *ME) is None

    def test_a_claimed_run_belongs_to_one_process(self, runs, data):
        run = runs.create(data, PlainConfig())
        taken = runs.claim_next(1, *ME)
        assert (taken.state, taken.pid, taken.heartbeat) == ("running", 1, None)
        assert runs.claim(run.id, 7, 1.5).pid == 7
        assert runs.claim(run.id, 8, 2.5) is None
        assert runs.get(run.id).pid_started == 1.5

    def test_a_direct_claim_respects_the_limit_it_is_given(self, runs, run, data):
        waiting = runs.create(data, PlainConfig())
        assert runs.claim(waiting.id, 8, 1.0, max_running=1) is None
        assert runs.claim(waiting.id, 8, 1.0, max_running=1, dead=[run.id]).pid == 8

    def test_a_paused_run_keeps_its_place(self, runs, run, data):
        runs.create(data, PlainConfig())
        runs.set_state(run.id, RunState.PAUSED)
        assert runs.claim_next(1, *ME) is None
        assert runs.claim_next(1, *ME, dead=[run.id]) is not None

    def test_a_dead_run_goes_back_to_the_queue_once(self, runs, run):
        runs.command(run.id, "pause")
        dead = runs.get(run.id)
        assert runs.requeue(dead)
        assert not runs.requeue(dead)
        again = runs.claim(run.id, 200, 2.0)
        assert (again.pid, again.command, again.started) == (200, None, run.started)
        assert not runs.requeue(dead)

    def test_a_run_that_shows_life_is_not_requeued(self, runs, run):
        seen = runs.get(run.id)
        time.sleep(0.01)
        assert runs.heartbeat(run.id)
        assert not runs.requeue(seen)
        assert runs.get(run.id).state == "running"

    def test_a_process_that_lost_its_claim_writes_nothing(self, runs, run):
        runs.append_events(run.id, [(0, epoch_event(1))], claim=run.claim)
        assert runs.requeue(runs.get(run.id))
        new = runs.claim(run.id, 200, 2.0)
        assert new.claim > run.claim
        late = {"claim": run.claim}
        for write in (
            lambda: runs.append_events(run.id, [(1, epoch_event(2))], **late),
            lambda: runs.append_events(run.id, [], **late),
            lambda: runs.finish(run.id, RunState.FINISHED, **late),
            lambda: runs.set_state(run.id, RunState.PAUSED, **late),
            lambda: runs.set_reason(run.id, "late", **late),
            lambda: runs.check_claim(run.id, **late),
        ):
            with pytest.raises(ClaimLost, match="taken over"):
                write()
        assert not runs.heartbeat(run.id, **late)
        assert runs.get(run.id) == new
        assert runs.last_seq(run.id) == 0

    def test_a_claim_is_lost_as_soon_as_the_run_is_queued_again(self, runs, run):
        assert runs.requeue(run)
        with pytest.raises(ClaimLost):
            runs.append_events(run.id, [(0, epoch_event(1))], claim=run.claim)

    def test_a_launched_run_is_its_launchers_until_it_is_handed_over_and_claimed(self, runs, data):
        runs.create(data, PlainConfig())
        taken = runs.claim_next(1, *ME)
        assert runs.hand_over(taken, 7, 1.5)
        assert (runs.get(taken.id).pid, runs.get(taken.id).heartbeat) == (7, None)
        claimed = runs.claim(taken.id, 7, 1.5)
        assert claimed.heartbeat is not None
        assert not runs.hand_over(taken, 8, 2.5)
        assert runs.get(taken.id) == claimed

    def test_an_end_may_be_repeated_by_whoever_did_not_hear_that_it_was_stored(self, runs, run):
        last = [(0, RunEnded(state="finished", epochs=0, seconds=0))]
        for _ in range(2):
            runs.finish(run.id, RunState.FINISHED, last_events=last, claim=run.claim)
        assert runs.last_seq(run.id) == 0

    def test_the_reason_of_an_interruption_is_kept_until_the_next_claim(self, runs, run):
        runs.set_reason(run.id, "The disk is full.", run.claim)
        assert runs.get(run.id).error == "The disk is full."
        runs.requeue(runs.get(run.id))
        assert runs.claim(run.id, 200, 2.0).error is None

    def test_four_servers_never_start_more_than_the_limit_nor_one_run_twice(
        self, folder, runs, data
    ):
        ids = {runs.create(data, PlainConfig()).id for _ in range(6)}
        servers = [start("claim", folder, 2) for _ in range(4)]
        taken = [one for out in start_all(servers) for one in json.loads(out)]
        assert len(taken) == 2
        assert set(taken) < ids
        assert [run.state for run in runs.list()].count(RunState.RUNNING) == 2


class TestCommands:
    def test_a_command_waits_until_the_state_answers_it(self, runs, run):
        assert runs.pending_command(run.id) is None
        runs.command(run.id, "pause")
        assert runs.pending_command(run.id) == "pause"
        runs.set_state(run.id, RunState.PAUSED)
        assert runs.pending_command(run.id) is None
        runs.command(run.id, "resume")
        assert runs.pending_command(run.id) == "resume"
        runs.set_state(run.id, RunState.RUNNING)
        assert runs.pending_command(run.id) is None

    def test_answering_one_command_does_not_lose_the_next(self, runs, run):
        runs.command(run.id, "pause")
        runs.command(run.id, "stop")
        runs.set_state(run.id, RunState.PAUSED)
        assert runs.pending_command(run.id) == "stop"

    def test_nothing_undoes_stop(self, runs, run):
        runs.command(run.id, "stop")
        runs.command(run.id, "resume")
        assert runs.pending_command(run.id) == "stop"

    def test_resume_is_heard_by_a_process_that_is_about_to_pause(self, runs, run):
        runs.command(run.id, "pause")
        runs.command(run.id, "resume")
        runs.set_state(run.id, RunState.PAUSED)  # it had heard the first one only
        assert runs.pending_command(run.id) == "resume"

    def test_a_waiting_run_stops_at_once_and_cannot_pause(self, runs, data):
        run = runs.create(data, PlainConfig())
        with pytest.raises(StoreError, match="queue"):
            runs.command(run.id, "pause")
        with pytest.raises(StoreError, match="not begun"):
            runs.set_state(run.id, RunState.PAUSED)
        runs.command(run.id, "stop")
        assert runs.get(run.id).state == "stopped"
        assert runs.claim_next(5, *ME) is None


class TestEvents:
    def test_events_come_back_as_they_were(self, runs, run, data):
        told = [
            RunStarted(
                config=PlainConfig(n_steps=None, hidden=(4, 5)),
                fingerprint=data,
                n_instances=4,
                n_features=3,
                n_labels=2,
                device="cpu",
                versions={"python": "3"},
            ),
            GraphsBuilt(
                seconds=0.1, search="exact", recall=None, n_edges=4, n_isolated=0, n_label_edges=1
            ),
            epoch_event(1),
            RunEnded(state="finished", epochs=1, seconds=0.1 + 0.2),
        ]
        runs.append_events(run.id, enumerate(told))
        assert runs.events_after(run.id) == list(enumerate(told))
        assert runs.events_after(run.id, 1, limit=1) == [(2, told[2])]
        assert runs.last_seq(run.id) == 3
        assert runs.get(run.id).epoch == 1

    def test_figures_that_are_not_numbers_are_kept(self, runs, run):
        event = epoch_event(1).model_copy(update={"metrics": {"auc": float("nan")}})
        runs.append_events(run.id, [(0, event)])
        assert np.isnan(runs.events_after(run.id)[0][1].metrics["auc"])

    def test_an_event_told_again_is_ignored(self, runs, run):
        runs.append_events(run.id, [(0, epoch_event(1)), (1, epoch_event(2))])
        runs.append_events(run.id, [(1, epoch_event(99)), (2, epoch_event(3))])
        assert [event.epoch for _, event in runs.events_after(run.id)] == [1, 2, 3]
        assert runs.get(run.id).epoch == 3

    @pytest.mark.parametrize("seqs", [[1], [0, 2], [0, 0], [0, 1, 1]])
    def test_a_gap_or_a_double_is_refused_whole(self, runs, run, seqs):
        with pytest.raises(StoreError, match="gaps"):
            runs.append_events(run.id, [(seq, epoch_event(1)) for seq in seqs])
        assert runs.last_seq(run.id) == -1

    def test_events_need_a_run(self, runs, workspace):
        with pytest.raises(RunNotFound):
            runs.append_events("zzz", [(0, epoch_event(1))])


class TestEndedRuns:
    @pytest.mark.parametrize("state", ENDED)
    def test_nothing_but_name_note_and_deletion_changes(self, runs, run, state):
        runs.append_events(run.id, [(0, epoch_event(1))])
        last = RunEnded(state=str(state), epochs=1, seconds=1)
        runs.finish(run.id, state, "why \0", last_events=[(1, last)])
        ended = runs.get(run.id)
        assert (ended.state, ended.error, ended.command) == (state, "why �", None)
        assert ended.ended
        assert runs.last_seq(run.id) == 1
        for change in (
            lambda: runs.append_events(run.id, [(2, epoch_event(2))]),
            lambda: runs.set_state(run.id, RunState.RUNNING),
            lambda: runs.command(run.id, "stop"),
            lambda: runs.finish(run.id, RunState.FAILED),
            lambda: runs.claim(run.id, 1, 1.0),
        ):
            with pytest.raises(RunEndedError):
                change()
        runs.append_events(run.id, [(0, epoch_event(7)), (1, last)])  # a repetition is harmless
        assert not runs.heartbeat(run.id)
        assert not runs.requeue(ended)
        assert runs.get(run.id) == ended
        runs.rename(run.id, "kept")
        runs.annotate(run.id, "good")
        assert (runs.get(run.id).name, runs.get(run.id).note) == ("kept", "good")

    def test_a_failed_ending_changes_nothing(self, runs, run):
        with pytest.raises(StoreError, match="gaps"):
            runs.finish(run.id, RunState.FINISHED, last_events=[(5, epoch_event(1))])
        assert runs.get(run.id).state == "running"

    def test_states_that_make_no_sense_are_bugs(self, runs, run):
        with pytest.raises(ValueError, match="cannot end"):
            runs.finish(run.id, RunState.PAUSED)
        with pytest.raises(ValueError, match="requeue"):
            runs.set_state(run.id, RunState.QUEUED)
        assert [state for state in RunState if state.is_ended] == ENDED


class TestDecisions:
    @pytest.fixture
    def decide(self, workspace, data):
        def add(verdict, annotator="ann", instance="1", label="cat", **more) -> int:
            cell = {"fingerprint": data, "instance_id": instance, "label": label}
            return workspace.decisions.add(
                Decision(verdict=verdict, annotator=annotator, **cell, **more)
            )

        return add

    @pytest.fixture
    def verdicts(self, workspace, data):
        return lambda: [
            (d.instance_id, d.label, d.verdict) for d in workspace.decisions.latest(data)
        ]

    def test_a_decision_keeps_all_it_was_told(self, workspace, data):
        given = Decision(
            uid="one",
            fingerprint=data,
            instance_id="naïve 'id'",
            label="\U0001f600",
            verdict="unsure",
            annotator="ann",
            run_id="r",
            confidence=0.1 + 0.2,
            shown=False,
            seconds=1.5,
        )
        assert workspace.decisions.add(given) == 1
        (stored,) = workspace.decisions.history(data)
        assert stored == given.model_copy(update={"id": stored.id})
        assert stored.id is not None

    def test_sent_again_it_is_ignored(self, decide, workspace, data):
        assert decide("keep", uid="same") == 1
        assert decide("reject", uid="same") == 0
        again = workspace.decisions.history(data)
        more = [replaced_uid(again[0], uid) for uid in ("same", "new", "new")]
        assert workspace.decisions.add_many(more) == 1
        assert workspace.decisions.add_many([]) == 0
        assert [d.uid for d in workspace.decisions.history(data)] == ["same", "new"]

    def test_the_latest_of_a_cell_wins(self, decide, verdicts, workspace, data):
        decide("keep")
        decide("reject", annotator="bob")
        decide("unsure", instance="2")
        assert verdicts() == [("1", "cat", "reject"), ("2", "cat", "unsure")]
        both = workspace.decisions.by_annotator(data)
        assert {name: [d.verdict for d in found] for name, found in both.items()} == {
            "ann": ["keep", "unsure"],
            "bob": ["reject"],
        }

    def test_undo_steps_back_as_often_as_it_is_asked(self, decide, verdicts, workspace, data):
        for verdict in ("keep", "reject", "unsure"):
            decide(verdict)
        for verdict in ("reject", "keep"):
            decide("undo")
            assert verdicts() == [("1", "cat", verdict)]
        decide("undo")
        decide("undo")  # nothing is left to undo
        assert verdicts() == []
        decide("reject")
        assert verdicts() == [("1", "cat", "reject")]
        assert workspace.decisions.count(data) == 8

    def test_decisions_sent_together_keep_their_order(self, verdicts, workspace, data):
        cell = {"fingerprint": data, "instance_id": "1", "label": "cat", "annotator": "ann"}
        sent = ["keep", "reject", "unsure", "undo", "undo", "reject", "undo"] * 200
        assert workspace.decisions.add_many(Decision(verdict=v, **cell) for v in sent) == 1400
        assert [d.verdict for d in workspace.decisions.history(data)] == sent
        assert verdicts() == [("1", "cat", "keep")]

    def test_undo_is_of_the_annotator_and_the_cell(self, decide, verdicts):
        decide("keep")
        decide("reject", annotator="bob")
        decide("keep", label="dog")
        decide("undo")
        assert verdicts() == [("1", "cat", "reject"), ("1", "dog", "keep")]
        decide("undo", annotator="bob")
        assert verdicts() == [("1", "dog", "keep")]

    def test_history_tells_everything_of_a_cell(self, decide, workspace, data):
        decide("keep")
        decide("undo")
        decide("keep", label="dog")
        decide("keep", instance="2")
        history = workspace.decisions.history
        assert [d.verdict for d in history(data, "1", "cat")] == ["keep", "undo"]
        assert len(history(data, "1")) == 3
        assert len(history(data, label="cat")) == 3

    @pytest.mark.parametrize(
        "wrong",
        [
            {"verdict": "maybe"},
            {"annotator": ""},
            {"label": "a\0b"},
            {"instance_id": "\ud800"},
            {"confidence": float("nan")},
        ],
    )
    def test_what_cannot_be_stored_is_refused_with_the_field(self, decide, data, wrong):
        fields = {"fingerprint": data, "instance_id": "1", "label": "a", "annotator": "b"}
        with pytest.raises(StoreError, match=next(iter(wrong))):
            Decision(**{**fields, "verdict": "keep", **wrong})

    def test_decisions_need_data_of_this_workspace_and_come_all_or_none(self, workspace, data):
        cell = {"instance_id": "1", "label": "a", "verdict": "keep", "annotator": "b"}
        pair = [Decision(fingerprint=data, **cell), Decision(fingerprint="0", **cell)]
        with pytest.raises(DatasetNotFound):
            workspace.decisions.add_many(pair)
        assert workspace.decisions.count(data) == 0

    def test_decisions_made_together_are_taken_back_together(
        self, decide, verdicts, workspace, data
    ):
        decide("keep", batch="b")
        decide("keep", label="dog", batch="b")
        decide("keep", label="cow", batch="b", annotator="bob")
        made = workspace.decisions.history(data)
        decide("reject", label="dog")  # stands on the second: not laid bare
        for _ in range(2):
            workspace.decisions.undo(made, "ann")
        assert verdicts() == [("1", "cow", "keep"), ("1", "dog", "reject")]

    def test_an_adjudicating_decision_goes_before_newer_ones_until_it_is_undone(
        self, decide, verdicts
    ):
        decide("keep")
        decide("reject", annotator="judge", adjudicates=True)
        decide("keep", annotator="bob")
        assert verdicts() == [("1", "cat", "reject")]
        decide("undo", annotator="judge")
        assert verdicts() == [("1", "cat", "keep")]


class TestCurrentDecisions:
    """What follows the store says what the whole history says, and reads only what is new."""

    @pytest.fixture
    def current(self, workspace, data):
        return CurrentDecisions(workspace.decisions, data)

    def test_it_follows_decisions_undos_and_adjudications(self, workspace, data, current):
        rng = np.random.default_rng(0)
        for _ in range(30):
            made = [
                Decision(
                    fingerprint=data,
                    instance_id=str(rng.integers(4)),
                    label="cat",
                    verdict=str(rng.choice(["keep", "reject", "unsure", "undo"])),
                    annotator=str(rng.choice(["ann", "bob", "cy"])),
                    adjudicates=bool(rng.random() < 0.2),
                )
                for _ in range(rng.integers(1, 4))
            ]
            workspace.decisions.add_many(made)
            now = current.refresh()
            history = workspace.decisions.history(data)
            assert now.last == history[-1]
            assert now.latest == holding(history)
            people = workspace.decisions.by_annotator(data)
            assert {who: sorted(made) for who, made in now.by_annotator.items()} == {
                who: sorted((one.instance_id, one.label) for one in made)
                for who, made in people.items()
            }
        assert sum(now.n_by_annotator.values()) == len(now.latest)

    def test_only_new_rows_are_read(self, workspace, data, current):
        answer(workspace, data, "ann", [str(i) for i in range(50)])
        before = current.refresh()
        assert current.refresh() is before
        answer(workspace, data, "bob", ["7"])
        after = current.refresh()
        changed = {cell for cell, one in after.latest.items() if before.latest.get(cell) is not one}
        assert changed == {("7", "label0")}  # all others are the very same objects
        assert before.latest[("7", "label0")].annotator == "ann"
        assert len(workspace.decisions.since(data, before.last.id)) == 2

    def test_a_database_that_was_put_back_is_read_anew(self, workspace, data, current):
        answer(workspace, data, "ann", ["1", "2"])
        current.refresh()
        with workspace.database.write() as connection:
            connection.execute(sa.delete(schema.decisions))
        assert current.refresh().latest == {}
        answer(workspace, data, "bob", ["3"])
        assert list(current.refresh().latest) == [("3", "label0")]

    def test_answers_and_their_lanes_are_one_transaction(self, folder, workspace, data):
        workspace.lanes.claim(data, "ann", ["1"], 1)
        killed_at("decisions.inserted", "answer_one", folder, "ann", "1")
        assert workspace.decisions.count(data) == 0
        answer(workspace, data, "ann", ["1"])
        workspace.lanes.release(data, "ann")
        assert workspace.lanes.claim(data, "bob", ["1"], 1) == []


def holding(history: list[Decision]) -> dict[tuple[str, str], Decision]:
    """Return what holds, worked out from the rules one cell and one person at a time."""
    found = {}
    for cell in {(one.instance_id, one.label) for one in history}:
        tops = []
        for who in {one.annotator for one in history}:
            stack: list[Decision] = []
            for one in history:
                if (one.instance_id, one.label, one.annotator) == (*cell, who):
                    stack = stack[:-1] if one.verdict == "undo" else [*stack, one]
            tops += stack[-1:]
        judged = [one for one in tops if one.adjudicates] or tops
        if judged:
            found[cell] = max(judged, key=lambda one: one.id)
    return found


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
        assert again.database.integrity() == []
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
        assert workspace.database.integrity() == []
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
        outputs = [actor.communicate(timeout=60) for actor in (trainer, *writers)]
        assert [error for _, error in outputs if error] == []
        assert seen == sorted(seen)
        stored = workspace.decisions.history(data)
        assert len({d.uid for d in stored}) == len(stored) == 800
        assert [d.id for d in stored] == sorted(d.id for d in stored)
        assert [seq for seq, _ in workspace.runs.events_after(run.id)] == list(range(60))
        assert workspace.database.integrity() == []
        spent = np.concatenate([json.loads(out) for out, _ in outputs[1:]]) * 1000
        p50, p95 = np.quantile(spent, [0.5, 0.95])
        place = "SQLite" if workspace.database.is_sqlite else "PostgreSQL"
        print(f"\n{place}: a write took p50 {p50:.1f}, p95 {p95:.1f}, at most {spent.max():.0f} ms")


def replaced_uid(decision: Decision, uid: str) -> Decision:
    return decision.model_copy(update={"uid": uid})
