"""What trials are judged by, and what is reported of them: never the same cells.

- `truth`: how well confidences tell true candidates from false ones. Trained on all rows without
  the truth; half of the rows' truth is tuned on, the other half reported.
- `decisions`: the same against what people decided: half of the decided instances is tuned on.
- `consistency`, where nobody knows better: how high a network ranks the candidates of rows it was
  not trained on (1 - ranking loss). 70 % of the rows are trained on, half of the others each tuned
  on and reported. False candidates count as right here, so a network that learns how mistakes are
  made is favoured too: a hint, not a proof, and on the demo data, whose mistakes follow the
  pictures, it orders good settings against the truth. Beside it stands the smoothness.

`smoothness` is sum(C * A_x C) / sum(C^2) on the graph of the base settings: 1 where neighbours
agree.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.confidence.lens import confidence_model, confidences
from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph, Neighbors, build_label_graph, find_neighbors
from core.engine.metrics import disambiguation_metrics, ranking_metrics, roc_auc
from core.engine.propagation import Propagator
from core.errors import ConfigError
from core.store import Workspace
from core.tuning.space import ObjectiveName, StudySettings

MIN_DECISIONS = 20
"""Of each part, keep and reject together; fewer say nothing."""

Rows = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Rows: trained on, tuned on, reported."""

    trained: Rows
    tuned: Rows
    reported: Rows


class Outcome(NamedTuple):
    """What became of a trial."""

    value: float
    reported: float
    smoothness: float
    confidences: npt.NDArray[np.float16]  # of all candidate cells


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Decided cells and whether they were kept."""

    rows: Rows
    labels: Rows
    kept: npt.NDArray[np.bool_]

    def cells(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return 1 for what was kept, 0 for what was rejected, NaN elsewhere, (n, L)."""
        found = np.full(shape, np.nan)
        found[self.rows, self.labels] = self.kept
        return found


def available(workspace: Workspace, fingerprint: str) -> list[ObjectiveName]:
    """Return what trials on this data can be judged by, the most trustworthy first."""
    dataset = workspace.load_dataset(fingerprint)
    found: list[ObjectiveName] = ["truth"] if dataset.truth is not None else []
    verdicts = read_verdicts(workspace, dataset)
    if all(_has_both(verdicts, rows) for rows in _halves(np.unique(verdicts.rows), 0)):
        found.append("decisions")
    return [*found, "consistency"]


def explain(objective: ObjectiveName, workspace: Workspace, fingerprint: str) -> str:
    """Say what is used and how far to trust it."""
    if objective == "truth":
        return (
            "Judged by the truth of half of the rows; reported is the other half, which nothing "
            "was chosen on. Trust it as far as the truth itself."
        )
    if objective == "decisions":
        n = len(read_verdicts(workspace, workspace.load_dataset(fingerprint)).rows)
        error = 0.5 / np.sqrt(max(n / 2, 1))
        return (
            f"Judged by half of the {n:,} decisions, reported on the other half: differences below "
            f"{error:.2f} may be chance. Decided cells are mostly doubtful ones, so figures are "
            "lower than on all cells."
        )
    return (
        "No truth and too few decisions: judged by how high the candidates of rows kept out of "
        "training are ranked. False candidates count as right too, so trust it little: it may "
        "tell settings that fail from settings that work, but among good ones it can point the "
        "wrong way, as it does on the demo data. Decide some cells in Review for a better judge."
    )


def read_verdicts(workspace: Workspace, dataset: CandidateDataset) -> Verdicts:
    """Return the current decisions on candidate cells; unsure ones do not count."""
    row, column = dataset.row_of, dataset.label_of
    cells = [
        (row[one.instance_id], column[one.label], one.verdict == "keep")
        for one in workspace.decisions.latest(dataset.fingerprint)
        if one.verdict in ("keep", "reject") and one.instance_id in row and one.label in column
    ]
    offered = [cell for cell in cells if dataset.candidates[cell[0], cell[1]]]
    rows, labels, kept = np.array(offered, np.int64).reshape(-1, 3).T
    return Verdicts(rows, labels, kept.astype(bool))


class Judge:
    """Judges the trials of one study; made once per worker."""

    def __init__(self, settings: StudySettings, dataset: CandidateDataset, verdicts: Verdicts):
        self._settings, self._dataset, self._verdicts = settings, dataset, verdicts
        self.parts = split(settings, dataset, verdicts)
        rows = self.parts.trained
        is_all = len(rows) == dataset.n_instances
        self.training = CandidateDataset(  # without the truth
            dataset.features if is_all else dataset.features[rows],
            dataset.candidates[rows],
            dataset.label_names,
            [dataset.ids[row] for row in rows],
            dataset.feature_names,
            votes=None if dataset.votes is None else dataset.votes.rows(rows),
        )
        self._neighbors: dict[tuple[bool, bool, bool], Neighbors] = {}
        self._offered = np.nonzero(dataset.candidates)

    def graph(self, config: PlainConfig, *, of_all: bool = False) -> InstanceGraph:
        """Return the instance graph of a trial; all trials share one search."""
        dataset = self._dataset if of_all else self.training
        key = (
            config.standardize,
            config.unit_rows,
            of_all and self.training.n_instances < dataset.n_instances,
        )
        if key not in self._neighbors:
            from core.engine.scaling import fit_scaling

            scaled = fit_scaling(dataset.features, config).view(dataset.features)
            seed = self._settings.base.seed
            self._neighbors[key] = find_neighbors(scaled, self._largest_k(), seed=seed)
        return self._neighbors[key].graph(config.k, config.rho)

    def after_epoch(self, trainer: Any) -> float:
        """Return how good the training is so far, on the tuned part."""
        return self._measure(trainer, self.parts.tuned)

    def at_the_end(self, trainer: Any) -> Outcome:
        """Return what a trial has come to."""
        C = self._confidences_of_all(trainer)
        A = self.graph(self._settings.base, of_all=True).normalized
        smoothness = float((C * (A @ C)).sum() / max(float((C * C).sum()), 1e-12))
        return Outcome(
            self.after_epoch(trainer),
            self._measure(trainer, self.parts.reported),
            smoothness,
            C[self._offered].astype(np.float16),
        )

    def _largest_k(self) -> int:
        ranges = [one for one in self._settings.parameters if one.name == "k"]
        wanted = [int(k) for one in ranges for k in (*one.choices, one.high) if k is not None]
        return max([self._settings.base.k, *wanted])

    def _measure(self, trainer: Any, rows: Rows) -> float:
        dataset, objective = self._dataset, self._settings.objective
        if objective == "consistency":
            predictions = trainer.predict_proba(dataset.features[rows])
            ranked = ranking_metrics(dataset.candidates[rows], predictions, rows="ranked")
            return 1 - ranked["ranking_loss"]
        if objective == "truth":
            truth = np.asarray(dataset.truth)[rows]
            C = trainer.confidences[rows]
            if self._settings.metric == "auc":
                offered = dataset.candidates[rows] > 0
                return roc_auc(truth[offered], C[offered])
            scores = disambiguation_metrics(truth, dataset.candidates[rows], C)
            return scores[self._settings.metric]
        of = self._verdicts
        chosen = np.isin(of.rows, rows)
        return roc_auc(of.kept[chosen], trainer.confidences[of.rows[chosen], of.labels[chosen]])

    def _confidences_of_all(self, trainer: Any) -> npt.NDArray[np.float32]:
        """Return n x L confidences; rows kept out of training join by their predictions."""
        if self.training.n_instances == self._dataset.n_instances:
            made: npt.NDArray[np.float32] = trainer.confidences
            return made
        Y = self._dataset.candidates.astype(np.float32)
        Y_hat = trainer.predict_proba(self._dataset.features)
        noise = confidence_model(Y, Y_hat, self._dataset.votes, trainer.config, trainer.level)
        if trainer.config.disambiguation != "alternating":
            return confidences(None, Y, Y_hat, noise)
        graph = self.graph(trainer.config, of_all=True)
        labels = build_label_graph(self._dataset.candidates)
        propagator = Propagator(graph, labels, **trainer.config.propagation)
        return confidences(propagator, Y, Y_hat, noise)


def split(settings: StudySettings, dataset: CandidateDataset, verdicts: Verdicts) -> Parts:
    """Return the rows that are trained on, tuned on and reported."""
    everything = np.arange(dataset.n_instances)
    if settings.objective == "consistency":
        shuffled = np.random.default_rng(settings.seed).permutation(everything)
        tuned, reported, trained = np.split(
            shuffled, [len(shuffled) * 3 // 20, len(shuffled) * 3 // 10]
        )
        return Parts(np.sort(trained), np.sort(tuned), np.sort(reported))
    if settings.objective == "truth":
        if dataset.truth is None:
            raise ConfigError("This data has no truth.", hint="Choose another objective.")
        return Parts(everything, *_halves(everything, settings.seed))
    parts = Parts(everything, *_halves(np.unique(verdicts.rows), settings.seed))
    if not (_has_both(verdicts, parts.tuned) and _has_both(verdicts, parts.reported)):
        few = f"{len(verdicts.rows)} decisions are too few to tune on one half and report the other"
        raise ConfigError(
            "Too few decisions.", few, "Decide more cells, or choose another objective."
        )
    return parts


def _halves(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    shuffled = np.random.default_rng(seed).permutation(rows)
    half = len(shuffled) // 2
    return np.sort(shuffled[:half]), np.sort(shuffled[half:])


def _has_both(verdicts: Verdicts, rows: Rows) -> bool:
    kept = verdicts.kept[np.isin(verdicts.rows, rows)]
    return len(kept) >= MIN_DECISIONS // 2 and bool(kept.any()) and not kept.all()
