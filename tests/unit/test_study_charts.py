"""Points of the study, lens and compare charts: what they compute, not how it looks."""

import numpy as np
import pytest

from core.engine.config import PlainConfig
from core.store import StudyRow
from core.tuning import Parameter, Study, StudySettings, Trial
from plain_app.charts import compare, lens
from plain_app.charts import study as charts


def trial(number: int, value: float | None, state: str = "finished", **values) -> Trial:
    curve = ((1, 0.5), (2, value if value is not None else 0.4))
    return Trial(number, state, values, value, 0.9, 0.1 * number, curve, 10.0, 11.0 + number, "")


def study(trials: list[Trial], *parameters: Parameter) -> Study:
    settings = StudySettings(base=PlainConfig(), parameters=parameters, n_trials=len(trials))
    row = StudyRow(id="s", fingerprint="f", name="", created="", settings={})
    return Study(row, settings, "finished", trials)


ALPHA = Parameter(name="alpha", low=0.001, high=0.1, log=True)
ETA = Parameter(name="eta", low=0.0, high=10.0)
STEPS = Parameter(name="n_steps", choices=(0, 10, None))


@pytest.fixture
def searched() -> Study:
    return study(
        [
            trial(0, 0.7, alpha=0.001, eta=1.0),
            trial(1, 0.6, alpha=0.01, eta=2.0),
            trial(2, None, "pruned", alpha=0.05, eta=3.0),
            trial(3, 0.9, alpha=0.1, eta=8.0),
            trial(4, 0.8, alpha=0.02, eta=5.0),
        ],
        ALPHA,
        ETA,
    )


def test_history_has_the_best_so_far_and_pruned_trials_apart(searched):
    points = charts.history_points(searched)
    assert points.numbers == [0, 1, 3, 4]
    assert points.best_values == [0.7, 0.7, 0.9, 0.9]
    assert (points.pruned_numbers, points.pruned_values) == ([2], [0.4])


def test_settings_searched_by_magnitude_stand_by_their_logarithm(searched):
    alpha, eta = charts.setting_points(searched).axes
    np.testing.assert_allclose(alpha.places, [-3, -2, -1, np.log10(0.02)])
    assert alpha.names[0] == "0.001"
    assert eta.places == [1.0, 2.0, 8.0, 5.0]


def test_choices_stand_in_their_order_and_none_is_converged():
    made = study([trial(0, 0.5, n_steps=None), trial(1, 0.6, n_steps=0)], STEPS)
    (axis,) = charts.setting_points(made).axes
    assert (axis.places, axis.names) == ([2.0, 0.0], ["0", "10", "converged"])


def test_a_contour_is_linear_between_trials_and_absent_outside(searched):
    points = charts.contour_points(searched, "alpha", "eta", size=9)
    known = [cell for row in points.grid for cell in row if cell is not None]
    assert 0.6 <= min(known) <= max(known) <= 0.9
    assert any(cell is None for row in points.grid for cell in row)
    line = study(
        [trial(n, 0.5 + n / 10, alpha=10.0**-n, eta=float(n)) for n in (1, 2, 3)], ALPHA, ETA
    )
    assert charts.contour_points(line, "alpha", "eta").grid == []


def test_nothing_beats_the_front_in_both_measures(searched):
    points = charts.pareto_points(searched, "smoothness", "value")
    front = {points.numbers[at] for at in points.front}
    assert front == {4, 3}  # the smoothest, and the one with the highest value
    fast = charts.pareto_points(searched, "seconds", "value")
    assert {fast.numbers[at] for at in fast.front} == {0, 3}  # less time is better


def test_learning_curves_of_all_trials_are_two_broken_lines_and_the_best(searched):
    points = charts.curves_points(searched)
    assert points.best_number == 3
    assert points.finished[0].count(None) == 3
    assert points.pruned[0] == [1, 2, None]


@pytest.mark.parametrize("trials", [[], [trial(0, 0.5, alpha=0.01, eta=1.0)]])
def test_figures_draw_with_hardly_any_trials(trials):
    made = study(trials, ALPHA, ETA) if trials else study([trial(0, None, "failed")], ALPHA, ETA)
    charts.history_figure(charts.history_points(made))
    charts.parallel_figure(charts.setting_points(made))
    charts.slice_figure(charts.setting_points(made))
    charts.contour_figure(charts.contour_points(made, "alpha", "eta"))
    charts.curves_figure(charts.curves_points(made))
    charts.pareto_figure(charts.pareto_points(made))


def test_the_lens_counts_what_changes_sides_per_label():
    before = np.array([0.6, 0.4, 0.9, 0.2, 0.55], np.float32)
    after = np.array([0.3, 0.8, 0.95, 0.1, 0.5], np.float32)
    points = lens.effect_points(before, after, 0.5, np.array([0, 0, 1, 1, 2]), ["a", "b", "c"])
    assert points.changed.tolist() == [1, 0]  # the larger change first
    assert (points.gained.tolist(), points.lost.tolist()) == ([1], [0])
    assert (points.n_kept_before, points.n_kept) == (3, 3)
    assert (points.labels[0], points.label_gained[0], points.label_lost[0]) == ("a", 1, 1)
    assert sum(points.before) == sum(points.after) == 5
    higher = lens.effect_points(before, before, 0.58, np.array([0, 0, 1, 1, 2]), ["a", "b", "c"])
    assert higher.lost.tolist() == [4]


def test_runs_disagree_where_not_all_keep_a_cell():
    confidences = np.array([[0.9, 0.4, 0.6, 0.1], [0.8, 0.7, 0.2, 0.2], [0.7, 0.6, 0.9, 0.3]])
    found = compare.disagreement_points(confidences, np.array([0, 0, 2, 2]), 3)
    assert found.cells.tolist() == [2, 1]  # the widest apart first
    assert found.pairs.tolist() == [[0, 2, 1], [2, 0, 1], [1, 1, 0]]
    assert found.by_instance.tolist() == [1, 0, 1]


def test_no_scale_of_the_lens_goes_beyond_one():
    points = lens.SweepPoints("alpha", ["0", "1"], 0, {"on the right side": [1.0, 1.0]})
    assert lens.sweep_option(points, "Agreement")["yAxis"]["max"] == 1
