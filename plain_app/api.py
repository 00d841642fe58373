"""The routes of the review desk: what its JavaScript asks for between reruns of the page.

Every request must come from our own page (Origin and Host), carry the annotator's token, and be
small JSON. Work that blocks runs in threads, never in the server's loop.
"""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import PlainError, StoreError

MAX_BYTES = 256 * 1024
NAMES = ("decisions", "questions", "progress", "ripple")


class RefusedError(Exception):
    """A request that is not answered; says with which status and why."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why


def routes() -> list[Route]:
    """Return the routes for the server."""
    return [Route(f"/api/{name}", _endpoint(name), methods=["POST"]) for name in NAMES]


def _endpoint(name: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> JSONResponse:
        try:
            _check_sender(request)
            body = await _read(request)
            token = request.headers.get("x-plain-token", "")
            told = await anyio.to_thread.run_sync(_act, name, token, body)
        except RefusedError as refused:
            return JSONResponse({"error": refused.why}, refused.status)
        return JSONResponse(told)

    return answer


def _act(name: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
    from plain_app.services import desk, tokens  # their caches need the server to be there

    actions = {
        "decisions": desk.save,
        "questions": desk.questions,
        "progress": desk.progress,
        "ripple": desk.preview,
    }
    try:
        claims = tokens.check(token)
    except PlainError as error:
        raise RefusedError(403, error.title) from error
    try:
        return actions[name](claims, body)
    except StoreError as error:  # may pass: the browser keeps the answers and asks again
        raise RefusedError(503, str(error)) from error
    except PlainError as error:
        raise RefusedError(422, str(error)) from error


def _check_sender(request: Request) -> None:
    """Refuse other sites: what a browser sends for them has another Origin, or another Host."""
    from streamlit import config

    host = request.headers.get("host", "")
    allowed = config.get_option("server.allowedHosts") or []
    if allowed and urlsplit(f"//{host}").hostname not in allowed:
        raise RefusedError(403, "This host is not served.")
    if urlsplit(request.headers.get("origin", "")).netloc != host:
        raise RefusedError(403, "This page is of another site.")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise RefusedError(415, "JSON is expected.")


async def _read(request: Request) -> dict[str, Any]:
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MAX_BYTES:
            raise RefusedError(413, "This is more than a request may hold.")
    try:
        body = json.loads(read)
    except ValueError:
        raise RefusedError(400, "This is not JSON.") from None
    if not isinstance(body, dict):
        raise RefusedError(400, "A JSON object is expected.")
    return body
