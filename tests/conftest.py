"""What every test may use: the shared data beside the project, where it is; made data elsewhere."""

import os
import sys
from pathlib import Path

# Tests run side by side: one thread each, also in the processes they start, or all wait for all.
for _name in ("OMP_NUM_THREADS", "PLAIN_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("PLAIN_NICENESS", "0")
os.environ.setdefault("PLAIN_STANDBY", "0")  # the engine is loaded where a test trains, only there

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from object_storage import s3_server, s3_url  # noqa: E402, F401  (fixtures)
from postgres import postgres, postgres_server, postgres_url  # noqa: E402, F401  (fixtures)

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def same_draws_in_any_order(request) -> None:
    """A test draws the same data whichever tests its process ran before: a module's `RNG` and
    torch start anew."""
    if hasattr(request.module, "RNG"):
        request.module.RNG = np.random.default_rng(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark sets; tests that need it are skipped where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared benchmark data is not beside this checkout")
    return SHARED / "data"


@pytest.fixture(scope="session")
def golden() -> dict[str, np.ndarray]:
    """Reference values made by the authors' code; by the formulas written out where these are not
    beside this checkout."""
    path = SHARED / "golden" / "emotions-r3.npz"
    if not path.exists():
        return _golden_by_oracle()
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _golden_by_oracle() -> dict[str, np.ndarray]:
    """Return what the authors' code would give on made data, step by step and densely."""
    import oracles
    import scipy.sparse as sp

    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 12))
    Y = (rng.random((150, 6)) < 0.4).astype(np.float32)
    y_hat = rng.random(Y.shape).astype(np.float32)
    W, A_y = oracles.instance_graph(X, 10, 3.0), oracles.label_graph(Y)
    csr = sp.csr_array(W)
    first = oracles.step_loop(W, A_y, Y, y_hat, 0.1, 0.01, 1.0, 0.01, 200)
    second = oracles.step_loop(W, A_y, Y, y_hat, 0.01, 0.1, 0.1, 0.01, 50)
    graph = {"W_data": csr.data, "W_indices": csr.indices, "W_indptr": csr.indptr, "A_y": A_y}
    return {"X": X, "candidates": Y, "y_hat": y_hat, **graph} | {
        "Z_a0p1_b0p01_eta1_g0p01_T200": oracles.min_max(first),
        "Z_a0p01_b0p1_eta0p1_g0p01_T50": oracles.min_max(second),
    }


@pytest.fixture(scope="session")
def demo():
    """A small piece of the demo data."""
    from core.data.demo import load_demo

    return load_demo(n_instances=400)


@pytest.fixture
def open_on(tmp_path, monkeypatch):
    """Opens the workspace of a machine with this name, below the test's own folder."""
    import socket

    from core.store import Workspace

    opened = []

    def open_workspace(host):
        monkeypatch.setattr(socket, "gethostname", lambda: host)
        opened.append(Workspace(tmp_path / host))
        return opened[-1]

    yield open_workspace
    for workspace in opened:
        workspace.close()
