"""Cells become rows of features, batch by batch: with progress, and never twice.

Every item is known by the SHA-256 of its content. What the cache has is taken from there; the rest
is encoded in batches and kept in parts, so that a killed encoding loses the last part at most. The
same items then make up the same batches: the features are those of an encoding in one go.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from core.encoders.cache import EncodingCache
from core.encoders.choosing import Encoder
from core.encoders.pictures import BrokenPicture, PictureSource, content_of, opened
from core.encoders.thumbnails import NO_PICTURE, Thumbnails

PART = 128  # items that a kill can cost: about 4 seconds of pictures, 1 of texts
READERS = 2  # threads that read and decode: Pillow lets go of the interpreter

Progress = Callable[[int, int], None]
"""Called with how many cells are done, of how many."""


@dataclass(frozen=True)
class Broken:
    """A cell whose picture cannot be used, and why."""

    row: int
    cell: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """The features of a column; rows without a picture have the mean of the others.

    That is zero once standardised: nothing for the network to go by, and no neighbours.
    """

    features: npt.NDArray[np.float32]
    broken: tuple[Broken, ...]
    keys: tuple[bytes, ...]  # SHA-256 of each picture, zeros where there is none


@dataclass
class _Item:
    row: int
    key: bytes
    value: Any = None  # a text, or a decoded picture
    reason: str | None = None


def encode_texts(
    texts: Sequence[str], encoder: Encoder, cache: EncodingCache, progress: Progress
) -> npt.NDArray[np.float32]:
    """Return one row of features per text."""
    items = (
        _Item(row, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), text)
        for row, text in enumerate(texts)
    )
    return _encode(items, len(texts), encoder, cache, progress).features


def encode_pictures(
    cells: Sequence[Any],
    source: PictureSource,
    encoder: Encoder,
    cache: EncodingCache,
    progress: Progress,
    thumbnails: Thumbnails | None = None,
) -> Rows:
    """Return one row of features per picture, and which could not be used."""

    def prepared(at: tuple[int, Any]) -> _Item:
        row, cell = at
        try:
            content = content_of(cell, source)
            key = hashlib.sha256(content).digest()
            is_seen = thumbnails is None or thumbnails.has(key)
            picture = None if key in cache and is_seen else opened(content)
        except BrokenPicture as broken:
            return _Item(row, NO_PICTURE, reason=str(broken))
        if picture is not None and thumbnails is not None and not is_seen:
            thumbnails.add(key, picture)
        return _Item(row, key, picture)

    with ThreadPoolExecutor(READERS) as readers:
        # Some at a time: all at once would hold every decoded picture.
        numbered = enumerate(cells)
        parts = iter(lambda: list(islice(numbered, PART)), [])
        ahead = _one_ahead(readers.map(prepared, part) for part in parts)
        items = (item for part in ahead for item in part)
        rows = _encode(items, len(cells), encoder, cache, progress)
    broken = tuple(Broken(one.row, str(cells[one.row])[:80], one.reason) for one in rows.broken)
    return Rows(rows.features, broken, rows.keys)


def _encode(
    items: Iterable[_Item], n: int, encoder: Encoder, cache: EncodingCache, progress: Progress
) -> Rows:
    keys: list[bytes] = [NO_PICTURE] * n
    broken: list[Broken] = []
    waiting: dict[bytes, Any] = {}
    progress(0, n)
    for item in items:
        keys[item.row] = item.key
        if item.reason is not None:
            broken.append(Broken(item.row, "", item.reason))
        elif item.key not in cache:
            waiting.setdefault(item.key, item.value)
        if len(waiting) == PART or (waiting and item.row == n - 1):
            before = item.row + 1 - len(waiting)
            for n_encoded in _encoded(waiting, encoder, cache):
                progress(before + n_encoded, n)
            waiting = {}
        elif not waiting and item.row % PART == PART - 1:
            progress(item.row + 1, n)
    progress(n, n)
    return Rows(_gathered(keys, cache, encoder.n_features), tuple(broken), tuple(keys))


def _encoded(waiting: dict[bytes, Any], encoder: Encoder, cache: EncodingCache) -> Iterator[int]:
    """Encode what waits and keep it as one part; give how many are done after each batch."""
    found: list[npt.NDArray[np.float32]] = []
    values = iter(waiting.values())
    while batch := list(islice(values, encoder.batch)):
        found.append(encoder.encode(batch))
        yield sum(map(len, found))
    cache.add(list(waiting), np.concatenate(found))


def _gathered(keys: Sequence[bytes], cache: EncodingCache, width: int) -> npt.NDArray[np.float32]:
    features = np.empty((len(keys), width), np.float32)
    has_one = np.array([key != NO_PICTURE for key in keys], bool)
    for row in np.flatnonzero(has_one).tolist():
        features[row] = cache.get(keys[row])
    if has_one.any():
        features[~has_one] = features[has_one].mean(axis=0, dtype=np.float64)
    return features


def _one_ahead(parts: Iterator[Any]) -> Iterator[Any]:
    """Give parts while the next is being prepared by its threads."""
    before = next(parts, None)
    while before is not None:
        after = next(parts, None)
        yield before
        before = after
