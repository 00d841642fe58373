"""The gate before the app where other people can reach it: one password, checked before anything.

The password file holds a salted scrypt hash, never the password. Whoever gives it right gets a
cookie signed with a key made from that hash: it outlives a restart and ends with the password.
Without it no page, file, route or websocket answers.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import threading
from collections import deque
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from time import monotonic, time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from core.errors import PlainError

COOKIE = "plain_login"
HOURS = 12
MIN_LENGTH = 8
MAX_BODY = 4096
OPEN_PATHS = ("/_stcore/health",)  # says "ok", and nothing else
TRIES, SECONDS = 5, 60.0  # wrong passwords from one address in so many seconds
_COST = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26, "dklen": 32}
_KIND = "scrypt-16384-8-1"
_SECRETS = Path(".streamlit") / "secrets.toml"
_OIDC = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")


class Password:
    """A password as its file knows it."""

    def __init__(self, salt: bytes, digest: bytes) -> None:
        self._salt, self._digest = salt, digest
        self._key = hashlib.sha256(b"plain login cookie" + digest).digest()
        self._one_at_a_time = threading.Lock()  # each check takes 16 MB and a moment

    @classmethod
    def read(cls, path: Path) -> "Password":
        """Read a password file; refuse one that others may read."""
        try:
            text = path.read_text("ascii").strip()
            kind, salt, digest = text.split("$")
            known = cls(base64.b64decode(salt, validate=True), base64.b64decode(digest))
        except OSError as error:
            hint = "Make it with: plain password FILE"
            raise PlainError("The password file cannot be read.", str(error), hint) from error
        except (ValueError, binascii.Error) as error:
            hint = "Make it anew with: plain password FILE"
            raise PlainError("This is not a password file.", str(path), hint) from error
        if kind != _KIND:
            raise PlainError("This password file is of another kind.", kind[:40])
        if os.name == "posix" and path.stat().st_mode & 0o077:
            hint = f"Allow only yourself: chmod 600 {path}"
            raise PlainError("Others can read the password file.", str(path), hint)
        return known

    def fits(self, given: str) -> bool:
        """Whether this is the password; takes the same time for every wrong one."""
        with self._one_at_a_time:
            return hmac.compare_digest(_hash(given, self._salt), self._digest)

    def cookie(self) -> str:
        """Return a signed cookie that is good for some hours."""
        body = f"{int(time()) + HOURS * 3600}.{secrets.token_hex(8)}"
        return f"{body}.{self._sign(body)}"

    def knows(self, cookie: str) -> bool:
        """Whether a cookie was made here and is still good."""
        body, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._sign(body).encode(), signature.encode("utf-8", "replace")):
            return False
        return int(body.partition(".")[0]) > time()

    def _sign(self, body: str) -> str:
        return hmac.new(self._key, body.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def write_password(path: Path, password: str) -> None:
    """Write a password file that only its owner can read."""
    if len(password) < MIN_LENGTH:
        must = f"At least {MIN_LENGTH} characters; got {len(password)}."
        raise PlainError("The password is too short.", must, "Several words are a good password.")
    salt = secrets.token_bytes(16)
    parts = (base64.b64encode(one).decode() for one in (salt, _hash(password, salt)))
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise PlainError("The password file cannot be written.", str(error)) from error
    with os.fdopen(handle, "w") as file:
        file.write("$".join((_KIND, *parts)) + "\n")
    path.chmod(0o600)


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
                hint = 'Install it: pip install "streamlit[auth]"'
                raise PlainError("Logging in with OpenID Connect needs Authlib.", "", hint)
            return True
    return False


class OwnPages:
    """Refuses websockets that pages of other sites open.

    Streamlit would let in every port of this machine, and for other hosts first ask a service in
    the internet what this machine's address is.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket" and not _is_own(scope):
            await send({"type": "websocket.close", "code": 4403})
        else:
            await self._app(scope, receive, send)


class LoginGate:
    """Lets only those with a good cookie pass; gives the others a form."""

    def __init__(self, app: Any, password: Password) -> None:
        self._app, self._password = app, password
        self._wrong: dict[str, deque[float]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or scope.get("path") in OPEN_PATHS:
            return await self._app(scope, receive, send)
        if self._password.knows(_cookie(scope)):
            return await self._app(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 4401})
        return await self._login(scope, receive, send)

    async def _login(self, scope: Any, receive: Any, send: Any) -> None:
        import anyio

        if scope["method"] != "POST" or scope["path"] != "/login":
            return await _answer(send, 401, _form(""))
        if not _is_own(scope):
            return await _answer(send, 403, _form("This form came from another site."))
        client = (scope.get("client") or ("",))[0]
        if self._is_tired(client):
            return await _answer(send, 429, _form("Too many tries. Wait a minute."))
        given = await _password_in(receive)
        if given and await anyio.to_thread.run_sync(self._password.fits, given):
            self._wrong.pop(client, None)
            secure = "; Secure" if scope.get("scheme") == "https" else ""
            value = f"{COOKIE}={self._password.cookie()}; Path=/; HttpOnly; SameSite=Strict"
            cookie = f"{value}; Max-Age={HOURS * 3600}{secure}"
            return await _answer(send, 303, "", [("location", "/"), ("set-cookie", cookie)])
        self._wrong.setdefault(client, deque(maxlen=TRIES)).append(monotonic())
        return await _answer(send, 401, _form("This is not the password."))

    def _is_tired(self, client: str) -> bool:
        """Whether an address has tried too often; addresses that gave up are forgotten."""
        long_ago = monotonic() - SECONDS
        for one in [one for one, tries in self._wrong.items() if tries[-1] < long_ago]:
            del self._wrong[one]
        tries = self._wrong.get(client, ())
        return len(tries) == TRIES and tries[0] > long_ago


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, **_COST)


def _header(scope: Any, name: bytes) -> str:
    return next((value for key, value in scope["headers"] if key == name), b"").decode("latin-1")


def _cookie(scope: Any) -> str:
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _is_own(scope: Any) -> bool:
    origin = _header(scope, b"origin")
    return not origin or urlsplit(origin).netloc == _header(scope, b"host")


async def _password_in(receive: Any) -> str:
    read = b""
    while len(read) <= MAX_BODY:
        message = await receive()
        read += message.get("body", b"")
        if not message.get("more_body"):
            fields = parse_qs(read.decode("utf-8", "replace"), max_num_fields=4)
            return fields.get("password", [""])[0]
    return ""


async def _answer(
    send: Any, status: int, page: str, more: list[tuple[str, str]] | None = None
) -> None:
    headers = [("content-type", "text/html; charset=utf-8"), ("cache-control", "no-store")]
    pairs = [(name.encode(), value.encode()) for name, value in [*headers, *(more or [])]]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": page.encode()})


def _form(told: str) -> str:
    return _PAGE.replace("TOLD", told)


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
<button>Enter</button><p role="alert">TOLD</p></form></html>"""
