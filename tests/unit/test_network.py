import numpy as np
import pytest
import scipy.sparse as sp
import torch
from threadpoolctl import threadpool_info
from torch import nn

import core.engine.scaling as scaling_module
from core.engine.config import PlainConfig
from core.engine.network import Network, Threads, choose_device, hidden_sizes
from core.engine.scaling import Standardizer
from core.errors import TrainingError

CPU = torch.device("cpu")
TORCH_LOSSES = {
    "bce": lambda f, z: nn.functional.binary_cross_entropy_with_logits(f, z),
    "pmse": lambda f, z: (f.sigmoid() - z).square().mean(),
    "mse": lambda f, z: (f - z).square().mean(),
    "mae": lambda f, z: (f - z).abs().mean(),
}


def twin(net: Network) -> nn.Sequential:
    """The same network in torch's own modules."""
    layers = []
    for W in net._layers(net.theta.clone()):
        linear = nn.Linear(W.shape[0] - 1, W.shape[1])
        linear.weight.data, linear.bias.data = W[:-1].t().clone(), W[-1].clone()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("loss", TORCH_LOSSES)
def test_an_epoch_equals_autograd_and_torchs_sgd(loss):
    config = PlainConfig(loss=loss, weight_decay=0.01, learning_rate=0.05, hidden=(8, 7))
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((75, 5)).astype("f4"), torch.rand(75, 4)
    features = Standardizer.fit(X, False).rows(X, CPU)
    ours = Network(5, 4, config, CPU)
    theirs = twin(ours)
    sgd = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    order = torch.randperm(75, generator=torch.Generator().set_state(ours.generator.get_state()))
    ours.train_epoch(features, Z)
    for at in order.split(32):
        sgd.zero_grad()
        TORCH_LOSSES[loss](theirs(torch.as_tensor(X)[at]), Z[at]).backward()
        sgd.step()
    for W, linear in zip(ours._layers(ours.theta), theirs[::2], strict=True):
        assert torch.allclose(W[:-1].t(), linear.weight, atol=1e-5)
        assert torch.allclose(W[-1], linear.bias, atol=1e-5)
    with torch.no_grad():
        f = theirs(torch.as_tensor(X))
    expected = f.sigmoid() if loss in ("bce", "pmse") else f.clamp(0, 1)
    assert torch.allclose(ours.predict(features), expected, atol=1e-5)


def test_sparse_rows_are_standardised_like_dense_ones(monkeypatch):
    X = sp.random_array((50, 12), density=0.3, rng=0, format="csr", dtype=np.float32)
    standardizer = Standardizer.fit(X)
    dense = standardizer.rows(standardizer.apply(X.toarray()), CPU)
    monkeypatch.setattr(scaling_module, "_DENSE_LIMIT", 0)
    at = torch.tensor([3, 49, 3, 0])
    assert sp.issparse(standardizer.apply(X))
    sparse = standardizer.rows(standardizer.apply(X), CPU)
    assert torch.allclose(sparse[at], dense[at], atol=1e-5)
    assert torch.allclose(sparse[:7], dense[:7], atol=1e-5)


def test_many_rows_are_scaled_as_they_are_read_from_a_file(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((40, 5)).astype("f4")
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    scaling = Standardizer.fit(mapped)
    kept = scaling.rows(scaling.view(mapped), CPU)
    monkeypatch.setattr(scaling_module, "_KEPT_VALUES", 0)
    read = scaling.rows(scaling.view(mapped), CPU)
    assert type(read) is not type(kept)
    for at in (torch.tensor([7, 0, 7, 39]), slice(3, 9)):
        assert torch.equal(read[at], kept[at])
    assert len(read) == 40


def test_standardised_features_have_mean_zero_and_constant_ones_stay_finite():
    X = np.random.default_rng(0).random((40, 3)).astype("f4") * [1, 1000, 1] + [0, 5, 0]
    X[:, 2] = 0.1
    standardized = Standardizer.fit(X).apply(X.astype("f4"))
    assert np.allclose(standardized.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(standardized.std(axis=0), [1, 1, 0], atol=1e-3)


def test_hidden_sizes_follow_the_paper():
    assert [hidden_sizes(n)[0] for n in (1, 63, 64, 255, 256, 400)] == [64, 64, 256, 256, 512, 512]


def test_a_missing_device_is_a_clear_error():
    for name in ("cuda", "nosuch"):
        if name == "cuda" and torch.cuda.is_available():
            continue
        with pytest.raises(TrainingError):
            choose_device(name)


def test_the_number_of_threads_is_put_back():
    before = torch.get_num_threads()
    config = PlainConfig(hidden=(4, 4))
    X = np.ones((10, 2), "f4")
    features = Standardizer.fit(X).rows(X, CPU)
    Network(2, 2, config, CPU).train_epoch(features, torch.rand(10, 2))
    assert torch.get_num_threads() == before


def test_a_small_training_uses_one_thread_of_every_library_and_gives_them_back():
    def threads():
        return [torch.get_num_threads(), *(one["num_threads"] for one in threadpool_info())]

    own = torch.get_num_threads()
    torch.set_num_threads(2)
    before = threads()
    try:
        with Threads(1000).limited():
            assert set(threads()) == {1}
        assert threads() == before
        with Threads(10**9).limited():
            assert threads() == before
    finally:
        torch.set_num_threads(own)
