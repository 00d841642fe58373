"""How reliable each source is, and what its votes say of every cell.

Dawid and Skene's two-coin model, hierarchical. A source k says yes to a true label j with
sensitivity s_kj, no to a false one with specificity c_kj. Their log-odds scatter around the
source's own mean, and that around the mean of all sources, so a rare label or a new source says
what the others do until there is more. The prior of a cell is a logistic regression on its
cross-fitted prediction (or the label's rate alone):

    logit p_ij = a_j + b logit(Y_hat_ij).

All is found by EM, begun where a source's errors follow from how much more than the others it
offers; the priors keep yes a sign of truth. Labels that nobody offered count too: whoever says yes
where the others say no is less specific. Decisions are truth that is known.

*Choosers.* Who names the one best label of each instance says nothing against another that also
holds, so a single yes among four is as often true as not, though coins call it an error. Choosers
are seen: they offer the same number of labels everywhere. Their no then counts less, in the
confidences, not in what is learned of the sources: taken into account there, all would be true.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, log_expit

from core.confidence.candidates import Floats
from core.confidence.noise_model import by_graphs, logit
from core.confidence.readings import held
from core.data.votes import Table, Votes

_USUAL = logit(np.array([0.75, 0.95]))
"""Log-odds of sensitivity and specificity where nothing is known yet."""

_USUAL_SD, _SOURCE_SD, _LABEL_SD = 0.75, 1.5, 0.5
"""Of that guess; of sources around their mean; of labels around their source, both at first."""

_EVEN, _CHOICE, _ENOUGH_ANSWERS = (0.3, 0.6), 0.9, 20
"""Variance of offers per answer, over that of coins, of choosers and of others (four people who
chose: .22 at most; simulated coins on four sets: .67 at least); what a chooser's no loses, so that
labels named once by four such people are not taken away without a reason."""

_RATE_SD, _SHIFT_SD, _SLOPE_SD = 1.5, 0.5, 0.5
"""Of rates around their mean; of shifts beside predictions; of their weight around 1."""

_ROUNDS, _TOLERANCE = 60, 0.02
"""Rounds of EM at most; change of log-odds at which it ends."""

_LEAP, _FAR = 8.0, 9.0
"""Largest leap, in steps; log-odds beyond which nothing is looked for."""

_OVERLAP = 0.1
"""Share of candidates with two votes or more from which sources can be compared."""


def source_model(
    votes: Votes | None, decided: Any = None, *, held_out: bool = True
) -> "SourceModel | None":
    """Return what votes alone say; none where too few candidates were judged by two sources.

    One source's votes say no more than its candidates do. `held_out` tells whether predictions were
    made without an instance's own labels: others repeat its votes, and are left aside.
    """
    if votes is None or votes.n_sources < 2:
        return None
    offered = votes.candidates > 0
    if not offered.any() or (votes.n_asked[offered] > 1).mean() < _OVERLAP:
        return None
    return replace(SourceModel.fit(votes, decided), held_out=held_out)


class Coins(NamedTuple):
    """Log-odds of sensitivity [0] and specificity [1] by source and label, and their scatter."""

    usual: Floats  # (2,)
    source: Floats  # (2, S)
    label: Floats  # (2, S, L), around their source's
    source_sd: Floats  # (2,)
    label_sd: Floats  # (2,)

    @property
    def log_odds(self) -> Floats:
        return np.asarray(self.source[:, :, None] + self.label)


@dataclass(frozen=True, eq=False)
class SourceModel:
    """What was learned of sources and cells; `confidences` works like that of `Noise`."""

    ballots: "_Ballots"
    coins: Coins
    rate: Floats  # (L,) log-odds
    slope: float
    no_weight: Floats  # (S,) how much a no counts
    rounds: int = _ROUNDS  # of EM, at most
    held_out: bool = True  # whether predictions know nothing of their instance's votes

    @classmethod
    def fit(cls, votes: Votes, decided: Any = None) -> Self:
        """Learn from votes alone, and decisions (1 kept, 0 rejected, NaN undecided)."""
        model = cls._begin(_Ballots(votes))._improve(None, _known(decided))
        return replace(model, no_weight=1 - _CHOICE * model._chosen())

    def refit(self, Y_hat: Any, decided: Any = None) -> Self:
        """Learn from predictions too, beginning with what is known."""
        if not self.held_out:
            return self._improve(None, _known(decided)) if decided is not None else self
        model = replace(self, rate=np.zeros_like(self.rate), slope=1.0)
        return model._improve(_scaled(Y_hat), _known(decided))

    @classmethod
    def _begin(cls, ballots: "_Ballots") -> Self:
        """Return the model at first: who offers more than usual errs by the difference."""
        votes = ballots.votes
        n_labels, n_sources = votes.shape[1], votes.n_sources
        yes, total = ballots.n_yes.sum(axis=1), ballots.n_votes.sum(axis=1)
        offers = (yes + 0.5) / (total + 1)
        true = np.clip(np.median(offers) * 0.8, 0.005, 0.6)
        errors = np.clip((offers - true * expit(_USUAL[0])) / (1 - true), 0.01, 0.97)
        source = np.stack([np.full(n_sources, _USUAL[0]), -logit(errors)])
        label = np.zeros((2, n_sources, n_labels))
        coins = Coins(_USUAL, source, label, np.full(2, _SOURCE_SD), np.full(2, _LABEL_SD))
        weight = np.divide(1, offers * np.maximum(total, 1))[:, None]  # who offers much says little
        share = (weight * ballots.n_yes).sum(axis=0) / (weight * ballots.n_votes + 1e-9).sum(axis=0)
        rate = logit(np.clip(share, 0.002, 0.9))
        return cls(ballots, coins, rate, 1.0, np.ones(n_sources))

    def _improve(self, x: Floats | None, known: Any) -> Self:
        """Return the model after EM, each two rounds followed by a leap (SQUAREM).

        Plain EM creeps where labels are rare: most of what is not known is who is true.
        """
        model = self
        for _ in range(self.rounds // 3):
            first = model._step(x, known)
            second = first._step(x, known)
            step = first._vector - model._vector
            turn = second._vector - first._vector - step
            straight = float(step @ step) / max(float(turn @ turn), 1e-12)
            length = float(np.clip(np.sqrt(straight), 1, _LEAP))
            leapt = second._at(model._vector + 2 * length * step + length**2 * turn)
            before, model = model, leapt._step(x, known)
            if np.abs(model.coins.log_odds - before.coins.log_odds).max() < _TOLERANCE:
                break
        return model

    @property
    def _vector(self) -> Floats:
        """Everything that EM improves, in a row."""
        parts = (self.coins.source, self.coins.label, self.rate, self.slope)
        return np.concatenate([np.ravel(part) for part in parts])

    def _at(self, vector: Floats) -> Self:
        """Return the model with other values, kept within reason."""
        source, label = self.coins.source, self.coins.label
        ends = np.cumsum([source.size, label.size, self.rate.size])
        parts = np.split(np.clip(vector, -_FAR, _FAR), ends)
        coins = self.coins._replace(
            source=parts[0].reshape(source.shape), label=parts[1].reshape(label.shape)
        )
        return replace(self, coins=coins, rate=parts[2], slope=float(max(parts[3][0], 0.0)))

    def _chosen(self) -> Floats:
        """Return how much each source chooses among labels instead of judging each, 0 to 1.

        Who chooses offers about as many labels of every instance: far more evenly than coins.
        """
        votes = self.votes
        true = self.posterior(np.broadcast_to(self.rate, votes.shape))
        out = np.zeros(votes.n_sources)
        for k, (seen, right) in enumerate(zip(*expit(self.coins.log_odds), strict=True)):
            rows = votes.answered[votes.answered[:, 1] == k, 0]
            if len(rows) < _ENOUGH_ANSWERS:
                continue
            offers = np.bincount(votes.yes[votes.yes[:, 2] == k, 0], minlength=votes.shape[0])
            p = true[rows] * seen + (1 - true[rows]) * (1 - right)
            by_coins = (p * (1 - p)).sum(axis=1).mean() + p.sum(axis=1).var()
            low, high = _EVEN
            even = offers[rows].var() / max(by_coins, 1e-9)
            out[k] = np.clip((high - even) / (high - low), 0, 1)
        return out

    def confidences(self, Y: Any, Z: Any, Y_hat: Any, eta: float = 1.0, rows: Any = None) -> Floats:
        """Return P(true) of every candidate; `rows` says which instances these are if not all."""
        prior = self.prior(Y, Z, Y_hat, eta)
        ballots = self.ballots if rows is None else _Ballots(self.votes.rows(np.asarray(rows)))
        true = expit(prior + ballots.ratios(self.coins, self.no_weight))
        if (self.no_weight < 1).any():
            # What a chooser left out may hold too: kept where their no says nothing at all.
            nothing = 1 - (1 - self.no_weight) / _CHOICE
            true = held(true, expit(prior + ballots.ratios(self.coins, nothing)) >= 0.5)
        return np.where(np.asarray(Y) > 0, true, 0.0)

    def prior(self, Y: Any, Z: Any, Y_hat: Any, eta: float = 1.0) -> Floats:
        """Return the log-odds of every cell before anybody voted."""
        if Y_hat is None or not self.held_out:
            return np.broadcast_to(self.rate, np.asarray(Y).shape)
        said = np.asarray(Y_hat, np.float64)
        if Z is not None:
            rows, labels = np.nonzero(np.asarray(Y) > 0)
            said = said.copy()
            own = said[rows, labels]
            said[rows, labels] += by_graphs(np.asarray(Z)[rows, labels], own, rows, eta)
        return np.asarray(self.rate + self.slope * _scaled(said))

    @property
    def votes(self) -> Votes:
        return self.ballots.votes

    def added(self, row: int, label: int) -> list[tuple[str, bool, float]]:
        """Return who voted on a cell, whether yes, and what that adds to its log-odds."""
        seen, right = self.coins.log_odds[:, :, label]
        of_yes = log_expit(seen) - log_expit(-right)
        of_no = (log_expit(-seen) - log_expit(right)) * self.no_weight
        place = {name: k for k, name in enumerate(self.votes.sources)}
        yes, no = self.votes.offered_by(row, label)
        return [(name, True, float(of_yes[place[name]])) for name in yes] + [
            (name, False, float(of_no[place[name]])) for name in no
        ]

    def posterior(self, prior: Floats, decided: Any = None) -> Floats:
        """Return P(true) that votes make of these log-odds; decided cells are as decided."""
        true: Floats = expit(prior + self.ballots.ratios(self.coins))
        known = _known(decided)
        return true if known is None else np.where(np.isnan(known), true, known)

    def _step(self, x: Floats | None, known: Any) -> Self:
        """Return the model after one round of EM."""
        prior = self.rate + (0.0 if x is None else self.slope * x)
        prior = np.broadcast_to(prior, self.ballots.shape)
        true = self.posterior(prior, known)
        coins = _coins(*self.ballots.counts(true), self.coins)
        rate, slope = _regress(true, prior, x, self.rate, self.slope, self.ballots.asked)
        return replace(self, coins=coins, rate=rate, slope=slope)


class _Ballots:
    """Votes arranged for sums over sources and over cells."""

    def __init__(self, votes: Votes) -> None:
        self.votes, self.shape = votes, votes.shape
        self.asked = votes.n_asked > 0
        self._answers = votes.answers
        self._answerers = votes.answers.T.tocsr()
        # A yes in an answer about all labels takes the place of a no.
        self._yes = _Cells(votes.yes, votes.shape)
        self._whole = votes.whole[self._yes.order]
        self._no = _Cells(votes.no, votes.shape)
        some = np.concatenate([votes.yes[~votes.whole], votes.no])
        self._some = _Cells(some, votes.shape)
        everything = np.ones(votes.shape)
        self.n_yes, self.n_votes = self._sums(everything)

    def of_label(self, label: int) -> tuple[Floats, Floats]:
        """Return who was asked about each instance's label, and who said yes, (n, S) of 0 and 1."""
        votes = self.votes
        asked, yes = self._answers.toarray(), np.zeros((self.shape[0], votes.n_sources))
        i, _, k = votes.yes[votes.yes[:, 1] == label].T
        yes[i, k] = asked[i, k] = 1
        i, _, k = votes.no[votes.no[:, 1] == label].T
        asked[i, k] = 1
        return asked, yes

    def ratios(self, coins: Coins, no_weight: Any = 1.0) -> Floats:
        """Return log P(votes | true) - log P(votes | false) of every cell, (n, L).

        A yes says log s - log(1 - c), a no log(1 - s) - log c.
        """
        seen, right = coins.log_odds
        of_yes = log_expit(seen) - log_expit(-right)
        of_no = (log_expit(-seen) - log_expit(right)) * np.reshape(no_weight, (-1, 1))
        out = np.asarray(self._answers @ of_no)
        at = self._yes.of_source
        self._yes.add(out, of_yes.take(at) - self._whole * of_no.take(at))
        self._no.add(out, of_no.take(self._no.of_source))
        return out

    def counts(self, true: Floats) -> tuple[Floats, Floats]:
        """Return yes votes and all votes of each source and label, on true and on false cells.

        Shapes (2, S, L).
        """
        yes, total = self._sums(true)
        return np.stack([yes, self.n_yes - yes]), np.stack([total, self.n_votes - total])

    def _sums(self, weight: Floats) -> tuple[Floats, Floats]:
        size = (self.votes.n_sources, self.shape[1])
        total = np.asarray(self._answerers @ weight) + self._some.sums(weight, size)
        return self._yes.sums(weight, size), total


class _Cells:
    """Votes sorted by their cells."""

    def __init__(self, votes: Table, shape: tuple[int, int]) -> None:
        i, j, k = votes.astype(np.int64).T
        cells = i * shape[1] + j
        self.order = np.argsort(cells, kind="stable")
        self._each = cells[self.order]
        self._cells, self._starts = np.unique(self._each, return_index=True)
        self.of_source = (k * shape[1] + j)[self.order]

    def add(self, out: Floats, values: Floats) -> None:
        """Add a value of every vote to its cell."""
        if len(self._cells):
            out.reshape(-1)[self._cells] += np.add.reduceat(values, self._starts)

    def sums(self, weight: Floats, size: tuple[int, int]) -> Floats:
        """Return the sum over votes of the weights of their cells, by source and label."""
        weights = weight.reshape(-1).take(self._each)
        found = np.bincount(self.of_source, weights, size[0] * size[1])
        return found.reshape(size).astype(np.float64)


def _coins(yes: Floats, total: Floats, before: Coins) -> Coins:
    """Return the log-odds that explain these votes better, held by their priors."""
    right = np.stack([yes[0], total[1] - yes[1]])
    parts = [
        _coin(right[at], total[at], _USUAL[at], *(part[at] for part in before)) for at in (0, 1)
    ]
    return Coins(*(np.stack(part) for part in zip(*parts, strict=True)))


def _coin(
    right: Floats,
    total: Floats,
    middle: float,
    usual: float,
    source: Floats,
    label: Floats,
    source_sd: float,
    label_sd: float,
) -> tuple[Any, ...]:
    """Return usual, source and label log-odds after Newton's steps, then both scatters."""
    for _ in range(2):
        p = expit(source[:, None] + label)
        up, curve = right - total * p, total * p * (1 - p) + 1e-9
        # Eliminate the labels: (curve + 1 / sd^2) dlabel + curve dsource = up - label / sd^2.
        own = 1 / (curve + label_sd**-2)
        pull = up - label / label_sd**2
        rest = (up - curve * own * pull).sum(axis=1) - (source - usual) / source_sd**2
        variance = 1 / ((curve - curve**2 * own).sum(axis=1) + source_sd**-2)
        step = np.clip(variance * rest, -1, 1)
        label = label + np.clip(own * (pull - curve * step[:, None]), -1, 1)
        source = source + step
    seen = total > 0.5
    squares = float(((label**2 + own) * seen).sum())
    label_sd = np.sqrt((squares + 20 * _LABEL_SD**2) / (seen.sum() + 20))
    hold = len(source) / source_sd**2
    usual = (hold * source.mean() + middle / _USUAL_SD**2) / (hold + _USUAL_SD**-2)
    squares = float(((source - usual) ** 2 + variance).sum())
    source_sd = np.sqrt((squares + 4 * _SOURCE_SD**2) / (len(source) + 4))
    return usual, source, label, source_sd, label_sd


def _regress(
    true: Floats, prior: Floats, x: Floats | None, rate: Floats, slope: float, asked: Any
) -> tuple[Floats, float]:
    """Return the labels' rates and the prediction's weight after one of Newton's steps."""
    p = expit(prior)
    error, weight = np.where(asked, true - p, 0), np.where(asked, p * (1 - p), 0)
    up, curve = error.sum(axis=0), weight.sum(axis=0)
    middle = rate.mean() if x is None else 0.0
    held = (_RATE_SD if x is None else _SHIFT_SD) ** -2
    up = up - (rate - middle) * held
    curve = curve + held
    if x is None:
        return rate + np.clip(up / curve, -1, 1), slope
    cross, square = (weight * x).sum(axis=0), (weight * x * x).sum()
    up_slope = (error * x).sum() - (slope - 1) / _SLOPE_SD**2
    step = (up_slope - (cross * up / curve).sum()) / (
        square + _SLOPE_SD**-2 - (cross**2 / curve).sum()
    )
    step = float(np.clip(step, -0.5, 0.5))
    rate = rate + np.clip((up - cross * step) / curve, -1, 1)
    return rate, max(slope + step, 0.0)


def _known(decided: Any) -> Any:
    return None if decided is None else np.asarray(decided, np.float64)


def _scaled(Y_hat: Any) -> Floats:
    p = np.clip(np.asarray(Y_hat, np.float64), 0.002, 0.998)
    return np.asarray(np.log(p / (1 - p)))
