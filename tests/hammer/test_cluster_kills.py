"""Workers and the scheduler of a real cluster killed while a real run is on it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from dask_cluster import dask_cluster, kill
from local_executor import LocalExecutor
from real_runs import assert_same_results, kill_all, wait

from core.bench.data import mixtures
from core.cluster.progress import read_progress
from core.data.dataset import CandidateDataset
from core.engine import graphs
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer
from core.runs import worker
from core.store import RunState, Workspace

pytestmark = pytest.mark.hammer

STUDIO = PlainConfig.preset("studio", epochs=6, landmarks=100)
RESULTS = ("pseudo_labels", "predictions", "confidences")


@pytest.fixture(scope="module")
def dataset():
    one = mixtures(3000, 16, 20)
    return CandidateDataset(one.X, one.noisy(2, seed=0))


@pytest.fixture
def workspace(tmp_path, dataset, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    monkeypatch.setenv("PLAIN_CHECKPOINT_SECONDS", "0")
    space = Workspace(tmp_path / "space")
    space.add_dataset(dataset, "mixtures")
    yield space
    kill_all(space)
    space.close()


def by_blocks(dataset, folder, n_workers):
    """Return what a run on so many workers must end with."""
    folder.mkdir()
    trainer = PlainTrainer(STUDIO, executor=LocalExecutor(folder, n_workers))
    assert list(trainer.epochs(dataset))[-1].state == "finished"
    return [getattr(trainer, name) for name in RESULTS]


def on_cluster(workspace, dataset, address):
    config = STUDIO.model_copy(update={"cluster": address})
    return workspace.runs.create(dataset.fingerprint, config)


@pytest.mark.parametrize("stage", ["neighbours", "propagation", "networks"])
def test_a_run_whose_worker_is_killed_ends_as_it_would_have(
    workspace, dataset, tmp_path, stage, monkeypatch
):
    monkeypatch.setattr(graphs, "EXACT_LIMIT", 1000)
    expected = by_blocks(dataset, tmp_path / "blocks", 2)
    with dask_cluster(tmp_path / "dask", 2) as cluster:
        run = on_cluster(workspace, dataset, cluster.address)
        folder = workspace.runs.folder(run.id)

        def kill_one():
            wait(lambda: (told := read_progress(folder)) is not None and told.stage == stage)
            cluster.add_worker()
            kill(cluster.workers[0])

        killer = threading.Thread(target=kill_one)
        killer.start()
        ended = worker.run_training(workspace, run.id)
        killer.join()
        assert ended.state is RunState.FINISHED
        assert len(read_progress(folder).workers) >= 2
    found = [np.load(folder / f"{name}.npy") for name in RESULTS]
    for name, one, other in zip(RESULTS, expected, found, strict=True):
        assert np.array_equal(one, other), f"{name} differ by {np.abs(one - other).max()}"
    assert not list(folder.glob(".cluster*"))


def test_a_run_whose_scheduler_is_killed_is_interrupted_and_resumes(workspace, dataset, tmp_path):
    with dask_cluster(tmp_path / "dask", 2) as cluster:
        run = on_cluster(workspace, dataset, cluster.address)
        worker.launch(workspace, run.id)
        wait(lambda: workspace.runs.get(run.id).epoch >= 2)
        port = int(cluster.address.rpartition(":")[2])
        for process in (cluster.scheduler, *cluster.workers):
            kill(process)
        wait(lambda: worker.is_interrupted(workspace, workspace.runs.get(run.id)))
        left = workspace.runs.get(run.id)
        assert "cluster does not answer" in left.error
    with dask_cluster(tmp_path / "again", 2, port=port):
        worker.launch(workspace, run.id)
        whole = on_cluster(workspace, dataset, run.config.cluster)
        worker.launch(workspace, whole.id)
        for one in (run, whole):
            wait(lambda one=one: workspace.runs.get(one.id).state is RunState.FINISHED)
    assert_same_results(workspace, whole, run)


def test_a_cluster_with_certificates_does_the_same_and_without_them_is_refused(
    workspace, dataset, tmp_path, monkeypatch
):
    certificate, key = make_certificate(tmp_path)
    tls = {"CA_FILE": certificate, "REQUIRE_ENCRYPTION": "true"}
    for part in ("SCHEDULER", "WORKER", "CLIENT"):
        tls |= {f"{part}__CERT": certificate, f"{part}__KEY": key}
    for name, value in tls.items():
        where = "" if name == "REQUIRE_ENCRYPTION" else "TLS__"
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__{where}{name}", str(value))
    with dask_cluster(tmp_path / "dask", 2, protocol="tls") as cluster:
        assert cluster.address.startswith("tls://")
        command = [sys.executable, "-m", "core", "train", "demo", "--cluster", cluster.address]
        command += ["--set", "epochs=2", "--workspace", str(workspace.folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        bare = {k: v for k, v in os.environ.items() if not k.startswith("DASK_")}
        refused = subprocess.run(command, capture_output=True, text=True, env=bare)
        assert "no certificate" in refused.stderr
        assert "Traceback" not in refused.stderr


def make_certificate(folder: Path) -> tuple[Path, Path]:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "plain cluster")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "own.pem", folder / "own-key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return certificate, secret


def test_methods_are_compared_and_settings_searched_by_workers(workspace, tmp_path):
    made = mixtures(200, 6, 5)
    np.savez(tmp_path / "small.npz", X=made.X, Y=made.truth)
    with dask_cluster(tmp_path / "dask", 2) as cluster:
        command = [sys.executable, "-m", "core"]
        quality = ["bench", "quality", "--data", str(tmp_path / "small.npz"), "--folds", "2"]
        quality += ["--r", "1", "--methods", "ml-knn,pml-ni", "--json", "--fits", "fits.jsonl"]
        here = {"cwd": tmp_path, "capture_output": True, "text": True}
        done = subprocess.run([*command, *quality, "--cluster", cluster.address], **here)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "fits.jsonl").read_text().count('"state": "done"') == 4
        tune = ["tune", "demo", "--trials", "3", "--set", "epochs=2", "--json"]
        tune += ["--workspace", str(workspace.folder), "--cluster", cluster.address]
        done = subprocess.run([*command, *tune], **here)
        assert done.returncode == 0, done.stderr
        assert '"state": "finished"' in done.stdout
        sizes = ["bench", "scale", "--sizes", "2000,3000", "--epochs", "1", "--json"]
        done = subprocess.run([*command, *sizes, "--cluster", cluster.address], **here)
        assert done.returncode == 0, done.stderr
        assert '"cluster": [' in done.stdout
    assert not list(tmp_path.glob(".cluster*"))
