"""Starts the program: one server on this machine, with safe settings that nothing overrides.

Owns every Streamlit option but the theme, which is in `.streamlit/config.toml`. Listens to other
machines only behind a password (`plain_app.access`) or an OpenID Connect provider.
"""

import base64
import os
import re
import socket
import sys
import threading
import webbrowser
from contextlib import closing
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlencode

from core import background
from core.errors import PlainError
from plain_app.access import LoginGate, OwnPages, Password, is_oidc_configured

HERE = Path(__file__).parent
LOOPBACK = ("127.0.0.1", "localhost")
ANY = ("0.0.0.0", "::")  # every address of this machine; its names are not known
OIDC = "PLAIN_OIDC"  # set for the pages: ask st.user who it is
DEFAULT_PORT = 8501
MAX_UPLOAD_MB = 200
STARTING_SECONDS = 30
DEMO_NAME = "demo: scenes of digits"

PINNED: dict[str, Any] = {
    "server.address": "127.0.0.1",
    "server.allowedHosts": list(LOOPBACK),
    "server.headless": True,
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "server.enableStaticServing": False,
    "server.fileWatcherType": "none",
    "server.maxUploadSize": MAX_UPLOAD_MB,
    "browser.gatherUsageStats": False,
    "logger.hideWelcomeMessage": True,  # to print an address it would ask the internet for it
    "client.allowedOrigins": [],  # no page around ours may give it orders
    "client.showErrorDetails": "type",
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.disableWidgetStateDuplicationWarning": True,  # a preset sets widgets that have defaults
    "runner.magicEnabled": False,
    "runner.postScriptGC": False,
}

# Components given as text load from blob addresses.
POLICY = (
    "default-src 'self'; script-src 'self' blob: {scripts}; style-src 'self' "
    "'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' "
    "ws: wss: blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}


class SecurityHeaders:
    """Adds headers to every answer: nothing is loaded from, or told to, another host."""

    def __init__(self, app: Any) -> None:
        headers = {**HEADERS, "content-security-policy": content_security_policy()}
        self._app = app
        self._extra = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._extra]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def content_security_policy() -> str:
    """Return what a page may load: our own files, and the scripts Streamlit's page begins with."""
    import streamlit

    index = Path(streamlit.__file__).parent / "static" / "index.html"
    inline = re.findall(r"<script>(.*?)</script>", index.read_text("utf-8"), re.DOTALL)
    digests = [base64.b64encode(sha256(one.encode()).digest()).decode() for one in inline]
    return POLICY.format(scripts=" ".join(f"'sha256-{one}'" for one in digests))


def main() -> None:
    """Be the `plain app` command."""
    from core.cli import main as command_line

    sys.argv[1:] = ["app", *sys.argv[1:]]
    command_line()


def serve(
    workspace: Path,
    *,
    data: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    password_file: Path | None = None,
) -> None:
    """Serve the app until Ctrl-C; `data` is a file to look at first, or the word demo."""
    password = None if password_file is None else Password.read(password_file)
    check_host(host, is_guarded=password is not None)
    port = find_port(port, host)
    folder = workspace.expanduser().absolute()
    os.environ["PLAIN_WORKSPACE"] = str(folder)
    background.standby.open(folder)
    shown = host if host in LOOPBACK or host not in ANY else "127.0.0.1"
    url = f"http://{shown}:{port}/{_query(data, folder)}"
    print(f"PLAIN Studio is at {url}  (Ctrl-C ends it; runs go on)", flush=True)
    if browser:
        threading.Thread(target=_open_browser, args=(url, shown, port), daemon=True).start()
    _run(folder, host, port, password)


def check_host(host: str, is_guarded: bool) -> None:
    """Refuse to listen to other machines unguarded: who reaches the port may use the workspace."""
    if host in LOOPBACK or is_guarded:
        return
    if is_oidc_configured():
        os.environ[OIDC] = "1"
        return
    raise PlainError(
        "The app serves this machine only.",
        f"Listening on {host} needs --password-file, or an OpenID Connect provider in the [auth] "
        "section of .streamlit/secrets.toml; neither is there.",
        "Make one with: plain password FILE. Or leave --host out and use a tunnel: "
        "ssh -L 8501:127.0.0.1:8501 HOST",
    )


def find_port(wanted: int | None, host: str = "127.0.0.1") -> int:
    """Return the port to use: the wanted one, or the default, or any that is free."""
    if _is_free(wanted or DEFAULT_PORT, host):
        return wanted or DEFAULT_PORT
    if wanted:
        raise PlainError(
            "This port is taken.", f"Port {wanted}.", "Leave --port out to use a free one."
        )
    with closing(socket.socket()) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int, host: str) -> bool:
    with closing(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except socket.gaierror as error:
            raise PlainError("This machine has no such address.", f"--host {host}") from error
        except OSError:
            return False
    return True


def _query(data: str | None, folder: Path) -> str:
    """Store the demo, or name the file to be looked at; return the address's query."""
    if data is None:
        return ""
    if data == "demo" and not Path(data).exists():
        return "?" + urlencode({"data": _store_demo(folder)[:12]})
    if not Path(data).exists():
        raise PlainError("There is no such file.", data, "Check the path given to --data.")
    os.environ["PLAIN_FILE"] = str(Path(data).absolute())
    return ""


def _store_demo(folder: Path) -> str:
    from core.demo import load_demo
    from core.store import Workspace

    space = Workspace(folder)
    try:
        return space.add_dataset(load_demo(), DEMO_NAME)
    finally:
        space.close()


def _open_browser(url: str, host: str, port: int) -> None:
    for _ in range(STARTING_SECONDS * 10):
        try:
            with closing(HTTPConnection(host, port, timeout=1)) as connection:
                connection.request("GET", "/_stcore/health")
                if connection.getresponse().status == 200:
                    webbrowser.open(url)
                    return
        except OSError:
            sleep(0.1)


def _run(workspace: Path, host: str, port: int, password: Password | None) -> None:
    sys.argv[:] = [str(HERE / "app.py")]  # where Streamlit looks for the theme
    import streamlit as st
    import uvicorn
    from starlette.middleware import Middleware

    from plain_app.api import routes
    from plain_app.screens import WholeScreens, keep_theme

    keep_theme()
    uvicorn.Server.startup = without_delay(uvicorn.Server.startup)
    guards = [Middleware(SecurityHeaders), Middleware(OwnPages)]
    if password is not None:
        guards.append(Middleware(LoginGate, password=password))
    guards.append(Middleware(WholeScreens, workspace=workspace))
    app = st.App(HERE / "app.py", routes=routes(), middleware=guards)
    known = [] if host in ANY else list(dict.fromkeys([host, *LOOPBACK]))
    address = {"server.address": host, "server.port": port, "server.allowedHosts": known}
    try:
        app.run(config={**PINNED, **address})
    except KeyboardInterrupt:
        print("\nEnded. Runs at work go on.")


def without_delay(startup: Any) -> Any:
    """Have the server's sockets send at once (TCP_NODELAY, passed on to the connections), and tell
    `screens` of the connections.

    asyncio sees to it only for sockets made with their protocol, and Streamlit makes its own
    without: a rerun's small messages then wait for each other's receipts, 40 ms every time.
    """

    from plain_app import screens

    async def start(server: Any, sockets: list[socket.socket] | None = None) -> None:
        for one in sockets or []:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await startup(server, sockets)
        screens.connections = server.server_state.connections

    return start
