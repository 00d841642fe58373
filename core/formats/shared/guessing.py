"""Guess which column of a table plays which role, and say why.

Judges by names first, then by the first rows' values. Order matters: what a name says outright
(`label_sea`, `truth`, `embedding`) is settled before anything is inferred from values.
"""

from collections.abc import Callable

import pyarrow as pa

from core.formats.shared.guessing_features import find_features, find_shown
from core.formats.shared.guessing_flags import (
    flags_alone,
    flags_in_between,
    flags_of_one_ending,
    flags_of_some_rows,
    graded_views,
    prefixed_labels,
    shares_of_people,
    spelled_flags,
    style_of,
    ticked_columns,
    trailing_flags,
    uncertain_flags,
    yes_or_no_columns,
)
from core.formats.shared.guessing_long import (
    find_composite_ids,
    find_triples,
    long_labels,
    marked_regions,
)
from core.formats.shared.guessing_numbers import (
    families_of_numbers,
    graded_labels,
    graded_style,
    last_graded_labels,
    people_of_one_label,
    probabilities_of_one,
)
from core.formats.shared.guessing_pairs import labels_by_content
from core.formats.shared.guessing_sets import (
    class_numbers,
    list_of_names,
    named_set,
    names_that_repeat,
    only_column,
    other_named_set,
    set_like_text,
    unnamed_set,
    varying_names,
)
from core.formats.shared.guessing_truth import find_truth
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.people import find_people
from core.formats.shared.people_columns import find_alike_columns
from core.formats.shared.profiles import (
    ID_NAMES,
    UNNAMED,
    Profile,
    Roles,
    delimiter_of,
)
from core.formats.shared.set_columns import (
    are_filled_from_the_left,
    note_sets_beside_flags,
    numbers_called_labels,
    numbers_from_the_left,
)

WEAK_ID_NAMES = (
    *("", "index", "unnamed: 0", "name", "filename", "file_name", "image_id", "row", "fname"),
    *("file", "filepath", "file_path", "path", "example_id", "sample_id", "text_id", "comment_id"),
    *(
        "post_id",
        "tweet_id",
        "doc_id",
        "document_id",
        "sentence_id",
        "task_id",
        "rev_id",
        "pair_id",
    ),
    *("image", "img", "clip", "audio", "image_name", "imageid", "image index", "pairid"),
)


def guess(table: pa.Table, given: ColumnMapping | None = None) -> ColumnMapping:
    """Return a full mapping of the table's columns; what `given` states is kept."""
    roles = Roles(table, given)
    about = (_find_id, _find_labels, find_truth, find_features, find_shown)
    for find in (find_people, find_triples, find_composite_ids, *about):
        find(roles)
    return roles.mapping(tuple(table.column_names))


def _find_id(roles: Roles) -> None:
    if not roles.open("id"):
        return
    found = roles.named(ID_NAMES, "text", "number", "binary", "empty", "other")
    if found is None:
        weak = roles.named(WEAK_ID_NAMES, "text", "number")
        can_name = weak is not None and weak.values and weak.distinct and not weak.is_picture
        found = weak if can_name else None
    if found is not None:
        roles.take("id", [found.name], f"the column is called {found.name!r}")
        return
    texts = [one for one in roles.free.values() if UNNAMED.fullmatch(one.name)]
    texts = [one for one in texts if one.kind == "text" and one.distinct and one.has_no_spaces]
    if texts and len(texts[0].values) > 1:
        roles.take("id", [texts[0].name], "no header; every text in it is different")


def _find_labels(roles: Roles) -> None:
    if not roles.open("labels"):
        _describe_labels(roles)
        return
    finders: tuple[Callable[[Roles], bool], ...] = (
        marked_regions,
        long_labels,
        numbers_called_labels,
        prefixed_labels,
        named_set,
        labels_by_content,
        ticked_columns,
        list_of_names,
        yes_or_no_columns,
        shares_of_people,
        graded_views,
        families_of_numbers,
        probabilities_of_one,
        people_of_one_label,
        last_graded_labels,
        flags_of_some_rows,
        flags_of_one_ending,
        trailing_flags,
        uncertain_flags,
        flags_in_between,
        flags_alone,
        set_like_text,
        other_named_set,
        class_numbers,
        numbers_from_the_left,
        varying_names,
        spelled_flags,
        find_alike_columns,
        graded_labels,
        unnamed_set,
        names_that_repeat,
        only_column,
    )
    if any(found(roles) for found in finders):
        note_sets_beside_flags(roles)


def _describe_labels(roles: Roles) -> None:
    """Fill in how the columns the caller named as labels are written."""
    columns = [roles.profiles[name] for name in roles.fields["labels"] if name in roles.profiles]
    if roles.fields.get("row") == "people":
        roles.set("layout", "delimited")  # then `find_people` named their sources
    roles.set("layout", "delimited" if _is_set(roles, columns) else "one_hot")
    if roles.fields["layout"] == "one_hot":
        roles.set("label_style", graded_style(roles, columns) or style_of(columns))
    elif columns and roles.open("delimiter"):
        roles.set("delimiter", *delimiter_of(columns[0]))


def _is_set(roles: Roles, columns: list[Profile]) -> bool:
    """Whether labels are names or class numbers; of several columns of numbers they seldom are."""
    if are_filled_from_the_left(roles, columns):
        return True
    if not columns or any(one.kind in ("binary", "empty") for one in columns):
        return False
    if all(one.kind not in ("number", "binary") for one in columns):
        return not all(one.holds_marks for one in columns)
    is_classes = columns[0].holds_class_numbers and not columns[0].is_uncertain
    return len(columns) == 1 and is_classes and roles.open("label_style")
