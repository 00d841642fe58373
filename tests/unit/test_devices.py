"""The engine on the devices a machine has, and on a GPU of which only shapes are computed."""

import inspect

import faiss
import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.crossfit import nonnegative_weights
from core.engine.ensemble import Ensemble
from core.engine.exact_search import exact_search, faiss_search, torch_search
from core.engine.graphs import build_instance_graph
from core.engine.network import LOSSES, Network
from core.engine.trainer import PlainTrainer

RNG = np.random.default_rng(0)
N, D, L = 96, 6, 4
DEVICES = [
    name
    for name, there in (
        ("cpu", True),
        ("cuda", torch.cuda.is_available()),
        ("mps", torch.backends.mps.is_available()),
    )
    if there
]


class ToHost(TorchDispatchMode):
    """Counts what waits for a device: numbers read from it, and copies to the host."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        moved = isinstance(out, torch.Tensor) and any(
            isinstance(one, torch.Tensor) and one.device != out.device for one in args
        )
        self.count += func is torch.ops.aten._local_scalar_dense.default or moved
        return out


class HostReads(TorchFunctionMode):
    """Counts what a program reads from tensors and what it makes into some, also where they are
    here: how many values each time."""

    def __init__(self):
        super().__init__()
        self.sizes, self.sent = [], []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in READS and isinstance(args[0], torch.Tensor):
            self.sizes.append(args[0].numel())
        if func in SENDS and isinstance(args[0], np.ndarray):
            self.sent.append(args[0].size)
        return func(*args, **(kwargs or {}))


READS = [
    getattr(torch.Tensor, name)
    for name in ("cpu", "item", "tolist", "nonzero", "__int__", "__float__", "__bool__")
]
READS.append(torch.nonzero)
SENDS = (torch.as_tensor, torch.tensor, torch.from_numpy)


class Slices(TorchFunctionMode):
    """Slices by operators: Tensor.__getitem__ asks for a driver, which a CPU build has not."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__:
            return self._part(*args)
        if func is torch.Tensor.__setitem__:
            return torch.ops.aten.copy_.default(self._part(*args[:2]), args[2])
        return func(*args, **(kwargs or {}))

    def _part(self, tensor, index):
        dim = 0
        for one in index if isinstance(index, tuple) else (index,):
            if isinstance(one, slice):
                start, stop, _ = one.indices(tensor.shape[dim])
                tensor, dim = tensor.narrow(dim, start, stop - start), dim + 1
            else:
                tensor = tensor.select(dim, one)
        return tensor


def on_fake_cuda(model):
    """Give a model of the CPU weights that claim to be on a GPU: only shapes and devices remain.

    Generators and what depends on values (random order, folds) cannot be there; they stay behind.
    """
    for name, value in list(vars(model).items()):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            setattr(model, name, torch.empty(value.shape, device="cuda"))
    model._device = torch.device("cuda")
    return model


@pytest.mark.parametrize("loss", LOSSES)
def test_dense_steps_of_both_presets_stay_on_a_gpu(loss):
    paper, studio = (PlainConfig.preset(name, loss=loss) for name in ("paper", "studio"))
    network = Network(D, L, paper, torch.device("cpu"))
    networks = Ensemble(N, D, torch.full((L,), 0.3), studio, torch.device("cpu"))
    with FakeTensorMode(), Slices(), ToHost() as seen:
        on_fake_cuda(network)
        on_fake_cuda(networks)
        X, Z = torch.empty(N, D + 1, device="cuda"), torch.empty(N, L, device="cuda")
        network._descend(iter([(X[:32], Z[:32]), (X[32:48], Z[32:48])]))
        stacked = (studio.members, 8, -1)
        networks._gradient(X[: 8 * 5].view(*stacked), Z[: 8 * 5].view(*stacked))
        for model in (network, networks):
            out = model.predict(X)
            assert out.device.type == "cuda"
            assert out.shape == (N, L)
            assert model._loss.value(out, Z).device.type == "cuda"
        with pytest.raises(RuntimeError, match="device"):  # the check itself can fail
            network.predict(torch.empty(N, D + 1))
    assert seen.count == 0


@pytest.mark.parametrize("device", DEVICES)
def test_a_pass_of_many_batches_reads_nothing_from_the_device(device):
    config = PlainConfig.preset("studio", batch_size=8)
    X = torch.rand(N, D + 1, device=device)
    Z = torch.rand(N, L, device=device)
    networks = Ensemble(N, D, torch.full((L,), 0.3), config, torch.device(device))
    with ToHost() as seen:
        networks.train_epoch(X, Z)
    assert seen.count == 0
    with ToHost() as seen:
        Z.sum().item()
    assert seen.count == 1


@pytest.mark.parametrize("preset", ["paper", "studio"])
def test_an_epoch_reads_its_figures_and_the_candidates_in_one_copy_and_sends_nothing(preset):
    X = RNG.standard_normal((N, D)).astype(np.float32)
    Y = (RNG.random((N, L)) < 0.5).astype(np.uint8)
    trainer = PlainTrainer(PlainConfig.preset(preset, epochs=8))
    reads = {}
    with HostReads() as seen:
        for event in trainer.epochs(CandidateDataset(X, Y)):
            if event.kind == "epoch":
                reads[event.epoch] = list(seen.sizes), list(seen.sent)
                trainer._propagation._columns = None  # from now on as on another device
            seen.sizes.clear()
            seen.sent.clear()
    # Of predictions and pseudo-labels; here all rows are the sample that tells the level.
    n_candidates = int(Y.sum())
    read = [7] if preset == "paper" else [2 * n_candidates + N * L + L + 5]
    made = [] if preset == "paper" else [n_candidates]  # confidences, which stay here
    for epoch in (4, 6):
        assert reads[epoch] == (read, made)
    if preset == "studio":  # targets come back from what was read the epoch before
        assert reads[5] == (read, [n_candidates, n_candidates])


def test_models_are_weighed_on_a_gpu():
    A = torch.tensor(RNG.standard_normal((50, 3)), dtype=torch.float32)
    for y in (A @ torch.tensor([0.5, 0.2, 0.0]), A @ torch.tensor([1.0, -0.5, 0.3])):
        found = nonnegative_weights(A.T @ A, A.T @ y)
        assert np.allclose(found, nnls(A.numpy(), y.numpy())[0], atol=1e-4)
    A[:, 1] = 0  # a model that says nothing
    assert np.isfinite(nonnegative_weights(A.T @ A, A.T @ y).numpy()).all()
    with FakeTensorMode(), ToHost() as seen:
        P = torch.empty(3, 3, device="cuda")
        assert nonnegative_weights(P, torch.empty(3, device="cuda")).device.type == "cuda"
    assert seen.count == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("preset", ["paper", "studio"])
def test_a_training_says_the_same_on_every_device(preset, device):
    X = RNG.standard_normal((N, D)).astype(np.float32)
    Y = (RNG.random((N, L)) < 0.5).astype(np.uint8)
    found = []
    for name in ("cpu", device):
        trainer = PlainTrainer(PlainConfig.preset(preset, epochs=1, device=name))
        assert [event.kind for event in trainer.epochs(CandidateDataset(X, Y))][-1] == "run_ended"
        assert np.isfinite(trainer.confidences).all()
        found.append(trainer.instance_graph.affinity.toarray())
    assert np.allclose(*found, atol=1e-5)  # random orders differ by device, graphs do not


@pytest.mark.parametrize("device", DEVICES)
def test_cells_are_searched_on_every_device(device):
    X = RNG.standard_normal((1500, 16)).astype(np.float32)
    here = build_instance_graph(X, k=5, search="cells", device=device)
    assert np.allclose(
        here.affinity.sum(), build_instance_graph(X, k=5, search="cells").affinity.sum(), rtol=1e-3
    )


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_of_products_find_what_a_flat_index_finds(device):
    X = RNG.standard_normal((700, 24)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    flat = faiss.IndexFlatIP(24)
    flat.add(X)
    cosines, places = flat.search(X[:90], 7)
    for at_once in (2**26, 5000, 1):  # one block, several, one of each row
        found = torch_search(device, at_once)(X[:90], X, 7)
        assert np.abs(found[0] - cosines).max() < 1e-6
        assert np.array_equal(found[1], places)


def test_faiss_searches_on_a_gpu_where_it_was_built_for_one(monkeypatch):
    """The program is asked as its own signature allows; its processor answers."""
    X = RNG.standard_normal((1500, 16)).astype(np.float32)
    assert exact_search("cpu") is faiss_search
    here = build_instance_graph(X, k=5, search="cells").affinity
    signature, options = inspect.signature(faiss.knn_gpu), []

    def knn_gpu(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        options.append({name: given[name] for name in ("res", "device", "use_cuvs")})
        return faiss.knn(given["xq"], given["xb"], given["k"], metric=given["metric"])

    monkeypatch.setattr(faiss, "knn_gpu", knn_gpu)
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    for search in ("cells", "exact"):
        build_instance_graph(X, k=5, search=search, device="cuda:1")
        assert options[-1] == {"res": "resources", "device": 1, "use_cuvs": False}
        options.clear()
    monkeypatch.setattr(faiss, "get_compile_options", lambda: "OPTIMIZE GPU CUVS")
    there = build_instance_graph(X, k=5, search="cells", device="cuda").affinity
    assert options[-1] == {"res": "resources", "device": -1, "use_cuvs": True}
    assert abs(there - here).max() < 1e-6
