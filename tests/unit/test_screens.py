"""What a rerun draws is sent at its end; what is slow, and all else, does not wait for it."""

import asyncio
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from plain_app import screens

ACCEPT, CLOSE = {"type": "websocket.accept"}, {"type": "websocket.close"}


def told(**kind: object) -> dict[str, object]:
    return {"type": "websocket.send", "bytes": ForwardMsg(**kind).SerializeToString()}


STATUS, BEGIN, PART = told(session_status_changed={}), told(new_session={}), told(delta={})
END = told(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY)


def sent_after(*steps: object, socket_is_gone: bool = False) -> list[list[object]]:
    """Put messages, or wait seconds; return all that was sent after each step."""
    sent: list[object] = []

    async def send(message: object) -> None:
        if socket_is_gone:
            raise BrokenPipeError
        sent.append(message)

    async def page(scope: object, receive: object, send: object) -> None:
        for step in steps:
            await (asyncio.sleep(step) if isinstance(step, float) else send(step))
            found.append(list(sent))

    found: list[list[object]] = []
    asyncio.run(screens.WholeScreens(page, Path())({"type": "websocket"}, None, send))
    return found


@pytest.mark.parametrize(
    ("asked", "rests"),
    [
        (BackMsg(rerun_script={}), True),
        (BackMsg(rerun_script={"is_auto_rerun": True}), False),
        (BackMsg(load_git_info=True), False),
    ],
)
def test_runs_rest_for_a_person_and_not_for_a_page_that_follows_a_run(tmp_path, asked, rests):
    async def receive() -> object:
        return {"type": "websocket.receive", "bytes": asked.SerializeToString()}

    async def page(scope: object, receive: object, send: object) -> None:
        heard.append(await receive())

    heard: list[object] = []
    asyncio.run(screens.WholeScreens(page, tmp_path)({"type": "websocket"}, receive, None))
    assert heard == [asyncio.run(receive())]
    assert (tmp_path / "quiet").exists() == rests


def test_the_parts_of_a_screen_are_sent_together_and_in_order():
    *before, after = sent_after(STATUS, BEGIN, PART, PART, END)
    assert before == [[STATUS]] * 4
    assert after == [STATUS, BEGIN, PART, PART, END]


def test_what_is_slow_appears_bit_by_bit(monkeypatch):
    monkeypatch.setattr(screens, "LONGEST_WAIT", 0.01)
    found = sent_after(BEGIN, PART, 0.1, PART, 0.1)
    assert [len(sent) for sent in found] == [0, 0, 2, 2, 3]


def test_messages_outside_of_a_rerun_do_not_wait():
    assert [len(sent) for sent in sent_after(ACCEPT, BEGIN, END, STATUS, STATUS)] == [1, 1, 3, 4, 5]


def test_nothing_is_left_behind_when_the_socket_closes():
    assert sent_after(BEGIN, PART, CLOSE)[-1] == [BEGIN, PART, CLOSE]


def test_a_socket_that_is_gone_tells_whoever_sends_next(monkeypatch):
    monkeypatch.setattr(screens, "LONGEST_WAIT", 0.0)
    assert sent_after(BEGIN, 0.05, socket_is_gone=True) == [[], []]
    with pytest.raises(BrokenPipeError):
        sent_after(BEGIN, 0.05, END, socket_is_gone=True)
