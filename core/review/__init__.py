"""The second half: which cells to ask about, what an answer changes, and what is resolved.

`Reviewer` is one run with the decisions that stand; `resolve` makes the labels that are exported.
Never loads torch or faiss, so the server may use all of it.
"""

from core.review.agreement import (
    Agreement,
    Disagreement,
    SelfAgreement,
    disagreements,
    measure_agreement,
    self_agreement,
)
from core.review.audit import (
    Audit,
    AutoResolve,
    RemainingFalse,
    audit,
    auto_resolve,
    clicks_left,
    remaining_false,
)
from core.review.contradictions import Contradiction, contradictions
from core.review.difference import Difference, difference
from core.review.effect import DecisionEffect
from core.review.habits import Habit
from core.review.queue import ORDERS, STATES, Order, Question, State
from core.review.resolve import Resolution, Threshold, Verdict, resolve
from core.review.reviewer import Reviewer

__all__ = [
    "ORDERS",
    "STATES",
    "Agreement",
    "Audit",
    "AutoResolve",
    "Contradiction",
    "DecisionEffect",
    "Difference",
    "Disagreement",
    "Habit",
    "Order",
    "Question",
    "RemainingFalse",
    "Resolution",
    "Reviewer",
    "SelfAgreement",
    "State",
    "Threshold",
    "Verdict",
    "audit",
    "auto_resolve",
    "clicks_left",
    "contradictions",
    "difference",
    "disagreements",
    "measure_agreement",
    "remaining_false",
    "resolve",
    "self_agreement",
]
