"""Pictures and texts become features: dense float32, batch by batch, kept by content.

`plan` says which encoder each column would get and what that costs; `encode` does it. An encoder
is one of ours by name (`efficientnet`, `words`, `minilm`, `words+minilm`), an `.onnx` file, or a
model's folder. Nothing is fetched, nothing is unpickled; importing this loads no torch.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import NO_FEATURE, CandidateDataset, no_features
from core.encoders.cache import EncodingCache
from core.encoders.choosing import BOTH, MINILM, WORDS, Kind, Offer, default_name, load, offer
from core.encoders.encoding import Broken, encode_pictures, encode_texts
from core.encoders.pictures import BrokenPicture, NoPictures, check_header, content_of, source_of
from core.encoders.thumbnails import Thumbnails
from core.errors import DatasetError, PlainError, Problem
from core.formats.shared.limits import check_size
from core.formats.shared.mapping import ReadResult
from core.formats.shared.profiles import PICTURE
from core.formats.shared.tabular import NO_FEATURES

__all__ = [
    "Broken",
    "Encoded",
    "Planned",
    "absent_pictures",
    "broken_problems",
    "changes_features",
    "encode",
    "missing_pictures",
    "plan",
]

NONE = "none"
SAMPLE = 50  # cells that tell what a column holds
LISTED = 10  # broken pictures named in a finding; the rest are counted

Progress = Callable[[str, int, int], None]
"""Called with a column, how many of its cells are done, of how many."""

Values = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Planned:
    """One column and the encoder it gets."""

    column: str
    kind: Kind
    offer: Offer
    n: int

    @property
    def seconds(self) -> float | None:
        """About how long it takes on two cores, if nothing was encoded before."""
        rate = self.offer.per_second
        return None if rate is None else self.n / rate

    @property
    def sentence(self) -> str:
        """What is done and what it costs, for a person."""
        width = self.offer.n_features
        features = "" if width is None else f", {width:,} features each"
        cost = "" if self.seconds is None else f", about {shown_time(self.seconds)} on two cores"
        return f"{self.n:,} {self.kind}s by {self.offer.name}{features}{cost}"


@dataclass(frozen=True)
class Encoded:
    """What was read, with features; broken pictures and the keys of the others by column."""

    result: ReadResult
    broken: dict[str, tuple[Broken, ...]]
    keys: dict[str, tuple[bytes, ...]]


def plan(result: ReadResult, choices: Mapping[str, str] | None = None) -> list[Planned]:
    """Return which columns are encoded by what: as chosen, as the mapping says, else by default.

    Without a word about it, pictures are encoded where the file has no numbers and they came with
    it, and texts that are features anyway get the best encoder that is installed. `none` leaves a
    column out.

    Raises
    ------
    PlainError
        A column or encoder is not there, or the two do not fit.
    """
    stated = {} if result.mapping is None else result.mapping.encode
    stated = {**stated, **(choices or {})}
    chosen = {**_defaults(result, without=stated), **stated}
    shown = _display_columns(result.dataset)
    missing = [column for column in chosen if column not in shown]
    if missing:
        hint = f"Texts and pictures here: {', '.join(shown) or 'none'}."
        raise PlainError("There is no such column to encode.", ", ".join(missing), hint)
    n = result.dataset.n_instances
    kinds = {column: _kind_of(result, column) for column in chosen}
    return [
        Planned(column, kinds[column], offer(name, kinds[column]), n)
        for column, name in chosen.items()
        if name != NONE
    ]


def encode(
    result: ReadResult,
    planned: Sequence[Planned],
    *,
    data: Path | None = None,
    workspace: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Encoded:
    """Return what was read with the features of these columns, several beside each other.

    Parameters
    ----------
    data : the file, folder or zip file that names of pictures are beside; none for an upload alone
    workspace : where encodings and small pictures are kept; without one, nothing is

    Raises
    ------
    DatasetError
        No picture of a column can be used.
    """
    dataset = result.dataset
    if not changes_features(result, planned):
        return Encoded(_with_encoders(result, planned, dataset), {}, {})
    if not planned:
        return Encoded(_without_features(result), {}, {})
    blocks, names = _own_features(result)
    broken: dict[str, tuple[Broken, ...]] = {}
    keys: dict[str, tuple[bytes, ...]] = {}
    for one in planned:
        cells = dataset.display[one.column].tolist()  # type: ignore[index]
        report = _for_column(progress, one.column)
        if one.kind == "text":
            texts = ["" if _is_blank(cell) else str(cell) for cell in cells]
            block = _text_block(texts, one, workspace, report)
        else:
            rows = _picture_rows(cells, one, data, workspace, report)
            block, broken[one.column], keys[one.column] = rows.features, rows.broken, rows.keys
        blocks.append(block)
        names += [f"{one.column}:{at}" for at in range(block.shape[1])]
    made = replace(dataset, features=_beside(blocks), feature_names=names)
    result = _with_encoders(result, planned, made)
    found = [one for pair in broken.items() for one in broken_problems(*pair, dataset)]
    return Encoded(replace(result, problems=(*result.problems, *found)), broken, keys)


def changes_features(result: ReadResult, planned: Sequence[Planned]) -> bool:
    """Whether the features are not yet what was chosen: own numbers, or the words of one text."""
    mapping = result.mapping
    if mapping is None or mapping.feature_layout not in ("text", "encoded"):
        return bool(planned)
    words = [(column, WORDS) for column in mapping.features]
    return not words or [(one.column, one.offer.name) for one in planned] != words


def missing_pictures(
    result: ReadResult, planned: Sequence[Planned], data: Path | None
) -> dict[str, tuple[Broken, ...]]:
    """Return which pictures are missing, or broken as far as their first bytes show."""
    source, found = source_of(data), dict[str, tuple[Broken, ...]]()
    for one in planned:
        broken = []
        pictures = one.kind == "picture" and result.dataset.display is not None
        for row, cell in enumerate(result.dataset.display[one.column] if pictures else ()):  # type: ignore[index]
            try:
                check_header(content_of(cell, source))
            except BrokenPicture as why:
                broken.append(Broken(row, str(cell)[:80], str(why)))
        if pictures:
            found[one.column] = tuple(broken)
    return found


def shown_time(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def absent_pictures(result: ReadResult, planned: Sequence[Planned]) -> list[Problem]:
    """Return what is said about pictures none of which came with the file, if nobody asks for them.

    Otherwise `encode` says it.
    """
    column = _pictures_to_encode(result)
    is_asked = any(one.column == column for one in planned)
    reasons = [] if column is None or is_asked else _why_absent(result.dataset, column)
    if not reasons:
        return []
    assert result.dataset.display is not None
    names = [str(cell)[:60] for cell in result.dataset.display[column].head(3)]
    rule = f"no picture that {column!r} names can be used: {Counter(reasons).most_common(1)[0][0]}"
    fix = "Put the pictures beside the table, or pack both into one zip file; until then they are "
    return [Problem(rule, fix + "not used as features.", column=column, value=", ".join(names))]


def _defaults(result: ReadResult, without: Mapping[str, str]) -> dict[str, str]:
    mapping = result.mapping
    if mapping is None or mapping.feature_layout not in ("text", "encoded"):
        return {}
    found: dict[str, str | None] = {}
    if mapping.feature_layout == "text":
        found |= dict.fromkeys(mapping.features, default_name("text"))
    pictures = _pictures_to_encode(result)
    if pictures is not None and pictures not in without:
        is_here = not _why_absent(result.dataset, pictures)
        found |= {pictures: default_name("picture")} if is_here else {}
    return {column: name for column, name in found.items() if name is not None}


def _pictures_to_encode(result: ReadResult) -> str | None:
    """Return the column of pictures of a file without numbers."""
    mapping = result.mapping
    if mapping is None or mapping.feature_layout not in ("text", "encoded"):
        return None
    is_one = mapping.image is not None and _holds_pictures(result.dataset, mapping.image)
    return mapping.image if is_one else None


def _why_absent(dataset: CandidateDataset, column: str) -> list[str]:
    """Return why the first cells lead to no file; nothing where one does, or nobody can tell."""
    if dataset.original is None or dataset.display is None:
        return []
    path, reasons = dataset.original.path, list[str]()
    source = source_of(path) if path.exists() else NoPictures()
    for cell in dataset.display[column].head(SAMPLE):
        try:
            content_of(cell, source)
        except BrokenPicture as why:
            reasons.append(str(why))
        else:
            return []
    return reasons


def _without_features(result: ReadResult) -> ReadResult:
    """Return what was read without features: nothing was chosen to make them of."""
    dataset = result.dataset
    made = replace(dataset, features=no_features(dataset.n_instances), feature_names=(NO_FEATURE,))
    assert result.mapping is not None
    names = [*result.mapping.features, result.mapping.image]
    left_out = {name: NONE for name in names if name is not None}
    mapping = result.mapping.model_copy(update={"encode": left_out})
    if made.original is not None:
        made = made.read_from(replace(made.original, mapping=mapping))
    return replace(result, dataset=made, mapping=mapping, problems=(*result.problems, NO_FEATURES))


def _display_columns(dataset: CandidateDataset) -> list[str]:
    return [] if dataset.display is None else [str(name) for name in dataset.display.columns]


def _kind_of(result: ReadResult, column: str) -> Kind:
    is_stated = result.mapping is not None and result.mapping.image == column
    return "picture" if is_stated or _holds_pictures(result.dataset, column) else "text"


def _holds_pictures(dataset: CandidateDataset, column: str) -> bool:
    cells = [] if dataset.display is None else dataset.display[column].head(SAMPLE).tolist()
    cells = [cell for cell in cells if not _is_blank(cell)]
    return bool(cells) and all(
        isinstance(cell, bytes | dict) or PICTURE.search(str(cell)) is not None for cell in cells
    )


def _is_blank(cell: Any) -> bool:
    return (
        cell is None
        or (isinstance(cell, float) and cell != cell)
        or (isinstance(cell, str) and not cell)
    )


def _own_features(result: ReadResult) -> tuple[list[Any], list[str]]:
    """Return the numbers of the file, which stay; its words are encoded anew."""
    layout = "columns" if result.mapping is None else result.mapping.feature_layout
    if layout in ("text", "encoded"):
        return [], []
    return [result.dataset.features], list(result.dataset.feature_names)


def _text_block(
    texts: Sequence[str], one: Planned, workspace: Path | None, report: Callable[[int, int], None]
) -> Values:
    from core.encoders.texts import word_topics

    name = one.offer.name
    parts = [word_topics(texts, one.column)] if name in (WORDS, BOTH) else []
    if name != WORDS:
        encoder = load(MINILM if name == BOTH else name, "text")
        cache = EncodingCache(_kept_in(workspace), encoder.name, encoder.n_features)
        parts.append(encode_texts(texts, encoder, cache, report))
    return np.hstack(parts)


def _picture_rows(
    cells: Sequence[Any],
    one: Planned,
    data: Path | None,
    workspace: Path | None,
    report: Callable[[int, int], None],
) -> Any:
    encoder = load(one.offer.name, "picture")
    check_size(4 * len(cells) * encoder.n_features, "the features")
    cache = EncodingCache(_kept_in(workspace), encoder.name, encoder.n_features)
    small = None if workspace is None else Thumbnails(workspace)
    rows = encode_pictures(cells, source_of(data), encoder, cache, report, small)
    if len(rows.broken) == len(cells):
        reasons = Counter(broken.reason for broken in rows.broken).most_common(5)
        fix = "Put the pictures beside the table, or pack both into one zip file; or leave the "
        fix += f"column out: not used as features (--encode {one.column}=none)."
        found = "; ".join(f"{reason}: {count:,}" for reason, count in reasons)
        rule = "at least one picture must be usable"
        raise DatasetError([Problem(rule, fix, True, column=one.column, value=found)])
    return rows


def _kept_in(workspace: Path | None) -> Path | None:
    return None if workspace is None else workspace / "encodings"


def _beside(blocks: Sequence[Any]) -> Any:
    """Return blocks of features as one, dense unless the file's own are sparse."""
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks]))
    check_size(4 * sum(block.size for block in blocks), "the features")
    return np.hstack(blocks) if len(blocks) > 1 else blocks[0]


def _with_encoders(
    result: ReadResult, planned: Sequence[Planned], dataset: CandidateDataset
) -> ReadResult:
    """Return the result with this data set, its mapping saying what was encoded how."""
    if result.mapping is None:
        return replace(result, dataset=dataset)
    used = {one.column: one.offer.name for one in planned}
    if used == result.mapping.encode:
        return replace(result, dataset=dataset)
    reasons = result.mapping.reasons | {f"encode {one.column}": one.sentence for one in planned}
    mapping = result.mapping.model_copy(update={"encode": used, "reasons": reasons})
    if dataset.original is not None:
        dataset = dataset.read_from(replace(dataset.original, mapping=mapping))
    return replace(result, dataset=dataset, mapping=mapping)


def broken_problems(
    column: str, broken: Sequence[Broken], dataset: CandidateDataset
) -> list[Problem]:
    """Return what is said about broken pictures: a line per reason, a count and the first."""
    by_reason: dict[str, list[Broken]] = {}
    for one in broken:
        by_reason.setdefault(one.reason, []).append(one)
    fix = "Add or replace them; until then these instances have no features of their own."
    return [
        Problem(
            f"{len(found):,} of {dataset.n_instances:,} pictures cannot be used: {reason}",
            fix,
            column=column,
            value=", ".join(f"{dataset.ids[one.row]} ({one.cell})" for one in found[:LISTED])
            + (" …" if len(found) > LISTED else ""),
        )
        for reason, found in by_reason.items()
    ]


def _for_column(progress: Progress, column: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(column, done, total)
