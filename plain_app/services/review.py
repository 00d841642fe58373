"""What the Review view and the browser's review desk ask: questions, decisions, what they settle.

Selections are lists of instances that another page hands to Review; their key goes into the
address, so a reload or a second tab opens the same.
"""

import hashlib
import re
from collections.abc import Sequence

from core.errors import PlainError
from core.store import files
from plain_app.services.workspace import workspace

_KEY = re.compile(r"[0-9a-f]{16}")


def open_selection(ids: Sequence[str]) -> str:
    """Keep a list of instances in the workspace; link to Review with `?selection=<the key>`."""
    key = hashlib.sha256("\0".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    folder = workspace().folder / "selections"
    folder.mkdir(exist_ok=True)
    if not (folder / f"{key}.json").exists():
        files.write_json(folder / f"{key}.json", {"ids": list(ids)})
    return key


def selection(key: str) -> list[str]:
    """Return the instances kept under a key."""
    path = workspace().folder / "selections" / f"{key}.json"
    if not _KEY.fullmatch(key) or not path.exists():
        hint = "Select instances in Explore again."
        raise PlainError("This selection is gone.", key[:40], hint)
    return list(files.read_json(path)["ids"])
