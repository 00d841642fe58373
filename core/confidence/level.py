"""The level: which share of the candidates is true, as far as candidates and predictions can tell.

How often is a label offered where features x point to it with strength u (the log-odds of a
prediction made without the instance's own candidates)? Three readings of what is seen there:

1. *False candidates independent of the features* turn up everywhere alike: a share e of all cells
   that are not true, for every label.
2. *True labels that the features do not show* turn up everywhere too, but in proportion to the
   label: a share tau of how often it is true, t_j = (f_j - e) / (1 - e) with f_j its frequency.
3. The rest follows u. Together

       P(offered | x) = e + (1 - e) [tau t_j + (1 - tau) G(a_j + b u)],

   where G is the distribution function of Student's t with three degrees of freedom: its tail ends
   later than the logistic one, which would take the true labels there for false ones.

e is at most the share of offers where labels are predicted least. Labels of different frequency
tell e from tau, strong predictions tell both from G. What the data cannot tell apart shows as a
flat likelihood, so e is an interval: all values whose likelihood is near the largest
(`core.confidence.offer_curve`). Where e = 0 is nearly as likely as the best, none are seen and none
rejected.
Otherwise e is more if whole candidate sets ask for it, because false candidates come in regular
numbers (`core.confidence.counts`): then it is the e at which all rows together are likeliest, if by
more than chance.

*False candidates that follow the features* raise P(offered | x) as true ones do: no reading of
candidates and features sees them. `share_high` admits as many as their prior
(`core.confidence.readings`), or what the person expects.
"""

from dataclasses import astuple, dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import betaincinv

from core.confidence.offer_curve import Floats, OfferCurve
from core.confidence.readings import UNSEEN
from core.errors import ConfigError

_UNSEEN = float(betaincinv(*UNSEEN, 0.95))
"""False candidates that resemble true ones, at most: 95 % of their prior."""


@dataclass(frozen=True)
class Level:
    """What candidates and predictions tell about the share of false candidates."""

    e: float = 0.0  # P(offered | not true); 0 where none are seen
    e_low: float = 0.0
    e_high: float = 0.0
    hidden: float = 0.05  # tau
    expected_low: float = 0.0  # share of false candidates that a person expects, from and to;
    expected_high: float = 0.0  # 0 if unknown
    share: float = 0.0  # of candidates that are false, independent of the features
    share_low: float = 0.0
    share_high: float = _UNSEEN  # with those that follow the features

    @classmethod
    def fit(
        cls, Y: Any, Y_hat: Any, expected_false: float | tuple[float, float] | None = None
    ) -> Self:
        """Read candidates and predictions of them, each made without its own row's candidates."""
        offered, Y_hat = np.asarray(Y) > 0, np.asarray(Y_hat)
        expected = expected_range(expected_false)
        if not offered.any() or offered.all():
            return cls(share_high=_UNSEEN if expected is None else expected[1])
        curve = OfferCurve(offered, Y_hat)
        e, is_seen, low, high, hidden = curve.floor(expected)
        share, share_low, share_high = (curve.share_false(one) for one in (e, low, high))
        if not is_seen:
            e = 0.0
        else:
            counted = curve.counted(offered, Y_hat, e, hidden)
            share_high = max(share_high, curve.share_false(counted))
            if counted > e:  # which whole rows single out
                e = high = counted
                share = curve.share_false(e)
        unseen = _UNSEEN if expected is None else expected[1]
        wanted = (0.0, 0.0) if expected is None else expected
        whole = float(1 - (1 - share_high) * (1 - unseen))
        return cls(e, low, high, hidden, *wanted, share, share_low, whole)

    @property
    def readings(self) -> tuple[Floats, Floats]:
        """The levels e that confidences are the mean of, and their weights.

        Three points of Gauss and Hermite: for a normal posterior its ends are those of 92 %. One
        where none are seen, or where the counts of whole rows single it out.
        """
        if self.e == 0 or self.e >= self.e_high:
            return np.array([self.e]), np.ones(1)
        return np.array([self.e_low, self.e, self.e_high]), np.array([1, 4, 1]) / 6

    @property
    def one_reading(self) -> Self:
        """The level with e as the only one."""
        return replace(self, e_high=self.e)

    @property
    def expectation(self) -> tuple[float, float] | None:
        """The range of the share of false candidates that a person expects; none is unknown."""
        return (self.expected_low, self.expected_high) if self.expected_high > 0 else None

    @property
    def sentence(self) -> str:
        """What is known about the share of false candidates, and what would narrow it."""
        if self.share_low < 0.005 and self.share < 0.05:
            known = f"Few candidates, if any, look false; up to {self.share_high:.0%} could be."
        elif self.share_low < 0.005:
            known = f"At most {self.share_high:.0%} of the candidates are false."
        else:
            known = f"{self.share_low:.0%} to {self.share_high:.0%} of the candidates are false."
        return f"{known} Thirty random answers would tell."

    def to_array(self) -> Floats:
        """Return the numbers to store."""
        return np.array(astuple(self))

    @classmethod
    def from_array(cls, values: Any) -> Self:
        return cls(*map(float, values))

    def after(self, n_true: int, n_answers: int) -> tuple[float, float]:
        """Return the 90 % interval of the share of true candidates after so many random answers.

        Before any it is what the data allow.
        """
        if not n_answers:
            return 1 - self.share_high, 1 - self.share_low
        a, b = n_true + 0.5, n_answers - n_true + 0.5
        return float(betaincinv(a, b, 0.05)), float(betaincinv(a, b, 0.95))


def expected_range(expected: float | tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the range of an expected share of false candidates; a number is its middle."""
    if expected is None:
        return None
    if not isinstance(expected, tuple):
        expected = (expected / 2, min(2 * expected, 1.0))
    low, high = expected
    if not 0 <= low <= high <= 1:
        raise ConfigError("A share of false candidates is from 0 to 1.", f"Got {expected}.")
    return float(low), float(high)
