"""People at review desks, without browsers: the requests that `desk.js` sends, as often."""

import json
import threading
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from random import Random
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

AHEAD, RENEW = 15, 10  # as in desk.js
TIMEOUT = 15.0


class Person(threading.Thread):
    """Answers a question every so many seconds until the end, fetching more as the desk does."""

    def __init__(self, port: str, token: str, every: float, seconds: float, seed: int) -> None:
        super().__init__(daemon=True)
        self._port, self._token, self._every, self._seconds = port, token, every, seconds
        self._random, self._lock = Random(seed), threading.Lock()
        self.items: list[dict[str, Any]] = []
        self._answered = set[str]()  # since questions were last asked for
        self._dropped: list[str] = []  # questions that go back to the others
        self.spent: dict[str, list[float]] = defaultdict(list)  # seconds by route
        self.acknowledged: list[str] = []  # uids that the server said are saved
        self.sent: list[str] = []
        self.failures: list[str] = []
        self.n_idle = 0  # turns without a question

    def run(self) -> None:
        sleep(self._random.uniform(0, self._every))
        with ThreadPoolExecutor(1) as fetching:
            self.fetch()
            n_answers, fetched = 0, Future[None]()
            fetched.set_result(None)
            at, end = monotonic() + self._every, monotonic() + self._seconds
            while at < end:
                sleep(max(0.0, at - monotonic()))
                at += self._every
                if not self.items:
                    self.n_idle += 1
                else:
                    self._answer(self.items.pop(0))
                    n_answers += 1
                if fetched.done() and (len(self.items) < AHEAD or n_answers % RENEW == 0):
                    fetched = fetching.submit(self.fetch)
                else:
                    fetching.submit(self._post, "progress", {})

    def _answer(self, item: dict[str, Any]) -> None:
        self._answered.add(item["key"])
        batch = uuid4().hex
        made = [
            {
                "uid": uuid4().hex,
                "instance_id": cell["id"],
                "label": cell["label"],
                "verdict": cell["proposed"],
                "confidence": cell["confidence"],
                "sampled": cell["sampled"],
                "batch": batch,
                "seconds": self._every,
            }
            for cell in item["cells"]
            if cell["asked"]
        ]
        self.sent += [one["uid"] for one in made]
        pause = 0.5
        while (told := self._post("decisions", {"decisions": made})) is None:
            sleep(pause * self._random.uniform(0.5, 1.5))
            pause = min(2 * pause, 8)
        self.acknowledged += told["saved"]
        self.failures += [f"refused: {one['why']}" for one in told["refused"]]

    def fetch(self, timeout: float = TIMEOUT) -> None:
        """Ask for questions."""
        kept, dropped = self.items[:2], self._dropped
        self._answered.clear()
        body = {"have": [one["key"] for one in kept], "dropped": dropped}
        told = self._post("questions", body, timeout)
        if told is not None:
            new = {one["key"]: one for one in (*kept, *told["items"])}
            self._dropped = [one["key"] for one in self.items if one["key"] not in new]
            self.items = [one for key, one in new.items() if key not in self._answered]

    def _post(
        self, route: str, body: dict[str, Any], timeout: float = TIMEOUT
    ) -> dict[str, Any] | None:
        """Return what the server says; none, noted as a failure, where it says nothing of use."""
        headers = {
            "content-type": "application/json",
            "origin": f"http://127.0.0.1:{self._port}",
            "x-plain-token": self._token,
        }
        connection = HTTPConnection("127.0.0.1", int(self._port), timeout=timeout)
        begin = monotonic()
        try:
            connection.request("POST", f"/api/{route}", json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
            status = answer.status
        except (OSError, HTTPException) as error:
            status, content = 0, repr(error).encode()
        finally:
            connection.close()
        with self._lock:
            self.spent[route].append(monotonic() - begin)
            if status != 200:
                self.failures.append(f"{route} {status}: {content[:100]!r}")
        return json.loads(content) if status == 200 else None
