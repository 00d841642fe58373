"""The gate: nothing answers without the password, and guessing it is slow."""

import asyncio
import os

import pytest

from core.errors import PlainError
from plain_app import access
from plain_app.access import LoginGate, OwnPages, Password, is_oidc_configured, write_password

SECRET = "correct horse battery"


@pytest.fixture
def password(tmp_path) -> Password:
    write_password(tmp_path / "password", SECRET)
    return Password.read(tmp_path / "password")


async def app(scope, receive, send) -> None:
    """Stand behind the gate."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(gate, path="/", method="GET", body=b"", kind="http", **headers) -> tuple[int, dict, bytes]:
    sent = []
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "client": ("192.0.2.7", 1),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
    }

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(gate(scope, receive, send))
    if kind == "websocket":
        return sent[0]["code"], {}, b""
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, sent[-1].get("body", b"")


def log_in(gate, given: str, **headers) -> tuple[int, dict, bytes]:
    return ask(gate, "/login", "POST", b"password=" + given.replace(" ", "+").encode(), **headers)


def test_the_file_holds_no_password_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "password"
    write_password(path, SECRET)
    assert SECRET not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    first = path.read_text()
    write_password(path, SECRET)
    assert path.read_text() != first  # salted
    assert Password.read(path).fits(SECRET)
    assert not Password.read(path).fits(SECRET + " ")


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_file_that_others_read_is_refused(tmp_path):
    write_password(tmp_path / "password", SECRET)
    (tmp_path / "password").chmod(0o644)
    with pytest.raises(PlainError, match="Others can read"):
        Password.read(tmp_path / "password")


@pytest.mark.parametrize("content", ["", "secret", "a$b$c", "scrypt-16384-8-1$!$!"])
def test_what_is_not_a_password_file_is_refused(tmp_path, content):
    path = tmp_path / "password"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(PlainError):
        Password.read(path)


def test_short_passwords_are_refused(tmp_path):
    with pytest.raises(PlainError, match="too short"):
        write_password(tmp_path / "password", "short")
    assert not (tmp_path / "password").exists()


def test_nothing_answers_without_the_cookie(password):
    gate = LoginGate(app, password)
    for path in ("/", "/_stcore/stream", "/api/decisions", "/static/index.js", "/media/x"):
        status, _, page = ask(gate, path)
        assert (status, b"inside" in page) == (401, False)
    assert ask(gate, "/_stcore/stream", kind="websocket")[0] == 4401
    assert ask(gate, "/_stcore/health")[2] == b"inside"


def test_the_password_opens_and_its_cookie_keeps_open(password, tmp_path):
    gate = LoginGate(app, password)
    status, told, _ = log_in(gate, SECRET)
    assert (status, told["location"]) == (303, "/")
    assert "HttpOnly" in told["set-cookie"]
    assert "SameSite=Strict" in told["set-cookie"]
    cookie = told["set-cookie"].split(";")[0]
    assert ask(gate, cookie=cookie)[2] == b"inside"
    again = LoginGate(app, Password.read(tmp_path / "password"))  # the server was restarted
    assert ask(again, cookie=cookie)[2] == b"inside"
    write_password(tmp_path / "password", "another password")
    other = LoginGate(app, Password.read(tmp_path / "password"))
    assert ask(other, cookie=cookie)[0] == 401


def test_a_cookie_that_was_changed_or_is_old_does_not_open(password, monkeypatch):
    gate = LoginGate(app, password)
    good = password.cookie()
    later = str(int(good.split(".")[0]) + 1) + good[good.index(".") :]
    for bad in ("", "x", later, good[:-1], good + "é", "\u00ff.\u00ff"):
        assert ask(gate, cookie=f"{access.COOKIE}={bad}")[0] == 401
    monkeypatch.setattr(access, "time", lambda: float(good.split(".")[0]) + 1)
    assert ask(gate, cookie=f"{access.COOKIE}={good}")[0] == 401


def test_guessing_is_slowed_down(password, monkeypatch):
    gate = LoginGate(app, password)
    assert [log_in(gate, "wrong guess")[0] for _ in range(access.TRIES)] == [401] * access.TRIES
    assert log_in(gate, SECRET)[0] == 429  # also the right one, for now
    now = access.monotonic()
    monkeypatch.setattr(access, "monotonic", lambda: now + access.SECONDS + 1)
    assert log_in(gate, SECRET)[0] == 303


def test_the_form_of_another_site_is_refused(password):
    gate = LoginGate(app, password)
    assert log_in(gate, SECRET, origin="http://evil.example", host="plain.example")[0] == 403
    assert log_in(gate, SECRET, origin="http://plain.example", host="plain.example")[0] == 303


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_pages_of_other_sites_open_no_websocket(origin):
    async def inside(scope, receive, send):
        await send({"type": "websocket.accept", "code": 0})

    guard = OwnPages(inside)
    assert ask(guard, kind="websocket", origin=origin, host="127.0.0.1:8501")[0] == 4403
    own = {"origin": "http://127.0.0.1:8501", "host": "127.0.0.1:8501"}
    assert ask(guard, kind="websocket", **own)[0] == 0
    assert ask(OwnPages(app), origin=origin, host="127.0.0.1:8501")[2] == b"inside"


def test_a_provider_counts_only_when_it_is_fully_named(tmp_path):
    folder = tmp_path / ".streamlit"
    folder.mkdir()
    assert not is_oidc_configured((tmp_path,))
    (folder / "secrets.toml").write_text('[auth]\nclient_id = "x"\n')
    assert not is_oidc_configured((tmp_path,))
    (folder / "secrets.toml").write_text("not toml [")
    assert not is_oidc_configured((tmp_path,))
