"""The routes of the review desk: who is refused, what is refused, who waits for whom."""

import asyncio
import json
import threading

import pytest
from desk_requests import Asking, ask, decision
from finished_run import finished_run
from starlette.applications import Starlette

from core.data.dataset import CandidateDataset
from plain_app.server import routes as api
from plain_app.server import tokens
from plain_app.services import desk, review


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://["}, 403),
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
    [
        (b"{", 400),
        (b"\xff\xfe\x00", 400),
        (b"[]", 422),
        (b" " * (api.MAX_BYTES + 1), 413),
        (b'{"decisions": ' + b"[" * 100_000, 422),
        (b'{"decisions": [], "have": Infinity}', 422),
        (b'{"decisions": NaN}', 422),
        ({"decisions": 3}, 422),
        ({"decisions": [{}] * (desk.MAX_DECISIONS + 1)}, 422),
    ],
)
def test_bad_bodies_are_refused(space, claims, body, status):
    assert ask("decisions", body, **{"x-plain-token": tokens.issue(claims)})[0] == status


ODD = ([], {}, 3, 1e400, None, True, "\ud800", "\0", "x" * 5000, {"a": [{}]}, [[[]]], ["\ud800"])
FIELDS = "order states labels selection annotator columns have dropped mode".split()


@pytest.mark.parametrize("odd", ODD, ids=lambda one: repr(one)[:20])
def test_odd_values_are_refused_and_never_a_failure(space, claims, odd):
    token = {"x-plain-token": tokens.issue(claims)}
    good = decision(desk.questions(claims, {})["items"][0], batch="b", seconds=1, age=1)
    sent = {
        "decisions": [
            *({"decisions": [{**good, name: odd}]} for name in good),
            {"decisions": [odd]},
            {"decisions": odd},
        ],
        "questions": [{name: odd} for name in FIELDS],
        "preview": [{**good, name: odd} for name in ("instance_id", "label", "verdict")],
        "progress": [{"odd": odd}],
        "picture": [{"instance_id": odd}],
        "token": [{"token": odd}],
    }
    for name, bodies in sent.items():
        for body in bodies:
            content = json.dumps(body).replace("Infinity", "1e400").encode()
            status, told = ask(name, content, **token)
            assert status in (200, 403 if name == "token" else 422), (name, body, told)
    stored = space.decisions.history(claims.fingerprint)
    assert all(one.seconds is None or one.seconds < 1e9 for one in stored)


def test_an_instance_whose_name_cannot_be_stored_stops_nobody(space, demo):
    ids = ["half \ud800", *demo.ids[1:]]
    fields = {"features": demo.features, "candidates": demo.candidates, "truth": demo.truth}
    strange = CandidateDataset(**fields, label_names=demo.label_names, ids=ids)
    claims = tokens.Claims(strange.fingerprint, finished_run(space, strange), "ann")
    key = {"x-plain-token": tokens.issue(claims)}
    status, told = ask("questions", {"have": ids[:1], "dropped": ids[:1]}, **key)
    assert (status, len(told["items"])) == (200, desk.AHEAD)
    near = [one["title"] for item in told["items"] for one in item["near"]]
    assert near  # neighbours are named in answers, whatever they are called
    sent = {"uid": "u", "instance_id": ids[0], "label": demo.label_names[0], "verdict": "keep"}
    status, told = ask("decisions", {"decisions": [sent]}, **key)
    assert (status, told["saved"], len(told["refused"])) == (200, [], 1)


def test_saving_never_waits_behind_questions_and_nobody_works_for_those_who_left(space, claims):
    token = {"x-plain-token": tokens.issue(claims)}
    item = desk.questions(claims, {})["items"][0]
    shared = review.run_review(claims.run_id)
    query, may_rank = {"order": "doubtful"}, threading.Event()  # not ranked yet

    async def many() -> tuple[int, int, list[int]]:
        app = Starlette(routes=api.routes())
        async with asyncio.timeout(240):
            people = [Asking("questions", query, **token) for _ in range(3 * api.N_ASKING)]
            shared.ranking_thread.submit(may_rank.wait, 240)  # as while a long ranking is at work
            waiting = [asyncio.create_task(one.of(app)) for one in people]
            await asyncio.sleep(0.1)
            saved, _ = await Asking("decisions", {"decisions": [decision(item)]}, **token).of(app)
            for one in people[api.N_ASKING :]:
                one.hang_up()
            gone = [(await one)[0] for one in waiting[api.N_ASKING :]]
            may_rank.set()
            return saved, len(gone), [(await one)[0] for one in waiting[: api.N_ASKING]]

    assert asyncio.run(many()) == (200, 2 * api.N_ASKING, [200] * api.N_ASKING)


def test_another_host_is_refused(space, claims, monkeypatch):
    from streamlit import config

    monkeypatch.setattr(config, "get_option", lambda name: ["127.0.0.1"])
    headers = {"host": "evil.example", "origin": "http://evil.example"}
    assert ask("progress", {}, **headers, **{"x-plain-token": tokens.issue(claims)})[0] == 403
