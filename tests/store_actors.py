"""What other processes do in the tests of the store: `python store_actors.py ACTOR FOLDER …`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.events import EpochRecord, Objective
from core.errors import PlainError
from core.store import Decision, Workspace, backup, full_backup, restore, restore_full

ROOT = Path(__file__).parents[1]
PATIENCE = 600  # seconds: the machine may be busy, and its disk slow


def start(actor: str, *arguments: object, **environment: str) -> "subprocess.Popen[str]":
    """Start an actor in a process of its own; what it prints can be read."""
    command = [sys.executable, __file__, actor, *map(str, arguments)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **environment},
    )


def start_all(actors: "list[subprocess.Popen[str]]") -> list[str]:
    """Let actors that wait for a line on their input go at once; return what each printed."""
    for actor in actors:
        assert actor.stdout.readline() == "ready\n", actor.stderr.read()
    for actor in actors:
        actor.stdin.write("go\n")
        actor.stdin.flush()
    printed = [actor.communicate(timeout=PATIENCE) for actor in actors]
    for actor, (_, complaint) in zip(actors, printed, strict=True):
        assert actor.returncode == 0, complaint
    return [out for out, _ in printed]


def small_data(shift: float = 0.0, **given: object) -> CandidateDataset:
    X = np.arange(12, dtype=np.float32).reshape(4, 3) + np.float32(shift)
    Y = np.array([[1, 0], [1, 1], [0, 1], [1, 0]])
    return CandidateDataset(X, Y, **given)


def epoch_event(epoch: int) -> EpochRecord:
    objective = Objective(prediction=1, candidates=2, instance_graph=3, label_graph=4)
    return EpochRecord(
        epoch=epoch,
        loss=0.5,
        objective=objective,
        cells_changed=3,
        entropy=0.1,
        seconds={"train": 0.1},
    )


def wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def decide(folder: str, annotator: str, n: str) -> None:
    """Store decisions one by one and say how long each took."""
    workspace, fingerprint, seconds = Workspace(folder), small_data().fingerprint, []
    wait()
    for i in range(int(n)):
        decision = Decision(
            uid=f"{annotator}-{i}",
            fingerprint=fingerprint,
            instance_id=str(i % 4),
            label=f"label{i % 2}",
            verdict="keep",
            annotator=annotator,
        )
        begin = time.perf_counter()
        assert workspace.decisions.add(decision) == 1
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(seconds))


def decide_aloud(folder: str) -> None:
    """Store decisions for ever, telling each only after it was stored."""
    workspace, fingerprint = Workspace(folder), small_data().fingerprint
    for i in range(1_000_000):
        cell = {"fingerprint": fingerprint, "instance_id": "1", "label": "label1"}
        workspace.decisions.add(Decision(uid=f"u{i}", verdict="keep", annotator="a", **cell))
        print(f"u{i}", flush=True)


def train(folder: str, run_id: str, n: str) -> None:
    """Append events, beat and look for commands as a training does."""
    workspace = Workspace(folder)
    wait()
    for i in range(int(n)):
        workspace.runs.append_events(run_id, [(i, epoch_event(i + 1))])
        assert workspace.runs.heartbeat(run_id)
        assert workspace.runs.pending_command(run_id) is None
        time.sleep(0.005)


def open_fresh(folder: str) -> None:
    wait()
    workspace = Workspace(folder)
    print(workspace.add_dataset(small_data(), "raced"))


def claim(folder: str, max_running: str) -> None:
    """Take runs as a server does, until there is none to take."""
    workspace, taken = Workspace(folder), []
    wait()
    for _ in range(10):
        run = workspace.runs.claim_next(int(max_running), os.getpid(), 1.0)
        if run and workspace.runs.claim(run.id, os.getpid(), 1.0):
            taken.append(run.id)
    print(json.dumps(taken))


def lease(folder: str, annotator: str, n: str) -> None:
    """Take instances from one ordered list, a few at a time, until there is none to take."""
    workspace, fingerprint, taken = Workspace(folder), small_data().fingerprint, []
    wait()
    ids = [str(i) for i in range(int(n))]
    while got := workspace.lanes.claim(fingerprint, annotator, ids, 3):
        answer(workspace, fingerprint, annotator, got)
        taken += got
        ids = [one for one in ids if one not in got]
    print(json.dumps(taken))


def answer(workspace: Workspace, fingerprint: str, annotator: str, ids: list[str]) -> None:
    """Decide one cell of each instance, as the review desk does."""
    cell = {"fingerprint": fingerprint, "label": "label0", "verdict": "keep"}
    made = [Decision(instance_id=one, annotator=annotator, **cell) for one in ids]
    workspace.decisions.add_many(made, keep_lanes=True)


def answer_one(folder: str, annotator: str, instance_id: str) -> None:
    answer(Workspace(folder), small_data().fingerprint, annotator, [instance_id])


def fill(folder: str) -> None:
    """Write until nothing fits any more; print the error a user would see."""
    workspace, i = Workspace(folder), 0
    fingerprint = workspace.add_dataset(small_data(), "small")
    try:
        while True:
            cell = {"fingerprint": fingerprint, "instance_id": "1", "label": "x" * 5000}
            workspace.decisions.add(Decision(verdict="keep", annotator="a", **cell))
            i += 1
    except PlainError as error:
        print(json.dumps([type(error).__name__, error.title, i]))


def open_only(folder: str) -> None:
    Workspace(folder)


def load(folder: str) -> None:
    Workspace(folder).add_dataset(small_data(), "small")


def save_preset(folder: str, name: str) -> None:
    Workspace(folder).save_preset(name, PlainConfig(epochs=7))


def back_up(folder: str, kept: str) -> None:
    full_backup(Workspace(folder), kept)


def share(folder: str) -> None:
    Workspace(folder).share_all()


def fetch(folder: str, owner: str) -> None:
    Workspace(folder).stored.fetch(owner)


def put_back(kept: str, folder: str) -> None:
    restore_full(Path(kept), Path(folder))


def copy_database(folder: str) -> None:
    backup(Workspace(folder))


def restore_database(folder: str, copy: str) -> None:
    restore(folder, copy)


def killed_at(point: str, actor: str, *arguments: object) -> None:
    """Run an actor that is killed at a failpoint; fail where it gets past it."""
    process = start(actor, *arguments, PLAIN_FAILPOINT=point)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL, f"{point} was not reached. {complaint}"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
