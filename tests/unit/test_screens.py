"""What a rerun draws is sent at its end; what is slow, and all else, does not wait for it."""

import asyncio
import socket
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from plain_app import screens

ACCEPT, CLOSE = {"type": "websocket.accept"}, {"type": "websocket.close"}


@pytest.fixture(autouse=True)
def drawn(monkeypatch) -> list[bool]:
    """Note the screens after which the server would get ready for more."""
    found: list[bool] = []
    monkeypatch.setattr(screens, "get_ready_soon", lambda: found.append(True))
    return found


def told(**kind: object) -> dict[str, object]:
    return {"type": "websocket.send", "bytes": ForwardMsg(**kind).SerializeToString()}


STATUS, BEGIN, PART = told(session_status_changed={}), told(new_session={}), told(delta={})
RUNNING = told(session_status_changed={"script_is_running": True})
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


def test_the_parts_of_a_screen_are_sent_together_and_in_order(drawn):
    *before, after = sent_after(STATUS, BEGIN, PART, PART, END)
    assert before == [[STATUS]] * 4
    assert after == [STATUS, BEGIN, PART, PART, END]
    assert drawn == [True]


def test_the_answer_to_a_request_waits_from_its_first_word(tmp_path):
    async def receive() -> object:
        return {"type": "websocket.receive", "bytes": BackMsg(rerun_script={}).SerializeToString()}

    async def page(scope: object, receive: object, send: object) -> None:
        await receive()
        for message in (STATUS, BEGIN, END):
            await send(message)
            counts.append(len(sent))

    sent, counts = list[object](), list[int]()

    async def send(message: object) -> None:
        sent.append(message)

    asyncio.run(screens.WholeScreens(page, tmp_path)({"type": "websocket"}, receive, send))
    assert counts == [0, 0, 3]


@pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="only Linux can")
def test_a_screen_leaves_in_one_piece(monkeypatch):
    async def page(scope: object, receive: object, send: object) -> None:
        for message in (BEGIN, PART, END):
            await send(message)

    async def serve() -> list[bytes]:
        """Draw over a real connection; return what each reading of the other end finds."""
        found = list[bytes]()

        async def draw(reader: object, writer: asyncio.StreamWriter) -> None:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            monkeypatch.setattr(screens, "connections", [writer])

            async def send(message: dict) -> None:
                writer.write(message["bytes"] or b"-")
                await asyncio.sleep(0.02)

            scope = {"type": "websocket", "client": writer.get_extra_info("peername")}
            await screens.WholeScreens(page, Path())(scope, None, send)
            writer.close()

        server = await asyncio.start_server(draw, "127.0.0.1", 0)
        reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
        while part := await reader.read(1000):
            found.append(part)
        server.close()
        return found

    whole = b"".join(one["bytes"] for one in (BEGIN, PART, END))
    assert asyncio.run(serve()) == [whole]


def test_what_is_slow_appears_bit_by_bit(monkeypatch):
    monkeypatch.setattr(screens, "LONGEST_WAIT", 0.01)
    found = sent_after(BEGIN, PART, 0.1, PART, 0.1)
    assert [len(sent) for sent in found] == [0, 0, 2, 2, 3]


def test_that_something_is_drawn_is_said_only_where_it_takes_long(monkeypatch):
    assert sent_after(BEGIN, RUNNING, PART, END, STATUS, STATUS)[-1] == [BEGIN, PART, END, STATUS]
    monkeypatch.setattr(screens, "LONGEST_WAIT", 0.01)
    late = sent_after(BEGIN, RUNNING, PART, 0.1, PART, END, STATUS)[-1]
    assert late == [BEGIN, RUNNING, PART, PART, END, STATUS]


def test_messages_outside_of_a_rerun_do_not_wait():
    assert [len(sent) for sent in sent_after(ACCEPT, BEGIN, END, PART, PART)] == [1, 1, 3, 4, 5]


def test_nothing_is_left_behind_when_the_socket_closes():
    assert sent_after(BEGIN, PART, CLOSE)[-1] == [BEGIN, PART, CLOSE]


def test_a_socket_that_is_gone_tells_whoever_sends_next(monkeypatch):
    monkeypatch.setattr(screens, "LONGEST_WAIT", 0.0)
    assert sent_after(BEGIN, 0.05, socket_is_gone=True) == [[], []]
    with pytest.raises(BrokenPipeError):
        sent_after(BEGIN, 0.05, END, socket_is_gone=True)


def test_the_theme_is_put_together_once_and_is_the_same_every_time(monkeypatch):
    asked = list[str]()

    def populate(told: CustomThemeConfig, section: str = "theme") -> None:
        asked.append(section)
        if section != "theme.sidebar":
            told.primary_color = f"colour of {section}"

    monkeypatch.setattr(app_session, "_populate_theme_msg", populate)
    screens.keep_theme()
    for _ in range(2):
        theme = CustomThemeConfig()
        app_session._populate_theme_msg(theme)
        app_session._populate_theme_msg(theme.dark, "theme.dark")
        app_session._populate_theme_msg(theme.sidebar, "theme.sidebar")
        assert theme == CustomThemeConfig(
            primary_color="colour of theme",
            dark=CustomThemeConfig(primary_color="colour of theme.dark"),
        )
    assert asked == ["theme", "theme.dark", "theme.sidebar"]
