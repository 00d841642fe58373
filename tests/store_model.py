"""The store beside a plain model of it in memory, driven by hypothesis from two processes.

Every rule does the same to both and compares what came back; after every step both processes
must read what the model says.
"""

import multiprocessing
from collections import defaultdict
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from store_actors import epoch_event, small_data
from store_integrity import integrity

from core.engine.config import PlainConfig
from core.errors import ClaimLost, PlainError, RunEndedError, RunNotFound, StoreError
from core.store import CurrentDecisions, Decision, RunState, Workspace

PEOPLE, INSTANCES, LABELS = ("ann", "bob", "cy"), ("1", "2", "3"), ("cat", "dog")
ACTIVE = (RunState.RUNNING, RunState.PAUSED)
MAX_RUNNING = 2
_serial = count()

sides = st.sampled_from([0, 1])
people = st.sampled_from(PEOPLE)


def outcome(call):
    """Return what a call returned, or the class of what it raised."""
    try:
        return call()
    except PlainError as error:
        return type(error)


class OtherProcess:
    """A workspace that a process of its own has open, whose stores are asked through a pipe."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve_stores, args=(folder, theirs), daemon=True)
        self._process.start()
        theirs.close()
        stores = (_Asked(self._pipe, name) for name in ("decisions", "lanes", "runs"))
        self.decisions, self.lanes, self.runs = stores

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()


class _Asked:
    def __init__(self, pipe, store: str) -> None:
        self._pipe, self._store = pipe, store

    def __getattr__(self, method: str):
        def call(*given, **named):
            self._pipe.send((self._store, method, given, named))
            value, raised = self._pipe.recv()
            if raised is not None:
                raise raised("in the other process")
            return value

        return call


def serve_stores(folder: Path, pipe) -> None:
    with closing(Workspace(folder)) as space:
        while (asked := pipe.recv()) is not None:
            store, method, given, named = asked
            try:
                pipe.send((getattr(getattr(space, store), method)(*given, **named), None))
            except PlainError as error:
                pipe.send((None, type(error)))


class ReviewMachine(RuleBasedStateMachine):
    """Decisions and lanes, on a data set of its own."""

    decided = Bundle("decided")

    def __init__(self, spaces: tuple[Workspace, OtherProcess]) -> None:
        super().__init__()
        self.spaces = spaces
        self.data = spaces[0].add_dataset(small_data(shift=next(_serial)), "model")
        self.following = [CurrentDecisions(space.decisions, self.data) for space in spaces]
        self.history: list[Decision] = []
        self.leases: dict[tuple[str, str], SimpleNamespace] = {}

    @rule(
        target=decided,
        side=sides,
        who=people,
        instance=st.sampled_from(INSTANCES),
        label=st.sampled_from(LABELS),
        verdict=st.sampled_from(["keep", "reject", "unsure", "undo"]),
        adjudicates=st.booleans(),
    )
    def decide(self, side, who, instance, label, verdict, adjudicates):
        made = Decision(
            fingerprint=self.data,
            instance_id=instance,
            label=label,
            verdict=verdict,
            annotator=who,
            adjudicates=adjudicates,
        )
        assert self.spaces[side].decisions.add_many([made], keep_lanes=True) == 1
        self.history.append(made)
        self._lease(instance, who, is_live=True, answered=True)
        return made

    @rule(side=sides, made=decided)
    def send_again(self, side, made):
        assert self.spaces[side].decisions.add(made) == 0

    @rule(side=sides, made=decided, who=people)
    def undo(self, side, made, who):
        stack = self._stacks()[made.instance_id, made.label, who]
        added = self.spaces[side].decisions.undo([made], who)
        expected = [f"undo-{made.uid}"] if stack and stack[-1].uid == made.uid else []
        assert [one.uid for one in added] == expected
        self.history += added

    @rule(
        side=sides,
        who=people,
        ids=st.permutations(INSTANCES),
        n=st.integers(1, 3),
        is_live=st.booleans(),
    )
    def lease(self, side, who, ids, n, is_live):
        got = self.spaces[side].lanes.claim(self.data, who, ids, n, seconds=300 if is_live else -1)
        self.leases = {key: one for key, one in self.leases.items() if one.is_live}
        held = {instance for instance, other in self.leases if other != who}
        assert got == [one for one in ids if one not in held][:n]
        for one in got:
            self._lease(one, who, is_live, answered=False)

    @rule(side=sides, who=people, ids=st.none() | st.lists(st.sampled_from(INSTANCES)))
    def release(self, side, who, ids):
        self.spaces[side].lanes.release(self.data, who, ids)
        for key in [key for key in self.leases if key[1] == who]:
            if not self.leases[key].answered and (ids is None or key[0] in ids):
                del self.leases[key]

    def _lease(self, instance, who, is_live, answered):
        new = SimpleNamespace(is_live=False, answered=False)
        lease = self.leases.setdefault((instance, who), new)
        lease.is_live |= is_live
        lease.answered |= answered

    def _stacks(self):
        stacks = defaultdict(list)
        for one in self.history:
            stack = stacks[one.instance_id, one.label, one.annotator]
            if one.verdict != "undo":
                stack.append(one)
            elif stack:
                stack.pop()
        return stacks

    @invariant()
    def both_processes_read_the_model(self):
        newest = [stack[-1] for stack in self._stacks().values() if stack]
        order = {one.uid: at for at, one in enumerate(self.history)}
        newest.sort(key=lambda one: (one.adjudicates, order[one.uid]))
        latest = {(one.instance_id, one.label): one.uid for one in newest}
        for space, following in zip(self.spaces, self.following, strict=True):
            store = space.decisions
            assert [one.uid for one in store.history(self.data)] == [
                one.uid for one in self.history
            ]
            found = {(one.instance_id, one.label): one.uid for one in store.latest(self.data)}
            assert found == latest
            now = following.refresh().latest  # reads only what is new
            assert {cell: one.uid for cell, one in now.items()} == latest


class RunMachine(RuleBasedStateMachine):
    """Runs, their claims, commands and events."""

    runs, rows = Bundle("runs"), Bundle("rows")

    def __init__(self, spaces: tuple[Workspace, OtherProcess]) -> None:
        super().__init__()
        self.spaces = spaces
        self.data = spaces[0].add_dataset(small_data(), "model")
        self.model: dict[str, SimpleNamespace] = {}

    def teardown(self) -> None:
        for run_id, run in self.model.items():
            if not run.state.is_ended:
                self.spaces[0].runs.finish(run_id, RunState.STOPPED)

    @rule(target=runs, side=sides)
    def create(self, side):
        run_id = self.spaces[side].runs.create(self.data, PlainConfig()).id
        self.model[run_id] = SimpleNamespace(
            state=RunState.QUEUED, command=None, claim=0, pid=None, beats=0, seq=-1, deleted=False
        )
        return run_id

    @rule(side=sides, pid=st.integers(1, 3))
    def claim_next(self, side, pid):
        waiting = [
            run_id
            for run_id, run in self.model.items()
            if run.state is RunState.QUEUED and not run.deleted
        ]
        n_active = sum(run.state in ACTIVE for run in self.model.values())
        got = self.spaces[side].runs.claim_next(MAX_RUNNING, pid, 1.0)
        if n_active >= MAX_RUNNING or not waiting:
            assert got is None
            return
        rows = {row.id: row.created for row in self.spaces[side].runs.list()}
        assert got is not None
        assert got.id == min(waiting, key=lambda one: (rows[one], one))
        self._take(got.id, pid, beats=0)

    @rule(target=rows, side=sides, run_id=runs, pid=st.integers(4, 6))
    def claim(self, side, run_id, pid):
        run = self.model[run_id]
        got = outcome(lambda: self.spaces[side].runs.claim(run_id, pid, 1.0))
        if run.state.is_ended:
            assert got is RunEndedError
        elif run.deleted:
            assert got is RunNotFound
        elif run.beats or run.state is RunState.PAUSED:
            assert got is None
        else:
            self._take(run_id, pid, beats=1)
            assert got.claim == run.claim
            return got, run.pid, run.beats
        return multiple()

    def _take(self, run_id, pid, beats):
        run = self.model[run_id]
        run.state, run.pid, run.beats, run.claim = RunState.RUNNING, pid, beats, run.claim + 1

    @rule(target=rows, side=sides, run_id=runs)
    def look(self, side, run_id):
        run = self.model[run_id]
        return self.spaces[side].runs.get(run_id), run.pid, run.beats

    @rule(side=sides, seen=rows)
    def requeue(self, side, seen):
        row, pid, beats = seen
        run = self.model[row.id]
        is_same = (run.pid, run.beats, run.claim) == (pid, beats, row.claim)
        done = self.spaces[side].runs.requeue(row)
        assert done == (is_same and run.state in ACTIVE)
        if done:
            run.state, run.command, run.pid, run.beats = RunState.QUEUED, None, None, 0
            run.claim += 1

    @rule(side=sides, seen=rows, pid=st.integers(7, 9))
    def hand_over(self, side, seen, pid):
        run = self.model[seen[0].id]
        done = self.spaces[side].runs.hand_over(seen[0], pid, 1.0)
        assert done == (run.claim == seen[0].claim and run.state in ACTIVE and not run.beats)
        if done:
            run.pid = pid

    @rule(side=sides, seen=rows, n=st.integers(0, 3), step=st.integers(-1, 1))
    def tell(self, side, seen, n, step):
        """Append events, by the claim that was seen; `step` off leaves a gap or repeats."""
        run, first = self.model[seen[0].id], max(0, self.model[seen[0].id].seq + 1 + step)
        events = [(seq, epoch_event(seq + 1)) for seq in range(first, first + n)]
        append = self.spaces[side].runs.append_events
        got = outcome(lambda: append(seen[0].id, events, claim=seen[0].claim))
        new = [seq for seq, _ in events if seq > run.seq]
        if run.claim != seen[0].claim:
            assert got is ClaimLost
        elif not new:
            assert got is None
        elif run.state.is_ended:
            assert got is RunEndedError
        elif new[0] != run.seq + 1:
            assert got is StoreError
        else:
            assert got is None
            run.seq = new[-1]

    @rule(side=sides, seen=rows)
    def beat(self, side, seen):
        run = self.model[seen[0].id]
        alive = self.spaces[side].runs.heartbeat(seen[0].id, seen[0].claim)
        assert alive == (run.state in ACTIVE and run.claim == seen[0].claim)
        run.beats += alive

    @rule(side=sides, run_id=runs, command=st.sampled_from(["pause", "resume", "stop"]))
    def command(self, side, run_id, command):
        run = self.model[run_id]
        got = outcome(lambda: self.spaces[side].runs.command(run_id, command))
        if run.state.is_ended:
            assert got is RunEndedError
        elif run.state is RunState.QUEUED and command != "stop":
            assert got is StoreError
        elif run.state is RunState.QUEUED:
            run.state = RunState.STOPPED
        elif run.command != "stop":
            run.command = command

    @rule(side=sides, seen=rows, state=st.sampled_from(ACTIVE))
    def answer(self, side, seen, state):
        run = self.model[seen[0].id]
        set_state = self.spaces[side].runs.set_state
        got = outcome(lambda: set_state(seen[0].id, state, seen[0].claim))
        if run.claim != seen[0].claim:
            assert got is ClaimLost
        elif run.state not in ACTIVE:
            assert got is (RunEndedError if run.state.is_ended else StoreError)
        else:
            answered = {RunState.PAUSED: "pause", RunState.RUNNING: "resume"}[state]
            run.state = state
            run.command = None if run.command == answered else run.command

    @rule(side=sides, seen=rows, state=st.sampled_from([RunState.FINISHED, RunState.FAILED]))
    def finish(self, side, seen, state):
        run = self.model[seen[0].id]
        end = self.spaces[side].runs.finish
        got = outcome(lambda: end(seen[0].id, state, claim=seen[0].claim))
        if run.claim != seen[0].claim:
            assert got is ClaimLost
        elif run.state.is_ended:
            assert got is (None if run.state is state else RunEndedError)
        else:
            run.state, run.command = state, None

    @rule(side=sides, run_id=runs, back=st.booleans())
    def delete(self, side, run_id, back):
        run, store = self.model[run_id], self.spaces[side].runs
        got = outcome(lambda: store.restore(run_id) if back else store.delete(run_id))
        if not back and run.state in ACTIVE:
            assert got is StoreError
        else:
            run.deleted = not back

    @invariant()
    def both_processes_read_the_model(self):
        for space in self.spaces:
            self._check(space)

    def _check(self, space):
        rows = {row.id: row for row in space.runs.list(include_deleted=True)}
        for run_id, run in self.model.items():
            row = rows[run_id]
            assert (row.state, row.command, row.claim) == (run.state, run.command, run.claim)
            assert (row.pid, row.heartbeat is not None) == (run.pid, bool(run.beats))
            assert (row.deleted is not None) == run.deleted
            assert [seq for seq, _ in space.runs.events_after(run_id)] == list(range(run.seq + 1))
            assert row.epoch == run.seq + 1


def check_agreement(folder: Path, **how: int) -> None:
    """Run both machines on a workspace that two processes have open."""
    rules = settings(deadline=None, suppress_health_check=list(HealthCheck), **how)
    with closing(Workspace(folder)) as one, closing(OtherProcess(folder)) as other:
        for machine in (ReviewMachine, RunMachine):
            run_state_machine_as_test(partial(machine, (one, other)), settings=rules)
        assert integrity(one.database) == []
