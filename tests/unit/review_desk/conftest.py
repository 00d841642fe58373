"""A workspace with an ended run, and who reviews it."""

import pytest
from finished_run import finished_run

from plain_app.server import tokens
from plain_app.services import review


@pytest.fixture
def space(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "space"))
    return review.workspace()


@pytest.fixture
def claims(space, demo) -> tokens.Claims:
    return tokens.Claims(demo.fingerprint, finished_run(space, demo), "ann")
