"""Object storage that all servers of a team see, named by `PLAIN_STORAGE_URL`.

s3://bucket/prefix       credentials, region and endpoint as usual: AWS_ACCESS_KEY_ID,
                         AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, ~/.aws
gs://…, abfss://…        likewise, as pyarrow documents it
file:///shared/folder    a folder on a disk that all of them mount

Names carry the checksum of their content, so an object never changes; one that was cut off has
another size and is written again.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from core.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

URL_VARIABLE = "PLAIN_STORAGE_URL"
_BLOCK = 16 << 20  # every block read from S3 is a request of its own


class ObjectStorage:
    """The objects below one address.

    Raises
    ------
    StoreError
        The address names no storage that is known.
    StoreUnavailable
        From every method: the storage cannot be reached, or refuses.
    """

    def __init__(self, url: str) -> None:
        self.place = url
        self._files, path = _open(url)
        self._base = path.rstrip("/")
        self._is_local = self._files.type_name == "local"

    @classmethod
    def from_environment(cls) -> "ObjectStorage | None":
        """Return the storage that PLAIN_STORAGE_URL names; none without it."""
        url = os.environ.get(URL_VARIABLE)
        return cls(url) if url else None

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the objects of a folder with their sizes."""
        from pyarrow.fs import FileSelector

        with self._storage_errors():
            found = self._files.get_file_info(
                FileSelector(f"{self._base}/{folder}", allow_not_found=True)
            )
        return {one.base_name: one.size for one in found if one.is_file}

    def put(self, source: Path, name: str) -> None:
        """Copy a file into the storage."""
        target = f"{self._base}/{name}"
        with self._storage_errors():
            if not self._is_local:  # an object is there when it is whole
                self._copy(source, target)
                return
            self._files.create_dir(target.rpartition("/")[0])
            temporary = f"{target}.{uuid4().hex[:8]}.tmp"
            self._copy(source, temporary)
            self._files.move(temporary, target)

    def blocks(self, name: str) -> Iterator[bytes]:
        """Read an object, block by block.

        Raises
        ------
        FileNotFoundError
            There is no such object.
        """
        with (
            self._storage_errors(may_be_missing=True),
            self._files.open_input_stream(f"{self._base}/{name}") as stream,
        ):
            while block := stream.read(_BLOCK):
                yield block

    def remove_file(self, name: str) -> None:
        """Remove an object, if it is there."""
        with self._storage_errors(), suppress(FileNotFoundError):
            self._files.delete_file(f"{self._base}/{name}")

    def remove(self, folder: str) -> None:
        """Remove all objects of a folder."""
        with self._storage_errors(), suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._base}/{folder}")

    def _copy(self, source: Path, target: str) -> None:
        with open(source, "rb") as file, self._files.open_output_stream(target) as stream:
            shutil.copyfileobj(file, stream, _BLOCK)

    @contextmanager
    def _storage_errors(self, may_be_missing: bool = False) -> Iterator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except (OSError, ArrowException) as error:
            if may_be_missing and isinstance(error, FileNotFoundError):
                raise
            why = f"{self.place}: {str(error).splitlines()[0][:300]}"
            hint = f"Check {URL_VARIABLE}, the credentials, and that its server runs."
            title = "The object storage cannot be used."
            raise StoreUnavailable(title, why, hint) from error


def _open(url: str) -> tuple["FileSystem", str]:
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, S3FileSystem

    parts = urlsplit(url)
    try:
        if parts.scheme != "s3":
            files, path = FileSystem.from_uri(url)
            return files, path
        if not parts.netloc:
            raise ValueError("it names no bucket")
        return S3FileSystem(**_s3_options()), f"{parts.netloc}{parts.path}"
    except (ArrowException, ValueError, TypeError) as error:
        rule = "Must read s3://bucket/prefix or file:///folder"
        hint = f"Correct {URL_VARIABLE}, or unset it to keep files in the workspace only."
        detail = f"{rule}; got {url!r}: {str(error).splitlines()[0]}."
        raise StoreError("This is no address of object storage.", detail, hint) from error


def _s3_options() -> dict[str, object]:
    """Return where the server is; credentials are found by the library itself."""
    names = ("AWS_REGION", "AWS_DEFAULT_REGION")
    region = next((os.environ[one] for one in names if os.environ.get(one)), None)
    options: dict[str, object] = {"allow_delayed_open": True, "connect_timeout": 5.0}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        parts = urlsplit(endpoint)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
        region = region or "us-east-1"  # what servers other than Amazon's go by
    return options | ({"region": region} if region else {})
