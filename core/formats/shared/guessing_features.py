"""Which columns are features, texts and pictures: the half of guessing that is about instances."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.formats.shared.cells import parse_numbers, parse_word
from core.formats.shared.mapping import FEATURE_PREFIX
from core.formats.shared.profiles import Profile, Roles

LIST_NAMES = ("embedding", "embeddings", "features", "vector", "feature_vector", "x")
TEXT_NAMES = ("text", "sentence", "content", "body", "description", "review", "comment", "title")
IMAGE_NAMES = ("image", "image_path", "image_url", "img", "picture", "photo", "thumbnail", "url")
NARROW = 100  # columns; in wider ones a word may be missing from the first rows
FEW_NUMBERS = 10  # beside a text that was judged by several, they seldom say what it is about


def find_features(roles: Roles) -> None:
    if not roles.open("features"):
        _describe_features(roles)
        return
    listed = roles.named(LIST_NAMES, "numbers") or _only_list(roles)
    if listed is not None:
        reason = f"{listed.name!r} holds a list of numbers per row"
        roles.take("features", [listed.name], reason, feature_layout="list")
        return
    columns, reason = _feature_columns(roles)
    texts = _text_columns(roles)
    judged = (
        roles.fields.get("row") in ("view", "people") or roles.fields.get("layout") == "answers"
    )
    judged = judged or roles.fields.get("label_style") in ("count", "share", "percent", "votes")
    stated = bool(columns) and columns[0].startswith(FEATURE_PREFIX)
    if (texts or judged) and not stated:  # what is missing now and then is no feature beside them
        columns = tuple(name for name in columns if not _has_gaps(roles, name))
    if columns and not (judged and texts and len(columns) < FEW_NUMBERS and not stated):
        roles.take("features", columns, reason, feature_layout="columns")
        return
    if texts:  # stay free: a person wants to read them as well
        names = tuple(one.name for one in texts)
        shown = ", ".join(map(repr, names))
        roles.set("feature_layout", "text")
        roles.set("features", names, f"words of {shown} become TF-IDF")
    elif (pictures := _picture_column(roles)) is not None:
        roles.set("feature_layout", "encoded", f"no numbers; pictures of {pictures.name!r} encoded")


def _has_gaps(roles: Roles, name: str) -> bool:
    cells = roles.table.column(name)
    if pa.types.is_floating(cells.type):
        return bool(pc.any(pc.is_null(cells, nan_is_null=True)).as_py())
    is_text = pa.types.is_string(cells.type)
    return bool(cells.null_count or (is_text and pc.any(pc.equal(cells, "")).as_py()))


def _describe_features(roles: Roles) -> None:
    columns = [roles.profiles[name] for name in roles.fields["features"] if name in roles.profiles]
    kinds = {one.kind for one in columns}
    kind = next(iter(kinds)) if len(kinds) == 1 else "number"
    kind = "number" if kind == "numbers" and len(columns) > 1 else kind
    roles.set("feature_layout", {"text": "text", "numbers": "list"}.get(kind, "columns"))
    if roles.fields["feature_layout"] == "text":
        roles.free |= {one.name: one for one in columns}


def _feature_columns(roles: Roles) -> tuple[tuple[str, ...], str]:
    prefixed = roles.prefixed(FEATURE_PREFIX, "number", "binary")
    if prefixed:
        return prefixed, f"{len(prefixed)} columns begin with {FEATURE_PREFIX!r}"
    free = [
        one for one in roles.free.values() if not one.is_outcome and not _is_excluded(roles, one)
    ]
    if len(free) < NARROW:
        known = [one.name for one in free if one.kind in ("number", "binary")]
        constant = {name for name in known if roles.is_constant(name)}
        free = [one for one in free if one.name not in constant]
    columns = tuple(one.name for one in free if one.kind in ("number", "binary"))
    if columns:  # then also those of yes and no, which alone would keep a text from being read
        numbers = set(columns)
        columns = tuple(one.name for one in free if one.name in numbers or _holds_words(one))
    which = "1 other column holds" if len(columns) == 1 else f"{len(columns)} other columns hold"
    return columns, f"{which} numbers"


def _is_excluded(roles: Roles, one: Profile) -> bool:
    """Whether numbers name, count or date something, or differ between views of one item."""
    if one.kind not in ("number", "binary") or one.is_never_feature:
        return one.kind in ("number", "binary")
    repeats = roles.fields.get("row") == "view" or roles.fields.get("layout") == "long"
    if not repeats or roles.fields.get("id") is None:
        return False
    return roles.differs_between_views(one)


def _holds_words(one: Profile) -> bool:
    """Whether a column says true or false, or yes or no, and nothing else."""
    values = {parse_word(value) for value in one.values} if one.kind == "text" else set()
    return values == {0.0, 1.0}


def _text_column(roles: Roles) -> Profile | None:
    texts = [one for one in roles.free.values() if one.kind == "text" and not one.is_outcome]
    named = roles.named(TEXT_NAMES, "text")
    named = None if named is not None and named.is_picture else named
    wordy = [one for one in texts if one.is_wordy and not one.is_picture]
    wordy = [one for one in wordy if not one.is_never_feature]
    return named or max(wordy, key=lambda one: one.mean_length, default=None)


def _named_text(roles: Roles) -> Profile | None:
    """Return the column that is called a text; a title is one of several texts at best."""
    texts = [one for one in roles.free.values() if one.kind == "text"]
    texts = [one for one in texts if not roles.is_constant(one.name)]
    keys = {one.last_key: one for one in reversed(texts)}
    keys |= {one.key: one for one in reversed(texts)}
    return next((keys[name] for name in TEXT_NAMES if name in keys and name != "title"), None)


def _text_columns(roles: Roles) -> list[Profile]:
    """Return the column of that name; else those with texts, all parts of a pair; else tokens."""
    named = _named_text(roles)
    if named is not None:
        return [named]
    texts = [one for one in roles.free.values() if one.is_wordy and not one.is_outcome]
    texts = [one for one in texts if not one.is_picture and not roles.is_constant(one.name)]
    texts = [one for one in texts if not one.is_never_feature]  # dates, links
    id_column = roles.column_of("id")
    if not texts and id_column is not None and id_column.is_wordy:
        return [id_column]
    parents = [one.name.rpartition(".")[0] for one in texts]
    pairs = [one for one, parent in zip(texts, parents, strict=True) if parent == _pair_of(parents)]
    if pairs:
        return pairs
    found = _text_column(roles)
    tokens = [one for one in roles.free.values() if one.kind == "names" and not one.is_outcome]
    return texts or [one for one in (found, *tokens[:1]) if one is not None][:1]


def _pair_of(parents: Sequence[str]) -> str | None:
    """Return the nested object that has several texts, such as `text` of context and statement."""
    return next((one for one in parents if one and parents.count(one) > 1), None)


def find_shown(roles: Roles) -> None:
    text = roles.fields["features"][0] if roles.fields.get("feature_layout") == "text" else None
    found = _text_column(roles)
    if text is not None or found is not None:
        roles.set("text", text or (found.name if found else None), "the column with most words")
    image = _picture_column(roles) or roles.named(IMAGE_NAMES, "text")
    if image is not None:
        roles.set("image", image.name, "its values name pictures")
    id_column = roles.fields.get("id")
    if id_column in roles.profiles and roles.open("numeric_id"):
        values = roles.profiles[id_column].values
        roles.set("numeric_id", bool(values) and all(type(one) is int for one in values))


def _picture_column(roles: Roles) -> Profile | None:
    stated = roles.column_of("image")
    found = (one for one in roles.free.values() if one.is_picture)
    return stated or next(found, None)


def _only_list(roles: Roles) -> Profile | None:
    lists = [one for one in roles.free.values() if one.kind == "numbers"]
    found = [one for one in lists if not _are_places(one)]
    return found[0] if len(found) == 1 else None


def _are_places(one: Profile) -> bool:
    """Whether every list holds whole numbers that only rise: where something stands in a text."""
    try:
        rows = (parse_numbers(value, np.float64) for value in one.values)
        return all(len(row) > 1 and row[0] >= 0 and _is_rising(row) for row in rows)
    except ValueError:  # told when it is read
        return False


def _is_rising(row: npt.NDArray[np.floating[Any]]) -> bool:
    return not np.any(row % 1) and bool(np.all(np.diff(row) > 0))
