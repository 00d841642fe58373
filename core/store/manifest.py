"""How a full backup lies on the disk.

    objects/<2 hex>/<sha256>      every content once, however many files and backups have it
    manifests/<time>-<hex>.json   one backup: the files of the workspace, their sizes and checksums

A manifest carries the beginning of its own checksum in its name. It may come from anywhere, so its
paths are checked: none leads out of the workspace.
"""

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core.errors import StoreError
from core.store.files import replacing

DATABASE = "plain.db"
"""The name of the database in every backup, wherever it was."""

_BLOCK = 1 << 20
_OWN_CHECKSUM = 16  # characters


def _check_inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\\" in path or ":" in path:
        raise ValueError("the path leads out of the workspace")
    return path


class FileEntry(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, AfterValidator(_check_inside)]
    size: int
    mtime_ns: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """One backup; `started` is in nanoseconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    started: int
    files: list[FileEntry]

    @property
    def n_bytes(self) -> int:
        return sum(one.size for one in self.files)


def manifests(folder: Path) -> list[Path]:
    """Return the backups in a folder, the newest first."""
    return sorted((folder / "manifests").glob("*.json"), reverse=True)


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Make what was copied a backup."""
    content = manifest.model_dump_json().encode()
    stamp = datetime.fromtimestamp(manifest.started / 1e9, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    path = folder / "manifests" / f"{stamp}-{_own_checksum(content)}.json"
    with replacing(path) as file:
        file.write(content)
    return path


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; refuse one that is not what was written."""
    try:
        content = path.read_bytes()
        manifest = Manifest.model_validate_json(content)
    except (OSError, ValidationError) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from error
    if not path.stem.endswith(_own_checksum(content)):
        raise _unreadable(path, "its content was changed")
    return manifest


def object_path(folder: Path, sha256: str) -> Path:
    """Return where a backup folder keeps a content."""
    return folder / "objects" / sha256[:2] / sha256


def copy_blocks(source: IO[bytes], target: IO[bytes]) -> tuple[int, str]:
    """Copy to the disk; return the size and the checksum of what was copied."""
    digest, size = hashlib.sha256(), 0
    while block := source.read(_BLOCK):
        digest.update(block)
        size += target.write(block)
    target.flush()
    os.fsync(target.fileno())
    return size, digest.hexdigest()


def checksum(path: Path) -> str | None:
    """Return the SHA-256 of a file; none where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _own_checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_OWN_CHECKSUM]


def _unreadable(path: Path, why: str) -> StoreError:
    hint = "Choose an older one from the same folder."
    return StoreError("This manifest of a backup is damaged.", f"{path}: {why}.", hint)
