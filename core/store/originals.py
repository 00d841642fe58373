"""The file a data set came from, kept beside its arrays so that exports can copy its columns.

`meta.json` names the copy and how it was understood, so both change in one step. A copy is named
by its content: who opened the data before the same file was loaded again still finds it.
"""

from contextlib import suppress
from pathlib import Path
from time import time
from typing import Any

from core.failpoints import failpoint
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.original import Original
from core.store import files

PATTERN = "original-*.zst"
UNUSED_SECONDS = 24 * 3600


def write_original(folder: Path, original: Original) -> dict[str, Any]:
    """Copy the file, compressed, and return what `meta.json` says of it."""
    sha256 = original.digest()
    name = f"original-{sha256[:16]}.zst"
    with files.replacing(folder / name) as file:
        original.copy_to(Path(file.name))
    failpoint("dataset.original_written")
    return {
        "copy": name,
        "sha256": sha256,
        "name": original.name,
        "format": original.format,
        "mapping": original.mapping.model_dump(mode="json"),
    }


def read_original(folder: Path, about: dict[str, Any] | None) -> Original | None:
    """Return the file of a data set; none for other formats, or stored before copies were kept."""
    if about is None:
        return None
    path, mapping = folder / about["copy"], ColumnMapping(**about["mapping"])
    return Original(path, about["name"], about["format"], mapping, sha256=about["sha256"])


def remove_others(folder: Path, about: dict[str, Any] | None) -> None:
    """Remove copies that were replaced, or that a killed process left, when nobody uses them."""
    for path in folder.glob(PATTERN):
        with suppress(OSError):
            is_old = time() - path.stat().st_mtime > UNUSED_SECONDS
            if is_old and (about is None or path.name != about["copy"]):
                path.unlink()
