from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from core.data.dataset import CandidateDataset
from core.engine.config import ABLATIONS, PlainConfig
from core.engine.graphs import build_instance_graph, build_label_graph
from core.engine.metrics import disambiguation_metrics
from core.engine.trainer import PlainTrainer
from core.errors import PlainError, StopTraining, TrainingError

RNG = np.random.default_rng(0)


def train(dataset, **settings):
    trainer = PlainTrainer(PlainConfig(**{"epochs": 3, **settings}))
    return trainer, list(trainer.epochs(dataset))


def test_a_training_tells_start_graphs_every_epoch_and_end(demo):
    _, events = train(demo)
    assert [event.kind for event in events] == [
        "run_started",
        "graphs_built",
        *["epoch"] * 3,
        "run_ended",
    ]
    assert events[0].fingerprint == demo.fingerprint
    assert events[-1].state == "finished"
    for event in events:
        assert type(event).model_validate_json(event.model_dump_json()) == event


def test_same_seed_gives_the_same_bits_and_another_seed_does_not(demo):
    (one, _), (two, _), (other, _) = train(demo), train(demo), train(demo, seed=1)
    assert np.array_equal(one.predictions, two.predictions)
    assert np.array_equal(one.pseudo_labels, two.pseudo_labels)
    assert not np.array_equal(one.predictions, other.predictions)


@pytest.mark.parametrize("preset", ["paper", "studio"])
def test_tables_with_columns_first_as_pandas_has_them_are_the_same_data(demo, preset):
    """The layout in memory says nothing: not of features, candidates or truth."""
    tables = demo.features, demo.candidates, demo.truth
    X, Y, truth = (np.asfortranarray(one) for one in tables)
    turned = CandidateDataset(X, Y, demo.label_names, demo.ids, truth=truth)
    assert turned.fingerprint == demo.fingerprint
    settings = PlainConfig.preset(preset).model_dump() | {"epochs": 4}
    (one, _), (two, _) = train(demo, **settings), train(turned, **settings)
    assert np.array_equal(one.confidences, two.confidences)


def test_truth_is_never_learned_from(demo):
    poisoned = replace(demo, truth=1 - demo.truth)
    (one, _), (two, _) = train(demo), train(poisoned)
    assert np.array_equal(one.confidences, two.confidences)


def test_objective_never_rises_with_pmse_and_full_gradient_steps(demo):
    """Proposition 1: exact propagation, plain gradient descent on all instances."""
    _, events = train(
        demo,
        loss="pmse",
        balance="none",
        n_steps=None,
        momentum=0.0,
        weight_decay=0.0,
        batch_size=demo.n_instances,
        learning_rate=2.0,
        epochs=60,
    )
    totals = [event.objective.total for event in events if event.kind == "epoch"]
    assert (np.diff(totals) <= 1e-3).all()
    assert totals[-1] < 0.9 * totals[0]


@pytest.mark.parametrize("preset", ["paper", "studio"])
def test_confidences_tell_true_from_false_candidates(preset):
    from core.data.demo import load_demo

    data = load_demo(n_instances=1500)
    trainer = PlainTrainer(PlainConfig.preset(preset))
    list(trainer.epochs(data))
    metrics = disambiguation_metrics(data.truth, data.candidates, trainer.confidences)
    assert metrics["auc"] > 0.85
    # One network has memorised its candidates, which then show nothing: all are kept.
    assert metrics["f1"] > metrics["candidate_f1"] + (0.04 if preset == "studio" else -0.005)


def test_ablations_are_settings_of_the_one_engine(demo):
    results = {name: train(demo, **changes)[0] for name, changes in ABLATIONS.items()}
    assert np.array_equal(results["DNN"].pseudo_labels, demo.candidates)
    frozen = [train(demo, **ABLATIONS["two-stage"], epochs=e)[0].pseudo_labels for e in (1, 3)]
    assert np.array_equal(*frozen)
    predictions = [trainer.predictions.tobytes() for trainer in results.values()]
    assert len(set(predictions)) == len(ABLATIONS)


def test_no_propagation_steps_is_the_plain_network(demo):
    """The paper: PLAIN with T = 0 degenerates to DNN."""
    (none, _), (dnn, _) = train(demo, n_steps=0), train(demo, disambiguation="none")
    assert np.array_equal(none.predictions, dnn.predictions)


def test_mask_keeps_pseudo_labels_inside_the_candidates(demo):
    trainer, _ = train(demo, balance="mask")
    assert (trainer.pseudo_labels[demo.candidates == 0] == 0).all()
    assert (trainer.confidences[demo.candidates == 0] == 0).all()


def test_given_graphs_replace_those_built_from_the_data(demo):
    trainer = PlainTrainer(PlainConfig(epochs=1))
    instances = build_instance_graph(RNG.random((demo.n_instances, 3)))
    labels = build_label_graph(RNG.integers(0, 2, demo.candidates.shape))
    list(trainer.epochs(demo, instance_graph=instances, label_graph=labels))
    assert trainer.instance_graph is instances
    assert trainer.label_graph is labels


def test_sparse_features_train_like_dense_ones(demo):
    sparse = replace(demo, features=sp.csr_array(demo.features))
    (one, _), (two, _) = train(demo), train(sparse)
    assert np.allclose(one.predictions, two.predictions, atol=1e-3)


def test_the_last_epoch_is_calibrated_as_the_end_is(demo):
    trainer, at_epochs = PlainTrainer(PlainConfig.preset("studio", epochs=4)), []
    for event in trainer.epochs(demo):
        if event.kind == "epoch":
            at_epochs.append(trainer.confidences)
    assert np.array_equal(at_epochs[-1], trainer.confidences)
    assert not np.array_equal(at_epochs[-2], trainer.confidences)


def test_stopping_early_keeps_what_was_learned(demo):
    trainer = PlainTrainer(PlainConfig(epochs=50))
    for event in trainer.epochs(demo):
        if event.kind == "epoch" and event.epoch == 2:
            break
    full, _ = train(demo, epochs=2)
    assert np.array_equal(trainer.predictions, full.predictions)


@pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)
def test_a_resumed_training_is_bit_identical(demo, changes):
    config = PlainConfig(epochs=6, **changes)
    whole, broken, resumed = (PlainTrainer(config) for _ in range(3))
    records = [event for event in whole.epochs(demo) if event.kind == "epoch"]
    for event in broken.epochs(demo):
        if event.kind == "epoch" and event.epoch == 3:
            break
    events = list(resumed.epochs(demo, resume=broken.checkpoint()))
    again = [event for event in events if event.kind == "epoch"]
    assert [event.epoch for event in again] == [4, 5, 6]
    assert [event.loss for event in again] == [event.loss for event in records[3:]]
    assert [event.cells_changed for event in again] == [
        event.cells_changed for event in records[3:]
    ]
    assert np.array_equal(whole.predictions, resumed.predictions)
    assert np.array_equal(whole.confidences, resumed.confidences)


def test_a_stop_between_batches_keeps_the_last_whole_epoch(demo):
    calls = iter(range(10**6))

    def stop_in_the_third_epoch():
        if next(calls) == 2 * 13 + 5:  # 400 instances are 13 batches
            raise StopTraining

    trainer = PlainTrainer(PlainConfig(epochs=50))
    events = list(trainer.epochs(demo, between=stop_in_the_third_epoch))
    assert events[-1].state == "stopped"
    assert events[-1].epochs == 2
    full, _ = train(demo, epochs=2)
    assert np.array_equal(trainer.predictions, full.predictions)
    assert np.array_equal(trainer.predict_proba(demo.features), full.predict_proba(demo.features))


def tiny(X, Y):
    return CandidateDataset(np.asarray(X, np.float32), np.asarray(Y))


ODD = {
    "a label nobody has": lambda: tiny(RNG.random((9, 4)), np.eye(9, 3) * [1, 1, 0]),
    "a label everybody has": lambda: tiny(RNG.random((9, 4)), np.ones((9, 2))),
    "no candidates at all": lambda: tiny(RNG.random((9, 4)), np.zeros((9, 2))),
    "an all-zero row": lambda: tiny(np.vstack([np.zeros(4), RNG.random((8, 4))]), np.eye(9, 3)),
    "only zero features": lambda: tiny(np.zeros((9, 4)), np.eye(9, 3)),
    "duplicate rows": lambda: tiny(np.ones((30, 4)), np.eye(30, 3)),
    "k >= n": lambda: tiny(RNG.random((4, 2)), np.eye(4)),
    "three instances": lambda: tiny(RNG.random((3, 2)), np.eye(3)),
    "a single label": lambda: tiny(RNG.random((9, 4)), np.eye(9, 1)),
    "a single feature": lambda: tiny(RNG.random((9, 1)), np.eye(9, 2)),
    "no features": lambda: tiny(np.zeros((9, 0)), np.eye(9, 2)),
    "huge features": lambda: tiny(RNG.random((9, 4)) * 1e30, np.eye(9, 2)),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("balance", ["minmax", "mask"])
def test_odd_data_trains_without_nan_or_is_refused(name, balance):
    try:
        trainer, _ = train(ODD[name](), balance=balance)
    except PlainError:
        assert name in ("no features", "huge features")
        return
    for values in (trainer.predictions, trainer.pseudo_labels, trainer.confidences):
        assert np.isfinite(values).all()
        assert values.min() >= 0
        assert values.max() <= 1


def test_a_diverging_training_says_what_to_do(demo):
    with pytest.raises(TrainingError, match="learning_rate"):
        train(demo, loss="mse", learning_rate=10.0, weight_decay=1.0, epochs=30)


def test_new_instances_are_predicted(demo):
    trainer, _ = train(demo)
    assert np.allclose(trainer.predict_proba(demo.features), trainer.predictions, atol=1e-6)


@pytest.mark.parametrize("members", [1, 2])
def test_what_a_review_says_is_fitted_from_the_weights_that_are_given(demo, members):
    settings = {"epochs": 2, "members": members}
    first = PlainTrainer(PlainConfig(**settings))
    list(first.epochs(demo))
    theta = first.checkpoint()["theta"]
    still = PlainTrainer(PlainConfig(**settings, learning_rate=1e-12))
    list(still.epochs(demo, theta=theta))
    np.testing.assert_allclose(still.checkpoint()["theta"], theta, atol=1e-6)
    taught = PlainTrainer(PlainConfig(**settings))
    list(taught.epochs(demo, targets=demo.truth.astype(np.float32), theta=theta))
    offered = demo.candidates > 0
    before, after = (
        disambiguation_metrics(demo.truth, offered, one.predictions)["auc"]
        for one in (first, taught)
    )
    assert after > before
