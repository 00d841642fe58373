"""What holds of runs and their events on every database."""

import json
import time

import numpy as np
import pytest
from store_actors import epoch_event, small_data, start, start_all

from core.engine.config import PlainConfig
from core.engine.events import GraphsBuilt, RunEnded, RunStarted
from core.errors import ClaimLost, DatasetNotFound, RunEndedError, RunNotFound, StoreError
from core.store import Decision, RunState

ENDED = [RunState.FINISHED, RunState.STOPPED, RunState.FAILED]
ME = (1, 1.0)  # a process that launches


class TestRuns:
    def test_a_new_run_waits_with_its_settings(self, runs, data):
        config = PlainConfig(alpha=0.25, hidden=(8, 9), n_steps=None)
        run = runs.create(data, config, "first")
        assert runs.get(run.id) == run
        assert (run.config, run.name, run.note) == (config, "first", "")
        assert (run.state, run.epoch, run.started, run.deleted) == ("queued", 0, None, None)

    def test_nobody_takes_a_run_before_it_has_what_it_begins_with(self, runs, data):
        def prepare(folder):
            assert runs.claim_next(5, *ME) is None
            (folder / "review.npz").write_bytes(b"targets")

        run = runs.create(data, PlainConfig(), prepare=prepare, events=[(0, epoch_event(1))])
        assert (runs.folder(run.id) / "review.npz").read_bytes() == b"targets"
        assert (runs.get(run.id).epoch, runs.last_seq(run.id)) == (1, 0)

    def test_a_run_that_cannot_be_prepared_is_not_there(self, runs, data, folder):
        def prepare(_):
            raise StoreError("The disk is full.")

        with pytest.raises(StoreError, match="full"):
            runs.create(data, PlainConfig(), prepare=prepare)
        assert not runs.list()
        assert not list((folder / "runs").iterdir())

    def test_ids_sort_by_age_and_fit_paths_and_addresses(self, runs, data):
        ids = []
        for _ in range(5):
            ids.append(runs.create(data, PlainConfig()).id)
            time.sleep(0.002)
        assert ids == sorted(ids)
        assert all(one.isalnum() and one == one.lower() and len(one) == 13 for one in ids)
        assert [run.id for run in runs.list()] == ids[::-1]

    def test_runs_are_listed_by_data_and_by_state(self, runs, run, data, workspace):
        other = workspace.add_dataset(small_data(1.0), "other")
        waiting = runs.create(other, PlainConfig())
        assert [one.id for one in runs.list(data)] == [run.id]
        assert [one.id for one in runs.list(active=True)] == [run.id]
        assert runs.list(other, active=True) == []
        assert runs.list(other) == [waiting]
        assert workspace.dataset(other).name == "other"
        assert workspace.dataset("none") is None

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
        assert runs.events_after(run.id, 2) == [(3, told[3])]
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
