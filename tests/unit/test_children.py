"""Files of runs that child processes of the server make."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

from finished_run import finished_run

from core.runs import processes as background
from plain_app.services.children import MadeByChild
from plain_app.services.workspace import workspace


class AtWork:
    def poll(self) -> None:
        return None


def test_two_who_want_a_file_at_once_start_one_process(tmp_path, demo, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "space"))
    run_id, both, started = finished_run(workspace(), demo), Barrier(2), []

    def start(*command, log):
        with suppress(BrokenBarrierError):  # where the other has to wait for its turn
            both.wait(0.2)
        started.append(command[:2])
        return AtWork()

    monkeypatch.setattr(background, "start", start)
    made = MadeByChild("neighbors.npz", "keep-neighbors", "neighbors.log")
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(made.status, [run_id] * 2)) == ["working"] * 2
    assert started == [("keep-neighbors", run_id)]
