"""Sends what a rerun draws in one go, so that the browser lays the page out once.

Streamlit sends while it draws, every few milliseconds, and the browser starts anew with each part:
up to a fifth of its work on a new screen. Here the parts wait for the end of the rerun, though not
longer than a person would notice: what is slow still appears bit by bit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]

LONGEST_WAIT = 0.08
"""Seconds that a part of a screen waits for the others."""


class WholeScreens:
    """Middleware around Streamlit's web socket."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        await self._app(scope, receive, _Outbox(send).put if is_socket else send)


class _Outbox:
    """The messages of one socket, in their order."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting = list[Message]()
        self._is_drawing = False
        self._sending = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def put(self, message: Message) -> None:
        """Send a message with those before it; during a rerun, all of them at its end."""
        self._waiting.append(message)
        kind = _kind(message)
        if kind in ("new_session", "script_finished"):
            self._is_drawing = kind == "new_session"
        if not self._is_drawing or kind is None:
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
            while self._waiting:
                await self._send(self._waiting.pop(0))


def _kind(message: Message) -> str | None:
    """Return what a message of Streamlit's is about, none for other traffic."""
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    if message["type"] != "websocket.send" or message.get("bytes") is None:
        return None
    kind: str | None = ForwardMsg.FromString(message["bytes"]).WhichOneof("type")
    return kind
