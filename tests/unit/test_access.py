"""The gate: nothing answers without the password, and guessing it is slow."""

import asyncio
import json
import os

import pytest

from core.errors import PlainError
from plain_app.server import access, attempts, password
from plain_app.server.access import BrowserCookie, LoginGate, OwnPages, is_oidc_configured
from plain_app.server.password import Password, PasswordFile, write_password

SECRET = "correct horse battery"


@pytest.fixture
def file(tmp_path) -> PasswordFile:
    write_password(tmp_path / "password", SECRET)
    return PasswordFile(tmp_path / "password")


async def app(scope, receive, send) -> None:
    """Stand behind the gate."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(gate, *arguments, **values) -> tuple[int, dict, bytes]:
    return asyncio.run(request(gate, *arguments, **values))


async def request(
    gate,
    path="/",
    method="GET",
    body=b"",
    kind="http",
    client="192.0.2.7",
    scheme="http",
    **headers,
) -> tuple[int, dict, bytes]:
    sent = []
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "client": (client, 1),
        "scheme": scheme,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
    }

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await gate(scope, receive, send)
    if kind == "websocket":
        return sent[0]["code"], {}, b""
    told: dict[str, str] = {}
    for name, value in sent[0]["headers"]:
        told[name.decode()] = "\n".join([*told.get(name.decode(), "").splitlines(), value.decode()])
    return sent[0]["status"], told, sent[-1].get("body", b"")


def log_in(gate, given: str, **values) -> tuple[int, dict, bytes]:
    return ask(gate, *form(given), **values)


def form(given: str) -> tuple[str, str, bytes]:
    return "/login", "POST", b"password=" + given.replace(" ", "+").encode()


def cookies(told: dict) -> str:
    """What a browser sends back."""
    return "; ".join(one.split(";")[0] for one in told["set-cookie"].split("\n"))


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


def test_a_password_never_takes_the_place_of_another_file(tmp_path):
    (tmp_path / "data.csv").write_text("mine")
    for path in (tmp_path / "data.csv", tmp_path):
        with pytest.raises(PlainError, match="has this name already"):
            write_password(path, SECRET)
    assert (tmp_path / "data.csv").read_text() == "mine"
    (tmp_path / "empty").touch()
    write_password(tmp_path / "empty", SECRET)


def test_nothing_answers_without_the_cookie(file):
    gate = LoginGate(app, file)
    for path in ("/", "/_stcore/stream", "/api/decisions", "/static/index.js", "/media/x"):
        status, _, page = ask(gate, path)
        assert (status, b"inside" in page) == (401, False)
    assert ask(gate, "/_stcore/stream", kind="websocket")[0] == 4401
    assert ask(gate, "/_stcore/health")[2] == b"inside"
    assert "Log in again" in json.loads(ask(gate, "/api/decisions", "POST")[2])["error"]


def test_the_password_opens_and_its_cookie_keeps_open(file, tmp_path):
    gate = LoginGate(app, file)
    status, told, _ = log_in(gate, SECRET)
    assert (status, told["location"]) == (303, "/")
    assert "HttpOnly" in told["set-cookie"]
    assert "SameSite=Strict" in told["set-cookie"]
    assert "Secure" not in told["set-cookie"]
    assert "Secure" in log_in(gate, SECRET, scheme="https")[1]["set-cookie"]
    cookie = cookies(told)
    assert ask(gate, cookie=cookie)[2] == b"inside"
    status, told, _ = log_in(gate, SECRET, cookie=cookie)  # from the form in another tab
    assert (status, told["location"]) == (303, "/")
    again = LoginGate(app, PasswordFile(tmp_path / "password"))  # the server was restarted
    assert ask(again, cookie=cookie)[2] == b"inside"


def test_a_changed_password_ends_what_the_old_one_opened(file, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "RECHECK", 0.01)
    gate = LoginGate(app, file)
    cookie = cookies(log_in(gate, SECRET)[1])
    heard = []

    async def session(scope, receive, send):
        await send({"type": "websocket.accept"})
        write_password(tmp_path / "password", "another password")
        heard.append(await receive())
        await send({"type": "websocket.send", "text": "secret"})

    async def never_answers():
        await asyncio.sleep(60)

    async def open_socket() -> list[dict]:
        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"cookie", cookie.encode())]
        scope = {"type": "websocket", "path": "/_stcore/stream", "headers": headers}
        await LoginGate(session, file)(scope, never_answers, send)
        return sent

    sent = asyncio.run(open_socket())
    assert [one["type"] for one in sent] == ["websocket.accept", "websocket.close"]
    assert heard[0]["type"] == "websocket.disconnect"
    assert ask(gate, cookie=cookie)[0] == 401
    assert log_in(gate, SECRET)[0] == 401
    assert log_in(gate, "another password")[0] == 303


def test_a_password_file_that_is_gone_or_damaged_changes_nothing(file, tmp_path):
    gate = LoginGate(app, file)
    (tmp_path / "password").write_text("half of a fi")
    assert log_in(gate, SECRET)[0] == 303
    (tmp_path / "password").unlink()
    assert log_in(gate, SECRET)[0] == 303


def test_who_works_is_not_asked_again(file, monkeypatch):
    gate = LoginGate(app, file)
    cookie = cookies(log_in(gate, SECRET)[1])
    assert "set-cookie" not in ask(gate, cookie=cookie)[1]
    now = password.time()
    monkeypatch.setattr(password, "time", lambda: now + access.HOURS * 3600 * 0.6)
    renewed = cookies(ask(gate, cookie=cookie)[1])
    monkeypatch.setattr(password, "time", lambda: now + access.HOURS * 3600 * 1.1)
    assert ask(gate, cookie=cookie)[0] == 401
    assert ask(gate, cookie=renewed)[2] == b"inside"


def test_a_cookie_that_was_changed_or_is_old_does_not_open(file, monkeypatch):
    gate = LoginGate(app, file)
    good = file.current().cookie(access.COOKIE, 60)
    later = str(int(good.split(".")[0]) + 1) + good[good.index(".") :]
    known = file.current().cookie(access.KNOWN, 60)  # says that one may try, not that one may pass
    for bad in ("", "x", later, good[:-1], good + "é", "\u00ff.\u00ff", known):
        assert ask(gate, cookie=f"{access.COOKIE}={bad}")[0] == 401
    assert ask(gate, cookie=f"{access.COOKIE}={good}")[0] == 200
    monkeypatch.setattr(password, "time", lambda: float(good.split(".")[0]) + 1)
    assert ask(gate, cookie=f"{access.COOKIE}={good}")[0] == 401


@pytest.mark.parametrize(
    "beside", ['prefs={"theme":"dark"}', "a b=c d", "=", "novalue", 'q="a', "x=\u00e9", "a=b=c", ""]
)
def test_cookies_of_others_on_this_host_lock_nobody_out(file, beside):
    gate = LoginGate(app, file)
    own = f"{access.COOKIE}={file.current().cookie(access.COOKIE, 60)}"
    assert ask(gate, cookie=f"{beside}; {own}")[2] == b"inside"
    assert ask(gate, cookie=f"{own};{beside}")[2] == b"inside"


def test_guessing_is_slowed_down(file, monkeypatch):
    gate, n = LoginGate(app, file), attempts.PER_ADDRESS
    assert [log_in(gate, "wrong guess")[0] for _ in range(n)] == [401] * n
    status, told, _ = log_in(gate, SECRET)  # also the right one, for now
    assert status == 429
    assert 0 < int(told["retry-after"]) <= attempts.SECONDS
    now = attempts.monotonic()
    monkeypatch.setattr(attempts, "monotonic", lambda: now + attempts.SECONDS + 1)
    assert log_in(gate, SECRET)[0] == 303


@pytest.mark.parametrize("addresses", [["192.0.2.7"], [f"192.0.2.{i}" for i in range(100)]])
def test_of_many_tries_at_once_few_are_evaluated(file, monkeypatch, addresses):
    gate, tried, hashed = LoginGate(app, file), [], password._hash
    monkeypatch.setattr(password, "_hash", lambda *given: tried.append(1) or hashed(*given))

    async def flood() -> list[int]:
        tries = [
            request(gate, *form("wrong guess"), client=addresses[at % len(addresses)])
            for at in range(100)
        ]
        return [status for status, *_ in await asyncio.gather(*tries)]

    statuses = asyncio.run(flood())
    limit = attempts.PER_ADDRESS if len(addresses) == 1 else attempts.STRANGERS
    assert len(tried) == statuses.count(401) == limit
    assert statuses.count(429) == 100 - limit


def test_many_who_know_the_password_come_in_at_once_from_one_address(file):
    gate = LoginGate(app, file)

    async def morning() -> list[int]:
        tries = [request(gate, *form(SECRET)) for _ in range(access.QUEUE)]
        return [status for status, *_ in await asyncio.gather(*tries)]

    assert asyncio.run(morning()) == [303] * access.QUEUE


def test_who_was_here_before_is_not_kept_out_by_strangers(file):
    gate = LoginGate(app, file)
    known = next(one for one in cookies(log_in(gate, SECRET)[1]).split("; ") if access.KNOWN in one)
    for _ in range(3):
        for at in range(attempts.STRANGERS):
            log_in(gate, "wrong guess", client=f"192.0.2.{at}")
        assert log_in(gate, SECRET)[0] == 429
        assert log_in(gate, SECRET, cookie=known)[0] == 303
    wrong = [log_in(gate, "wrong", cookie=known)[0] for _ in range(attempts.PER_BROWSER + 1)]
    assert wrong == [401] * attempts.PER_BROWSER + [429]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
    ],
)
def test_what_counts_as_one_address(one, other, is_same):
    assert (attempts.groups(one, "") == attempts.groups(other, "")) == is_same


@pytest.mark.parametrize(
    "body", [b"a=1&b=2&c=3&d=4&e=5&password=x", b"x" * 9000, b"\xff=\xfe", b""]
)
def test_odd_forms_are_a_wrong_password(file, body):
    assert ask(LoginGate(app, file), "/login", "POST", body)[0] == 401


def test_every_browser_gets_a_cookie_of_its_own_with_a_page():
    async def page(scope, receive, send):
        headers = [(b"content-type", scope["path"].encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    gate = BrowserCookie(page)
    first, second = (cookies(ask(gate, "text/html; charset=utf-8")[1]) for _ in range(2))
    assert first != second
    assert "set-cookie" not in ask(gate, "text/html", cookie=first)[1]
    assert "set-cookie" not in ask(gate, "image/png")[1]


def test_the_form_of_another_site_is_refused(file):
    gate = LoginGate(app, file)
    assert log_in(gate, SECRET, origin="http://evil.example", host="plain.example")[0] == 403
    assert log_in(gate, SECRET, origin="http://plain.example", host="plain.example")[0] == 303


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "null", "http://["]
)
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
