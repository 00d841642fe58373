"""Floods a login form: waves of wrong passwords, all of a wave at once; prints what was answered.

python login_flood.py PORT N WAVES PAUSE
"""

import asyncio
import json
import sys
from time import monotonic

BODY = b"password=wrong+guess"


async def guess(port: int, at: int) -> tuple[int, bool, float]:
    """Return the status, whether it says when to come back, and the seconds it took."""
    start = monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    head += f"X-Forwarded-For: 192.0.2.{at % 250}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    writer.write(head.encode() + BODY)
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ", 2)[1]), b"retry-after" in answer.lower(), monotonic() - start


async def flood(port: int, n: int, waves: int, pause: float) -> list[tuple[int, bool, float]]:
    answers = []
    for _ in range(waves):
        answers += await asyncio.gather(*(guess(port, at) for at in range(n)))
        await asyncio.sleep(pause)
    return answers


if __name__ == "__main__":
    port, n, waves, pause = sys.argv[1:]
    print(json.dumps(asyncio.run(flood(int(port), int(n), int(waves), float(pause)))))
