"""What the review desk in the browser asks of the server, without a browser."""

import asyncio
import json

import pytest
from finished_run import finished_run
from starlette.applications import Starlette

from core.errors import PlainError
from core.store import Workspace
from plain_app import api
from plain_app.services import desk, review, tokens, trust

HOST = "127.0.0.1:8501"


@pytest.fixture
def space(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "space"))
    return review.workspace()


@pytest.fixture
def claims(space, demo) -> tokens.Claims:
    return tokens.Claims(demo.fingerprint, finished_run(space, demo), "ann")


def ask(name: str, body: object, **headers: str) -> tuple[int, dict]:
    """Post to a route of the app as a browser would, and return status and answer."""
    sent = {"host": HOST, "origin": f"http://{HOST}", "content-type": "application/json", **headers}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answers: list[dict] = []

    async def receive() -> dict:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: dict) -> None:
        answers.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/api/{name}",
        "query_string": b"",
        "headers": [(key.encode(), value.encode()) for key, value in sent.items()],
    }
    asyncio.run(Starlette(routes=api.routes())(scope, receive, send))
    told = b"".join(one.get("body", b"") for one in answers[1:])
    return answers[0]["status"], json.loads(told)


def decision(item: dict, at: int = 0, **values: object) -> dict:
    cell = item["cells"][at]
    made = {"uid": f"u-{item['key']}-{at}", "instance_id": cell["id"], "label": cell["label"]}
    return {**made, "verdict": "keep", "confidence": cell["confidence"], "shown": True, **values}


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


def test_the_same_answer_sent_twice_is_stored_once(space, claims):
    item = desk.questions(claims, {})["items"][0]
    body = {"decisions": [decision(item)]}
    assert desk.save(claims, body) == desk.save(claims, body)
    assert space.decisions.count(claims.fingerprint) == 1


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
    assert other["cells"][0]["standing"] is None  # the first opinion is not told


def test_decisions_settle_and_undoing_them_opens_again(space, claims, demo):
    before = review.standing(claims.run_id)
    items = desk.questions(claims, {"order": "doubtful"})["items"]
    sent = [decision(one, at) for one in items for at in range(len(one["cells"]))]
    desk.save(claims, {"decisions": sent[:150]})
    after = review.standing(claims.run_id)
    assert after.n_decided == 150
    assert after.annotators == {"ann": 150}
    space.decisions.undo(review.recent(claims.fingerprint, "ann"), "ann")
    assert review.standing(claims.run_id) == before


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


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": ""}, 403),
        ({"x-plain-token": "forged.0"}, 403),
        ({"x-plain-token": ""}, 403),
        ({"content-type": "text/plain"}, 415),
    ],
)
def test_strangers_are_refused(space, claims, headers, status):
    item = desk.questions(claims, {})["items"][0]
    given = {"x-plain-token": tokens.issue(claims), **headers}
    assert ask("decisions", {"decisions": [decision(item)]}, **given)[0] == status
    assert space.decisions.count(claims.fingerprint) == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b" " * (api.MAX_BYTES + 1), 413), ({"decisions": 3}, 422)],
)
def test_bad_bodies_are_refused(space, claims, body, status):
    assert ask("decisions", body, **{"x-plain-token": tokens.issue(claims)})[0] == status


def test_another_host_is_refused(space, claims, monkeypatch):
    from streamlit import config

    monkeypatch.setattr(config, "get_option", lambda name: ["127.0.0.1"])
    headers = {"host": "evil.example", "origin": "http://evil.example"}
    assert ask("progress", {}, **headers, **{"x-plain-token": tokens.issue(claims)})[0] == 403


def test_a_token_outlives_the_server_but_not_the_workspace(space, claims, tmp_path, monkeypatch):
    token = tokens.issue(claims)
    space.close()
    assert tokens.check(token) == claims
    assert (space.folder / tokens.KEY_FILE).stat().st_mode & 0o077 == 0
    Workspace(tmp_path / "other").close()
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "other"))
    with pytest.raises(PlainError, match="another workspace"):
        tokens.check(token)


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
