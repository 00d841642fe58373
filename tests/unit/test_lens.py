"""The lens says what a run would say with the same predictions."""

import gc
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
import scipy.sparse as sp

from core.confidence.calibration import calibrate
from core.confidence.lens import Lens, confidences
from core.confidence.noise_model import Noise
from core.engine.config import PlainConfig
from core.engine.graphs import build_instance_graph, build_label_graph, find_neighbors
from core.engine.propagation import Propagator
from core.engine.trainer import PlainTrainer
from core.runs import worker
from core.runs.results import keep_neighbors, load_graphs, load_neighbors
from core.store import Workspace

OTHERS = (
    {"alpha": 1.0},
    {"alpha": 0.0, "beta": 0.5},
    {"beta": 0.0, "eta": 5.0},
    {"n_steps": 0},
    {"n_steps": None},
    {"gamma": 0.1, "n_steps": 3},
    {"k": 4},
    {"k": 25, "rho": 1.5},
    {"alpha": 50.0, "gamma": 0.001},
)


@pytest.fixture(scope="module")
def trained(demo):
    trainer = PlainTrainer(PlainConfig(epochs=3, device="cpu"))
    list(trainer.epochs(demo))
    return trainer


@pytest.fixture(scope="module")
def lens(demo, trained):
    standardized = trained._scaling.apply(demo.features)
    return Lens(
        trained.config,
        demo.candidates,
        trained.predictions,
        trained.instance_graph,
        trained.label_graph,
        find_neighbors(standardized, 30),
    )


def test_its_own_settings_give_the_runs_own_confidences(lens, demo, trained):
    seen = lens.look(trained.config)
    np.testing.assert_allclose(seen, trained.confidences[demo.candidates > 0], atol=1e-6)


@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_other_settings_give_exactly_what_their_own_graphs_and_propagation_give(
    lens, demo, trained, changes
):
    config = PlainConfig(**{**trained.config.model_dump(), **changes})
    standardized = trained._scaling.apply(demo.features)
    graph = build_instance_graph(standardized, config.k, config.rho)
    labels = build_label_graph(demo.candidates)
    propagator = Propagator(graph, labels, **config.propagation)
    Y = demo.candidates.astype(np.float32)
    wanted = confidences(propagator, Y, trained.predictions, Noise.fit(Y, trained.predictions))
    np.testing.assert_array_equal(lens.look(config), wanted[demo.candidates > 0])
    np.testing.assert_allclose(lens.look_at(11, config), wanted[11], atol=2e-6)


def test_one_search_serves_every_smaller_graph_of_sparse_rows_too(demo):
    import scipy.sparse as sp

    X = sp.csr_array(np.where(demo.features > np.median(demo.features), demo.features, 0))
    found = find_neighbors(X, 20)
    for k, rho in ((5, 3.0), (20, 1.0)):
        wanted = build_instance_graph(X, k, rho).normalized
        assert abs(found.graph(k, rho).normalized - wanted).max() == 0


def test_without_propagation_nothing_can_be_changed(demo, trained):
    config = PlainConfig(disambiguation="none")
    graphs = (trained.instance_graph, trained.label_graph)
    lens = Lens(config, demo.candidates, trained.predictions, *graphs)
    assert lens.settings == ()
    wanted = calibrate(demo.candidates, None, trained.predictions).confidences
    np.testing.assert_array_equal(lens.look(config), wanted[demo.candidates > 0])


@pytest.mark.parametrize("preset", ["studio", "paper"])
def test_the_neighbours_kept_for_a_run_are_those_of_its_own_graph(tmp_path, demo, preset):
    sparse = replace(demo, features=sp.csr_array(demo.features))
    space = Workspace(tmp_path)
    fingerprint = space.add_dataset(sparse, "sparse")
    run = space.runs.create(fingerprint, PlainConfig.preset(preset, epochs=1, device="cpu"))
    worker.run_training(space, run.id)
    keep_neighbors(space, run.id)
    again = load_neighbors(space, run.id).graph(run.config.k, run.config.rho)
    kept, _ = load_graphs(space, run.id)
    space.close()
    assert abs(again.affinity - kept.affinity).max() < 1e-5


def test_a_lens_that_nobody_uses_is_gone_at_once(demo, trained):
    graphs = (trained.instance_graph, trained.label_graph)
    used = Lens(trained.config, demo.candidates, trained.predictions, *graphs)
    other = trained.config.model_copy(update={"alpha": 1.0})
    used.look(other)
    used.look_at(0, other)
    gc.disable()
    try:
        left = ref(used)
        del used
        assert left() is None
    finally:
        gc.enable()
