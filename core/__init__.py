"""The engine of PLAIN Studio: data, graphs, propagation, training. Never imports the front end.

Importing `core` loads nothing heavy: the public names are loaded when they are first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "CandidateDataset": "core.data.dataset",
    "PlainClassifier": "core.methods",
    "PlainConfig": "core.engine.config",
    "PlainTrainer": "core.engine.trainer",
    "Workspace": "core.store",
    "clean": "core.export",
    "read": "core.formats",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
