"""Models that predict an instance without having seen its labels."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import core.engine.scaling as scaling_module
from core.engine.config import PlainConfig
from core.engine.crossfit import CrossFit
from core.engine.ensemble import Ensemble
from core.engine.graphs import build_instance_graph
from core.engine.kernel import STRENGTHS, KernelRidge
from core.engine.metrics import disambiguation_metrics
from core.engine.network import LOSSES
from core.engine.scaling import Standardizer, UnitRows, fit_scaling
from core.engine.trainer import PlainTrainer
from core.errors import StopTraining

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)


def rows_of(X):
    return Standardizer.fit(X, False).rows(X, CPU)


@pytest.mark.parametrize("loss", ["bce", "mse"])
def test_a_pass_of_the_ensemble_equals_autograd_and_torchs_adamw(loss):
    X, Z = RNG.standard_normal((30, 4)).astype("f4"), torch.rand(30, 3)
    settings = {"members": 3, "hidden": (6, 5), "batch_size": 8, "epochs": 2, "loss": loss}
    config = PlainConfig(learning_rate=0.01, weight_decay=0.1, **settings)
    ours = Ensemble(30, 4, Z.mean(dim=0), config, CPU)
    random = torch.Generator()
    random.set_state(ours.generator.get_state())
    weights = [W.clone().requires_grad_() for W in ours._layers(ours.theta)]
    adam = torch.optim.AdamW(weights, lr=0.01, weight_decay=0.1)
    order = ours._seen.gather(1, torch.rand(ours._seen.shape, generator=random).argsort(dim=1))
    features = rows_of(X)
    ours.train_epoch(features, Z)
    for step, at in enumerate(order.split(8, dim=1)):
        adam.param_groups[0]["lr"] = 0.01 * (1 + np.cos(np.pi * step / 6)) / 2
        adam.zero_grad()
        h = features[at.reshape(-1)].view(3, at.shape[1], -1)
        for k, W in enumerate(weights):
            h = torch.cat([h, torch.ones_like(h[..., :1])], dim=-1) if k else h
            h = torch.bmm(h, W)
            h = h.relu() if k < 2 else h
        z = Z[at]
        if loss == "bce":
            total = torch.nn.functional.binary_cross_entropy_with_logits(h, z, reduction="sum")
        else:
            total = (h - z).square().sum()
        (total / at.shape[1]).backward()
        adam.step()
    for W, twin in zip(ours._layers(ours.theta), weights, strict=True):
        assert torch.allclose(W, twin, atol=1e-5)
    assert set(LOSSES) == {"bce", "pmse", "mse", "mae"}


def test_an_instance_does_not_influence_its_own_held_out_prediction(monkeypatch):
    monkeypatch.setattr("core.engine.kernel.STRENGTHS", STRENGTHS[:1])
    X, Z = RNG.standard_normal((40, 4)).astype("f4"), torch.rand(40, 3)
    config = PlainConfig(members=4, hidden=(6, 5), batch_size=8, learning_rate=0.1)
    graph, features = build_instance_graph(X, 3), rows_of(X)

    def held_out(Z):
        networks = Ensemble(40, 4, torch.full((3,), 0.5), config, CPU)
        networks.train_epoch(features, Z)
        kernel = KernelRidge(X, 20)
        kernel.fit(Z)
        return networks.held_out(features), kernel.left_out(slice(None)) + Z.mean(dim=0)

    other = Z.clone()
    other[7] = 1 - other[7]
    (networks, kernel), (networks_2, kernel_2) = held_out(Z), held_out(other)
    assert torch.equal(networks[7], networks_2[7])
    assert not torch.equal(networks, networks_2)
    # Row 7 has a say in the strength, one number for all rows, which is fixed here.
    assert np.allclose(kernel[7], kernel_2[7], atol=1e-4)
    assert not np.allclose(kernel, kernel_2, atol=1e-4)
    votes = graph.affinity @ Z.numpy()
    assert np.allclose(votes[7], (graph.affinity @ other.numpy())[7])


def test_left_out_kernel_predictions_equal_fits_without_the_row():
    X, T = RNG.standard_normal((30, 3)).astype("f4"), RNG.random((30, 2)).astype("f4")
    kernel = KernelRidge(X, 30)
    kernel.fit(torch.tensor(T))
    found = kernel.left_out(slice(None)).numpy() + T.mean(axis=0)
    strength = STRENGTHS[int(np.argmin([_error(kernel, T, one) for one in range(len(STRENGTHS))]))]
    K = np.asarray(kernel._kernel(X), np.float64)
    for i in (0, 13):
        others = np.delete(np.arange(30), i)
        # Ridge with an unpenalised level: bordered system.
        A = np.block(
            [
                [K[np.ix_(others, others)] + strength * np.eye(29), np.ones((29, 1))],
                [np.ones((1, 29)), np.zeros((1, 1))],
            ]
        )
        solved = np.linalg.solve(A, np.vstack([T[others], np.zeros((1, 2))]))
        assert K[i, others] @ solved[:-1] + solved[-1] == pytest.approx(found[i], abs=5e-3)
    assert kernel.predict(X).shape == T.shape


def _error(kernel, T, strength):
    centred = T - T.mean(axis=0)
    left_out = kernel._without(slice(None), torch.tensor([strength])).numpy()
    return float(((left_out - centred) ** 2).mean())


def test_sparse_rows_get_length_one_and_stay_sparse(monkeypatch):
    X = sp.random_array((50, 12), density=0.3, rng=0, format="csr", dtype=np.float32)
    scaling = fit_scaling(X, PlainConfig(unit_rows=True))
    assert isinstance(scaling, UnitRows)
    applied = scaling.apply(X)
    length = np.sqrt((applied.toarray() ** 2).sum(axis=1))
    assert np.allclose(length[length > 0], 1, atol=1e-5)
    dense = scaling.rows(applied, CPU)
    monkeypatch.setattr(scaling_module, "_DENSE_LIMIT", 0)
    assert torch.allclose(scaling.rows(applied, CPU)[:], dense, atol=1e-5)
    assert isinstance(fit_scaling(X.toarray(), PlainConfig(unit_rows=True)), Standardizer)


STUDIO = {"epochs": 6, "rounds": 2}


def test_a_resumed_cross_fitted_training_is_bit_identical(demo):
    config = PlainConfig.preset("studio", **STUDIO)
    whole, broken, resumed = (PlainTrainer(config) for _ in range(3))
    records = [event for event in whole.epochs(demo) if event.kind == "epoch"]
    for event in broken.epochs(demo):
        if event.kind == "epoch" and event.epoch == 3:
            break
    again = [e for e in resumed.epochs(demo, resume=broken.checkpoint()) if e.kind == "epoch"]
    assert [event.loss for event in again] == [event.loss for event in records[3:]]
    assert np.array_equal(whole.predictions, resumed.predictions)
    assert np.array_equal(whole.confidences, resumed.confidences)
    assert np.array_equal(
        whole.predict_proba(demo.features[:9]), resumed.predict_proba(demo.features[:9])
    )


def test_a_stop_between_batches_keeps_the_last_whole_epoch_of_all_members(demo):
    calls = iter(range(10**6))

    def stop_in_the_third_epoch():
        if next(calls) == 2 * 5 + 2:  # 320 instances are 5 batches
            raise StopTraining

    trainer = PlainTrainer(PlainConfig.preset("studio", **STUDIO))
    events = list(trainer.epochs(demo, between=stop_in_the_third_epoch))
    assert (events[-1].state, events[-1].epochs) == ("stopped", 2)
    at_two = PlainTrainer(PlainConfig.preset("studio", **STUDIO))
    for event in at_two.epochs(demo):
        if event.kind == "epoch" and event.epoch == 2:
            break
    assert np.array_equal(trainer.predictions, at_two.predictions)


def test_held_out_predictions_know_better_than_memorised_ones(demo):
    studio = PlainTrainer(PlainConfig.preset("studio"))
    list(studio.epochs(demo))
    metrics = disambiguation_metrics(demo.truth, demo.candidates, studio.confidences)
    paper = PlainTrainer(PlainConfig.preset("paper"))
    list(paper.epochs(demo))
    other = disambiguation_metrics(demo.truth, demo.candidates, paper.confidences)
    assert metrics["auc"] > other["auc"]
    assert metrics["f1"] > metrics["candidate_f1"] + 0.05


def test_weights_are_not_negative_and_each_label_keeps_its_rate(demo):
    X = Standardizer.fit(demo.features).apply(demo.features)
    config = PlainConfig.preset("studio", epochs=1)
    targets = torch.tensor(demo.candidates, dtype=torch.float32)
    fit = CrossFit(X, rows_of(X), build_instance_graph(X), targets, config)
    Y_hat = fit.held_out(rows_of(X), networks=False)
    assert (fit._weights >= 0).all()
    assert torch.allclose(Y_hat.mean(dim=0), targets.mean(dim=0), atol=0.01)
