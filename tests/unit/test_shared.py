"""A costly value is made once for all who ask at a time, and nobody queues up behind it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from plain_app.services import shared
from plain_app.services.shared import Shared

PATIENCE = 120  # seconds: the machine may be busy


@pytest.fixture(autouse=True)
def always_due(monkeypatch):
    """A value is due as soon as it is made, and waited for, unless a test says otherwise."""
    monkeypatch.setattr(shared, "RENEW_SECONDS", 0.0)
    monkeypatch.setattr(shared, "RENEW_AFTER", 0.0)
    monkeypatch.setattr(shared, "PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(shared, "MAX_SECONDS", 10 * PATIENCE)


class Maker:
    """Makes 1, 2, 3 …; every value only after `go` was set."""

    def __init__(self) -> None:
        self.count, self.go, self.begun = 0, threading.Event(), threading.Event()
        self.shared = Shared(self.make, ThreadPoolExecutor(1))

    def make(self) -> int:
        self.begun.set()
        assert self.go.wait(PATIENCE)
        self.count += 1
        return self.count


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def threads():
    with ThreadPoolExecutor(12) as pool:
        yield pool


def test_the_first_value_is_made_once_for_all_who_wait(maker, threads, monkeypatch):
    monkeypatch.setattr(shared, "RENEW_SECONDS", 10 * PATIENCE)
    asked = [threads.submit(maker.shared.get) for _ in range(10)]
    assert maker.begun.wait(PATIENCE)
    maker.go.set()
    assert {one.result(PATIENCE) for one in asked} == {1}
    assert maker.shared.get() == 1
    assert maker.count == 1


def test_while_the_next_is_made_others_get_the_last(maker, threads, monkeypatch):
    maker.go.set()
    assert maker.shared.get() == 1
    monkeypatch.setattr(shared, "PATIENCE_SECONDS", 0.01)
    maker.go.clear()
    assert maker.shared.get() == 1
    monkeypatch.setattr(shared, "PATIENCE_SECONDS", PATIENCE)
    assert [maker.shared.get() for _ in range(5)] == [1] * 5  # nobody else waits for it
    maker.go.set()
    assert maker.shared.newest() > 1
    assert maker.shared.get() > 2  # who has it made, does


def test_what_takes_long_to_make_is_kept_longer(maker, monkeypatch):
    maker.go.set()
    assert maker.shared.get() == 1
    monkeypatch.setattr(shared, "RENEW_AFTER", 1e9)
    assert maker.shared.get() == 1
    monkeypatch.setattr(shared, "RENEW_AFTER", 0.0)
    assert maker.shared.get() == 2


def test_a_value_that_is_too_old_is_waited_for(maker, threads, monkeypatch):
    maker.go.set()
    assert maker.shared.get() == 1
    monkeypatch.setattr(shared, "MAX_SECONDS", 0.0)
    maker.go.clear()
    asked = [threads.submit(maker.shared.get) for _ in range(5)]
    assert not any(one.done() for one in asked)
    maker.go.set()
    assert 1 not in {one.result(PATIENCE) for one in asked}


def test_the_newest_is_made_after_it_was_asked_for(maker, monkeypatch):
    monkeypatch.setattr(shared, "RENEW_SECONDS", 10 * PATIENCE)
    maker.go.set()
    assert [maker.shared.newest() for _ in range(3)] == [1, 2, 3]
    assert maker.shared.get() == 3


def test_a_failure_is_told_and_the_next_who_asks_tries_again():
    values = iter([ZeroDivisionError, 7])

    def make() -> int:
        value = next(values)
        if isinstance(value, int):
            return value
        raise value

    found = Shared(make, ThreadPoolExecutor(1))
    with pytest.raises(ZeroDivisionError):
        found.get()
    assert found.get() == 7
