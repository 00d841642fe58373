"""The app behind a password, where other machines may reach it."""

from http.client import HTTPConnection

import pytest
from playwright.sync_api import expect

from plain_app.access import write_password

pytestmark = pytest.mark.e2e
LONG = 60_000


def test_the_app_opens_only_with_the_password(serve, open_page, tmp_path):
    write_password(tmp_path / "password", "correct horse")
    server = serve("--host", "0.0.0.0", "--password-file", str(tmp_path / "password"))
    connection = HTTPConnection("127.0.0.1", int(server.port))
    for path in ("/_stcore/stream", "/static/index.html", "/api/decisions"):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, b"PLAIN Studio" in answer.read()) == (401, True)
    page = open_page(server.url)
    page.get_by_label("Password").fill("wrong horse")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not the password")
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)
    page.reload()
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)
