"""Encoders for the Data view: what a column can get, what it costs, and having it done.

The models run in a process of their own: this server never loads torch.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from core.encoders import Planned, plan
from core.encoders.child import Progress, store_encoded
from core.encoders.choosing import Offer, offers
from core.formats import ColumnMapping, ReadResult
from plain_app.services.data import Staged
from plain_app.services.workspace import workspace


def columns(result: ReadResult, steps: list[Planned]) -> dict[str, list[Offer]]:
    """Return the columns of texts and pictures, each with what it can be encoded by."""
    mapping, display = result.mapping, result.dataset.display
    if mapping is None or display is None:
        return {}
    named = (mapping.text, mapping.image)
    shown = [name for name in named if name is not None and name in display.columns]
    found = {one.column: offers(one.kind) for one in steps}
    for name in shown:
        found.setdefault(name, offers("picture" if name == mapping.image else "text"))
    return found


def planned(result: ReadResult, choices: Mapping[str, str]) -> list[Planned]:
    """Return which columns would be encoded by what."""
    return plan(result, choices)


def store(
    staged: Staged,
    stated: ColumnMapping | None,
    steps: list[Planned],
    left_out: list[str],
    progress: Progress,
) -> str:
    """Read, encode and store a staged file; return its fingerprint.

    Names in an upload lead nowhere but into the upload itself, if that is a zip file.
    """
    path = Path(staged.path)
    is_upload = path.parent == workspace().folder / "incoming"
    chosen = {one.column: one.offer.name for one in steps} | dict.fromkeys(left_out, "none")
    return store_encoded(
        path,
        staged.name,
        "" if stated is None else stated.model_dump_json(exclude_unset=True),
        chosen,
        None if is_upload and not zipfile.is_zipfile(path) else path,
        workspace().folder,
        progress,
    )
