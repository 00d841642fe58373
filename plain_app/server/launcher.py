"""Starts the program: one server on this machine, with safe settings that nothing overrides.

Owns every Streamlit option but the theme, which is in `.streamlit/config.toml`. Listens to other
machines, itself or behind a proxy, only with a password (`plain_app.server.access`) or an OpenID
Connect provider. Such a server is shared: it writes and opens files only below folders its
operator named.
"""

import base64
import errno
import json
import os
import re
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from http.client import HTTPConnection
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlencode

from core.data.demo import DEMOS
from core.errors import PlainError
from core.paths import full_path
from core.runs import processes as background
from plain_app.server.access import BrowserCookie, LoginGate, OwnPages, header, is_oidc_configured
from plain_app.server.password import PasswordFile
from plain_app.server.uploads import start_uploads

HERE = Path(__file__).parents[1]  # where the pages are
LOOPBACK = ("127.0.0.1", "localhost")
ANY = ("0.0.0.0", "::")  # every address of this machine; its names are not known
OIDC = "PLAIN_OIDC"  # set for the pages: ask st.user who it is
# Set for the pages of a shared server, each a JSON list: where they may write, and read.
EXPORT_FOLDERS, DATA_FOLDERS = "PLAIN_EXPORT_FOLDERS", "PLAIN_DATA_FOLDERS"
DEFAULT_PORT = 8501
MAX_UPLOAD_MB = 200
STARTING_SECONDS = 30

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
    "{sockets}blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class SecurityHeaders:
    """Adds headers to every answer: nothing is loaded from, or told to, another host."""

    def __init__(self, app: Any) -> None:
        self._app, self._scripts = app, _inline_scripts()
        self._extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                policy = content_security_policy(self._scripts, header(scope, b"host"))
                own = [*self._extra, (b"content-security-policy", policy.encode())]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def content_security_policy(scripts: str, host: str) -> str:
    """Return what a page may load: our own files, Streamlit's first scripts, its own websocket.

    The socket is named by host, as not every browser counts it among 'self'.
    """
    is_plain = re.fullmatch(r"[\w.-]+(:\d+)?|\[[\da-fA-F:]+\](:\d+)?", host, re.ASCII)
    return POLICY.format(scripts=scripts, sockets=f"ws://{host} wss://{host} " if is_plain else "")


def _inline_scripts() -> str:
    """Return the digests of the scripts that Streamlit's page begins with."""
    import streamlit

    index = Path(streamlit.__file__).parent / "static" / "index.html"
    inline = re.findall(r"<script>(.*?)</script>", index.read_text("utf-8"), re.DOTALL)
    digests = [base64.b64encode(sha256(one.encode()).digest()).decode() for one in inline]
    return " ".join(f"'sha256-{one}'" for one in digests)


def serve(
    workspace: Path,
    *,
    data: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    password_file: Path | None = None,
    trusted_proxies: Sequence[str] = (),
    export_folders: Sequence[Path] = (),
    data_folders: Sequence[Path] = (),
) -> None:
    """Serve the app until Ctrl-C; `data` is a file to look at first, or the word of a demo."""
    password = None if password_file is None else PasswordFile(password_file)
    proxies = networks(trusted_proxies)
    # The server believes forwarded addresses and schemes from these; from 127.0.0.1 by default.
    os.environ["FORWARDED_ALLOW_IPS"] = ",".join(proxies)
    check_host(host, is_guarded=password is not None, is_proxied=bool(proxies))
    is_shared = host not in LOOPBACK or bool(proxies) or password is not None
    _allow_folders(EXPORT_FOLDERS, "--export-folder", export_folders, is_shared)
    _allow_folders(DATA_FOLDERS, "--data-folder", data_folders, is_shared)
    port = find_port(port, host)
    folder = full_path(workspace)
    os.environ["PLAIN_WORKSPACE"] = str(folder)
    background.return_memory()
    background.standby.open(folder)
    start_uploads(folder)
    shown = "127.0.0.1" if host in ANY else host
    url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/{_query(data, folder)}"
    print(f"PLAIN Studio is at {url}  (Ctrl-C ends it; runs go on)", flush=True)
    if browser:
        threading.Thread(target=_open_browser, args=(url, shown, port), daemon=True).start()
    known = [] if host in ANY or proxies else list(dict.fromkeys([host, *LOOPBACK]))
    address = {"server.address": host, "server.port": port, "server.allowedHosts": known}
    _run(address, password)


def check_host(host: str, is_guarded: bool, is_proxied: bool = False) -> None:
    """Refuse to serve other machines unguarded: who reaches the port may use the workspace."""
    if is_guarded or (host in LOOPBACK and not is_proxied):
        return
    if is_oidc_configured():
        os.environ[OIDC] = "1"
        return
    raise PlainError(
        "The app serves this machine only.",
        f"To serve others, on {host}, it needs --password-file, or an OpenID Connect provider in "
        "the [auth] section of .streamlit/secrets.toml; neither is there.",
        "Make one with: plain password FILE. Or leave --host out and use a tunnel: "
        "ssh -L 8501:127.0.0.1:8501 HOST",
    )


def networks(given: Sequence[str]) -> list[str]:
    """Return addresses and networks as the server compares them; refuse what is neither."""
    found: list[str] = []
    for one in given:
        try:
            network = ip_network(one)
        except ValueError as error:
            hint = "Give the address of the proxy, such as 127.0.0.1, or a network: 10.0.0.0/8."
            raise PlainError("This is no address of a proxy.", str(error), hint) from None
        found.append(str(network))
        if isinstance(network, IPv4Network):  # as a socket that also takes IPv6 tells it
            found.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return found


def _allow_folders(variable: str, option: str, folders: Sequence[Path], is_shared: bool) -> None:
    """Tell the pages which folders are open; all where the machine is the person's own."""
    for folder in folders:
        if not folder.is_dir():
            raise PlainError("There is no such folder.", f"{option} {folder}")
    if is_shared or folders:
        os.environ[variable] = json.dumps([str(one.resolve()) for one in folders])
    else:
        os.environ.pop(variable, None)


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
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise PlainError("This machine has no such address.", f"--host {host}") from error
            if error.errno == errno.EACCES:
                hint = "Leave --port out, or give one above 1023."
                raise PlainError("This port may not be used.", f"Port {port}.", hint) from error
            return False
    return True


def _query(data: str | None, folder: Path) -> str:
    """Store the demo, or name the file to be looked at; return the address's query."""
    if data is None:
        return ""
    if data in DEMOS and not Path(data).exists():
        return "?" + urlencode({"data": _store_demo(folder, data)[:12]})
    if not Path(data).exists():
        raise PlainError("There is no such file.", data, "Check the path given to --data.")
    os.environ["PLAIN_FILE"] = str(Path(data).absolute())
    return ""


def _store_demo(folder: Path, word: str) -> str:
    from core.store import Workspace

    space = Workspace(folder)
    try:
        return space.add_dataset(DEMOS[word].load(), DEMOS[word].title)
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


def _run(address: dict[str, Any], password: PasswordFile | None) -> None:
    sys.argv[:] = [str(HERE / "app.py")]  # where Streamlit looks for the theme
    import streamlit as st
    from starlette.middleware import Middleware

    from plain_app.server import preload
    from plain_app.server.routes import routes
    from plain_app.widgets.modules import module_route

    preload.is_served = True
    guards = [Middleware(SecurityHeaders), Middleware(OwnPages), Middleware(BrowserCookie)]
    if password is not None:
        guards.append(Middleware(LoginGate, file=password))
    app = st.App(HERE / "app.py", routes=[*routes(), module_route()], middleware=guards)
    try:
        app.run(config={**PINNED, **address})
    except KeyboardInterrupt:
        print("\nEnded. Runs at work go on.")
