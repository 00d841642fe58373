"""The app behind a password or a provider, where other machines may reach it."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from app_server import LONG, free_port, is_served
from playwright.sync_api import expect

from plain_app.server.password import write_password

pytestmark = pytest.mark.e2e


@pytest.fixture
def internet(monkeypatch) -> Iterator[socket.socket]:
    """A door to the internet that must stay closed: whatever asks for it knocks here."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"http://127.0.0.1:{door.getsockname()[1]}"
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield door
        door.settimeout(0.1)
        with pytest.raises(TimeoutError):
            door.accept()


def test_the_app_opens_only_with_the_password(serve, open_page, tmp_path, internet):
    write_password(tmp_path / "password", "correct horse")
    server = serve("--host", "0.0.0.0", "--password-file", str(tmp_path / "password"))
    connection = HTTPConnection("127.0.0.1", int(server.port))
    for path in ("/_stcore/stream", "/static/index.html", "/api/decisions"):
        connection.request("GET", path)
        answer = connection.getresponse()
        told = b"Log in again" if path.startswith("/api") else b"PLAIN Studio"
        assert (answer.status, told in answer.read()) == (401, True)
    page = open_page(server.url)
    page.get_by_label("Password").fill("wrong horse")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not the password")
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)
    page.evaluate("""document.cookie = 'prefs={"theme":"dark"}'""")  # of another app on this host
    page.reload()
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)
    write_password(tmp_path / "password", "another horse")
    page.reload()
    page.get_by_label("Password").fill("another horse")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)


@pytest.fixture
def provider(tmp_path, monkeypatch, request) -> Iterator[str]:
    """An OpenID Connect provider at work, named in the home folder; returns the app's port."""
    own, port = free_port(), free_port()
    script = Path(__file__).parents[1] / "oidc_provider.py"
    claims = json.dumps(getattr(request, "param", {}))
    process = subprocess.Popen([sys.executable, script, own, claims])
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_text(
        f"""[auth]
        redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
        cookie_secret = "{"only for tests" * 3}"
        client_id = "plain"
        client_secret = "hush"
        server_metadata_url = "http://127.0.0.1:{own}/.well-known/openid-configuration"
        """
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    try:
        assert is_served(own, process, "/keys")
        yield port
    finally:
        process.terminate()
        process.wait()


def test_the_app_opens_to_those_a_provider_knows(serve, open_page, provider, internet, pictures):
    server = serve("--host", "0.0.0.0", port=provider)
    page = open_page(server.url)
    enter = page.get_by_role("button", name="Log in")
    expect(enter).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-frame-steps")).to_have_count(0)
    page.screenshot(path=pictures / "login.png")
    enter.click()
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)
    person = page.get_by_role("textbox", name="Annotator")
    expect(person).to_have_value("ada@example.org")
    expect(person).to_be_disabled()
    page.goto(f"{server.url}review?annotator=mallory")
    expect(person).to_have_value("ada@example.org", timeout=LONG)
    page.screenshot(path=pictures / "logged-in.png")
    page.get_by_role("button", name="Log out").click()
    expect(enter).to_be_visible(timeout=LONG)


@pytest.mark.parametrize("provider", [{"email_verified": False}], indirect=True)
def test_an_address_that_nobody_verified_names_nobody(serve, open_page, provider):
    page = open_page(serve("--host", "0.0.0.0", port=provider).url)
    page.get_by_role("button", name="Log in").click(timeout=LONG)
    person = page.get_by_role("textbox", name="Annotator")
    expect(person).to_have_value("7", timeout=LONG)
