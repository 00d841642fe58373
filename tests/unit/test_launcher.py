"""The launcher's promises: this machine only, safe settings, a free port, clear refusals."""

import asyncio
import socket
import subprocess
import sys
from contextlib import closing
from types import SimpleNamespace

import pytest

from core.errors import PlainError
from plain_app import launcher, screens


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "example.com"])
def test_other_hosts_are_refused_with_what_is_needed(host):
    with pytest.raises(PlainError, match="--password-file"):
        launcher.check_host(host, is_guarded=False)
    launcher.check_host(host, is_guarded=True)


def test_a_taken_port_is_refused_when_asked_for_and_avoided_when_not(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PlainError, match="taken"):
            launcher.find_port(port)
        monkeypatch.setattr(launcher, "DEFAULT_PORT", port)
        assert launcher.find_port(None) != port


def test_the_server_is_pinned_to_safe_settings():
    pinned = launcher.PINNED
    assert pinned["server.address"] == "127.0.0.1"
    assert pinned["server.allowedHosts"] == ["127.0.0.1", "localhost"]
    assert pinned["server.enableXsrfProtection"] is True
    assert pinned["browser.gatherUsageStats"] is False
    assert pinned["runner.postScriptGC"] is False
    assert pinned["client.allowedOrigins"] == []
    assert pinned["logger.hideWelcomeMessage"] is True


def test_pages_load_nothing_from_elsewhere():
    policy = launcher.content_security_policy()
    assert "img-src 'self' data: blob:" in policy
    assert "default-src 'self'" in policy
    assert "http" not in policy
    scripts = next(part for part in policy.split(";") if "script-src" in part)
    assert "'unsafe-inline'" not in scripts


@pytest.mark.parametrize(
    "arguments", [["app", "--host", "0.0.0.0"], ["app", "--data", "nowhere.csv", "--no-browser"]]
)
def test_bad_arguments_are_a_message_and_exit_code_two(arguments, tmp_path):
    command = [sys.executable, "-m", "core", *arguments, "--workspace", str(tmp_path / "space")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "module", ["services.data", "services.runs", "services.histories", "services.desk"]
)
def test_importing_services_loads_neither_torch_nor_faiss(module):
    code = f"import sys, plain_app.{module}; print(sorted({{'torch', 'faiss'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_connections_send_small_messages_at_once(monkeypatch):
    monkeypatch.setattr(screens, "connections", ())

    async def startup(server, sockets=None):
        served.append(sockets)

    served = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = SimpleNamespace(server_state=SimpleNamespace(connections={"one"}))
        asyncio.run(launcher.without_delay(startup)(server, [listening]))
        assert screens.connections == {"one"}
        with (
            socket.create_connection(listening.getsockname()),
            closing(listening.accept()[0]) as connection,
        ):
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert served == [[listening]]
