"""Makes an ended run without training one: graphs, plausible predictions, exact confidences."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.events import EpochRecord, GraphsBuilt, Objective, RunEnded, RunStarted
from core.engine.graphs import InstanceGraph, build_label_graph
from core.engine.propagation import Propagator
from core.runs.layout import pca_layout
from core.runs.results import give_graphs
from core.store import RunState, Workspace, files

EPOCHS = 4


def finished_run(
    workspace: Workspace,
    dataset: CandidateDataset,
    *,
    instance_graph: InstanceGraph | None = None,
    seed: int = 0,
    noise: float = 0.12,
) -> str:
    """Store the data set and a run on it that has all its files but the UMAP layout.

    `noise` is how far predictions scatter around what is true: with more, more is left to ask.
    """
    fingerprint = workspace.add_dataset(dataset, "made for a test")
    run = workspace.runs.create(fingerprint, PlainConfig.preset("studio", epochs=EPOCHS))
    folder = workspace.runs.folder(run.id)
    graph = instance_graph or near_rows(dataset.features)
    labels = build_label_graph(dataset.candidates)
    give_graphs(folder, graph, labels)
    files.write_array(folder / "layout_pca.npy", pca_layout(dataset.features, seed))
    propagator = Propagator(graph, labels, **run.config.propagation)
    _write_results(folder, dataset, propagator, seed, noise)
    _write_events(workspace, run.id, dataset)
    return run.id


def keep_map(workspace: Workspace, run_id: str) -> None:
    """Keep the PCA layout as the UMAP one, too: no page starts a process that computes it."""
    folder = workspace.runs.folder(run_id)
    files.write_array(folder / "layout_umap.npy", files.read_array(folder / "layout_pca.npy"))


def near_rows(features: np.ndarray, k: int = 6) -> InstanceGraph:
    """Return the graph of the k most similar rows, found without torch or faiss."""
    X = features / np.linalg.norm(features, axis=1, keepdims=True)
    S = X @ X.T
    np.fill_diagonal(S, -1)
    near = np.argsort(-S, axis=1)[:, :k]
    rows = np.repeat(np.arange(len(X)), k)
    weights = np.clip(S[rows, near.ravel()], 0, 1) ** 3
    A = sp.csr_array((weights.astype(np.float32), (rows, near.ravel())), shape=S.shape)
    return InstanceGraph.from_affinity(A + A.T)


def _write_results(
    folder: Path, dataset: CandidateDataset, propagator: Propagator, seed: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    Y = dataset.candidates.astype(np.float32)
    truth = Y if dataset.truth is None else dataset.truth
    Y_hat = np.clip(0.15 + 0.7 * truth + rng.normal(0, noise, Y.shape), 0, 1)
    Y_hat = Y_hat.astype(np.float32)
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    confidences = propagator.confidence(Z, Y).astype(np.float32)
    values = {"predictions": Y_hat, "pseudo_labels": Z, "confidences": confidences}
    for name, array in values.items():
        files.write_array(folder / f"{name}.npy", array)
    cells = confidences[dataset.candidates > 0]
    history = [0.5 + (cells - 0.5) * epoch / EPOCHS for epoch in range(1, EPOCHS + 1)]
    (folder / "confidences.f16").write_bytes(np.array(history, np.float16).tobytes())


def _write_events(workspace: Workspace, run_id: str, dataset: CandidateDataset) -> None:
    run = workspace.runs.claim(run_id, os.getpid(), 0.0)
    assert run is not None
    n, d, n_labels = dataset.n_instances, dataset.n_features, dataset.n_labels
    zero = Objective(prediction=0, candidates=0, instance_graph=0, label_graph=0)
    events = [
        RunStarted(
            config=run.config,
            fingerprint=run.fingerprint,
            n_instances=n,
            n_features=d,
            n_labels=n_labels,
            device="cpu",
            versions={},
        ),
        GraphsBuilt(
            seconds=0, search="given", recall=None, n_edges=0, n_isolated=0, n_label_edges=0
        ),
        *(
            EpochRecord(epoch=epoch, loss=0, objective=zero, cells_changed=0, entropy=0, seconds={})
            for epoch in range(1, EPOCHS + 1)
        ),
    ]
    workspace.runs.append_events(run_id, enumerate(events))
    ended = RunEnded(state="finished", epochs=EPOCHS, seconds=0)
    workspace.runs.finish(run_id, RunState.FINISHED, last_events=[(len(events), ended)])
