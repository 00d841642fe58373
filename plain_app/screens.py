"""Makes new screens quick: runs rest while somebody waits, and a screen is sent in one go.

Streamlit sends while it draws, every few milliseconds, and the browser starts anew with each part:
up to a fifth of its work on a new screen. Here the parts wait for the end of the rerun, though not
longer than a person would notice: what is slow still appears bit by bit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.background import ask_for_quiet

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LONGEST_WAIT = 0.08
"""Seconds that a part of a screen waits for the others."""


class WholeScreens:
    """Middleware around Streamlit's web socket."""

    def __init__(self, app: Any, workspace: Path) -> None:
        self._app, self._workspace = app, workspace

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def hear() -> Message:
            message = await receive()
            if _is_pressed(message):
                ask_for_quiet(self._workspace)
            return message

        await self._app(scope, hear, _Outbox(send).put)


def _is_pressed(message: Message) -> bool:
    """Whether a person asks for a screen; not a page that keeps itself up to date."""
    from streamlit.proto.BackMsg_pb2 import BackMsg

    asked = BackMsg.FromString(message.get("bytes") or b"")
    return asked.HasField("rerun_script") and not asked.rerun_script.is_auto_rerun


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
