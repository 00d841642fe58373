"""What was encoded before, by content: a picture or text is never encoded twice.

One folder per encoder in the workspace's `encodings`, with parts of some hundred items each: keys
(SHA-256 of the content) and values. A part counts once its keys are there, and both are written
whole or not at all, so a killed encoding goes on after its last part.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.errors import StoreError
from core.store import files
from core.store.permissions import make_private_folder

Values = npt.NDArray[np.float32]


class EncodingCache:
    """Rows of features by the SHA-256 of what they were made of; without a folder, none are kept.

    Damaged parts are passed over: what was in them is encoded again.
    """

    def __init__(self, folder: Path | None, name: str, n_features: int) -> None:
        self._folder = None if folder is None else folder / name
        self._width = n_features
        self._rows: dict[bytes, tuple[Values, int]] = {}
        for path in sorted(self._folder.glob("*.keys.npy")) if self._folder else ():
            self._take(path)

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: bytes) -> Values:
        """Return the features of this content; KeyError where there are none."""
        values, at = self._rows[key]
        row: Values = values[at]
        return row

    def add(self, keys: list[bytes], values: Values) -> None:
        """Keep new rows, on the disk before this returns."""
        values = np.ascontiguousarray(values, np.float32)
        if self._folder is not None:
            with files.disk_errors(self._folder):
                make_private_folder(self._folder)
            name = keys[0].hex()[:32]
            table = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -1)
            files.write_array(self._folder / f"{name}.values.npy", values)
            files.write_array(self._folder / f"{name}.keys.npy", table)
        self._rows |= {key: (values, at) for at, key in enumerate(keys)}

    def _take(self, path: Path) -> None:
        try:
            keys = files.read_array(path)
            values = files.read_array(
                path.with_name(path.name.replace(".keys.", ".values.")), mmap=True
            )
        except StoreError:
            return
        fits = values.shape == (len(keys), self._width) and values.dtype == np.float32
        if fits and keys.dtype == np.uint8 and keys.shape[1:] == (32,):
            self._rows |= {key.tobytes(): (values, at) for at, key in enumerate(keys)}
