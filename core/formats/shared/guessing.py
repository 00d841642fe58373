"""Guess which column of a table plays which role, and say why.

Judges by names first, then by the first rows' values. Order matters: what a name says outright
(`label_sea`, `truth`, `embedding`) is settled before anything is inferred from values.
"""

import re
from collections.abc import Callable

import pyarrow as pa

from core.formats.shared.answers import loaded
from core.formats.shared.cells import parse_names
from core.formats.shared.guessing_features import find_features, find_shown
from core.formats.shared.guessing_flags import (
    MAX_RATED,
    allows_layout,
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
    graded_labels,
    last_graded_labels,
    people_of_one_label,
    probabilities_of_one,
)
from core.formats.shared.guessing_pairs import labels_by_content
from core.formats.shared.guessing_sets import (
    MAX_NAME,
    REPEATS,
    SPLITS,
    first_beside_second,
    more_of_a_view,
    names_that_repeat,
    no_label_words,
    same_names_by_people,
)
from core.formats.shared.mapping import (
    LABEL_PREFIXES,
    TRUTH_PREFIXES,
    ColumnMapping,
    plain_names,
)
from core.formats.shared.people import (
    find_alike_columns,
    find_people,
    is_numbered,
)
from core.formats.shared.profiles import (
    DERIVED,
    ID_NAMES,
    TRUTH_NAMES,
    Kind,
    Profile,
    Roles,
    delimiter_of,
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
SET_NAMES = (
    *("candidate_labels", "candidates", "partial_labels", "labels", "label", "tags", "classes"),
    *("categories", "genres", "choices", "topics", "given_label", "tag_string", "tag_list"),
)
OTHER_SET_NAMES = (
    *("accept", "annotations", "annotation", "answers", "answer", "responses", "response"),
    *("votes", "vote", "judgments", "judgements", "judgment", "judgement", "emotions", "emotion"),
    *("category", "tag", "class", "class_label", "choice", "topic", "genre", "sentiment", "rating"),
    *("predictions", "prediction", "predicted_labels", "attributes", "keywords", "toxicity"),
    *("intent", "intents", "code", "codes", "codings", "result", "results", "taskanswers"),
    *("class_name", "label_name", "labelname"),
)
ENDS_IN_NAMES = re.compile(
    r".*[ _.:-](labels?|tags?|categories|genres?|classes|topics|emotions|findings|keywords)"
    r"([ _](string|list|names?))?|.*[ _](category|class)"
)
ENDS_IN_RATINGS = re.compile(
    r".*[ _.:-](ratings?|answers?|responses?|votes?|judge?ments?|verdicts?)"
)
MAX_TWICE = 0.2  # of the cells that name a label twice
CLASS_NUMBERS = re.compile(r"\s*\d{1,5}(\s*[,;| ]\s*\d{1,5})*\s*")
UNNAMED = re.compile(r"column\d+")  # of a table without a header


def guess(table: pa.Table, given: ColumnMapping | None = None) -> ColumnMapping:
    """Return a full mapping of the table's columns; what `given` states is kept."""
    roles = Roles(table, given)
    about = (_find_id, _find_labels, _find_truth, find_features, find_shown)
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
        prefixed_labels,
        _named_set,
        labels_by_content,
        ticked_columns,
        _list_of_names,
        yes_or_no_columns,
        shares_of_people,
        graded_views,
        probabilities_of_one,
        people_of_one_label,
        last_graded_labels,
        flags_of_some_rows,
        flags_of_one_ending,
        trailing_flags,
        uncertain_flags,
        _set_like_text,
        _other_named_set,
        _class_numbers,
        _varying_names,
        _names_with_commas,
        spelled_flags,
        find_alike_columns,
        graded_labels,
        _unnamed_set,
        _names_that_repeat,
    )
    for found in finders:
        if found(roles):
            break


def _describe_labels(roles: Roles) -> None:
    """Fill in how the columns the caller named as labels are written."""
    columns = [roles.profiles[name] for name in roles.fields["labels"] if name in roles.profiles]
    if roles.fields.get("row") == "people":
        roles.set("layout", "delimited")  # then `find_people` named their sources
    roles.set("layout", "delimited" if _is_set(roles, columns) else "one_hot")
    if roles.fields["layout"] == "one_hot":
        roles.set("label_style", style_of(columns))
    elif columns and roles.open("delimiter"):
        roles.set("delimiter", *delimiter_of(columns[0]))


def _is_set(roles: Roles, columns: list[Profile]) -> bool:
    """Whether labels are one column of names or class numbers."""
    if len(columns) != 1 or columns[0].kind in ("binary", "empty"):
        return False
    is_classes = columns[0].holds_class_numbers and not columns[0].is_uncertain
    return columns[0].kind != "number" or (is_classes and roles.open("label_style"))


def _named_set(roles: Roles) -> bool:
    kinds: tuple[Kind, ...] = ("text", "names", "numbers", "other", "empty")
    if roles.fields.get("row") == "view":  # a class number per view
        kinds = (*kinds, "number", "binary")
    found = roles.named(SET_NAMES, *kinds)
    if found is None or (found.kind == "empty" and _list_of_names(roles)):
        return found is not None
    return _take_set(roles, found, f"the column is called {found.name!r}")


def _other_named_set(roles: Roles) -> bool:
    """A column of names under a name that may mean something else."""
    kinds: tuple[Kind, ...] = ("text", "names", "other")
    if roles.fields.get("row") == "view":
        kinds = (*kinds, "number", "binary")
    free = [one for one in roles.free.values() if one.kind in kinds]
    free = [one for one in free if not one.is_truth and not roles.is_constant(one.name)]
    by_key = {one.key: one for one in reversed(free)}
    by_last = {one.last_key: one for one in reversed(free)}
    ends = [one for one in free if ENDS_IN_NAMES.fullmatch(one.key) and not DERIVED.match(one.key)]
    if roles.fields.get("row") == "view":
        ends += [one for one in free if is_numbered(one.key)]
        rated = [one for one in free if ENDS_IN_RATINGS.fullmatch(one.key) and not one.is_wordy]
        rated = [one for one in rated if roles.fields.get("id")]
        ends += [one for one in rated if roles.differs_between_views(one)]
    if roles.fields.get("row") != "view" and same_names_by_people(ends):
        return find_alike_columns(roles)
    ends.sort(key=lambda one: one.kind in ("number", "binary"))
    named = (by_key[name] for name in OTHER_SET_NAMES if name in by_key)
    parts = (by_last[name] for name in (*SET_NAMES, *OTHER_SET_NAMES) if name in by_last)
    found = next((one for group in (ends, named, parts) for one in group), None)
    if found is None or (found.is_wordy and not _splits_into_names(found)):
        return False
    return _take_set(roles, found, f"the column is called {found.name!r}")


def _splits_into_names(one: Profile) -> bool:
    """Whether a few names come again, seldom twice in one cell as the words of a text do."""
    delimiter, _ = delimiter_of(one)
    cells = [str(value).strip().split(delimiter) for value in one.values]
    again = sum(len(set(names)) < len(names) for names in cells)
    known = set().union(*cells)
    return len(known) < len(cells) / 2 and again < MAX_TWICE * len(cells)


def _varying_names(roles: Roles) -> bool:
    """In rows of views: the only column of a few names that differ between views of an item."""
    if roles.fields.get("row") != "view" or roles.fields.get("id") is None:
        return False
    texts = [one for one in roles.free.values() if one.kind in ("text", "names")]
    texts = [one for one in texts if not one.is_wordy and not one.is_outcome and not one.is_truth]
    few = [one for one in texts if len(set(map(str, one.values))) <= max(10, len(one.values) / 5)]
    numbers = [one for one in roles.free.values() if one.holds_class_numbers]
    rated = [one for one in numbers if len(set(one.values)) <= MAX_RATED]
    for kind, columns in (("names", few), ("numbers", rated)):
        found = [one for one in columns if roles.differs_between_views(one)]
        if len(found) == 1:
            why = f"only {found[0].name!r} holds a few {kind} that differ between views"
            return _take_set(roles, found[0], why)
    return False


def _class_numbers(roles: Roles) -> bool:
    """Cells such as 27 or 4,27: numbers of classes, several in some of them."""
    for one in roles.free.values():
        texts = [str(value) for value in one.values] if one.kind == "text" else []
        if (
            texts
            and all(map(CLASS_NUMBERS.fullmatch, texts))
            and not all(map(str.isdecimal, texts))
        ):
            return _take_set(roles, one, f"{one.name!r} holds lists of class numbers")
    return False


def _unnamed_set(roles: Roles) -> bool:
    """In a table without a header: the column of texts that repeat."""
    free = [one for one in roles.free.values() if UNNAMED.fullmatch(one.name)]
    free = [one for one in free if not SPLITS.issuperset(map(str, one.values))]
    for one in reversed(free):
        if one.kind in ("text", "names", "number") and not one.distinct and not one.is_picture:
            delimiter, _ = delimiter_of(one)
            names = {name for value in one.values for name in str(value).split(delimiter)}
            if len(names) < max(3, len(one.values)):
                return _take_set(roles, one, f"no header; values of {one.name!r} repeat")
    return False


def _list_of_names(roles: Roles) -> bool:
    free = [one for one in roles.free.values() if not one.is_outcome]
    found = [one for one in free if one.kind == "names" and any(one.values)]
    found += [one for one in free if _lists_objects(one) and _lists_few_names(one)]
    if len(found) > 1:
        found = [one for one in found if _repeats_names(one)]
    return len(found) == 1 and _take_set(roles, found[0], "the only column with lists of names")


def _lists_objects(one: Profile) -> bool:
    """Whether cells are lists of objects; lists of numbers may be anything."""
    parts = [value[:1] for value in one.values if isinstance(value, list)]
    return len(parts) == len(one.values) and any(
        isinstance(p, dict) for part in parts for p in part
    )


def _repeats_names(one: Profile) -> bool:
    """Whether lists hold names that come again, not the parts of a text."""
    if one.kind == "other":
        return True
    names = [name for value in one.values for name in value if isinstance(name, str)]
    return 2 * len(set(names)) < len(names) and max(map(len, names), default=0) <= MAX_NAME


def _set_like_text(roles: Roles) -> bool:
    """A text column such as `Action|Comedy`: few names, many cells, a clear delimiter."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    for one in free:
        is_object = one.kind == "other" and all(isinstance(value, dict) for value in one.values)
        if one.kind != "text" and not is_object:
            continue
        if is_object or all(str(value).strip()[:1] in ("[", "{", "") for value in one.values):
            if _lists_few_names(one):
                return _take_set(roles, one, f"lists of few names fill {one.name!r}")
            continue
        for delimiter in ("|", ";", "#"):
            split = [set(str(value).split(delimiter)) - {""} for value in one.values]
            several = sum(len(names) > 1 for names in split)
            if several >= 0.3 * len(split) and len(set().union(*split)) < len(split) / 2:
                if find_alike_columns(roles):
                    return True
                return _take_set(roles, one, f"few names joined by {delimiter!r} fill {one.name!r}")
    return False


def _lists_few_names(one: Profile) -> bool:
    """Whether cells are lists of a few names, or objects of them that are not all alike."""
    keys = {frozenset(cell) for value in one.values if isinstance(cell := loaded(value), dict)}
    if len(keys) == 1:
        return False
    try:
        cells = [frozenset(parse_names(value, None)) for value in one.values]
    except ValueError:  # lists of something else
        return False
    known = frozenset().union(*cells)
    differ = len(set(cells)) > 1 or len(cells) == 1  # scores of all labels are no labels
    return bool(known) and differ and len(known) < len(cells) / 2


def _names_with_commas(roles: Roles) -> bool:
    """The only text column whose cells are a few short names, several with commas between."""
    found = []
    for one in roles.free.values():
        cells = [] if one.is_outcome or one.kind != "text" else list(map(str, one.values))
        names = [[name.strip() for name in cell.split(",")] for cell in cells]
        several = sum(len(each) > 1 for each in names)
        known = {name for each in names for name in each}
        is_short = max(map(len, known), default=MAX_NAME) < MAX_NAME
        if cells and is_short and several >= 0.1 * len(cells) and 4 * len(known) < len(cells):
            found.append(one)
    why = "the only column with a few names between commas"
    return len(found) == 1 and _take_set(roles, found[0], why)


def _names_that_repeat(roles: Roles) -> bool:
    found = names_that_repeat(roles)
    return len(found) == 1 and len(roles.profiles) > 1 and _take_set(roles, found[0], REPEATS)


def _take_set(roles: Roles, one: Profile, reason: str) -> bool:
    if not allows_layout(roles, "delimited"):
        return False
    delimiter, why = delimiter_of(one)
    beside = more_of_a_view if roles.fields.get("row") == "view" else first_beside_second
    more = beside(roles, one, delimiter)
    reason += "".join(f"; {name!r} holds the same names" for name in more)
    roles.take("labels", [one.name, *more], reason, layout="delimited")
    roles.set("delimiter", delimiter, why)
    if roles.open("no_label"):
        roles.set("no_label", no_label_words(one, delimiter))
    return True


def _find_truth(roles: Roles) -> None:
    if not roles.open("truth"):
        stated = [roles.profiles[name] for name in roles.fields["truth"] if name in roles.profiles]
        as_set = len(stated) == 1 and stated[0].kind not in ("binary", "number")
        roles.set("truth_layout", "delimited" if as_set else "one_hot")
        return
    labels = set(plain_names(tuple(roles.fields.get("labels", ())), LABEL_PREFIXES))
    one_hot = roles.fields.get("layout", "one_hot") == "one_hot"
    for prefix in TRUTH_PREFIXES:
        columns = roles.prefixed(prefix, "binary", "empty")
        columns = tuple(name for name in columns if not one_hot or name[len(prefix) :] in labels)
        if columns:
            reason = f"{len(columns)} columns begin with {prefix!r}"
            roles.take("truth", columns, reason, truth_layout="one_hot")
            return
    found = roles.named(TRUTH_NAMES, "text", "names", "numbers", "other", "empty")
    if found is not None:
        reason = f"the column is called {found.name!r}"
        roles.take("truth", [found.name], reason, truth_layout="delimited")
