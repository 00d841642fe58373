"""Makes new screens quick: runs rest while somebody waits, and a screen is sent in one go.

Streamlit sends while it draws, every few milliseconds, and the browser starts anew with each part:
up to a fifth of its work on a new screen. Here the parts wait for the end of the rerun, though not
longer than a person would notice: what is slow still appears bit by bit, and only then it is said
that something is being drawn.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import app_session

from core.background import ask_for_quiet
from plain_app.readiness import get_ready_soon

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LONGEST_WAIT = 0.08
"""Seconds that a part of a screen waits for the others."""

connections: Collection[Any] = ()
"""The server's connections, once it runs."""


def keep_theme() -> None:
    """Have the theme put together once.

    Streamlit does it from its options for every rerun: 6 ms, a sixth of the server's work.
    """
    populate, known = getattr(app_session, "_populate_theme_msg", None), dict[str, Any]()
    if populate is None:  # a Streamlit that does it otherwise
        return

    def fill(told: Any, section: str = "theme") -> None:
        if section not in known:
            known[section] = type(told)()
            populate(known[section], section)
        if known[section].ByteSize():
            told.MergeFrom(known[section])

    app_session._populate_theme_msg = fill


class WholeScreens:
    """Middleware around Streamlit's web socket."""

    def __init__(self, app: Any, workspace: Path) -> None:
        self._app, self._workspace = app, workspace

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        outbox = _Outbox(send, _socket_of(scope.get("client")))

        async def hear() -> Message:
            message = await receive()
            asked = BackMsg.FromString(message.get("bytes") or b"")
            if asked.HasField("rerun_script"):
                outbox.expect()
                if not asked.rerun_script.is_auto_rerun:
                    ask_for_quiet(self._workspace)
            return message

        await self._app(scope, hear, outbox.put)


def _socket_of(client: Any) -> Any:
    """Return the socket to a browser, by the address it has; ASGI does not tell."""
    for one in connections:
        told = one.transport.get_extra_info
        if client is not None and told("peername")[:2] == tuple(client):
            return told("socket")
    return None


@contextmanager
def _in_one_piece(sock: Any) -> Iterator[None]:
    """Have what is written in here leave together, where the system can: else the browser begins
    to draw after the first words."""
    option = getattr(socket, "TCP_CORK", None)
    if sock is None or option is None:
        yield
        return
    with suppress(OSError):  # the browser is gone
        sock.setsockopt(socket.IPPROTO_TCP, option, 1)
    try:
        yield
    finally:
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, option, 0)


class _Outbox:
    """The messages of one socket, in their order."""

    def __init__(self, send: Send, socket: Any) -> None:
        self._send, self._socket = send, socket
        self._waiting = list[tuple[ForwardMsg | None, Message]]()
        self._is_drawing = False
        self._told_running: bool | None = None
        self._sending = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    def expect(self) -> None:
        """Hold back what comes from now on: a rerun was asked for."""
        self._is_drawing = True

    async def put(self, message: Message) -> None:
        """Send a message with those before it; during a rerun, all of them at its end."""
        told = _parsed(message)
        self._waiting.append((told, message))
        if told is not None and told.WhichOneof("type") in ("new_session", "script_finished"):
            self._is_drawing = told.HasField("new_session")
            if not self._is_drawing:
                get_ready_soon()
        if not self._is_drawing or told is None:
            await self._send_all()
        elif self._timer is None:
            self._timer = asyncio.create_task(self._send_later())

    async def _send_later(self) -> None:
        await asyncio.sleep(LONGEST_WAIT)
        self._timer = None
        with suppress(Exception):  # of a socket that is gone; the next message meets it again
            await self._send_all()

    async def _send_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        async with self._sending:
            has_end = any(told and told.HasField("script_finished") for told, _ in self._waiting)
            with _in_one_piece(self._socket):
                while self._waiting:
                    told, message = self._waiting.pop(0)
                    if not self._is_news(told, has_end):
                        continue
                    await self._send(message)

    def _is_news(self, told: ForwardMsg | None, has_end: bool) -> bool:
        """Whether the browser needs a message; it draws the whole screen anew for each that says
        whether something is being drawn."""
        if told is None or not told.HasField("session_status_changed"):
            return True
        is_running = told.session_status_changed.script_is_running
        if is_running == self._told_running or (is_running and has_end):
            return False
        self._told_running = is_running
        return True


def _parsed(message: Message) -> ForwardMsg | None:
    """Return a message of Streamlit's, none for other traffic."""
    if message["type"] != "websocket.send" or message.get("bytes") is None:
        return None
    return ForwardMsg.FromString(message["bytes"])
