"""Small files that a workspace keeps for reviewing, beside the database.

review.json             {"overlap": 0.1}: the share of instances that two people are asked about
selections/<key>.json   {"ids": [...]}: instances to review, under a key that an address may carry
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from core.errors import PlainError
from core.store import files
from core.store.permissions import make_private_folder
from core.store.stored_files import StoredFiles

_KEY = re.compile(r"[0-9a-f]{16}")


def read_overlap(folder: Path) -> float:
    """Return which share of the instances two people are asked about."""
    path = folder / "review.json"
    return float(files.read_json(path).get("overlap", 0.0)) if path.exists() else 0.0


def write_overlap(folder: Path, share: float) -> None:
    """Have two people asked about a share of the instances, from now on."""
    files.write_json(folder / "review.json", {"overlap": min(max(share, 0.0), 1.0)})


def write_selection(folder: Path, ids: Sequence[str]) -> str:
    """Keep a list of instances and return its key; the same list has the same key."""
    key = hashlib.sha256("\0".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    make_private_folder(folder / "selections")
    path = folder / "selections" / f"{key}.json"
    if not path.exists():
        files.write_json(path, {"ids": list(ids)})
    return key


def read_selection(stored: StoredFiles, key: str) -> list[str]:
    """Return the instances kept under a key, here or on another server.

    Raises
    ------
    PlainError
        There is no such list.
    """
    path = stored.fetch_file("selections", f"{key}.json") if _KEY.fullmatch(key) else None
    if path is None:
        hint = "Select instances in Explore again."
        raise PlainError("This selection is gone.", key[:40], hint)
    return list(files.read_json(path)["ids"])
