"""The JavaScript of the widgets, as the browser gets it."""

import posixpath
import re

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import Response

from plain_app.widgets import modules

IMPORT = re.compile(r'^import .*?"(\.[^"]+)";', re.MULTILINE | re.DOTALL)


def fetch(name: str) -> Response:
    return anyio.run(modules._serve, Request({"type": "http", "path_params": {"name": name}}))


@pytest.mark.parametrize("name", sorted(modules._modules()))
def test_a_module_is_served_with_all_it_imports(name):
    answer = fetch(name)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    for imported in IMPORT.findall(answer.body.decode()):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))
        assert path in modules._modules()


@pytest.mark.parametrize(
    "path", ["modules.py", "desk/__init__.py", "desk/desk.css", "../app.py", "desk", ""]
)
def test_nothing_else_is_served(path):
    assert fetch(path).status_code == 404


def test_there_is_no_more_javascript_than_has_to_be():
    assert sum(text.count(b"\n") for text in modules._modules().values()) <= 1900
