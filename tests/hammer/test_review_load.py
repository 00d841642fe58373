"""Twenty people review at once, while a run is training and many decisions are there already.

The full measurement, five minutes with 20 and with 50 people:

    PLAIN_LOAD_SECONDS=300 python -m pytest -m hammer -s tests/hammer/test_review_load.py
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from app_server import ROOT, Server, end_runs
from desk_clients import Person
from finished_run import finished_run

from core.data.demo import load_demo
from core.engine.graphs import build_instance_graph
from core.store import Decision, Workspace
from plain_app.server import tokens

pytestmark = pytest.mark.hammer

SECONDS = float(os.environ.get("PLAIN_LOAD_SECONDS", "20"))
EVERY = 2.0  # seconds from one answer to the next
N_INSTANCES, N_OLD = 12_000, 10_000


@pytest.fixture
def served(tmp_path, monkeypatch) -> Iterator[tuple[Server, str, str]]:
    """The program with the data and its old decisions, a run at work; the data and its ended run.

    Threads and priorities are those of the program, not of tests.
    """
    for name in ("OMP_NUM_THREADS", "PLAIN_THREADS", "PLAIN_NICENESS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "space"
    monkeypatch.setenv("PLAIN_WORKSPACE", str(folder))
    fingerprint, run_id = make_workspace(folder)
    command = ["-m", "core", "train", "demo", "--background", "--set", "epochs=50000"]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
    server = Server(folder).start()
    yield server, fingerprint, run_id
    server.stop()
    server.log.close()
    end_runs(folder)


def make_workspace(folder: Path) -> tuple[str, str]:
    space, data = Workspace(folder), load_demo(n_instances=N_INSTANCES)
    graph = build_instance_graph(data.features, k=6)
    run_id = finished_run(space, data, instance_graph=graph, noise=0.35)
    cells = np.random.default_rng(0).permutation(np.argwhere(data.candidates))[:N_OLD]
    space.decisions.add_many(
        Decision(
            fingerprint=data.fingerprint,
            instance_id=data.ids[i],
            label=data.label_names[j],
            verdict="keep" if data.truth[i, j] else "reject",
            annotator=f"before-{at % 7}",
            sampled=at % 10 == 0,
        )
        for at, (i, j) in enumerate(cells)
    )
    space.close()
    return data.fingerprint, run_id


@pytest.mark.parametrize("n_people", [20, 50])
def test_many_people_review_at_once_and_nothing_is_lost_or_doubled(served, n_people):
    server, fingerprint, run_id = served
    claims = [tokens.Claims(fingerprint, run_id, f"p{at}") for at in range(n_people + 1)]
    *people, first = (
        Person(server.port, tokens.issue(one), EVERY, SECONDS, at) for at, one in enumerate(claims)
    )
    first.fetch(timeout=120)  # the server reads the run when its page is opened
    for one in people:
        one.start()
    for one in people:
        one.join(SECONDS + 120)
    tell(people)
    space = Workspace(server.workspace)
    stored = [one for one in space.decisions.history(fingerprint) if one.annotator[0] == "p"]
    is_training = any(not run.state.is_ended for run in space.runs.list())
    space.close()
    assert [failure for one in people for failure in one.failures] == []
    assert sorted(one.uid for one in stored) == sorted(uid for one in people for uid in one.sent)
    assert {one.uid for one in stored} == {uid for one in people for uid in one.acknowledged}
    people_of = {(one.annotator, one.instance_id, one.label) for one in stored}
    cells = Counter((name, label) for _, name, label in people_of)  # some come back to who answered
    assert [cell for cell, count in cells.items() if count > 1] == []
    assert is_training
    saving, asking = (np.concatenate([one.spent[of] for one in people]) for of in ROUTES[:2])
    assert np.quantile(saving, 0.95) < EVERY  # answers are saved as fast as they are given
    assert np.quantile(asking, 0.95) < RENEWED  # and questions come before they are needed


ROUTES = ("decisions", "questions", "progress")
RENEWED = 10 * EVERY


def tell(people: list[Person]) -> None:
    turns = sum(one.n_idle + len(one.spent["decisions"]) for one in people)
    idle = sum(one.n_idle for one in people)
    print(f"\n{len(people)} people, {SECONDS:.0f} s, load {os.getloadavg()[0]:.1f}")
    print(f"{turns} turns, {idle} without a question")
    for route in ROUTES:
        spent = 1000 * np.concatenate([one.spent[route] for one in people])
        p50, p95, p99, most = np.quantile(spent, [0.5, 0.95, 0.99, 1])
        figures = f"p50 {p50:.0f}, p95 {p95:.0f}, p99 {p99:.0f}, at most {most:.0f} ms"
        print(f"{route}: n {len(spent)}, {figures}")
