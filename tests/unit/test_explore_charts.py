"""What the Explore view computes before anything is drawn."""

import json

import numpy as np
import pytest
from finished_run import finished_run, near_rows

from core.data.dataset import CandidateDataset
from core.engine.graphs import InstanceGraph, build_label_graph
from core.engine.propagation import Propagator
from core.store import Workspace
from plain_app.charts import ego, evidence, labels
from plain_app.charts import instance_map as maps
from plain_app.services import explore
from plain_app.services import maps as map_service

HOSTILE = "<img src=x onerror=alert(1)>"


def jsonable(option) -> str:
    """Options must be plain values, or the browser never gets them."""
    return json.dumps(option, allow_nan=False)


# ------------------------------------------------------------------------------------ the map


def even_odd(x, y, polygon):
    """Crossing number, one point at a time."""
    inside = False
    for (x0, y0), (x1, y1) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if min(y0, y1) <= y < max(y0, y1) and x < x0 + (y - y0) * (x1 - x0) / (y1 - y0):
            inside = not inside
    return inside


def test_point_in_polygon_agrees_with_counting_crossings():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-1, 1, (2, 500))
    polygon = [(float(a), float(b)) for a, b in rng.uniform(-1, 1, (17, 2))]  # crosses itself
    expected = [even_odd(a, b, polygon) for a, b in zip(x, y, strict=True)]
    assert maps.inside_polygon(x, y, polygon).tolist() == expected


@pytest.mark.parametrize("polygon", [[], [(0, 0)], [(0, 0), (1, 1)], [(0, 0), (1, 0), (2, 0)]])
def test_nothing_is_inside_a_degenerate_polygon(polygon):
    assert not maps.inside_polygon(np.zeros(3), np.zeros(3), polygon).any()


def test_numbers_become_steps_and_nan_is_missing():
    made = maps.colour_numbers(np.array([0.0, 1.0, np.nan, 0.5]), "t", "confidence", (0, 1))
    assert made.classes.tolist() == [0, maps.N_STEPS - 1, maps.N_STEPS, maps.N_STEPS // 2]
    assert made.legend.names == ("0", "1")
    assert made.legend.n_missing == 1


def test_constant_and_absent_numbers_do_not_divide_by_zero():
    assert maps.colour_numbers(np.full(3, 7.0), "t").classes.tolist() == [0, 0, 0]
    assert maps.colour_numbers(np.full(3, np.nan), "t").legend.n_missing == 3


def test_rare_names_share_one_class():
    values = [f"n{i}" for i in range(20) for _ in range(21 - i)] + [None]
    made = maps.colour_texts(values, "t")
    assert made.n_classes == maps.MAX_NAMES
    assert made.legend.names[0] == "n0"
    assert made.legend.names[-1] == "12 others"
    assert sum(made.legend.counts) + made.legend.n_missing == len(values)
    assert made.classes.max() == made.n_classes  # the missing one


def test_a_packed_map_reads_back():
    layout = np.array([[0.0, 10.0], [4.0, 10.0], [2.0, 11.0]])
    made = maps.colour_names(np.array([0, 1, -1]), ["a", HOSTILE], "t")
    colours = maps.pack_colours(made, "r1", "l1")
    head, at = packed_head(colours)
    assert (head["revision"], head["layout"], head["classes"]) == ("r1", "l1", 2)
    assert head["legend"]["names"] == ["a", HOSTILE]
    assert list(colours[at:]) == [0, 1, 2]
    places = maps.pack_places(maps.place_points(layout), "l1")
    head, at = packed_head(places)
    assert head == {"layout": "l1", "axes": None}
    xy = np.frombuffer(places, "<f4", offset=at).reshape(2, 3)
    np.testing.assert_allclose(xy, [[-1, 1, 0], [-0.25, -0.25, 0.25]])


def packed_head(packed: bytes) -> tuple[dict, int]:
    size, n = np.frombuffer(packed, "<u4", 2)
    assert (size % 4, n) == (0, 3)
    return json.loads(packed[8 : 8 + size]), 8 + int(size)


# --------------------------------------------------------------------------------- the labels


def test_counts_of_labels_are_those_of_their_cells():
    candidates = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1]], np.uint8)
    confidences = np.array([[0.9, 0.2, 0], [0.9, 0.8, 0], [0.1, 0, 0.9]], np.float32)
    counts = labels.count_labels(candidates, confidences)
    assert counts.candidates.tolist() == [3, 2, 1]
    assert counts.doubtful.tolist() == [1, 1, 0]
    assert counts.together.tolist() == [[3, 2, 1], [2, 2, 0], [1, 0, 1]]
    assert counts.doubtful_beside[0, 1] == 1
    np.testing.assert_allclose(counts.noise, [1 / 3, 1 / 2, 0])


def test_a_rule_says_how_often_b_beside_a_is_doubtful():
    candidates = np.zeros((100, 3), np.uint8)
    candidates[:, 1] = 1  # b is offered everywhere
    candidates[:25, 0] = 1  # beside a, it is doubtful 23 times of 25
    candidates[:10, 2] = 1  # too few for a rule
    confidences = np.full((100, 3), 0.9, np.float32)
    confidences[:23, 1] = 0.1
    rules = labels.rules_points(labels.count_labels(candidates, confidences))
    assert [(rule.a, rule.b, rule.support) for rule in rules] == [(0, 1, 25)]
    assert rules[0].rate == pytest.approx(0.92)
    assert rules[0].base == pytest.approx(0.23)


def test_the_network_keeps_edges_at_or_above_the_threshold_strongest_first():
    weights = np.array([[0, 0.2, 0.5], [0.2, 0, 0.1], [0.5, 0.1, 0]], np.float32)
    counts = labels.count_labels(np.eye(3, dtype=np.uint8), np.eye(3, dtype=np.float32))
    points = labels.network_points(weights, ["a", HOSTILE, "c"], counts, 0.2)
    assert [(a, b) for a, b, _ in points.edges] == [(0, 2), (0, 1)]
    assert HOSTILE in jsonable(labels.network_option(points))
    alone = labels.network_points(weights * 0, ["a", "b", "c"], counts, 0.0)
    assert alone.edges == ()
    jsonable(labels.network_option(alone))


def test_the_heat_map_puts_related_labels_side_by_side():
    weights = np.zeros((6, 6), np.float32)
    for a, b in ((0, 3), (1, 4), (2, 5)):
        weights[a, b] = weights[b, a] = 0.4
    order = labels.clustered_order(weights)
    assert sorted(order) == list(range(6))
    assert all(abs(order.index(a) - order.index(b)) == 1 for a, b in ((0, 3), (1, 4), (2, 5)))
    points = labels.heat_map_points(weights, list("abcdef"), order)
    np.testing.assert_array_equal(points.weights, weights[np.ix_(order, order)])
    jsonable(labels.heat_map_option(points))
    jsonable(labels.heat_map_option(labels.heat_map_points(-weights, "abcdef", order, True)))


@pytest.mark.parametrize("n_labels", [1, 2])
def test_few_labels_need_no_clustering(n_labels):
    assert labels.clustered_order(np.zeros((n_labels, n_labels), np.float32)) == [*range(n_labels)]


# ------------------------------------------------------------------------------- one instance


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 8)).astype(np.float32)
    Y = (rng.random((60, 7)) < 0.4).astype(np.float32)
    Y_hat = rng.random((60, 7)).astype(np.float32)
    graph = near_rows(X)
    return graph, Y, Y_hat, Propagator(graph, build_label_graph(Y), eta=0.7)


@pytest.mark.parametrize("is_candidate", [True, False])
def test_evidence_adds_up_to_the_confidence(setting, is_candidate):
    _, Y, Y_hat, propagator = setting
    i, j = (int(at) for at in np.argwhere(Y == is_candidate)[5])
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    found = propagator.evidence(i, j, Y, Y_hat)
    points = evidence.evidence_points(found, i, j, 0.7, 0.9 if is_candidate else None)
    assert sum(points.terms[:4]) == pytest.approx(1.7 * Z[i, j] - 0.7 * Y[i, j], abs=1e-5)
    assert sum(points.terms) == pytest.approx(points.total)
    assert len(points.terms) == 4 + is_candidate
    if is_candidate:
        assert points.total == pytest.approx(0.9)  # the fifth is what calibration adds


def test_voters_are_others_and_the_strongest_come_first(setting):
    _, Y, Y_hat, propagator = setting
    points = evidence.evidence_points(propagator.evidence(4, 2, Y, Y_hat), 4, 2, 0.7, 0.5)
    strengths = [abs(vote.contribution) for vote in points.voters]
    assert len(strengths) == evidence.N_VOTERS
    assert strengths == sorted(strengths, reverse=True)
    assert 4 not in {vote.at for vote in points.voters}
    assert 2 not in {vote.at for vote in points.label_votes}
    all_votes = [vote.contribution for vote in points.label_votes]
    assert sum(all_votes) == pytest.approx(points.terms[3], abs=1e-6)


@pytest.mark.parametrize("terms", [(-0.4, 0.3, 0.2, -0.3), (0.9, 0.3, 0.1, 0), (0, 0, 0, 0)])
def test_the_waterfall_draws_each_term_from_where_the_last_ended(terms):
    points = evidence.EvidencePoints(terms, sum(terms), (), ())
    base, above, below = (one["data"] for one in evidence.evidence_option(points)["series"])
    ends = np.cumsum(terms)
    bars = zip([0, *ends[:-1], 0], [*ends, ends[-1]], strict=True)
    for at, (start, end) in enumerate(bars):
        drawn = {base[at] + above[at]["value"], base[at] + below[at]["value"]}
        assert min(drawn) == pytest.approx(min(start, end))
        assert max(drawn) == pytest.approx(max(start, end))


def test_neighbours_come_in_graph_order_with_the_edges_among_them():
    graph = InstanceGraph.from_affinity(
        np.array([[0, 0.2, 0.9, 0], [0.2, 0, 0.4, 0], [0.9, 0.4, 0, 0], [0, 0, 0, 0]], np.float32)
    )
    points = ego.ego_points(graph, 0, [0.1, None, 0.9, 0.5], ["a", HOSTILE, "c", "d"])
    assert points.rows == (0, 2, 1)
    assert points.weights == pytest.approx((1, 0.9, 0.2))
    assert {(a, b) for a, b, _ in points.edges} == {(0, 1), (0, 2), (1, 2)}
    assert points.values == (0.1, 0.9, None)
    assert HOSTILE in jsonable(ego.ego_option(points))
    assert ego.ego_points(graph, 3, [None] * 4, list("abcd")).rows == (3,)


def test_confidences_have_three_anchors_of_colour():
    assert ego.shade(0) == ego.shade(-1) == evidence.DOUBTFUL
    assert ego.shade(0.5) == evidence.NEUTRAL
    assert ego.shade(1) == evidence.SURE


# ---------------------------------------------------------------------------------- a whole run


@pytest.fixture
def run(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    candidates = (rng.random((40, 5)) < 0.5).astype(np.uint8)
    candidates[0] = 0  # an instance without candidates
    data = CandidateDataset(rng.normal(size=(40, 6)).astype(np.float32), candidates)
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path))
    return explore.explored(finished_run(Workspace(tmp_path), data))


def test_the_evidence_of_a_run_is_that_of_its_stored_confidence(run):
    for row, label in np.argwhere(run.dataset.candidates)[::9]:
        points = explore.evidence(run, int(row), int(label))
        assert points.total == pytest.approx(run.confidences[row, label], abs=1e-5)
        said = np.clip(sum(points.terms[:4]), 0, 1)  # this run was not calibrated
        assert said == pytest.approx(run.confidences[row, label], abs=1e-5)


def test_values_by_instance_are_those_of_its_own_cells(run):
    offered = np.where(run.dataset.candidates > 0, run.confidences, np.nan)
    largest = map_service.largest_by_instance(run, run.cell_values(None))
    np.testing.assert_allclose(largest[1:], np.nanmax(offered[1:], axis=1))
    assert np.isnan(largest[0])
    np.testing.assert_allclose(map_service.label_confidence(run, 2), offered[:, 2])


def test_an_epoch_shows_the_confidences_it_had(run):
    np.testing.assert_array_equal(run.cell_values(2), run.history[1])
    np.testing.assert_array_equal(run.cell_values(None), run.confidences[run.cells])
    first = map_service.colouring(run, map_service.Colour("uncertainty"), 1)
    last = map_service.colouring(run, map_service.Colour("uncertainty"))
    assert (first.classes != last.classes).any()


def test_a_lasso_around_everything_selects_everything(run):
    corners = ((-2, -2), (2, -2), (2, 2), (-2, 2))
    lasso = map_service.Lasso("pca", corners)
    assert map_service.inside(run.run.id, lasso).tolist() == list(range(run.dataset.n_instances))


def test_an_edge_selects_the_instances_with_both_labels(run):
    rows = explore.offered_together(run, 1, 3)
    both = (run.dataset.candidates[:, 1] > 0) & (run.dataset.candidates[:, 3] > 0)
    assert rows.tolist() == np.flatnonzero(both).tolist()


def test_labels_outside_the_candidates_were_never_offered(run):
    found = explore.outside(run, 0.5)
    assert found.total == int(((run.predictions > 0.5) & (run.dataset.candidates == 0)).sum())
    assert not run.dataset.candidates[found.rows, found.labels].any()
    assert (np.diff(found.predictions) <= 0).all()
