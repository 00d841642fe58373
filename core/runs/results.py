"""What a run leaves in its folder, and reads again: everything but its events.

instance_graph.npz, label_graph.npz   the graphs, given or built
checkpoint.npz                        what training needs to go on, every few seconds
confidences.f16                       one row per epoch of all candidate cells, float16
predictions.npy, pseudo_labels.npy, confidences.npy    at the end
level.npy                             the share of false candidates (`core.confidence.level`)
review.npz                            the targets and weights a retraining begins with
verified.npz                          the decided rows that a method was given which needs some
layout_pca.npy, layout_umap.npy       where instances stand on the map
neighbors.npz                         more neighbours than the graph has, for the lens
review_start.npz, lens_start.npz      of large data, what pages begin with (`core.review.beginning`)
worker.log, worker.lock               of the process at work (`core.runs.worker`)
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.confidence.level import Level
from core.data.dataset import CandidateDataset
from core.engine.graphs import InstanceGraph, LabelGraph, Neighbors, find_neighbors
from core.engine.propagation import Propagator
from core.errors import StoreError
from core.store import RunRow, RunState, Workspace, files

CHECKPOINT = "checkpoint.npz"
_AT_THE_END = ("predictions.npy", "confidences.npy")
_FROM_THE_START = ("instance_graph.npz", "label_graph.npz")

MIN_NEIGHBORS = 50
"""How many neighbours the lens can go up to at least."""


@dataclass(frozen=True, eq=False)
class RunResults:
    """What a run knows: an ended one in the end, one at work at its last checkpoint. Read only."""

    run: RunRow
    folder: Path
    dataset: CandidateDataset
    predictions: npt.NDArray[np.float32]  # (n, L)
    confidences: npt.NDArray[np.float32]  # (n, L), 0 outside the candidates
    history: npt.NDArray[np.float16]  # (epochs, cells), memory-mapped

    @cached_property
    def graphs(self) -> tuple[InstanceGraph, LabelGraph]:
        """The graphs the run works on."""
        return _require_graphs(self.folder, self.run.id)

    @property
    def instance_graph(self) -> InstanceGraph:
        return self.graphs[0]

    @property
    def label_graph(self) -> LabelGraph:
        return self.graphs[1]

    @cached_property
    def propagator(self) -> Propagator:
        """The propagation with the run's graphs and settings."""
        return Propagator(*self.graphs, **self.run.config.propagation)

    @cached_property
    def level(self) -> Level:
        """What the run learned about the share of false candidates.

        Runs of earlier versions have not kept it: it is read from their predictions.
        """
        kept = _read_level(self.folder)
        return Level.fit(self.dataset.candidates, self.predictions) if kept is None else kept

    @cached_property
    def variability(self) -> npt.NDArray[np.float32] | None:
        """The standard deviation of every candidate's confidence over the epochs, (n, L)."""
        if len(self.history) < 2:
            return None
        out = np.zeros(self.dataset.candidates.shape, np.float32)
        out[self.dataset.candidates > 0] = np.asarray(self.history, np.float32).std(axis=0)
        return out


def load_results(workspace: Workspace, run: RunRow, *, at_work: bool = False) -> RunResults:
    """Return the results of an ended run; `at_work`: those of the last checkpoint of one at work.

    Raises
    ------
    StoreError
        It has none: not yet, never had, or its files are gone.
    """
    if at_work:
        saved = files.read_arrays(workspace.runs.folder(run.id) / CHECKPOINT)
        predictions, confidences = saved["Y_hat"], saved["confidence"]
    else:
        paths = (require_results(workspace, run) / name for name in _AT_THE_END)
        predictions, confidences = (files.read_array(path, mmap=True) for path in paths)
    return RunResults(
        run=run,
        folder=workspace.runs.folder(run.id),
        dataset=workspace.load_dataset(run.fingerprint),
        predictions=predictions,
        confidences=confidences,
        history=confidence_history(workspace, run.id),
    )


def lost_files(workspace: Workspace, run: RunRow) -> StoreError | None:
    """Return the error that says which files of an ended run are gone and what still works.

    None where nothing is missing, or object storage has it. They are gone where the database alone
    was restored; those of another machine's run are there.
    """
    if run.state not in (RunState.FINISHED, RunState.STOPPED) or not run.epoch:
        return None
    owner = f"runs/{run.id}"
    if workspace.runs.elsewhere(run) is not None:
        what = f"Run {run.id} {run.name}".strip()
        return workspace.machines.elsewhere(what, run.machine, owner)
    if not (workspace.folder / owner).is_dir() and workspace.stored.can_fetch(owner):
        return workspace.stored.failure(owner) or workspace.lost_data(run.fingerprint)
    names = _FROM_THE_START + (_AT_THE_END if run.state is RunState.FINISHED else ())
    folder = workspace.folder / owner  # not made here
    missing = [name for name in names if not (folder / name).exists()]
    data = workspace.lost_data(run.fingerprint)
    if not missing and data is None:
        return None
    what = f"{folder}: {', '.join(missing)}" if missing else data.detail if data else ""
    n_decisions = workspace.decisions.count(run.fingerprint)
    kept = f"The settings and curves of run {run.id} are here, and {n_decisions:,} decisions."
    again = "train again: all decisions count in the new run. Or restore a full backup."
    hint = f"{data.hint} Then {again}" if data else again.capitalize()
    return StoreError("The files of this run are gone.", f"{what}\n{kept}", hint)


def files_to_fetch(workspace: Workspace, fingerprint: str, run: RunRow | None) -> list[str]:
    """Return what of a data set and a run on it would be fetched from object storage when used."""
    owners = [f"datasets/{fingerprint}"]
    if run is not None and run.state.is_ended:
        owners.append(f"runs/{run.id}")
    return [one for one in owners if workspace.stored.is_to_fetch(one)]


def require_results(workspace: Workspace, run: RunRow) -> Path:
    """Return the folder of a run that has results.

    Raises
    ------
    StoreError
        It has none: not yet, never had, or its files are gone.
    """
    if (lost := lost_files(workspace, run)) is not None:
        raise lost
    folder = workspace.runs.folder(run.id)
    if all((folder / name).exists() for name in _AT_THE_END):
        return folder
    if run.state.is_ended:
        hint = "Choose another run, or train again."
        raise StoreError("This run has no results.", f"Run {run.id} is {run.state}.", hint)
    raise StoreError("This run has no results yet.", run.id, "Wait, or stop it first.")


def confidence_history(workspace: Workspace, run_id: str) -> npt.NDArray[np.float16]:
    """Return the confidences of all candidate cells by epoch, (epochs, cells), memory-mapped.

    Cells are in row-major order of the candidate matrix. Only epochs whose events are stored count.
    """
    run = workspace.runs.get(run_id)
    path = workspace.runs.folder(run.id) / "confidences.f16"
    data = workspace.dataset(run.fingerprint)
    n_cells = data.n_candidates if data else 0
    n_epochs = (
        min(run.epoch, path.stat().st_size // (2 * n_cells)) if path.exists() and n_cells else 0
    )
    if not n_epochs:
        return np.empty((0, n_cells), np.float16)
    return np.memmap(path, np.float16, "r", shape=(n_epochs, n_cells))


def load_graphs(workspace: Workspace, run_id: str) -> tuple[InstanceGraph, LabelGraph]:
    """Return the graphs a run works on."""
    return _require_graphs(workspace.runs.folder(workspace.runs.get(run_id).id), run_id)


def _require_graphs(folder: Path, run_id: str) -> tuple[InstanceGraph, LabelGraph]:
    instances, labels = read_graphs(folder)
    if instances is None or labels is None:
        raise StoreError("This run has no graphs yet.", run_id, "Wait until they are built.")
    return instances, labels


def give_graphs(
    folder: Path, instance_graph: InstanceGraph | None = None, label_graph: LabelGraph | None = None
) -> None:
    """Have the run of a folder use these graphs instead of those built from its data."""
    if instance_graph is not None:
        _write_instance_graph(folder, instance_graph)
    if label_graph is not None:
        _write_label_graph(folder, label_graph)


def lay_out(workspace: Workspace, run_id: str) -> None:
    """Lay out the map of a run with UMAP, unless that is done.

    One map at a time: each takes a core and hundreds of megabytes, and a run's worker may be at the
    one that somebody has just asked for.
    """
    run = workspace.runs.get(run_id)
    target = workspace.runs.folder(run.id) / "layout_umap.npy"
    if target.exists():
        return
    with filelock.FileLock(workspace.folder / "layout.lock", mode=0o600):
        if target.exists():
            return
        from core.runs.layout import umap_layout  # slow to import

        instances, _ = load_graphs(workspace, run.id)
        start = files.read_array(target.with_name("layout_pca.npy"))
        files.write_array(target, umap_layout(instances, start, run.config.seed))
    workspace.share(f"runs/{run.id}")


def keep_neighbors(workspace: Workspace, run_id: str) -> None:
    """Search more neighbours than a run's graph has, unless that is done: other k, other rho."""
    from core.engine.network import choose_device
    from core.engine.scaling import fit_scaling

    run = workspace.runs.get(run_id)
    target = workspace.runs.folder(run.id) / "neighbors.npz"
    if target.exists():
        return
    X = workspace.load_dataset(run.fingerprint).features
    found = find_neighbors(
        fit_scaling(X, run.config).view(X),
        max(MIN_NEIGHBORS, 3 * run.config.k),
        seed=run.config.seed,
        device=str(choose_device(run.config.device)),
        folder=target.parent,
    )
    files.write_arrays(
        target,
        cosines=found.cosines,
        rows=found.rows.astype(np.int32),
        search=np.array(found.search),
        recall=np.array(np.nan if found.recall is None else found.recall),
    )
    workspace.share(f"runs/{run.id}")


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


def verified_rows(
    workspace: Workspace, run: RunRow, dataset: CandidateDataset
) -> npt.NDArray[np.float32]:
    """Return 0 and 1 in rows whose candidates were all decided when the run began, else NaN."""
    path = workspace.runs.folder(run.id) / "verified.npz"
    if not path.exists():
        from core.tuning.objectives import read_verdicts

        known = read_verdicts(workspace, dataset)
        found = np.where(dataset.candidates > 0, np.nan, 0).astype(np.float32)
        found[known.rows, known.labels] = known.kept
        found[np.isnan(found).any(axis=1) | ~(dataset.candidates > 0).any(axis=1)] = np.nan
        files.write_arrays(path, verified=found)
    return np.asarray(files.read_arrays(path)["verified"], np.float32)


def mean_predictions(workspace: Workspace, run: RunRow) -> npt.NDArray[np.float32]:
    """Return the mean of what the runs predict that a consensus is of."""
    assert run.config.method is not None
    ids = str(dict(run.config.method.settings)["runs"]).split()
    others = [workspace.runs.get(one) for one in ids]
    if any(one.fingerprint != run.fingerprint for one in others):
        hint = "Choose runs of one data set."
        raise StoreError("A consensus is of runs on the same data.", " ".join(ids), hint)
    found = [
        files.read_array(require_results(workspace, one) / "predictions.npy") for one in others
    ]
    return np.asarray(np.mean(found, axis=0), np.float32)


def read_checkpoint(workspace: Workspace, run: RunRow) -> dict[str, npt.NDArray[Any]] | None:
    """Return the last checkpoint, unless it is damaged or knows epochs whose events were lost."""
    path = workspace.runs.folder(run.id) / CHECKPOINT
    if not path.exists():
        return None
    try:
        checkpoint = files.read_arrays(path)
    except StoreError as error:
        print(f"{error}\nThe run begins anew.", file=sys.stderr)
        return None
    return checkpoint if int(checkpoint["epoch"]) <= workspace.runs.get(run.id).epoch else None


def kept_level(workspace: Workspace, run: RunRow) -> Level | None:
    """Return what a run has written about it; None before its end, and of earlier versions."""
    return _read_level(workspace.stored.local(f"runs/{run.id}"))


def _read_level(folder: Path) -> Level | None:
    path = folder / "level.npy"
    return Level.from_array(files.read_array(path)) if path.exists() else None


def level_of(checkpoint: dict[str, npt.NDArray[Any]]) -> Level | None:
    """Return what a checkpoint says about the level; None in those of earlier versions."""
    return Level.from_array(checkpoint["level"]) if "level" in checkpoint else None


def write_results(folder: Path, checkpoint: dict[str, npt.NDArray[Any]]) -> None:
    names = {"Y_hat": "predictions", "Z": "pseudo_labels", "confidence": "confidences"}
    for key, name in names.items():
        files.write_array(folder / f"{name}.npy", checkpoint[key])
    if "level" in checkpoint:
        files.write_array(folder / "level.npy", checkpoint["level"])
    files.write_arrays(folder / "checkpoint.npz", **checkpoint)


def keep_graphs(folder: Path, dataset: CandidateDataset, trainer: Any, seed: int) -> None:
    from core.runs.layout import pca_layout

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
