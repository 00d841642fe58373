"""How good labels are: ranking measures on predictions, and disambiguation of candidate cells.

All ranking measures come from one ranking of each row, ties taking the worst rank, which makes
them equal to scikit-learn's where that defines them. Rows without a true label (or without a false
one) have no ranking; `rows` says what they count for:

- "all" (the PLAIN release): every row is averaged in; such a row has ranking loss 0, a row without
  true labels has average precision 0 and coverage 0.
- "ranked" (the MATLAB family): only rows with both true and false labels are averaged.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Rows = Literal["all", "ranked"]
Floats = npt.NDArray[np.floating[Any]]
Binary = npt.NDArray[Any]


def ranking_metrics(
    truth: Binary, predictions: Floats, threshold: float = 0.5, rows: Rows = "all"
) -> dict[str, float]:
    """Return ranking loss, average precision, Hamming loss, one-error and coverage.

    Coverage is the mean depth of the deepest true label, not divided by the number of labels.

    Parameters
    ----------
    truth : (n, L) of 0/1; predictions : (n, L), larger is more likely true
    threshold : predictions above it count as labels in the Hamming loss
    """
    from scipy.stats import rankdata  # slow to import

    T = np.asarray(truth) > 0
    n_labels = T.shape[1]
    n_true = T.sum(axis=1)
    n_false = n_labels - n_true
    descending = rankdata(-np.asarray(predictions), method="max", axis=1)  # 1 is the top
    ranked_true = rankdata(np.where(T, -predictions, np.inf), method="max", axis=1)
    both = (n_true > 0) & (n_false > 0)

    # A true label at rank r with s true labels at or above it has r - s false ones not below it.
    wrong_pairs = np.where(T, descending - ranked_true, 0).sum(axis=1)
    ranking_loss = np.divide(wrong_pairs, n_true * n_false, where=both, out=np.zeros(len(T)))
    precision = np.where(T, ranked_true / descending, 0).sum(axis=1)
    average_precision = np.divide(precision, n_true, where=n_true > 0, out=np.zeros(len(T)))
    top_is_false = ~T[np.arange(len(T)), np.argmax(predictions, axis=1)]
    deepest = np.where(T, descending, 1).max(axis=1) - 1

    kept = slice(None) if rows == "all" else both
    per_row = {
        "ranking_loss": ranking_loss,
        "average_precision": average_precision,
        "one_error": top_is_false,
        "coverage": deepest,
    }
    result = {name: _mean(values[kept]) for name, values in per_row.items()}
    result["hamming_loss"] = float(np.mean((predictions > threshold) != T))
    return result


def disambiguation_metrics(
    truth: Binary, candidates: Binary, confidences: Floats, threshold: float = 0.5
) -> dict[str, float]:
    """Return how well confidences tell true candidates from false ones; only candidate cells count.

    `auc` pools all candidate cells, `macro_auc` averages over labels that have both kinds,
    `instance_ap` over instances that do; `f1` is that of the labels kept at the threshold, and
    `candidate_f1` that of keeping every candidate. Undefined measures are NaN.
    """
    offered = np.asarray(candidates) > 0
    T = (np.asarray(truth) > 0) & offered
    C = np.where(offered, confidences, -np.inf)
    per_label = [roc_auc(T[on, j], C[on, j]) for j, on in enumerate(offered.T)]
    mixed = T.any(axis=1) & (offered & ~T).any(axis=1)
    precision = (
        ranking_metrics(T[mixed], C[mixed]) if mixed.any() else {"average_precision": np.nan}
    )
    kept = offered & (np.asarray(confidences) > threshold)
    return {
        "auc": roc_auc(T[offered], C[offered]),
        "macro_auc": _mean(np.array([one for one in per_label if one == one])),
        "instance_ap": precision["average_precision"],
        "f1": f1(truth, kept),
        "candidate_f1": f1(truth, offered),
    }


def roc_auc(truth: Binary, confidences: Floats) -> float:
    """Return the area under the ROC curve; NaN when only one kind is there."""
    from sklearn.metrics import roc_auc_score  # slow to import

    if truth.size == 0 or truth.all() or not truth.any():
        return float("nan")
    return float(roc_auc_score(truth, confidences))


def f1(truth: Binary, kept: Binary) -> float:
    """Return the micro F1 of a 0/1 label matrix."""
    T, K = np.asarray(truth) > 0, np.asarray(kept) > 0
    total = T.sum() + K.sum()
    return float(2 * (T & K).sum() / total) if total else 1.0


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
