"""The gate before the app where other people can reach it: one password, checked before anything.

Whoever gives the password gets a cookie signed by it (`plain_app.server.password`), which is
renewed while it is used. Without it no page, file, route or websocket answers.

Passwords are tried one at a time, in a thread of their own, behind a small queue; who guesses too
often is refused without trying (`plain_app.server.attempts`). A browser that has been let in before
counts for itself, so that strangers who guess cannot keep it out.
"""

import asyncio
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import PlainError
from plain_app.server.attempts import Attempts, groups
from plain_app.server.password import Password, PasswordFile

COOKIE = "plain_login"
KNOWN = "plain_known"  # a browser that was let in before
BROWSER = "plain_browser"  # tells browsers apart; tokens of the review desk are bound to it
HOURS = 12  # of not being used, after which one has to log in again
DAYS = 365
MAX_BODY = 4096
QUEUE = 20  # who may wait for their password to be tried
RECHECK = 2.0  # seconds between looks at the password file while a websocket is open
OPEN_PATHS = ("/_stcore/health",)  # says "ok", and nothing else
_SECRETS = Path(".streamlit") / "secrets.toml"
_OIDC = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")


def is_oidc_configured(folders: tuple[Path, ...] | None = None) -> bool:
    """Whether `[auth]` of `.streamlit/secrets.toml` names an OpenID Connect provider."""
    import tomllib
    from importlib.util import find_spec

    for folder in folders or (Path.home(), Path.cwd()):
        try:
            stated = tomllib.loads((folder / _SECRETS).read_text("utf-8")).get("auth", {})
        except (OSError, ValueError):
            continue
        if all(stated.get(name) for name in _OIDC):
            if find_spec("authlib") is None:
                hint = 'Install it: pip install "plain-studio[login]"'
                raise PlainError("Logging in with OpenID Connect needs Authlib.", "", hint)
            return True
    return False


class OwnPages:
    """Refuses websockets that pages of other sites open.

    Streamlit would let in every port of this machine, and for other hosts first ask a service in
    the internet what this machine's address is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and not _is_own(scope):
            await send({"type": "websocket.close", "code": 4403})
        else:
            await self._app(scope, receive, send)


class BrowserCookie:
    """Gives every browser a cookie of its own, with the first page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _cookie(scope, BROWSER):
            return await self._app(scope, receive, send)
        cookie = _set_cookie(scope, BROWSER, secrets.token_hex(16), DAYS * 86400)

        def is_page(headers: list[tuple[bytes, bytes]]) -> bool:
            kinds = [value for name, value in headers if name.lower() == b"content-type"]
            return any(kind.startswith(b"text/html") for kind in kinds)

        return await self._app(scope, receive, _adding(send, cookie, is_page))


class LoginGate:
    """Lets only those with a good cookie pass; gives the others a form."""

    def __init__(self, app: ASGIApp, file: PasswordFile) -> None:
        self._app, self._file = app, file
        self._attempts = Attempts()
        self._turn, self._n_waiting = asyncio.Lock(), 0
        # Each trial takes 16 MB and a moment: never on the loop, nor where files are served.
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="plain-login")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope.get("path") in OPEN_PATHS:
            return await self._app(scope, receive, send)
        password = self._file.current()
        left = password.seconds_left(COOKIE, _cookie(scope, COOKIE))
        if scope["type"] == "websocket":
            if not left:
                return await send({"type": "websocket.close", "code": 4401})
            return await _Session(self._file, receive, send).run(self._app, scope)
        if not left:
            return await self._refuse(scope, receive, send)
        if scope["path"] == "/login":  # another tab was faster
            return await _answer(send, 303, "", [("location", "/")])
        if left < HOURS * 3600 / 2:
            send = _adding(send, self._login_cookie(scope, password))
        return await self._app(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/api/"):
            message = {"error": "Log in again: reload the page."}
            return await _answer(send, 401, json.dumps(message), kind="application/json")
        if scope["method"] != "POST" or scope["path"] != "/login":
            return await _answer(send, 401, _form(""))
        if not _is_own(scope):
            return await _answer(send, 403, _form("This form came from another site."))
        return await self._log_in(scope, receive, send)

    async def _log_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        given, password = await _password_in(receive), self._file.current()
        known = _cookie(scope, KNOWN)
        is_known = bool(password.seconds_left(KNOWN, known))
        client = (scope.get("client") or ("",))[0]
        is_right, wait = await self._try(given, password, groups(client, known if is_known else ""))
        if wait:
            message = f"Too many wrong passwords. Try again in {wait} seconds."
            return await _answer(send, 429, _form(message), [("retry-after", str(wait))])
        if not is_right:
            return await _answer(send, 401, _form("This is not the password."))
        cookies = [self._login_cookie(scope, password)]
        if not is_known:
            seconds = DAYS * 86400
            cookies += [_set_cookie(scope, KNOWN, password.cookie(KNOWN, seconds), seconds)]
        headers = [("location", "/"), *(("set-cookie", one) for one in cookies)]
        return await _answer(send, 303, "", headers)

    async def _try(
        self, given: str, password: Password, limits: dict[str, int]
    ) -> tuple[bool, int]:
        """Return whether a password is right, or in how many seconds it may be tried."""
        if wait := self._attempts.wait(limits):
            return False, ceil(wait)
        if self._n_waiting >= QUEUE:
            return False, 1
        self._n_waiting += 1
        try:
            async with self._turn:
                if wait := self._attempts.wait(limits):
                    return False, ceil(wait)
                self._attempts.count(limits)  # before it is tried, and taken back if it is right
                loop = asyncio.get_running_loop()
                is_right = await loop.run_in_executor(self._hashing, password.fits, given)
                if is_right:
                    self._attempts.uncount(limits)
                return is_right, 0
        finally:
            self._n_waiting -= 1

    def _login_cookie(self, scope: Any, password: Password) -> str:
        seconds = HOURS * 3600
        return _set_cookie(scope, COOKIE, password.cookie(COOKIE, seconds), seconds)


class _Session:
    """A websocket that ends when the password it was opened with does."""

    def __init__(self, file: PasswordFile, receive: Any, send: Any) -> None:
        self._file, self._receive, self._send = file, receive, send
        self._password, self._is_over = file.current(), False

    async def run(self, app: ASGIApp, scope: Any) -> None:
        await app(scope, self.receive, self.send)

    async def receive(self) -> Any:
        message = asyncio.ensure_future(self._receive())
        try:
            while not message.done():
                await asyncio.wait([message], timeout=RECHECK)
                if self._file.current() is not self._password:
                    await self.send({"type": "websocket.close", "code": 4401})
                    self._is_over = True
                    return {"type": "websocket.disconnect", "code": 4401}
            return message.result()
        finally:
            message.cancel()

    async def send(self, message: Any) -> None:
        if not self._is_over:
            await self._send(message)


def header(scope: Any, name: bytes) -> str:
    """Return a header of a request, empty where it has none."""
    return next((value for key, value in scope["headers"] if key == name), b"").decode("latin-1")


def _cookie(scope: Any, name: str) -> str:
    """Return the value of a cookie, as browsers send it: values may hold any sign but `;`.

    Python's own parser stops at the first value it does not like, and whoever else has a cookie
    on this host decides what that is.
    """
    for pair in header(scope, b"cookie").split(";"):
        found, _, value = pair.partition("=")
        if found.strip() == name:
            return value.strip()
    return ""


def _set_cookie(scope: Any, name: str, value: str, seconds: int) -> str:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"


def _adding(send: Any, cookie: str, is_wanted: Any = lambda headers: True) -> Any:
    """Return a `send` that adds a cookie to the answer."""

    async def send_with_cookie(message: Any) -> None:
        if message["type"] == "http.response.start" and is_wanted(message.get("headers", [])):
            headers = [*message.get("headers", []), (b"set-cookie", cookie.encode())]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_cookie


def _is_own(scope: Any) -> bool:
    origin = header(scope, b"origin")
    return not origin or is_same_site(origin, header(scope, b"host"))


def is_same_site(origin: str, host: str) -> bool:
    """Whether a page of this origin is of this host; not if the origin is no address at all."""
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


async def _password_in(receive: Any) -> str:
    """Return the password of a form; none of one that is too long or not a form."""
    read = b""
    while len(read) <= MAX_BODY:
        message = await receive()
        read += message.get("body", b"")
        if not message.get("more_body"):
            try:
                fields = parse_qs(read.decode("utf-8", "replace"), max_num_fields=4)
            except ValueError:
                return ""
            return str(fields.get("password", [""])[0])
    return ""


async def _answer(
    send: Any,
    status: int,
    page: str,
    more: list[tuple[str, str]] | None = None,
    kind: str = "text/html; charset=utf-8",
) -> None:
    headers = [("content-type", kind), ("cache-control", "no-store"), *(more or [])]
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": page.encode()})


def _form(message: str) -> str:
    return _PAGE.replace("MESSAGE", message)


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>PLAIN Studio</title>
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="same-origin"><style>
:root { color-scheme: light dark; font: 15px system-ui, sans-serif; }
body { display: grid; place-items: center; min-height: 90vh; margin: 0; }
form { display: grid; gap: .75rem; width: 17rem; }
h1 { font-size: 1.3rem; margin: 0; color: #3f8f90; }
input, button { font: inherit; padding: .5rem .6rem; border: 1px solid #8a8f98;
  border-radius: 6px; }
button { background: #2f6f73; border-color: #2f6f73; color: #fff; cursor: pointer; }
p { margin: 0; min-height: 1.3em; color: #d08a3e; }
</style><form method="post" action="/login"><h1>PLAIN Studio</h1>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" autofocus>
<button>Enter</button><p role="alert">MESSAGE</p></form></html>"""
