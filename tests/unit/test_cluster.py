"""Tasks on a cluster: the same bits as here, whoever runs them; plain addresses are refused."""

import threading

import numpy as np
import pytest
from dask_cluster import dask_cluster, kill, slow_square
from real_runs import wait

from core.bench.data import mixtures
from core.cluster.address import checked_address
from core.cluster.executors import LocalExecutor, open_executor
from core.cluster.progress import read_progress
from core.cluster.shared_arrays import blocks, load, save
from core.engine.graphs import build_instance_graph
from core.errors import ClusterUnavailable


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Two workers in threads of this process, spoken to through real sockets."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "protocol": "tcp", "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize(
    "address", ["tls://far.example:8786", "tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://localhost:1"]
)
def test_addresses_that_prove_who_they_are_or_are_this_machine_may_be_used(address):
    assert checked_address(f" {address} ") == address
    assert checked_address("127.0.0.1:8786") == "tcp://127.0.0.1:8786"


@pytest.mark.parametrize(
    "address",
    [
        *(
            "tcp://10.0.0.1:8786",
            "far.example:8786",
            "tcp://127.0.0.1.example:1",
            "tcp://0.0.0.0:1",
        ),
        *(
            "ws://127.0.0.1:1",
            "http://localhost:1",
            "inproc://1",
            "tls://far.example",
            "",
            "tcp://:1",
        ),
        *("tcp://localhost@far.example:1", "tcp://far.example:1/localhost", "tcp://[::1:1"),
    ],
)
def test_any_other_address_is_refused_with_the_reason(address):
    with pytest.raises(ValueError, match="unpickle"):
        checked_address(address)


def test_shared_arrays_are_mapped_and_never_changed_through_the_map(tmp_path):
    path = save(tmp_path / "one.npy", np.arange(5))
    mapped = load(path)
    mapped += 1
    assert load(path).tolist() == [0, 1, 2, 3, 4]
    assert [one.name for one in tmp_path.iterdir()] == ["one.npy"]


def test_blocks_cover_everything_once_and_none_is_empty():
    for n, n_blocks in ((10, 3), (2, 5), (7, 7), (1, 1)):
        found = blocks(n, n_blocks)
        assert [at for first, last in found for at in range(first, last)] == list(range(n))
        assert len(found) == min(n, n_blocks)


@pytest.fixture(scope="module")
def rows():
    return mixtures(3000, 16, 12).X


def assert_same_graph(one, other):
    assert one.recall == other.recall
    for A, B in ((one.affinity, other.affinity), (one.normalized, other.normalized)):
        assert np.array_equal(A.indptr, B.indptr)
        assert np.array_equal(A.indices, B.indices)
        assert np.array_equal(A.data, B.data)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_graph_by_tasks_is_the_graph_made_here_bit_for_bit(rows, tmp_path, n_workers):
    made = build_instance_graph(rows, search="cells")
    local = LocalExecutor(tmp_path, n_workers)
    assert_same_graph(made, build_instance_graph(rows, search="cells", executor=local))
    assert list(tmp_path.iterdir()) == []


def test_a_graph_on_a_cluster_is_the_graph_made_here_bit_for_bit(rows, here, tmp_path):
    made = build_instance_graph(rows, search="cells")
    with open_executor(here, tmp_path) as executor:
        assert executor.folder.parent == tmp_path
        assert_same_graph(made, build_instance_graph(rows, search="cells", executor=executor))
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]
    told = read_progress(tmp_path)
    assert (told.stage, told.done) == ("neighbours", told.total)
    assert sum(told.workers.values()) > told.total
    assert "neighbours" in told.sentence


def test_a_cluster_that_does_not_answer_is_told(tmp_path):
    dask = pytest.importorskip("dask")
    soon = dask.config.set({"distributed.comm.timeouts.connect": "0.3s"})
    with soon, pytest.raises(ClusterUnavailable, match="does not answer"):
        with open_executor("tcp://127.0.0.1:1", tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


def test_tasks_of_a_killed_worker_run_again_and_of_a_killed_scheduler_are_told(tmp_path):
    begun = tmp_path / "begun"
    items = [{"number": number, "begun": str(begun)} for number in range(6)]
    with dask_cluster(tmp_path / "dask", 1) as cluster:
        first = cluster.workers[0]

        def kill_worker():
            wait(begun.exists)
            cluster.add_worker()
            kill(first)

        killer = threading.Thread(target=kill_worker)
        with open_executor(cluster.address, tmp_path) as executor:
            killer.start()
            assert list(executor.map(slow_square, items, "squares")) == [0, 1, 4, 9, 16, 25]
            killer.join()
            begun.unlink()

            def kill_scheduler():
                wait(begun.exists)
                kill(cluster.scheduler)

            killer = threading.Thread(target=kill_scheduler)
            killer.start()
            with pytest.raises(ClusterUnavailable):
                list(executor.map(slow_square, items, "squares"))
            killer.join()
