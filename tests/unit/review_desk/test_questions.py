"""What the review desk is asked and told: questions, answers, audits, agreement."""

import gc
import threading
import weakref
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

import pandas as pd
import pytest
import sqlalchemy as sa
from desk_requests import ask, decision
from finished_run import finished_run

from core.data.dataset import CandidateDataset
from core.errors import PlainError
from core.formats import ColumnMapping
from core.review.session import Query, ReviewState
from core.store import schema
from core.store.decisions import DecisionStore
from plain_app.server import preload, tokens
from plain_app.services import desk, desk_items, review, shared, trust
from plain_app.services.explore import explored


def test_a_review_of_much_data_that_is_no_longer_kept_is_prepared_again(space, demo, monkeypatch):
    monkeypatch.setattr(preload, "MAX_CELLS", 0)
    first, *others = (finished_run(space, demo, seed=at) for at in range(review.KEPT + 1))
    for run_id in (first, *others):
        review.is_prepared(run_id)
    review._PREPARING.submit(int).result()  # after those before it
    assert review.is_prepared(others[-1])
    go_on = threading.Event()
    review._PREPARING.submit(go_on.wait, 240)
    assert not review.is_prepared(first)
    go_on.set()
    review._PREPARING.submit(int).result()
    assert review.is_prepared(first)


def test_a_review_that_nobody_uses_is_freed_without_the_garbage_collector(claims):
    def used() -> list[weakref.ref]:
        made = review.RunReview(ReviewState.begin(review.workspace(), explored(claims.run_id)))
        ranking, state = made.ranking(Query()), made.state.newest()
        assert ranking.state.results is state.results
        return [weakref.ref(one) for one in (made, state, state.reviewer, ranking)]

    gc.collect()
    gc.disable()
    try:
        kept, end = used(), monotonic() + 240
        while any(one() is not None for one in kept) and monotonic() < end:
            sleep(0.01)  # the threads let go of their last piece of work
        assert [one() for one in kept] == [None] * 4
    finally:
        gc.enable()


def test_a_selection_is_found_again_under_its_key(space):
    key = review.open_selection(["b", "a", "strange ☃"])
    assert review.selection(key) == ["b", "a", "strange ☃"]
    assert review.open_selection(["b", "a", "strange ☃"]) == key


@pytest.mark.parametrize("key", ["0" * 16, "../plain", "", "x"])
def test_an_unknown_selection_is_refused(space, key):
    with pytest.raises(PlainError, match="gone"):
        review.selection(key)


def test_questions_are_answered_and_not_asked_again(space, claims):
    token = tokens.issue(claims)
    status, told = ask("questions", {"order": "doubtful"}, **{"x-plain-token": token})
    assert status == 200
    first = told["items"][0]
    sent = [decision(first, at) for at in range(len(first["cells"]))]
    status, answer = ask("decisions", {"decisions": sent}, **{"x-plain-token": token})
    assert (status, answer) == (200, {"saved": [one["uid"] for one in sent], "refused": []})
    stored = space.decisions.latest(claims.fingerprint)
    assert {(one.instance_id, one.label) for one in stored} == {
        (one["instance_id"], one["label"]) for one in sent
    }
    assert {(one.annotator, one.run_id) for one in stored} == {("ann", claims.run_id)}
    again = desk.questions(claims, {"order": "doubtful"})
    assert first["key"] not in {one["key"] for one in again["items"]}
    assert again["progress"]["decided"] == len(sent)


def test_one_ranking_serves_all_who_ask_and_only_new_answers_are_read(space, claims, monkeypatch):
    monkeypatch.setattr(shared, "RENEW_SECONDS", 1e9)
    rank, since = review.Ranking, DecisionStore.since
    rankings: list[Query] = []
    read: list[int] = []

    def ranked(state, query, *given):
        rankings.append(query)
        return rank(state, query, *given)

    def counted(store, *given):
        rows = since(store, *given)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(review, "Ranking", ranked)
    items = desk.questions(claims, {})["items"][:20]
    desk.save(claims, {"decisions": [decision(one) for one in items]})
    desk.questions(claims, {})
    monkeypatch.setattr(DecisionStore, "since", counted)
    for who in ("ann", "bob", "cem"):
        desk.questions(claims._replace(annotator=who), {})
    assert rankings == [Query()]
    assert max(read) == 1  # the last that is known, which says that it is the same database


def test_the_same_answer_sent_twice_is_stored_once(space, claims):
    item = desk.questions(claims, {})["items"][0]
    body = {"decisions": [decision(item)]}
    assert desk.save(claims, body) == desk.save(claims, body)
    assert space.decisions.count(claims.fingerprint) == 1


@pytest.mark.parametrize(
    ("age", "late"),
    [(7200, 120), (30, 0), (-50, 0), (None, 0), ("x", 0), (1e300, 1440)],
)
def test_an_answer_of_an_offline_desk_has_the_time_it_was_given(space, claims, age, late):
    yesterday = schema.stamp(datetime.now(UTC) - timedelta(days=1))
    with space.database.write() as connection:  # no answer is older than its run
        connection.execute(sa.update(schema.runs).values(created=yesterday))
    item = desk.questions(claims, {})["items"][0]
    desk.save(claims, {"decisions": [decision(item, age=age)]})
    (stored,) = space.decisions.history(claims.fingerprint)
    assert stored.time <= stored.received
    assert stored.time >= yesterday
    assert round(stored.late.total_seconds() / 60) == late


def test_two_annotators_never_get_the_same_instance(space, claims):
    lanes = [
        {one["key"] for one in desk.questions(claims._replace(annotator=who), {})["items"]}
        for who in ("ann", "bob", "cem")
    ]
    assert all(len(lane) == desk.AHEAD for lane in lanes)
    assert len(set.union(*lanes)) == 3 * desk.AHEAD


def test_a_second_person_is_asked_the_same_when_overlap_is_asked_for(space, claims):
    review.set_overlap(1.0)
    item = desk.questions(claims, {})["items"][0]
    desk.save(claims, {"decisions": [decision(item)]})
    other = desk.questions(claims._replace(annotator="bob"), {})["items"][0]
    assert other["key"] == item["key"]
    assert [cell["label"] for cell in other["cells"] if cell["asked"]] == [
        item["cells"][0]["label"]
    ]
    assert other["cells"][0]["decided"] is None  # the first opinion is not told


def test_decisions_settle_and_undoing_them_opens_again(space, claims, demo):
    before = review.progress(claims.run_id)
    items = desk.questions(claims, {"order": "doubtful"})["items"]
    sent = [decision(one, at) for one in items for at in range(len(one["cells"]))]
    desk.save(claims, {"decisions": sent[:150]})
    after = review.progress(claims.run_id)
    assert after.n_decided == 150
    assert after.annotators == {"ann": 150}
    space.decisions.undo(review.recent(claims.fingerprint, "ann"), "ann")
    assert review.progress(claims.run_id) == before


def test_same_question_is_one_label_and_near_instances(space, claims, demo):
    pages = desk.questions(claims, {"mode": "same", "labels": [demo.label_names[3]]})["items"]
    (page,) = pages
    assert {cell["label"] for cell in page["cells"]} == {demo.label_names[3]}
    assert len({cell["id"] for cell in page["cells"]}) == desk.TILES


def test_filters_choose_instances_and_labels(space, claims, demo):
    key = review.open_selection(demo.ids[:5])
    found = desk.questions(claims, {"selection": key, "labels": [demo.label_names[0]]})["items"]
    assert {one["key"] for one in found} <= set(demo.ids[:5])
    asked = {cell["label"] for one in found for cell in one["cells"] if cell["asked"]}
    assert asked <= {demo.label_names[0]}


def test_a_preview_moves_nothing(space, claims):
    item = desk.questions(claims, {"order": "doubtful"})["items"][0]
    cell = item["cells"][0]
    body = {"instance_id": cell["id"], "label": cell["label"], "verdict": "keep"}
    told = desk.preview(claims, body)
    assert told["total"] >= len(told["moved"]) > 0
    assert space.decisions.count(claims.fingerprint) == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"instance_id": "nobody"}, "no such candidate"),
        ({"label": "nothing"}, "no such candidate"),
        ({"verdict": "perhaps"}, "not valid"),
        ({"confidence": 7}, "not valid"),
        ({"uid": ""}, "not a decision"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_rest_is_stored(space, claims, change, why):
    good, bad = desk.questions(claims, {})["items"][:2]
    sent = [decision(good), {**decision(bad), **change}]
    told = desk.save(claims, {"decisions": sent})
    assert told["saved"] == [sent[0]["uid"]]
    assert why in told["refused"][0]["why"]
    assert space.decisions.count(claims.fingerprint) == 1


def test_what_a_desk_drops_is_free_for_others_unless_it_was_answered(space, claims):
    items = desk.questions(claims, {})["items"]
    names = [one["key"] for one in items]
    desk.save(claims, {"decisions": [decision(items[0])]})
    other = desk.questions(claims, {"dropped": names, "order": "false_first"})
    held = {one["key"] for one in other["items"]}
    bob = claims._replace(annotator="bob")
    free = {one["key"] for one in desk.questions(bob, {})["items"]}
    assert len(free & set(names)) > 10
    assert names[0] not in free
    assert not held & free


def test_same_question_asks_only_about_the_selection(space, claims, demo):
    few = [*demo.ids[:40]]
    body = {"mode": "same", "selection": review.open_selection(few)}
    pages = desk.questions(claims, body)["items"]
    assert pages
    assert {name for page in pages for name in page["ids"]} <= set(few)


def test_agreement_is_right_to_the_digit(space, claims):
    cells = [(one, 0) for one in desk.questions(claims, {"order": "audit"})["items"][:4]]
    for who, verdicts in (("ann", "kkrr"), ("bob", "krrr")):
        said = [
            decision(item, at, uid=f"{who}{place}", verdict={"k": "keep", "r": "reject"}[verdict])
            for place, ((item, at), verdict) in enumerate(zip(cells, verdicts, strict=True))
        ]
        desk.save(claims._replace(annotator=who), {"decisions": said})
    everything = trust.agreement_table(claims.fingerprint).iloc[0]
    assert (everything["shared cells"], everything["disagreed"]) == (4, 1)
    assert everything["kappa"] == pytest.approx((3 / 4 - 1 / 2) / (1 - 1 / 2))
    assert everything["alpha"] == pytest.approx(1 - 2 / (2 * 3 * 5 / 7))


def test_random_cells_are_asked_blind_unless_somebody_wants_to_see(space, claims):
    for order in ("audit", "thirty", "worth"):
        items = desk.questions(claims, {"order": order})["items"]
        drawn = [one for one in items if any(cell["sampled"] for cell in one["cells"])]
        assert drawn
        assert all(one["blind"] for one in drawn)
    assert not any(one["blind"] for one in desk.questions(claims, {"order": "doubtful"})["items"])
    shown = desk.questions(claims, {"order": "audit", "show_random": True})["items"]
    assert not any(one["blind"] for one in shown)


def test_the_thirty_of_an_audit_are_asked_one_by_one_and_counted(space, claims):
    told = desk.questions(claims, {"order": "thirty"})
    assert told["progress"]["text"] == "Audit: 0 of 30 · blind"
    cells = [
        (item, at)
        for item in told["items"]
        for at, cell in enumerate(item["cells"])
        if cell["asked"]
    ]
    assert len(cells) == 30
    assert all(item["cells"][at]["sampled"] for item, at in cells)
    sent = [decision(item, at, sampled=True, shown=False) for item, at in cells[:12]]
    desk.save(claims, {"decisions": sent})
    assert desk.progress(claims, {"order": "thirty"})["text"] == "Audit: 12 of 30 · blind"
    assert trust.audited(claims.run_id).n_answered == 12
    rest = [decision(item, at, sampled=True, shown=False) for item, at in cells[12:]]
    desk.save(claims, {"decisions": rest})
    assert trust.audited(claims.run_id).n_answered == 30
    review.run_review(claims.run_id).state.newest()
    assert desk.questions(claims, {"order": "thirty", "source": "nobody"})["items"] == []


def answer_many(claims, count: int, **how) -> list[dict]:
    """Follow the proposals of so many instances."""
    answered = []
    while len(answered) < count:
        for item in desk.questions(claims, {"order": "doubtful"})["items"]:
            if any("before" in cell for cell in item["cells"]):
                continue
            asked = [at for at, cell in enumerate(item["cells"]) if cell["asked"]]
            sent = [
                decision(item, at, verdict=item["cells"][at]["proposed"], **how) for at in asked
            ]
            desk.save(claims, {"decisions": sent})
            answered.append(item)
    return answered


def test_one_answered_instance_in_twenty_comes_back_blind_and_counts_once(space, claims):
    answer_many(claims, 45)
    n_decided = len(space.decisions.latest(claims.fingerprint))
    items = desk.questions(claims, {"order": "doubtful"})["items"]
    (again,) = [one for one in items if any("before" in cell for cell in one["cells"])]
    cell = again["cells"][0]
    assert again["blind"]
    assert cell["decided"] is None  # what was said is not told
    assert cell["before"] in ("keep", "reject")
    other = "reject" if cell["before"] == "keep" else "keep"
    desk.save(claims, {"decisions": [decision(again, uid="again", shown=False, verdict=other)]})
    assert len(space.decisions.latest(claims.fingerprint)) == n_decided
    table = trust.self_agreement_table(claims.fingerprint)
    assert table.iloc[0].tolist()[:3] == ["ann", 1, 0]
    items = desk.questions(claims, {"order": "doubtful", "have": [again["key"]]})["items"]
    assert again["key"] not in {one["key"] for one in items}


def test_who_follows_every_proposal_is_told_and_settles_little(space, claims):
    answer_many(claims, 60)
    found = trust.habits(claims.run_id, "ann")
    assert found
    assert "blind mode" in found[0].sentence
    assert trust.habits(claims.run_id, "bob") == []
    assert review.progress(claims.run_id).n_settled <= 5
    assert trust.resolvable(claims.run_id, 0.95, "keep").cut is None


def test_the_ticks_of_the_same_question_follow_the_proposals(space, claims):
    pages = desk.questions(claims, {"mode": "same"})["items"]
    cells = [cell for page in pages for cell in page["cells"]]
    proposed = ["keep" if cell["confidence"] >= 0.5 else "reject" for cell in cells]
    assert [cell["proposed"] for cell in cells] == proposed
    assert set(proposed) == {"keep", "reject"}


def test_near_instances_are_told_by_the_texts_that_features_were_made_of(space, demo):
    remarks = ["written beside it, and longer than any of the texts"] * demo.n_instances
    texts = [f"text {row}" for row in range(demo.n_instances)]
    shown = pd.DataFrame({"remarks": remarks, "text": texts})
    data = CandidateDataset(demo.features, demo.candidates, display=shown)
    mapping = ColumnMapping(labels=("labels",), features=("text",), feature_layout="text")
    space.add_dataset(data, "texts", mapping)
    claims = tokens.Claims(data.fingerprint, finished_run(space, data), "ann")
    near = [one for item in desk.questions(claims, {})["items"] for one in item["near"]]
    assert {one["text"] for one in near} <= set(texts)
    assert near


def test_a_long_text_is_shown_whole_and_one_that_is_cut_says_so(space, demo):
    long, endless = "five thousand. " * 333, "x" * 20_000
    shown = pd.DataFrame({"text": [long, endless] * (demo.n_instances // 2)})
    data = CandidateDataset(demo.features, demo.candidates, display=shown)
    space.add_dataset(data, "long texts")
    claims = tokens.Claims(data.fingerprint, finished_run(space, data), "ann")
    read = {item["texts"][0][1] for item in desk.questions(claims, {})["items"]}
    assert read == {long, "x" * desk_items.MAX_TEXT + "…"}
