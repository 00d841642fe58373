"""How reliable sources are, with intervals: what is shown of `core.confidence.sources`.

An interval must say what was not known: the cells' truth, the labels' rates, how far labels differ.
So it comes from the observed information: the scores of the cells, P(true) averaged out (Fisher's
identity), their outer products summed by label, the rate eliminated. The hierarchy then joins the
labels: an arrow of blocks, one per label, around the sources' means.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from core.confidence.candidates import Floats
from core.confidence.noise_model import logit
from core.confidence.sources import SourceModel

_JOINT = 24
"""Sources up to which their errors are considered together; more are considered one by one."""

_Z90 = 1.8
"""A normal's is 1.645; the errors on simulated crowds were 1.0 to 1.1 of what is computed here."""


@dataclass(frozen=True, eq=False)
class Rates:
    """A share of each source with its 90 % interval, (S,)."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Reliability:
    """What is known of each source. Sensitivity is P(yes | true), specificity P(no | false)."""

    sources: tuple[str, ...]
    n_votes: npt.NDArray[np.int64]  # (S,) cells judged
    n_yes: npt.NDArray[np.int64]
    sensitivity: Rates
    specificity: Rates

    @property
    def says_little(self) -> npt.NDArray[np.bool_]:
        """Whose yes hardly tells true from false: sensitivity + specificity near 1, (S,)."""
        return np.asarray(self.sensitivity.value + self.specificity.value < 1.1)

    def records(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per source, for files and tables."""
        columns = {
            f"{name}{end}": getattr(getattr(self, name), part)
            for name in ("sensitivity", "specificity")
            for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        return [
            {
                "source": source,
                "n_votes": int(self.n_votes[k]),
                "n_yes": int(self.n_yes[k]),
                **{name: round(float(values[k]), 4) for name, values in columns.items()},
                "says_little": bool(self.says_little[k]),
            }
            for k, source in enumerate(self.sources)
        ]


def reliability(
    sources: SourceModel | None, Y: Any, Y_hat: Any = None, decided: Any = None
) -> Reliability | None:
    """Return the reliability of every source by its votes, predictions and decisions.

    Parameters
    ----------
    sources : what votes alone say; none where there are too few
    Y, Y_hat : (n, L) candidates and predictions
    decided : (n, L), 1 kept, 0 rejected, NaN undecided
    """
    if sources is None:
        return None
    prior = sources.prior(Y, None, None)
    true = sources.posterior(prior, decided)
    information, model = _information(sources, prior, true), sources
    if Y_hat is not None and sources.held_out:
        # Predictions were learned from these votes: what they add to what is known counts half.
        model = sources.refit(Y_hat, decided)
        prior = model.prior(Y, None, Y_hat)
        true = model.posterior(prior, decided)
        information = (information + _information(model, prior, true)) / 2
    yes, total = model.ballots.counts(true)
    covariance, by_label, follow = _covariance(model, information)
    seen, _ = values = expit(model.coins.log_odds)
    n_sources = len(seen)
    rates = []
    for kind, (value, weight) in enumerate(zip(values, total, strict=True)):
        slope = value * (1 - value)
        at = kind * n_sources + np.arange(n_sources)
        share_of = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-9)
        gradient = slope * share_of  # (S, L)
        own = (gradient.T**2 * by_label[:, at, at]).sum(axis=0)
        through = np.einsum("kl,lkd->kd", gradient, follow[:, at, :])
        variance = own + np.einsum("kd,de,ke->k", through, covariance, through)
        rates.append(_interval((value * share_of).sum(axis=1), variance))
    n_votes, n_yes = (part.sum(axis=(0, 2)).round().astype(np.int64) for part in (total, yes))
    return Reliability(model.votes.sources, n_votes, n_yes, *rates)


def _interval(value: Floats, variance: Floats) -> Rates:
    """On the logit scale, so that it stays within (0, 1)."""
    p = np.clip(value, 1e-4, 1 - 1e-4)
    width = _Z90 * np.sqrt(variance) / (p * (1 - p))
    return Rates(value, expit(logit(p) - width), expit(logit(p) + width))


def _covariance(model: SourceModel, information: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the covariance of the sources' means, that of labels given them, and how these follow.

    Shapes (2S, 2S), (L, 2S, 2S), (L, 2S, 2S), sensitivities first.
    """
    n_sources = model.votes.n_sources
    held = np.repeat(model.coins.label_sd**-2, n_sources)
    by_label = np.asarray(np.linalg.inv(information + np.diag(held)), np.float64)
    follow = by_label * held  # d label / d mean
    known = (np.diag(held) - held[:, None] * by_label * held).sum(axis=0)
    around = np.repeat(model.coins.source_sd**-2, n_sources)
    covariance: Floats = np.linalg.inv(known + np.diag(around))
    return covariance, by_label, follow


def _information(model: SourceModel, prior: Floats, true: Floats) -> Floats:
    """Return the observed information of each label's log-odds, its rate out, (L, 2S, 2S)."""
    n_sources, n_labels = model.votes.n_sources, model.votes.shape[1]
    seen, right = model.coins.log_odds
    joint = n_sources <= _JOINT
    out = np.zeros((n_labels, 2 * n_sources, 2 * n_sources))
    error = true - expit(prior)
    for j in range(n_labels):
        asked, vote = model.ballots.of_label(j)  # (n, S)
        of_seen = true[:, j, None] * (vote - expit(seen[:, j]))
        of_right = (1 - true[:, j, None]) * (1 - vote - expit(right[:, j]))
        scores = np.concatenate([asked * of_seen, asked * of_right], axis=1)
        rate = np.where(model.ballots.asked[:, j], error[:, j], 0)
        cross = scores.T @ rate
        whole = scores.T @ scores - np.outer(cross, cross) / max(rate @ rate, 1e-9)
        out[j] = whole if joint else np.diag(np.diag(whole))
    return out
