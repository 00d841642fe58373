from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from core.review import disagreements, measure_agreement, self_agreement
from core.review.agreement import (
    REPEAT_AFTER,
    REPEAT_EVERY,
    cohen_kappa,
    krippendorff_alpha,
    may_repeat,
)


@dataclass
class Said:
    instance_id: str
    label: str
    verdict: str
    annotator: str = "ann"
    time: str = ""
    adjudicates: bool = False
    shown: bool = True


def test_alpha_of_the_example_in_krippendorffs_text():
    said = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    units = zip(*(one.split() for one in said), strict=True)
    alpha = krippendorff_alpha([v for v in unit if v != "."] for unit in units)
    assert round(alpha, 3) == 0.743


def test_alpha_equals_one_minus_observed_by_expected_disagreement_of_all_pairs():
    rng = np.random.default_rng(0)
    units = [rng.choice(["keep", "reject"], rng.integers(0, 5)).tolist() for _ in range(60)]
    pairable = [unit for unit in units if len(unit) > 1]
    values = [v for unit in pairable for v in unit]
    n = len(values)
    observed = sum(
        (a != b) / (len(unit) - 1)
        for unit in pairable
        for at, a in enumerate(unit)
        for to, b in enumerate(unit)
        if at != to
    )
    expected = sum(a != b for a in values for b in values) / (n * (n - 1))
    assert krippendorff_alpha(units) == pytest.approx(1 - observed / n / expected, abs=1e-12)


def test_kappa_equals_scikit_learns():
    rng = np.random.default_rng(1)
    a = rng.choice(["keep", "reject"], 80, p=[0.7, 0.3])
    b = np.where(rng.random(80) < 0.8, a, "keep")
    assert cohen_kappa(zip(a, b, strict=True)) == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


def test_agreement_is_told_per_label_and_adjudications_are_no_opinions():
    ann = [Said("1", "cat", "keep"), Said("2", "cat", "reject"), Said("1", "dog", "keep")]
    bob = [Said("1", "cat", "keep"), Said("2", "cat", "keep"), Said("1", "dog", "unsure")]
    judge = [Said("2", "cat", "reject", adjudicates=True)]
    people = {"ann": ann, "bob": bob, "judge": judge}
    whole, cat = measure_agreement(people)
    assert (whole.label, cat.label) == (None, "cat")
    assert (cat.n_shared, cat.n_disagreed) == (2, 1)
    assert cat.alpha == pytest.approx(0.0)
    assert cat.kappa == pytest.approx(0.0)
    (one,) = disagreements(people)
    assert (one.instance_id, one.label, one.adjudicated) == ("2", "cat", "reject")
    assert one.verdicts == {"ann": "reject", "bob": "keep"}


def test_nothing_can_be_told_where_nobody_shares_a_cell():
    (whole,) = measure_agreement({"ann": [Said("1", "cat", "keep")], "bob": []})
    assert np.isnan([whole.alpha, whole.kappa]).all()
    assert disagreements({"ann": [Said("1", "cat", "keep")]}) == []


def test_blind_answers_to_cells_that_came_back_are_compared_with_those_before():
    def again(name, verdict, **more):
        return Said(name, "x", verdict, shown=False, **more)

    history = [
        *(Said(name, "x", "keep") for name in "abcdef"),
        again("a", "keep"),
        again("b", "reject"),
        again("c", "reject"),
        again("c", "undo"),  # the comparison is taken back too
        again("d", "keep", annotator="bob"),  # another person's first answer
        Said("e", "x", "reject"),  # changed, not asked again
        again("f", "unsure"),
    ]
    (found,) = self_agreement(history)
    assert (found.annotator, found.n_repeated, found.n_same) == ("ann", 2, 1)
    assert 0.05 < found.low < 0.5 < found.high < 0.95


def test_one_instance_in_twenty_comes_back_and_none_of_the_last():
    made = [Said(str(at), "x", "keep") for at in range(REPEAT_AFTER + 10)]
    assert may_repeat(made[: REPEAT_EVERY - 1], ()) == []
    assert may_repeat(made[:REPEAT_AFTER], ()) == []
    assert may_repeat(made, ()) == [str(at) for at in range(10)]
    assert may_repeat(made, {"3"}) == [str(at) for at in range(10) if at != 3]
    assert may_repeat(made, {"3", "4"}) == []
