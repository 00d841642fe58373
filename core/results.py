"""What a run leaves in its folder, and reads again: everything but its events.

instance_graph.npz, label_graph.npz   the graphs, given or built
checkpoint.npz                        what training needs to go on, every few seconds
confidences.f16                       one row per epoch of all candidate cells, float16
predictions.npy, pseudo_labels.npy, confidences.npy    at the end
review.npz                            the targets and weights a retraining begins with
layout_pca.npy, layout_umap.npy       where instances stand on the map
neighbors.npz                         more neighbours than the graph has, for the lens
worker.log, worker.lock               of the process at work (`core.worker`)
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.dataset import CandidateDataset
from core.errors import StoreError
from core.graphs import InstanceGraph, LabelGraph, Neighbors, find_neighbors
from core.store import RunRow, Workspace, files

MIN_NEIGHBORS = 50
"""How many neighbours the lens can go up to at least."""


def confidence_history(workspace: Workspace, run_id: str) -> npt.NDArray[np.float16]:
    """Return the confidences of all candidate cells by epoch, (epochs, cells), memory-mapped.

    Cells are in row-major order of the candidate matrix. Only epochs whose events are stored count.
    """
    run = workspace.runs.get(run_id)
    path = workspace.runs.folder(run.id) / "confidences.f16"
    n_cells = next(
        row.n_candidates for row in workspace.datasets() if row.fingerprint == run.fingerprint
    )
    n_epochs = (
        min(run.epoch, path.stat().st_size // (2 * n_cells)) if path.exists() and n_cells else 0
    )
    if not n_epochs:
        return np.empty((0, n_cells), np.float16)
    return np.memmap(path, np.float16, "r", shape=(n_epochs, n_cells))


def load_graphs(workspace: Workspace, run_id: str) -> tuple[InstanceGraph, LabelGraph]:
    """Return the graphs a run works on."""
    folder = workspace.runs.folder(workspace.runs.get(run_id).id)
    instances, labels = read_graphs(folder)
    if instances is None or labels is None:
        raise StoreError("This run has no graphs yet.", run_id, "Wait until they are built.")
    return instances, labels


def give_graphs(
    workspace: Workspace,
    run_id: str,
    instance_graph: InstanceGraph | None = None,
    label_graph: LabelGraph | None = None,
) -> None:
    """Have a queued run use these graphs instead of those built from its data."""
    folder = workspace.runs.folder(workspace.runs.get(run_id).id)
    if instance_graph is not None:
        _write_instance_graph(folder, instance_graph)
    if label_graph is not None:
        _write_label_graph(folder, label_graph)


def lay_out(workspace: Workspace, run_id: str) -> None:
    """Lay out the map of a run with UMAP, unless that is done."""
    from core.layout import umap_layout

    run = workspace.runs.get(run_id)
    target = workspace.runs.folder(run.id) / "layout_umap.npy"
    if not target.exists():
        instances, _ = load_graphs(workspace, run.id)
        start = files.read_array(target.with_name("layout_pca.npy"))
        files.write_array(target, umap_layout(instances, start, run.config.seed))


def keep_neighbors(workspace: Workspace, run_id: str) -> None:
    """Search more neighbours than a run's graph has, unless that is done: other k, other rho."""
    from core.network import Standardizer, choose_device

    run = workspace.runs.get(run_id)
    target = workspace.runs.folder(run.id) / "neighbors.npz"
    if target.exists():
        return
    X = workspace.load_dataset(run.fingerprint).features
    standardized = Standardizer.fit(X, run.config.standardize).apply(X)
    found = find_neighbors(
        standardized,
        max(MIN_NEIGHBORS, 3 * run.config.k),
        seed=run.config.seed,
        device=str(choose_device(run.config.device)),
    )
    files.write_arrays(
        target,
        cosines=found.cosines,
        rows=found.rows.astype(np.int32),
        search=np.array(found.search),
        recall=np.array(np.nan if found.recall is None else found.recall),
    )


def load_neighbors(workspace: Workspace, run_id: str) -> Neighbors | None:
    """Return what `keep_neighbors` found; none before."""
    path = workspace.runs.folder(workspace.runs.get(run_id).id) / "neighbors.npz"
    if not path.exists():
        return None
    kept = files.read_arrays(path)
    return Neighbors(kept["cosines"], kept["rows"], str(kept["search"]), float(kept["recall"]))


def retrained_from(workspace: Workspace, run_id: str) -> str | None:
    """Return the run whose weights this one began with; none where it began anew."""
    path = workspace.runs.folder(workspace.runs.get(run_id).id) / "review.npz"
    return str(files.read_arrays(path)["run"]) if path.exists() else None


def read_checkpoint(workspace: Workspace, run: RunRow) -> dict[str, npt.NDArray[Any]] | None:
    """Return the last checkpoint, unless it is damaged or knows epochs whose events were lost."""
    path = workspace.runs.folder(run.id) / "checkpoint.npz"
    if not path.exists():
        return None
    try:
        checkpoint = files.read_arrays(path)
    except StoreError as error:
        print(f"{error}\nThe run begins anew.", file=sys.stderr)
        return None
    return checkpoint if int(checkpoint["epoch"]) <= workspace.runs.get(run.id).epoch else None


def write_results(folder: Path, checkpoint: dict[str, npt.NDArray[Any]]) -> None:
    names = {"Y_hat": "predictions", "Z": "pseudo_labels", "confidence": "confidences"}
    for key, name in names.items():
        files.write_array(folder / f"{name}.npy", checkpoint[key])
    files.write_arrays(folder / "checkpoint.npz", **checkpoint)


def keep_graphs(folder: Path, dataset: CandidateDataset, trainer: Any, seed: int) -> None:
    from core.layout import pca_layout

    if not (folder / "instance_graph.npz").exists():
        _write_instance_graph(folder, trainer.instance_graph)
    if not (folder / "label_graph.npz").exists():
        _write_label_graph(folder, trainer.label_graph)
    if not (folder / "layout_pca.npy").exists():
        files.write_array(folder / "layout_pca.npy", pca_layout(dataset.features, seed))


def _write_instance_graph(folder: Path, graph: InstanceGraph) -> None:
    A = graph.affinity
    files.write_arrays(
        folder / "instance_graph.npz",
        data=A.data,
        indices=A.indices,
        indptr=A.indptr,
        normalized=graph.normalized.data,
        search=np.array(graph.search),
        recall=np.array(np.nan if graph.recall is None else graph.recall),
    )


def _write_label_graph(folder: Path, graph: LabelGraph) -> None:
    arrays = {"weights": graph.weights, "normalized": graph.normalized}
    files.write_arrays(folder / "label_graph.npz", **arrays)


def read_graphs(folder: Path) -> tuple[InstanceGraph | None, LabelGraph | None]:
    instances = labels = None
    if (folder / "instance_graph.npz").exists():
        g = files.read_arrays(folder / "instance_graph.npz")
        n = len(g["indptr"]) - 1
        recall = None if np.isnan(g["recall"]) else float(g["recall"])
        A, W = (
            sp.csr_array((g[name], g["indices"], g["indptr"]), shape=(n, n))
            for name in ("data", "normalized")
        )
        instances = InstanceGraph(A, W, str(g["search"]), recall)
    if (folder / "label_graph.npz").exists():
        labels = LabelGraph(**files.read_arrays(folder / "label_graph.npz"))
    return instances, labels
