"""The figures behind the charts, on data small enough to count by hand."""

import json

import numpy as np
import pytest

from core.engine.config import PRESETS, PlainConfig
from plain_app.charts import curves, distinct, distribution, evolution, meanings
from plain_app.charts.instance_map import inside_polygon
from plain_app.charts.reliability import reliability_option, reliability_points

HISTORY = np.array([[0.1, 0.9, 0.5], [0.2, 0.1, 0.5], [0.9, 0.9, 0.5]], np.float16)


def test_evolution_counts_cells_per_bin():
    points = evolution.evolution_points(HISTORY, bins=10)
    assert points.epochs == [1, 2, 3]
    assert np.allclose(points.shares.sum(axis=1), 100)
    assert np.isclose(points.shares[2, 9] + points.shares[2, 8], 200 / 3, atol=1e-3)


def test_evolution_of_a_long_run_keeps_first_and_last_epoch():
    history = np.zeros((1000, 2), np.float16)
    points = evolution.evolution_points(history)
    assert (points.epochs[0], points.epochs[-1]) == (1, 1000)
    assert len(points.epochs) <= evolution.MAX_EPOCHS


def test_no_epochs_draw_an_empty_chart():
    points = evolution.evolution_points(np.empty((0, 5), np.float16))
    assert points.epochs == []
    assert evolution.evolution_option(points, 30)["xAxis"]["data"][-1] == "30"
    assert len(evolution.cell_statistics(np.empty((0, 5), np.float16)).mean) == 0


def test_the_numbers_of_a_method_without_epochs_name_it_instead_of_an_epoch():
    points = evolution.EvolutionPoints(
        epochs=[1], bins=["0", "1"], shares=np.ones((1, 2)), n_cells=2
    )
    titles = [
        evolution.spread_option(points, 1, method)["title"]["text"] for method in (None, "ml-knn")
    ]
    assert titles == ["Confidences at epoch 1", "Numbers of ml-knn"]


def test_the_most_unstable_cell_is_the_one_that_travelled():
    statistics = evolution.cell_statistics(HISTORY)
    points = evolution.unstable_points(HISTORY, statistics, top=2)
    assert points.cells.tolist() == [1, 0]
    assert points.crossings == [2, 1]
    assert np.allclose(points.trails[0], [0.9, 0.1, 0.9], atol=1e-3)


def test_statistics_do_not_depend_on_chunks(monkeypatch):
    whole = evolution.cell_statistics(HISTORY)
    monkeypatch.setattr(evolution, "CHUNK", 2)
    for one, other in zip(whole, evolution.cell_statistics(HISTORY), strict=True):
        assert np.array_equal(one, other)


def test_difference_lists_only_cells_that_differ():
    points = evolution.difference_points(HISTORY, 1, 3)
    assert points.cells.tolist() == [0]
    assert points.n_changed == 1


def test_cartography_places_cells_by_mean_and_variability():
    statistics = evolution.cell_statistics(HISTORY)
    x, y = evolution.cartography_places(statistics, np.arange(3))
    assert np.allclose(x, [-0.2, 4 / 15, 0], atol=1e-3)
    assert np.allclose(y, [0.78, 0.886, -1], atol=2e-3)
    assert inside_polygon(x, y, [(-1, -0.9), (1, -0.9), (1, 1), (-1, 1)]).tolist() == [1, 1, 0]
    assert evolution.most_variable(statistics, np.arange(3), top=1).tolist() == [1]


def test_together_is_a_share_of_the_row():
    candidates = np.array([[1, 1], [1, 0], [1, 0], [1, 1]], np.uint8)
    points = distribution.together_points(candidates, ["a", "b"])
    shares = {(label, other): value for other, label, value in points.cells}
    assert shares == {("a", "b"): 50.0, ("b", "a"): 100.0}


def test_names_stay_distinct_when_shortened():
    assert len(set(distinct(["x" * 100 + "1", "x" * 100 + "2"]))) == 2


def test_curves_take_values_that_are_not_numbers():
    from core.engine.events import EpochRecord, Objective

    terms = Objective(prediction=float("nan"), candidates=1, instance_graph=1, label_graph=1)
    record = EpochRecord(
        epoch=1,
        loss=float("inf"),
        objective=terms,
        cells_changed=0,
        entropy=0.0,
        seconds={},
        metrics={"auc": float("nan")},
    )
    points = curves.curve_points([record], 5)
    option = curves.curves_option(points)
    json.dumps(option, allow_nan=False)
    assert len(option["grid"]) == len(option["title"]) == 5


SIZES = meanings.Sizes(3000, 256, 10)


@pytest.mark.parametrize("name", PlainConfig.model_fields)
def test_every_setting_has_a_picture_under_every_preset(name):
    for preset in PRESETS:
        points = meanings.meaning_points(name, PlainConfig.preset(preset), SIZES)
        assert points.text
        assert points.lines or points.bars
        option = meanings.meaning_option(points)
        json.dumps(option, allow_nan=False)
        legend = option.get("legend", {"top": 24})
        assert legend["top"] >= option["toolbox"]["itemSize"] + 7  # its names keep off the tools


def test_pictures_show_what_the_engine_computes():
    more, less = (
        meanings.meaning_points("alpha", PlainConfig(alpha=alpha), SIZES).lines
        for alpha in (0.5, 0.1)
    )
    agree = dict(more["neighbours have it"])
    assert agree[0.0] == 0.5  # without neighbours, the prediction
    assert agree[1.0] > agree[0.5] > 0.5 > dict(more["none has it"])[1.0]
    assert more.keys() == less.keys()
    masked = meanings.meaning_points("balance", PlainConfig(balance="mask"), SIZES).bars
    assert (masked["0.30 ○"], masked["0.80"]) == (0, pytest.approx(0.8))
    left = dict(meanings.meaning_points("n_steps", PlainConfig(), SIZES).lines["slowest part"])
    assert left[0] == 100
    assert left[max(left)] < 1


def test_reliability_shows_claimed_beside_true_and_leaves_out_what_nobody_knows():
    points = reliability_points(np.array([0.05, 0.05, 0.95, 0.5]), np.array([0, 1, 1, np.nan]))
    assert (points.claimed, points.true, points.n_cells) == ([0.05, 0.95], [0.5, 1.0], [2, 1])
    dots = reliability_option(points)["series"][0]["data"]
    assert [dot["value"] for dot in dots] == [[0.05, 0.5, 2], [0.95, 1.0, 1]]
    nothing = reliability_points(np.array([0.5]), np.array([np.nan]))
    assert reliability_option(nothing)["series"][0]["data"] == []


def test_long_names_stand_once_beside_the_heat_map_and_not_below_it():
    candidates = np.array([[1, 1, 0], [0, 1, 1]], np.uint8)

    def drawn(*names: str):
        return distribution.together_option(distribution.together_points(candidates, names))

    short, long = drawn("a", "b", "c"), drawn("sea", "mountain", "harbour at night")
    assert "show" not in short["xAxis"]["axisLabel"]
    assert long["xAxis"]["axisLabel"] == {"show": False}
    assert long["xAxis"]["name"] == "the same labels, in this order"
    assert long["yAxis"]["data"][0] == "mountain"
