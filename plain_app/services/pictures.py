"""Pictures of stored data sets, as data URIs of JPEGs that were made when they were loaded."""

import base64
from contextlib import suppress
from typing import Any

import numpy.typing as npt
import streamlit as st

from core.encoders.thumbnails import LARGE, NO_PICTURE, SMALL, Thumbnails, picture_file
from core.errors import StoreError
from plain_app.services.workspace import workspace


def picture_columns(fingerprint: str) -> list[str]:
    """Return the columns of a data set whose pictures are kept."""
    return list(_rows(str(workspace().folder), fingerprint))


def thumbnail(fingerprint: str, column: str, row: int) -> str | None:
    """Return a small picture (320 pixels) of an instance, if there is one."""
    return _uri(fingerprint, column, row, SMALL)


def full_picture(fingerprint: str, column: str, row: int, cell: Any) -> str | None:
    """Return the picture of an instance to look at closely: its file, or the large one kept.

    `cell` names the file, as the data has it; what is read must be what was loaded.
    """
    close = Thumbnails(workspace().folder).close_view(fingerprint, column, row, cell)
    return _uri(fingerprint, column, row, LARGE) if close is None else _data_uri(close)


def _uri(fingerprint: str, column: str, row: int, side: int) -> str | None:
    keys = _rows(str(workspace().folder), fingerprint).get(column)
    if keys is None or not 0 <= row < len(keys):
        return None
    content = _jpeg(keys[row].tobytes(), side)
    return None if content is None else _data_uri(content)


def _data_uri(jpeg: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


def _jpeg(key: bytes, side: int) -> bytes | None:
    """Return a view of a picture, from object storage where another server made it."""
    content = Thumbnails(workspace().folder).jpeg(key, side)
    if content is None and key != NO_PICTURE:
        with suppress(StoreError, OSError):  # it may come later
            found = workspace().stored.fetch_file(*picture_file(key, side))
            return None if found is None else found.read_bytes()
    return content


@st.cache_resource(max_entries=8, show_spinner=False)
def _rows(folder: str, fingerprint: str) -> dict[str, npt.NDArray[Any]]:
    return Thumbnails(workspace().folder).rows(fingerprint)
