"""What the server does in the first quiet moment: loads what pages not opened yet need."""

import pkgutil
import threading
from importlib import import_module

QUIET_SECONDS = 1.5
"""From the first whole screen; by then a person reads."""

_lock = threading.Lock()
_is_asked = False


def get_ready_soon() -> None:
    """Get ready when the first screen is there; does nothing when asked again."""
    global _is_asked
    with _lock:
        if _is_asked:
            return
        _is_asked = True
    timer = threading.Timer(QUIET_SECONDS, get_ready)
    timer.daemon = True
    timer.start()


def get_ready() -> None:
    """Load the code of all pages."""
    for package in ("plain_app.components", "plain_app.services"):
        for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
            import_module(found.name)
