"""Requests as the review desk in the browser sends them, without a browser."""

import asyncio
import json

from starlette.applications import Starlette

from plain_app.server import routes as api

HOST = "127.0.0.1:8501"


class Asking:
    """One request to a route of the app, as a browser sends it, and its answer when it is there."""

    def __init__(self, name: str, body: object, **headers: str) -> None:
        sent = {"host": HOST, "origin": f"http://{HOST}", "content-type": "application/json"}
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": f"/api/{name}",
            "query_string": b"",
            "headers": [(key.encode(), text.encode()) for key, text in {**sent, **headers}.items()],
        }
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._messages = [{"type": "http.request", "body": content, "more_body": False}]
        self._gone = asyncio.Event()
        self.answers: list[dict] = []

    async def of(self, app: Starlette) -> tuple[int, dict]:
        await app(self.scope, self._receive, self._send)
        told = b"".join(one.get("body", b"") for one in self.answers[1:])
        return self.answers[0]["status"], json.loads(told or b"{}")

    def hang_up(self) -> None:
        self._gone.set()

    async def _receive(self) -> dict:
        if self._messages:
            return self._messages.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict) -> None:
        self.answers.append(message)


def ask(name: str, body: object, **headers: str) -> tuple[int, dict]:
    """Post to a route of the app, and return status and answer."""
    return asyncio.run(Asking(name, body, **headers).of(Starlette(routes=api.routes())))


def decision(item: dict, at: int = 0, **values: object) -> dict:
    cell = item["cells"][at]
    made = {"uid": f"u-{item['key']}-{at}", "instance_id": cell["id"], "label": cell["label"]}
    return {**made, "verdict": "keep", "confidence": cell["confidence"], "shown": True, **values}
