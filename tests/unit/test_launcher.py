"""The launcher's promises: this machine only, safe settings, a free port, clear refusals."""

import asyncio
import errno
import json
import os
import socket
import subprocess
import sys

import pytest

from core.errors import PlainError
from plain_app.server import launcher
from plain_app.server.password import write_password


@pytest.fixture(autouse=True)
def environment():
    """The launcher sets variables for the process it is: other tests must not see them."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


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


def test_an_address_of_another_machine_is_no_taken_port():
    for host in ("203.0.113.1", "no-such-host.invalid"):
        with pytest.raises(PlainError, match="no such address"):
            launcher.find_port(8000, host)


def test_a_port_that_needs_more_rights_is_no_taken_port(monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(PlainError, match="may not be used"):
        launcher.find_port(80)


def test_the_address_of_an_ipv6_host_stands_in_brackets(monkeypatch, tmp_path, capsys):
    write_password(tmp_path / "password", "correct horse battery")
    for name in ("_run", "start_uploads"):
        monkeypatch.setattr(launcher, name, lambda *_: None)
    monkeypatch.setattr(launcher, "find_port", lambda port, host: 8501)
    monkeypatch.setattr(launcher.background, "return_memory", lambda: None)
    monkeypatch.setenv("PLAIN_STANDBY", "0")
    guard = {"password_file": tmp_path / "password", "browser": False}
    launcher.serve(tmp_path, host="::1", **guard)
    assert "http://[::1]:8501/ " in capsys.readouterr().out


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
    policy = launcher.content_security_policy("'sha256-x'", "127.0.0.1:8501")
    assert "img-src 'self' data: blob:" in policy
    assert "default-src 'self'" in policy
    assert "http" not in policy
    scripts = next(part for part in policy.split(";") if "script-src" in part)
    assert "'unsafe-inline'" not in scripts


@pytest.mark.parametrize(
    ("host", "sockets"),
    [
        ("plain.example:8501", "ws://plain.example:8501 wss://plain.example:8501 "),
        ("[2001:db8::1]:8501", "ws://[2001:db8::1]:8501 wss://[2001:db8::1]:8501 "),
        ("", ""),
        ("evil.example; script-src *", ""),
        ("evil.example 'unsafe-inline'", ""),
        ("*", ""),
    ],
)
def test_pages_open_websockets_to_their_own_host_only(host, sockets):
    policy = launcher.content_security_policy("'sha256-x'", host)
    connect = next(part for part in policy.split("; ") if part.startswith("connect-src"))
    assert connect == f"connect-src 'self' {sockets}blob:"


def test_every_answer_has_the_headers():
    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        sent.append(message)

    sent = []
    scope = {"type": "http", "headers": [(b"host", b"plain.example")]}
    asyncio.run(launcher.SecurityHeaders(page)(scope, None, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert told.items() >= launcher.HEADERS.items()
    policy = told["content-security-policy"]
    for part in ("wss://plain.example", "frame-ancestors 'none'", "form-action 'self'", "sha256-"):
        assert part in policy


def test_forwarded_addresses_are_believed_from_named_proxies_only(monkeypatch):
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    async def told(client: str, proxies: list[str]) -> tuple[str, str]:
        async def page(scope, receive, send):
            found.append((scope["client"][0], scope["scheme"]))

        found: list[tuple[str, str]] = []
        trusted = ",".join(launcher.networks(proxies))
        headers = [(b"x-forwarded-for", b"192.0.2.1"), (b"x-forwarded-proto", b"https")]
        scope = {"type": "http", "client": (client, 1), "scheme": "http", "headers": headers}
        await ProxyHeadersMiddleware(page, trusted_hosts=trusted)(scope, None, None)
        return found[0]

    believed = ("192.0.2.1", "https")
    assert asyncio.run(told("127.0.0.1", [])) == ("127.0.0.1", "http")
    assert asyncio.run(told("127.0.0.1", ["10.0.0.0/8"])) == ("127.0.0.1", "http")
    for client in ("10.1.2.3", "::ffff:10.1.2.3"):
        assert asyncio.run(told(client, ["10.0.0.0/8"])) == believed
    assert asyncio.run(told("::1", ["127.0.0.1", "::1"])) == believed


@pytest.mark.parametrize("given", ["*", "proxy.example", "10.0.0.1/8", ""])
def test_what_is_no_address_of_a_proxy_is_refused(given):
    with pytest.raises(PlainError, match="no address of a proxy"):
        launcher.networks([given])


def test_a_proxy_in_front_needs_a_guard_too():
    with pytest.raises(PlainError, match="--password-file"):
        launcher.check_host("127.0.0.1", is_guarded=False, is_proxied=True)


@pytest.mark.parametrize(
    ("host", "arguments", "allowed"),
    [
        ("127.0.0.1", {}, None),
        ("0.0.0.0", {}, "[]"),
        ("127.0.0.1", {"trusted_proxies": ["10.0.0.1"]}, "[]"),
    ],
)
def test_a_shared_server_writes_nowhere_unless_allowed(
    host, arguments, allowed, tmp_path, monkeypatch
):
    write_password(tmp_path / "password", "correct horse")
    guard = {} if allowed is None else {"password_file": tmp_path / "password"}
    monkeypatch.setattr(launcher, "_run", lambda *_: None)
    monkeypatch.setenv(launcher.EXPORT_FOLDERS, '["/"]')
    for name in ("PLAIN_WORKSPACE", "FORWARDED_ALLOW_IPS"):
        monkeypatch.setenv(name, "*")
    options = {"host": host, "browser": False, **guard, **arguments}
    launcher.serve(tmp_path / "space", **options)
    assert os.environ.get(launcher.EXPORT_FOLDERS) == allowed
    proxies = launcher.networks(arguments.get("trusted_proxies", []))
    assert os.environ["FORWARDED_ALLOW_IPS"] == ",".join(proxies)
    launcher.serve(tmp_path / "space", **options, export_folders=[tmp_path])
    assert os.environ[launcher.EXPORT_FOLDERS] == json.dumps([str(tmp_path)])
    with pytest.raises(PlainError, match="no such folder"):
        launcher.serve(tmp_path / "space", **options, export_folders=[tmp_path / "none"])


@pytest.mark.parametrize(
    "arguments", [["app", "--host", "0.0.0.0"], ["app", "--data", "nowhere.csv", "--no-browser"]]
)
def test_bad_arguments_are_a_message_and_exit_code_two(arguments, tmp_path):
    command = [
        sys.executable,
        "-m",
        "plain_app",
        *arguments,
        "--workspace",
        str(tmp_path / "space"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
