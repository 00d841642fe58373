"""Tokens of the review desk: whose they are, how long they last, how they are renewed."""

import base64
import errno
import json

import pytest
from desk_requests import ask, decision

from core.errors import PlainError
from core.store import Workspace
from plain_app.server import tokens
from plain_app.server.access import BROWSER
from plain_app.services import desk


def test_a_token_outlives_the_server_but_not_the_workspace(space, claims, tmp_path, monkeypatch):
    token = tokens.issue(claims)
    space.close()
    assert tokens.check(token) == claims
    assert (space.folder / tokens.KEY_FILE).stat().st_mode & 0o077 == 0
    Workspace(tmp_path / "other").close()
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "other"))
    with pytest.raises(PlainError, match="another workspace"):
        tokens.check(token)


def test_a_workspace_on_a_disk_without_links_has_a_key_too(space, claims, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    assert tokens.check(tokens.issue(claims)) == claims
    assert (space.folder / tokens.KEY_FILE).stat().st_mode & 0o077 == 0
    assert not list(space.folder.glob(".*.tmp"))


def later(monkeypatch, seconds: float) -> None:
    now = tokens.time()
    monkeypatch.setattr(tokens, "time", lambda: now + seconds)


def test_an_old_token_is_refused_until_its_person_renews_it(space, claims, monkeypatch):
    item = desk.questions(claims, {})["items"][0]
    old = tokens.issue(claims, "a browser")
    later(monkeypatch, tokens.LIFE + tokens.STEP)
    sent, cookie = {"decisions": [decision(item)]}, {"cookie": f"{BROWSER}=a browser"}
    assert ask("decisions", sent, **cookie, **{"x-plain-token": old})[0] == 401
    assert ask("token", {"token": old}, **cookie, **{"x-plain-token": old})[0] == 401
    other_run = claims._replace(run_id="another run")  # the page shows another run by now
    fresh = {"x-plain-token": tokens.issue(other_run, "a browser"), **cookie}
    status, told = ask("token", {"token": old}, **fresh)
    assert (status, tokens.check(told["token"], "a browser")) == (200, claims)
    status, answer = ask("decisions", sent, **cookie, **{"x-plain-token": told["token"]})
    assert (status, answer["refused"]) == (200, [])
    assert space.decisions.count(claims.fingerprint) == 1


def test_a_token_is_of_no_use_in_another_browser_or_to_another_person(space, claims):
    token = tokens.issue(claims, "a browser")
    for cookie in ("", f"{BROWSER}=another"):
        assert ask("progress", {}, cookie=cookie, **{"x-plain-token": token})[0] == 401
    mallory = tokens.issue(claims._replace(annotator="mallory"), "another")
    headers = {"x-plain-token": mallory, "cookie": f"{BROWSER}=another"}
    status, told = ask("token", {"token": token}, **headers)
    assert (status, "another person" in told["error"]) == (403, True)
    assert ask("token", {"token": "forged.0"}, **headers)[0] == 403


def test_a_page_keeps_its_token_for_a_while(space, claims, monkeypatch):
    later(monkeypatch, 0)  # the clock stands still
    later(monkeypatch, tokens.STEP - tokens.time() % tokens.STEP)  # the beginning of a step
    first = tokens.issue(claims)
    later(monkeypatch, tokens.STEP - 1)
    assert tokens.issue(claims) == first
    later(monkeypatch, 2)
    assert tokens.issue(claims) != first


def test_answers_kept_since_tokens_did_not_expire_can_be_renewed(space, claims, monkeypatch):
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()
    old = f"{body}.{tokens._signature(body)}"
    with pytest.raises(tokens.ExpiredTokenError):
        tokens.check(old)
    assert tokens.check(tokens.renew(claims, old)) == claims
