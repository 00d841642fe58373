"""Tables of `plain bench quality --methods`: figures beside the paper's, times, statistics."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from core.bench import statistics
from core.bench.fits import DONE, FAILED, SLOW
from core.bench.report import Rows

Result = dict[str, Any]
Case = tuple[str, int | None]

MEASURES = {
    "ranking_loss": ("ranking loss ↓", -1),
    "average_precision": ("average precision ↑", 1),
    "hamming_loss": ("Hamming loss ↓", -1),
    "one_error": ("one-error ↓", -1),
    "coverage": ("coverage ↓", -1),
    "micro_f1": ("micro F1 ↑", 1),
    "macro_f1": ("macro F1 ↑", 1),
    "confidence_auc": ("AUC of confidences ↑", 1),
}
TESTED = ("average_precision", "ranking_loss", "confidence_auc")
CONTROL = "studio"

PAPER_METHODS = ("plain", "pml-ni", "hale-style", "ml-knn", "glocal", "pml-lc-style", "particle")

PAPER_DEEP = {
    "apml-style": {"ranking_loss": 0.124, "average_precision": 0.777, "hamming_loss": 0.170},
    "pml-mt-style": {"ranking_loss": 0.126, "average_precision": 0.807, "hamming_loss": 0.173},
}
"""The paper's table of deep methods: mirflickr, 80/20 splits of all 10,433 rows."""

PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "emotions": {
        "ranking_loss": (0.158, 0.214, 0.235, 0.241, 0.322, 0.459, 0.259),
        "average_precision": (0.812, 0.754, 0.751, 0.741, 0.647, 0.573, 0.745),
        "hamming_loss": (0.223, 0.455, 0.297, 0.607, 0.281, 0.437, 0.233),
    },
    "image": {
        "ranking_loss": (0.190, 0.289, 0.192, 0.342, 0.264, 0.467, 0.315),
        "average_precision": (0.774, 0.668, 0.762, 0.627, 0.692, 0.523, 0.689),
        "hamming_loss": (0.207, 0.273, 0.189, 0.753, 0.237, 0.443, 0.403),
    },
    "birds": {
        "ranking_loss": (0.205, 0.187, 0.271, 0.304, 0.302, 0.321, 0.301),
        "average_precision": (0.606, 0.580, 0.505, 0.453, 0.390, 0.388, 0.431),
        "hamming_loss": (0.088, 0.095, 0.096, 0.053, 0.096, 0.132, 0.142),
    },
    "medical": {
        "ranking_loss": (0.050, 0.039, 0.169, 0.088, 0.068, 0.056, 0.100),
        "average_precision": (0.781, 0.849, 0.769, 0.672, 0.751, 0.713, 0.720),
        "hamming_loss": (0.019, 0.014, 0.017, 0.022, 0.028, 0.063, 0.024),
    },
    "corel5k": {
        "ranking_loss": (0.120, 0.205, 0.259, 0.139, 0.164, 0.169, 0.333),
        "average_precision": (0.319, 0.289, 0.231, 0.251, 0.284, 0.247, 0.135),
        "hamming_loss": (0.009, 0.011, 0.014, 0.009, 0.009, 0.019, 0.009),
    },
    "bibtex": {
        "ranking_loss": (0.079, 0.126, 0.601, 0.232, 0.131, 0.342, 0.287),
        "average_precision": (0.550, 0.537, 0.353, 0.306, 0.438, 0.283, 0.313),
        "hamming_loss": (0.013, 0.015, 0.016, 0.014, 0.015, 0.021, 0.017),
    },
    "mirflickr-5000": {
        "ranking_loss": (0.088, 0.123, 0.143, 0.178, 0.212, 0.206, 0.213),
        "average_precision": (0.847, 0.792, 0.718, 0.698, 0.679, 0.675, 0.690),
        "hamming_loss": (0.162, 0.223, 0.156, 0.217, 0.253, 0.193, 0.179),
    },
}
"""The paper's Table 3 (r = 3) and Table 1 (mirflickr: all 10,433 rows, ours has 5,000)."""


class Tested(NamedTuple):
    """Methods that finished every case, compared by one measure."""

    title: str
    names: list[str]
    ranks: npt.NDArray[np.float64]  # mean over cases, 1 is best
    cases: int
    friedman: statistics.Friedman
    nemenyi: float  # the critical difference of two mean ranks
    dunn: float  # of a mean rank and the control's
    control: str

    @property
    def sentence(self) -> str:
        found = self.friedman
        return (
            f"{self.title} over {self.cases} cases: Friedman F = {found.F:.2f} (critical "
            f"{found.critical:.2f}, p = {found.p:.2g}); critical difference of mean ranks "
            f"{self.nemenyi:.2f} (Nemenyi), {self.dunn:.2f} (Bonferroni-Dunn, against "
            f"{self.control})"
        )


class Comparison:
    """What finished fits say."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.results = list(results)
        self.methods = list(dict.fromkeys(one["method"] for one in self.results))
        self.cases: list[Case] = list(dict.fromkeys((one["set"], one["r"]) for one in self.results))
        self._by: dict[tuple[Case, str], list[Result]] = {}
        for one in self.results:
            self._by.setdefault(((one["set"], one["r"]), one["method"]), []).append(one)

    def tables(self) -> list[tuple[str, Rows]]:
        """Return all tables, header first."""
        how = "mean and deviation over folds"
        found = [(f"{_name(case)}: {how}", self._case(case)) for case in self.cases]
        found += self._beside_the_paper()
        found.append(("Seconds of one fit, mean over folds", self._seconds()))
        if troubles := self._troubles():
            found.append(("Not finished", troubles))
        for measure in TESTED:
            found += self._tests(measure)
        return found

    def values(self, case: Case, method: str, measure: str) -> npt.NDArray[np.float64] | None:
        """Return the figure of every fold; none unless all folds are done."""
        folds = self._by.get((case, method), [])
        folds = sorted(folds, key=lambda one: int(one["fold"]))
        if not folds or any(one["state"] != DONE or one[measure] is None for one in folds):
            return None
        return np.array([one[measure] for one in folds])

    def _beside_the_paper(self) -> list[tuple[str, Rows]]:
        """Rank the paper's methods on the cases it printed, by its figures and by ours."""
        cases = [case for case in self.cases if case[0] in PAPER and case[1] in (None, 3)]
        ours = {
            method: [self.values(case, method, "average_precision") for case in cases]
            for method in PAPER_METHODS
        }
        if not cases or any(v is None for folds in ours.values() for v in folds):
            return []
        theirs = [PAPER[name]["average_precision"] for name, _ in cases]
        means = np.array([[v.mean() for v in folds if v is not None] for folds in ours.values()]).T
        ranks = [stats.rankdata(-np.array(table), axis=1).mean(axis=0) for table in (theirs, means)]
        rows = [["method", "the paper's mean rank", "ours"]]
        rows += [
            [name, f"{a:.1f}", f"{b:.1f}"] for name, a, b in zip(PAPER_METHODS, *ranks, strict=True)
        ]
        return [(f"Mean ranks by average precision; cases of the paper: {len(cases)}", rows)]

    def _case(self, case: Case) -> Rows:
        rows = [["method", *(title for title, _ in MEASURES.values()), "paper: RL / AP / HL"]]
        for method in self.methods:
            figures = [self.values(case, method, measure) for measure in MEASURES]
            texts = ["" if v is None else f"{v.mean():.3f}±{v.std(ddof=1):.3f}" for v in figures]
            rows.append([method, *texts, _paper(case, method)])
        return rows

    def _seconds(self) -> Rows:
        rows = [["method", *map(_name, self.cases)]]
        for method in self.methods:
            values = [self.values(case, method, "seconds") for case in self.cases]
            rows.append([method, *("" if v is None else f"{v.mean():.2f}" for v in values)])
        return rows

    def _troubles(self) -> Rows:
        rows = [["method", "data", "why"]]
        for (case, method), folds in self._by.items():
            for one in folds:
                if one["state"] == SLOW:
                    rows.append([method, _name(case), f"a fit took over {one['limit']:g} s"])
                elif one["state"] == FAILED:
                    rows.append([method, _name(case), one["error"].splitlines()[0]])
                else:
                    continue
                break
        return rows if len(rows) > 1 else []

    def tested(self, measure: str) -> Tested | None:
        """Compare methods that finished every case; none with fewer than three, or two cases."""
        title, _ = MEASURES[measure]
        whole, means = self._whole(measure)
        if len(whole) < 3 or len(self.cases) < 2:
            return None
        found, names = statistics.friedman(means), list(whole)
        control = CONTROL if CONTROL in whole else names[int(np.argmin(found.ranks))]
        shape = len(names), len(self.cases)
        distances = statistics.nemenyi_distance(*shape), statistics.bonferroni_dunn_distance(*shape)
        return Tested(title, names, found.ranks, shape[1], found, *distances, control)

    def seconds(self) -> dict[str, dict[str, float]]:
        """Return the mean seconds of a fit by case and method, as far as all folds are done."""
        found = {}
        for case in self.cases:
            values = {name: self.values(case, name, "seconds") for name in self.methods}
            found[_name(case)] = {n: float(v.mean()) for n, v in values.items() if v is not None}
        return found

    def _whole(self, measure: str) -> tuple[dict[str, Any], Any]:
        """Return the folds of methods that finished every case, and (cases, methods) means."""
        sign = MEASURES[measure][1]
        every = {name: self._folds(name, measure, sign) for name in self.methods}
        whole = {name: folds for name, folds in every.items() if all(v is not None for v in folds)}
        return whole, np.array([[v.mean() for v in folds] for folds in whole.values()]).T

    def _tests(self, measure: str) -> list[tuple[str, Rows]]:
        tested = self.tested(measure)
        if tested is None:
            return []
        whole, means = self._whole(measure)
        return [(tested.sentence, self._against(tested.control, whole, means, tested.ranks))]

    def _against(
        self, control: str, whole: dict[str, Any], means: Any, ranks: npt.NDArray[np.float64]
    ) -> Rows:
        names = list(whole)
        at = names.index(control)
        others = [j for j in range(len(names)) if j != at]
        compared = dict(
            zip(others, statistics.wilcoxon_holm(means[:, at], means[:, others]), strict=True)
        )
        rows = [["method", "mean rank", "t-tests: win/tie/loss of the control"]]
        rows[0] += ["Wilcoxon p, Holm", "effect", "P(control better / equal / worse), ± .01"]
        for j in np.argsort(ranks, kind="stable"):
            row = [names[j], f"{ranks[j]:.2f}"]
            if j == at:
                rows.append([*row, "control", "", "", ""])
                continue
            wins = statistics.win_tie_loss(whole[control], whole[names[j]])
            bayes = statistics.bayesian_signed_rank(means[:, at], means[:, j])
            row += ["/".join(map(str, wins)), f"{compared[j].adjusted:.2g}"]
            row += [f"{compared[j].effect:+.2f}", " / ".join(f"{p:.2f}" for p in bayes)]
            rows.append(row)
        return rows

    def _folds(self, method: str, measure: str, sign: int) -> list[Any]:
        found = [self.values(case, method, measure) for case in self.cases]
        return [None if v is None else sign * v for v in found]


def _name(case: Case) -> str:
    name, r = case
    return f"{name}, own candidates" if r is None else f"{name}, r = {r}"


def _paper(case: Case, method: str) -> str:
    name, r = case
    order = ("ranking_loss", "average_precision", "hamming_loss")
    if name == "mirflickr-5000" and method in PAPER_DEEP:
        return " / ".join(f"{PAPER_DEEP[method][measure]:.3f}" for measure in order)
    if name not in PAPER or r not in (None, 3) or method not in PAPER_METHODS:
        return ""
    at = PAPER_METHODS.index(method)
    return " / ".join(f"{PAPER[name][measure][at]:.3f}" for measure in order)
