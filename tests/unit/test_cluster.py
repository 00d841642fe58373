"""Tasks on a cluster: the same bits as here, whoever runs them; plain addresses are refused."""

import pickle
import threading
from io import StringIO

import numpy as np
import pytest
import torch
from dask_cluster import dask_cluster, kill, slow_square
from local_executor import LocalExecutor
from real_runs import wait
from rich.console import Console
from typer.testing import CliRunner

from core.bench.data import load_sets, mixtures
from core.bench.quality import cross_validate
from core.cli import app as command_line
from core.cli.screen import cluster_address, training_progress
from core.cluster.address import checked_address
from core.cluster.executors import open_executor
from core.cluster.progress import Progress, ProgressFile, read_progress
from core.cluster.shared_arrays import blocks, load, save
from core.data.dataset import CandidateDataset
from core.engine.columns import ColumnPropagation
from core.engine.config import PlainConfig
from core.engine.events import GraphsBuilt
from core.engine.graphs import build_instance_graph, build_label_graph
from core.engine.propagation import Propagator
from core.engine.pseudo_labels import PseudoLabels
from core.engine.trainer import PlainTrainer
from core.errors import ClusterUnavailable, ConfigError, StopTraining
from core.methods.plain import PlainClassifier
from core.store import Workspace
from core.tuning import StudySettings, create_study, read_study
from core.tuning.search import work


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Two workers in threads of this process, spoken to through real sockets."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    options["local_directory"] = str(tmp_path_factory.mktemp("dask"))
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


def test_waiting_for_tasks_can_be_stopped_and_the_cluster_is_used_again(here, tmp_path):
    items = [{"number": number, "begun": str(tmp_path)} for number in range(4)]  # has begun
    heard = iter([None, None, StopTraining()])

    def between():
        if (stop := next(heard)) is not None:
            raise stop

    with open_executor(here, tmp_path) as executor:
        with pytest.raises(StopTraining):
            list(executor.map(slow_square, items, "squares", between))
        assert list(executor.map(slow_square, items, "squares")) == [0, 1, 4, 9]


def run_out_of_time(item):
    raise TimeoutError(f"the disk of {item['value']} does not answer")


def test_a_task_that_runs_out_of_time_itself_is_told_and_not_awaited_for_ever(here, tmp_path):
    looks = []

    def between():
        looks.append(None)
        assert len(looks) < 100

    with open_executor(here, tmp_path) as executor:
        with pytest.raises(TimeoutError, match="does not answer"):
            list(executor.map(run_out_of_time, [{"value": 1}], "waiting", between))


def test_many_workers_are_counted_not_named():
    few = Progress("networks", 3, 5, {"tcp://a:1": 1, "tcp://b:1": 2})
    assert few.sentence.endswith("tcp://a:1 1, tcp://b:1 2")
    many = few._replace(workers={f"tcp://a:{n}": n for n in range(1, 101)})
    assert many.sentence.endswith("100 workers, 1 to 100 each")


def test_a_cluster_that_does_not_answer_is_told(tmp_path):
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")  # its settings are there before one of them is changed
    soon = dask.config.set({"distributed.comm.timeouts.connect": "0.3s"})
    with soon, pytest.raises(ClusterUnavailable, match="does not answer"):
        with open_executor("tcp://127.0.0.1:1", tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


def test_tasks_of_a_killed_worker_run_again_and_of_a_killed_scheduler_are_told(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("core.cluster.dask_executor._WORKER_SECONDS", 240)  # to start, when busy
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


# --- propagation by columns -------------------------------------------------------------------


@pytest.fixture(scope="module")
def labelled():
    one = mixtures(2000, 12, 20)
    return CandidateDataset(one.X, one.noisy(2, seed=0))


@pytest.fixture(scope="module")
def graphs(labelled):
    return build_instance_graph(labelled.features), build_label_graph(labelled.candidates)


@pytest.mark.parametrize(
    "weights",
    [
        {"alpha": 0.1, "beta": 0.1, "n_steps": None},
        {"alpha": 0.1, "beta": 0.01, "n_steps": 200},
        {"alpha": 2.0, "beta": 3.0, "eta": 0.2, "n_steps": None},
        {"alpha": 0.0, "beta": 0.5, "n_steps": 20},
        {"alpha": 0.5, "beta": 0.0, "n_steps": None},
    ],
)
def test_columns_give_the_same_pseudo_labels(labelled, graphs, weights, tmp_path):
    Y = labelled.candidates.astype(np.float32)
    Y_hat = np.random.default_rng(0).random(Y.shape, np.float32)
    propagator = Propagator(*graphs, **weights)
    columns = ColumnPropagation(propagator, graphs[1], Y, LocalExecutor(tmp_path, 3))
    for values in (Y_hat, Y):
        whole = propagator.propagate(Y, values, rescale=False)
        assert np.abs(columns.propagate(values) - whole).max() < 1e-6
    kept = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert kept == {"columns", "Y"}  # what the next epoch needs


@pytest.mark.parametrize("n_workers", [2, 5])
def test_columns_move_the_bytes_that_the_formula_says(labelled, graphs, n_workers, tmp_path):
    n, n_labels = labelled.candidates.shape
    columns = ColumnPropagation(
        Propagator(*graphs), graphs[1], labelled.candidates, LocalExecutor(tmp_path, n_workers)
    )
    columns.propagate(labelled.candidates.astype(np.float32))
    P = min(n_workers, n_labels)
    assert columns.moved == pytest.approx(2 * 4 * n * n_labels * (P - 1) / P, rel=0.1)


# --- whole trainings --------------------------------------------------------------------------

STUDIO = PlainConfig.preset("studio", epochs=2, members=3, rounds=1, landmarks=50)


def trained(dataset, config=STUDIO, **options):
    trainer = PlainTrainer(config, **options)
    events = list(trainer.epochs(dataset))
    assert events[-1].state == "finished"
    return trainer.predictions, trainer.pseudo_labels, trainer.confidences


def test_a_training_on_a_cluster_has_the_bits_of_one_without(labelled, here, tmp_path):
    config = STUDIO.model_copy(update={"cluster": here})
    there = trained(labelled, config, folder=tmp_path)
    for one, other in zip(trained(labelled), there, strict=True):
        assert np.array_equal(one, other)
    assert read_progress(tmp_path).stage == "propagation"
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


def test_a_step_by_columns_gives_the_pseudo_labels_and_confidences_made_whole(
    labelled, graphs, tmp_path
):
    cpu = torch.device("cpu")
    Y_hat = torch.rand(labelled.candidates.shape) * 0.5 + 0.5 * torch.tensor(labelled.candidates)
    executor = LocalExecutor(tmp_path, 3)
    before = Y_hat, torch.zeros(()), Y_hat[torch.tensor(labelled.candidates) > 0]
    halves = [PseudoLabels(STUDIO, *graphs, labelled, cpu, one) for one in (None, executor)]
    found = [half.step(Y_hat, *before)[:2] for half in halves]
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max() < 1e-6


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("config", [STUDIO, PlainConfig(epochs=2)], ids=["studio", "paper"])
def test_a_training_by_tasks_has_the_bits_of_one_without(labelled, config, n_workers, tmp_path):
    whole = trained(labelled, config)
    by_tasks = trained(labelled, config, executor=LocalExecutor(tmp_path, n_workers))
    for one, other in zip(whole, by_tasks, strict=True):
        assert np.array_equal(one, other)


def test_a_model_fitted_on_a_cluster_is_copied_and_predicts_without_it(
    labelled, here, tmp_path, monkeypatch
):
    monkeypatch.setenv("PLAIN_CLUSTER_FOLDER", str(tmp_path))
    X, Y = labelled.features[:300], labelled.candidates[:300]
    model = PlainClassifier(epochs=1, members=2, landmarks=0, rounds=0, cluster=here).fit(X, Y)
    assert list(tmp_path.iterdir()) == []
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_a_plain_address_is_refused_as_a_setting():
    with pytest.raises(ConfigError, match="unpickle"):
        PlainConfig(cluster="tcp://10.0.0.1:8786")
    assert PlainConfig(cluster="127.0.0.1:8786").cluster == "tcp://127.0.0.1:8786"
    assert "cluster" not in str(PlainConfig(cluster="127.0.0.1:8786"))
    with pytest.raises(ConfigError, match="unpickle"):
        cluster_address("far.example:8786")


def test_the_command_cleans_a_file_on_a_cluster_as_it_does_here(here, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAIN_CLUSTER_FOLDER", str(tmp_path))
    shown = Console(file=StringIO(), width=250, force_terminal=True, color_system=None)
    monkeypatch.setattr("core.cli.screen.log", shown)
    made = [tmp_path / "alone.csv", tmp_path / "cluster.csv"]
    few = ["--set", "epochs=2", "--set", "members=2", "--set", "landmarks=50"]
    for target, more in zip(made, ([], ["--cluster", here]), strict=True):
        done = CliRunner().invoke(command_line, ["clean", "demo", str(target), *few, *more])
        assert done.exit_code == 0, done.output
        assert ("done by worker: tcp://" in shown.file.getvalue()) is bool(more)
    assert made[0].read_bytes() == made[1].read_bytes()
    assert not list(tmp_path.glob(".cluster*"))
    refused = ["clean", "demo", str(tmp_path / "no.csv"), "--cluster", "tcp://10.0.0.1:8786"]
    assert "unpickle" in str(CliRunner().invoke(command_line, refused).exception)


def test_the_screen_tells_the_recall_of_a_graph_and_what_every_worker_did(tmp_path, monkeypatch):
    shown = Console(file=StringIO(), width=250, force_terminal=True, color_system=None)
    monkeypatch.setattr("core.cli.screen.log", shown)
    ProgressFile(tmp_path)(Progress("networks", 3, 8, {"tcp://a:1": 2, "tcp://b:1": 1}))
    edges = dict.fromkeys(("n_edges", "n_isolated", "n_label_edges"), 4)
    with training_progress(2, tmp_path) as show:
        show(GraphsBuilt(seconds=1.0, search="cells", recall=0.9412, **edges))
    told = shown.file.getvalue()
    assert "cells, 94.1% of the nearest found" in told
    assert "networks: 3 of 8 tasks; done by worker: tcp://a:1 2, tcp://b:1 1" in told


# --- benchmarks and searches --------------------------------------------------------------------


def test_folds_by_tasks_have_the_figures_of_folds_made_here(here, tmp_path):
    made = mixtures(120, 6, 5)
    np.savez(tmp_path / "small.npz", X=made.X, Y=made.truth)
    (one,) = load_sets(tmp_path, ["small"])
    config = PlainConfig(epochs=1, cluster=None)
    whole = cross_validate(one, 1, 3, config)
    with open_executor(here, tmp_path) as executor:
        assert cross_validate(one, 1, 3, config, on=(executor, tmp_path)) == whole
    assert read_progress(tmp_path).stage == "folds"


def test_trials_on_other_machines_need_a_database_that_they_share(demo, tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    space = Workspace(tmp_path)
    fingerprint = space.add_dataset(demo, "demo")
    settings = StudySettings(base=PlainConfig(cluster="tls://far.example:8786"))
    with pytest.raises(ConfigError, match="PostgreSQL"):
        create_study(space, fingerprint, settings)
    space.close()


def test_workers_of_a_cluster_take_the_trials_of_a_study(demo, here, tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    space = Workspace(tmp_path)
    fingerprint = space.add_dataset(demo, "demo")
    base = PlainConfig(epochs=2, cluster=here)
    study = create_study(space, fingerprint, StudySettings(base=base, n_trials=2, n_workers=2))
    work(space, study.id)
    found = read_study(space, study.id)
    assert (found.status, len(found.finished)) == ("finished", 2)
    assert read_progress(space.studies.folder(study.id)).stage == "trials"
    space.close()
