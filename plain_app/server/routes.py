"""The routes of the review desk: what its JavaScript asks for between reruns of the page.

Every request must come from our own page (Origin and Host), carry the annotator's token, and be
small JSON. Work that blocks runs in threads, never in the server's loop. Saving has threads of its
own: it never waits behind questions. A request for questions whose sender has gone before its turn
came is not worked on.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn
from urllib.parse import urlsplit

import anyio
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.errors import PlainError, StoreError
from plain_app.server.access import BROWSER, is_same_site

MAX_BYTES = 256 * 1024
SAVING, ASKING = ("decisions", "token"), ("questions", "progress", "preview", "picture")
N_SAVING, N_ASKING = 4, 4  # threads


class RefusedError(Exception):
    """A request that is not answered; says with which status and why."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why


def routes() -> list[Route]:
    """Return the routes for the server."""
    return [
        Route(f"/api/{name}", _endpoint(name, threads), methods=["POST"])
        for names, threads in (
            (SAVING, CapacityLimiter(N_SAVING)),
            (ASKING, CapacityLimiter(N_ASKING)),
        )
        for name in names
    ]


def _endpoint(name: str, threads: CapacityLimiter) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            _check_sender(request)
            body = await _read(request)
        except RefusedError as refused:
            return _response(refused.status, {"error": refused.why})
        found = Response(status_code=503)  # for nobody: the sender has gone

        async def work() -> None:
            nonlocal found
            sender = (request.headers.get("x-plain-token", ""), request.cookies.get(BROWSER, ""))
            found = await anyio.to_thread.run_sync(_act, name, sender, body, limiter=threads)

        await (_while_connected(request, work) if name in ASKING else work())
        return found

    return answer


async def _while_connected(request: Request, work: Callable[[], Awaitable[None]]) -> None:
    """Work as long as somebody waits for it; what runs in a thread already runs to its end."""

    async def cancel_when_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_when_gone)
        await work()
        tasks.cancel_scope.cancel()


def _act(name: str, sender: tuple[str, str], sent: bytes) -> Response:
    """Do what is asked, in a thread; the sender is a token and a browser."""
    try:
        return _response(200, _dispatch(name, *sender, _parsed(sent)))
    except RefusedError as refused:
        return _response(refused.status, {"error": refused.why})


def _dispatch(name: str, token: str, browser: str, body: dict[str, Any]) -> dict[str, Any]:
    from plain_app.server import tokens
    from plain_app.services import desk

    actions = {
        "decisions": desk.save,
        "questions": desk.questions,
        "progress": desk.progress,
        "preview": desk.preview,
        "picture": desk.picture,
    }
    try:
        claims = tokens.check(token, browser)
        if name == "token":
            old = body.get("token")
            return {"token": tokens.renew(claims, old if isinstance(old, str) else "", browser)}
    except tokens.ExpiredTokenError as error:
        raise RefusedError(401, str(error)) from error
    except PlainError as error:
        raise RefusedError(403, str(error)) from error
    try:
        return actions[name](claims, body)
    except (StoreError, OSError) as error:  # may pass: the browser keeps the answers, asks again
        raise RefusedError(503, str(error)) from error
    except PlainError as error:
        raise RefusedError(422, str(error)) from error


def _response(status: int, message: dict[str, Any]) -> Response:
    """Return JSON of ASCII alone: names in the data may hold half surrogate pairs."""
    content = json.dumps(message, allow_nan=False, separators=(",", ":"))
    return Response(content, status, media_type="application/json")


def _check_sender(request: Request) -> None:
    """Refuse other sites: what a browser sends for them has another Origin, or another Host."""
    from streamlit import config

    host = request.headers.get("host", "")
    allowed = config.get_option("server.allowedHosts") or []
    if allowed and urlsplit(f"//{host}").hostname not in allowed:
        raise RefusedError(403, "This host is not served.")
    if not is_same_site(request.headers.get("origin", ""), host):
        raise RefusedError(403, "This page is of another site.")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise RefusedError(415, "JSON is expected.")


async def _read(request: Request) -> bytes:
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MAX_BYTES:
            raise RefusedError(413, f"A request may hold {MAX_BYTES // 1024} KB.")
    return bytes(read)


def _parsed(sent: bytes) -> dict[str, Any]:
    try:
        body = json.loads(sent, parse_constant=_refuse_constant)
    except ValueError:
        raise RefusedError(400, "This is not JSON.") from None
    except RecursionError:
        raise RefusedError(422, "This JSON is nested too deeply.") from None
    if not isinstance(body, dict):
        raise RefusedError(422, "A JSON object is expected.")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise RefusedError(422, f"{name} is not a number that can be stored.")
