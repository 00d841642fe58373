"""Loads and computes what pages not opened yet need, when the server is idle."""

import gc
import pkgutil
import threading
from contextlib import suppress
from importlib import import_module

from core.errors import PlainError

IDLE_DELAY = 1.5
"""From a whole screen; by then a person reads."""

MAX_CELLS = 2_000_000
"""Of a data set: for larger ones memory is not spent on pages that may never be opened."""

is_served = False
"""Set by the launcher: a page drawn elsewhere, as in a test, is never idle."""

_lock = threading.Lock()
_is_loaded = False
_wanted = set[str]()
_known = set[str]()


def request(run_id: str) -> None:
    """Have an ended run's pages prepared when the server is idle, if they are not yet."""
    with _lock:
        if run_id not in _known:
            _known.add(run_id)
            _wanted.add(run_id)


def preload_when_idle() -> None:
    """Get ready when the screen is there; does nothing if there is nothing to do."""
    global _is_loaded
    with _lock:
        if not is_served or (_is_loaded and not _wanted):
            return
        _is_loaded = True
        wanted = sorted(_wanted)
        _wanted.clear()
    timer = threading.Timer(IDLE_DELAY, preload, (wanted,))
    timer.daemon = True
    timer.start()


def preload(run_ids: list[str]) -> None:
    """Load the code of all pages and formats, and what the pages of runs begin with."""
    if not gc.get_freeze_count():
        _load_code()
    for run_id in run_ids:
        with suppress(PlainError):  # the page that needs it says so
            _prepare(run_id)


def _load_code() -> None:
    """Load all modules, and have the garbage collector look at none of them any more.

    Each time it looks at everything, 200,000 objects of modules took it .11 s, in which no thread
    works.
    """
    for package in ("plain_app.views", "plain_app.services"):
        for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            import_module(found.name)
    import_module("core.formats").writable()
    gc.collect()
    gc.freeze()


def _prepare(run_id: str) -> None:
    from core.review import Threshold
    from plain_app.services import explore, export, lens, review

    if explore.explored(run_id).dataset.candidates.size <= MAX_CELLS:
        review.progress(run_id)
        export.outcome(run_id, Threshold(), False)
        at = lens.lens_data(run_id)
        lens.see(at, {})
        moves = (one.name for one in lens.panel(at, {}) if not one.is_disabled)
        lens.sweep(at, {}, next(moves), 0)
        review.current_state(run_id).reviewer.beside_others()  # for most likely false: seconds
