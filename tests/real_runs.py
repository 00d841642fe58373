"""What tests of real runs share: queue them, wait for them, kill them, read their results."""

import os
import signal
from time import monotonic, sleep

import numpy as np

from core.engine.config import PlainConfig

EPOCHS = 40
RESULTS = ("pseudo_labels", "predictions", "confidences")


def kill(run):
    try:
        os.kill(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_all(workspace):
    """End the processes of all runs but those of the test itself."""
    for run in workspace.runs.list():
        if run.pid is not None and run.pid not in (os.getpid(), 1):
            kill(run)


def wait(condition, seconds=240):
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "nothing happened"
        sleep(0.05)  # a look at the database costs a process its time, too


def queue(workspace, demo, **settings):
    return workspace.runs.create(demo.fingerprint, PlainConfig(**{"epochs": EPOCHS, **settings}))


def results(workspace, run):
    folder = workspace.runs.folder(run.id)
    return [np.load(folder / f"{name}.npy") for name in RESULTS]


def assert_same_results(workspace, run, other, other_workspace=None):
    found = results(other_workspace or workspace, other)
    for one, another in zip(results(workspace, run), found, strict=True):
        assert np.array_equal(one, another)
