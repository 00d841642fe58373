"""What the review desk in the browser asks of the server, without a browser."""

import pytest

from core.errors import PlainError
from plain_app.services import review


@pytest.fixture
def space(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "space"))
    return review.workspace()


def test_a_selection_is_found_again_under_its_key(space):
    key = review.open_selection(["b", "a", "strange ☃"])
    assert review.selection(key) == ["b", "a", "strange ☃"]
    assert review.open_selection(["b", "a", "strange ☃"]) == key


@pytest.mark.parametrize("key", ["0" * 16, "../plain", "", "x"])
def test_an_unknown_selection_is_refused(space, key):
    with pytest.raises(PlainError, match="gone"):
        review.selection(key)
