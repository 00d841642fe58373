"""Moments as the clock of the person's browser shows them."""

from types import SimpleNamespace

import pytest

from plain_app.widgets import clock

STORED = "2026-07-01T22:30:05.123456+00:00"


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Europe/Berlin", "2026-07-02 00:30:05"),
        ("America/New_York", "2026-07-01 18:30:05"),
        (None, "2026-07-01 22:30:05"),
        ("Nowhere/At all", "2026-07-01 22:30:05"),
        ("../../etc/passwd", "2026-07-01 22:30:05"),
    ],
)
def test_a_stored_moment_is_shown_by_the_clock_of_the_browser(monkeypatch, zone, shown):
    monkeypatch.setattr(clock.st, "context", SimpleNamespace(timezone=zone), raising=False)
    assert clock.local_time(STORED) == shown
    assert clock.local_time(None) == ""
