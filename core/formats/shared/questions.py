"""What a person is asked about the rows of a table: findings that begin with `what is one row?`."""

import re
from typing import TYPE_CHECKING, NamedTuple

from core.formats.shared.findings import Findings
from core.formats.shared.folding import is_folded
from core.formats.shared.guessing_flags import IN_BETWEEN
from core.formats.shared.guessing_long import LONGER, TRIPLES
from core.formats.shared.guessing_numbers import ALIKE_FLAGS, FAMILY, GRADED, NUMBERED
from core.formats.shared.guessing_pairs import PAIRS
from core.formats.shared.guessing_sets import REPEATS
from core.formats.shared.mapping import LABEL_PREFIXES, ColumnMapping, plain_names
from core.formats.shared.people import rater_named_in
from core.formats.shared.people_cells import EITHER_WAY
from core.formats.shared.people_columns import ALIKE, STANCES, WORDS_ALONE
from core.formats.shared.people_grids import ambiguous_grid
from core.formats.shared.profiles import CAMEL_ID, RIVALS, STATED
from core.formats.shared.set_columns import PLACES

if TYPE_CHECKING:
    import pandas as pd

AGAIN = 1.5  # rows of an item, in the mean, that is named by nothing but its text or picture
NUMBER_OF_ITEM = re.compile(
    r"_?(item|task|unit|comment|tweet|post|text|doc|document|sentence|question|example|sample|image"
    r"|img|picture|file|clip|record|instance|subject|hit)[ _-]?(id|nr|no|number|key|idx)",
    re.IGNORECASE,
)


class Question(NamedTuple):
    """What is asked where the reason of a role begins so; names are those of `_facts`."""

    role: str
    begins: str
    rule: str
    fix: str


LABELS_FIX = "If it is another, say so (--labels COLUMN, Candidate labels on Data)."
ITEM_FIX = "If each is a label of the item, say so (--row item)."
ROW = "what is one row? "
QUESTIONS = (
    Question(
        "row",
        TRIPLES,
        ROW + "{id!r} is taken for items, {source!r} for people",
        "If it is the other way round, say so (--row view --source {id}); if a row is an item, "
        "--row item.",
    ),
    Question("row", ALIKE_FLAGS, ROW + "{n} columns are taken for people's yes or no", ITEM_FIX),
    Question(
        "row",
        ALIKE,
        ROW + "{n} columns are taken for what people said of an item",
        "If columns are parts of one answer, say so (--row item); if each is an item and a row is "
        "a person, turn the table, so that items are rows.",
    ),
    Question(
        "row", WORDS_ALONE, ROW + "{people} are taken for people with a column per label", ITEM_FIX
    ),
    Question(
        "row",
        STANCES,
        "what does -1 say? It is taken for somebody who was not asked",
        "If it is an answer as 0 and 1 are, state not_asked=[] in the mapping (--mapping).",
    ),
    Question(
        "id",
        LONGER,
        ROW + "{id!r} is taken for an item and one of {n_names} labels",
        "If they are shorter, name all of them as label_names in the mapping (--mapping).",
    ),
    Question(
        "answers",
        f"{EITHER_WAY}: by_source",
        "who says what? Objects in {first!r} are taken for people with what each chose",
        'If they are labels with who chose each, state answers="by_label" in the mapping '
        "(--mapping).",
    ),
    Question(
        "answers",
        f"{EITHER_WAY}: by_label",
        "who says what? Objects in {first!r} are taken for labels with who chose each",
        'If they are people with what each chose, state answers="by_source" in the mapping '
        "(--mapping).",
    ),
    Question(
        "labels",
        GRADED,
        "what do the numbers say? {why} are taken for labels",
        "If they are something else, say which columns are labels (--labels COLUMN).",
    ),
    Question("labels", IN_BETWEEN, "which columns are labels? {why} are taken", LABELS_FIX),
    Question("labels", PLACES, "which columns are labels? {why} are taken", LABELS_FIX),
    Question("labels", FAMILY, "which columns are labels? {why} are taken", LABELS_FIX),
    Question("labels", REPEATS, "which column holds the labels? {first!r} is {why}", LABELS_FIX),
)


def ask_what_a_row_is(mapping: ColumnMapping, findings: Findings) -> None:
    """Ask where rows are taken for items and may be something else, unless somebody said so."""
    asked = [one for one in QUESTIONS if mapping.reasons.get(one.role, "").startswith(one.begins)]
    why, _, rivals = mapping.reasons.get("labels", "").partition(RIVALS)
    facts = _facts(mapping) | {"why": why}
    for one in asked:
        value = f"may also be {rivals}" if rivals else facts["some"]
        findings.add(one.rule.format(**facts), one.fix.format(**facts), value=str(value))
    if rivals and "labels" not in {one.role for one in asked}:
        rule = f"which column holds the labels? {mapping.labels[0]!r} is taken"
        findings.add(rule, LABELS_FIX, value=f"may also be {rivals}")
    if mapping.row != "item" or mapping.reasons.get("row") == STATED:
        return
    if mapping.reasons.get("labels", "").startswith(PAIRS):
        rule = f"{ROW}It is taken for a label ({mapping.labels[0]!r}) of {mapping.id!r}"
        fix = "If a row is an item, say so (--row item), and which columns are labels (--labels); "
        findings.add(rule, fix + "if it is who says something, --row view --source COLUMN.")
    if mapping.layout == "one_hot":
        _ask_who(mapping, findings)
    if mapping.layout != "answers":
        _ask_whose(mapping, findings)


def _facts(mapping: ColumnMapping) -> dict[str, object]:
    return {
        "id": mapping.id,
        "source": mapping.source,
        "n": len(mapping.labels),
        "n_names": len(mapping.label_names),
        "first": next(iter(mapping.labels), ""),
        "people": ", ".join(list(dict.fromkeys(mapping.sources))[:4]),
        "some": ", ".join(mapping.labels[:4]) + (" …" if len(mapping.labels) > 4 else ""),
    }


def _ask_who(mapping: ColumnMapping, findings: Findings) -> None:
    """Ask about columns such as anna_sea, bob_sea: labels, or a person's view of a label?"""
    names = plain_names(mapping.labels, LABEL_PREFIXES)
    parts = [NUMBERED.fullmatch(name.casefold()) for name in names]
    if len(names) > 2 and len({part and part[1] for part in parts}) == 1 and parts[0]:
        rule = f"what is one row? {len(names)} columns are taken for labels, and may be people"
        fix = "If each is a person's yes or no about one label, say so (--row people)."
        findings.add(rule, fix, value=", ".join(names[:4]))
        return
    halves = ambiguous_grid(names)
    if halves is not None:
        first, second = (", ".join(half[:4]) + (" …" if len(half) > 4 else "") for half in halves)
        rule = f"what is one row? Every column is taken for a label of an item; {first} or {second}"
        rule += " may be people"
        fix = "If so, answer `an item with a column per person` (--row people)."
        findings.add(rule, fix, value=f"{len(mapping.labels)} columns")


def _ask_whose(mapping: ColumnMapping, findings: Findings) -> None:
    """Say that a column names raters where no item has two rows."""
    rater = rater_named_in(mapping.display)
    if rater is not None:
        rule = (
            f"what is one row? {rater!r} names people, but no item has two rows: a row is an item"
        )
        fix = f"If a row is one person's view, say so (--row view --source {rater}), and which "
        findings.add(rule, fix + "column names the item (id in a mapping).")


def ask_about_repeats(
    mapping: ColumnMapping, display: "pd.DataFrame | None", findings: Findings
) -> None:
    """Ask where rows without an id may be views of items: one number, text or picture again."""
    is_asked = mapping.row == "item" and mapping.reasons.get("row") != STATED
    if not is_asked or mapping.id is not None or display is None or is_folded(mapping):
        return
    texts = None if mapping.text is None else display[mapping.text].astype(str)
    may_name = not mapping.header and display.astype(str).nunique().max() > 1
    if may_name and (texts is None or texts.duplicated().any()):
        rule = "what is one row? There is no header, and no column has another id in every row"
        fix = "If a row is one person's view of an item, say so (--row view --source column2)."
        findings.add(rule, fix)
        return
    for name in map(str, display.columns):
        if _names_items_again(name, mapping, display, texts):
            rule = f"what is one row? {name!r} has the same in several rows: a row is an item"
            fix = "If a row is one person's view of an item, say so (--row view), and that this "
            findings.add(rule, fix + f"column names the item (id={name!r} in a mapping).")
            return


def _names_items_again(
    name: str, mapping: ColumnMapping, display: "pd.DataFrame", texts: "pd.Series[str] | None"
) -> bool:
    cells = display[name].astype(str)
    n_items = cells.nunique()
    if not 1 < n_items < len(display):
        return False
    if name in (mapping.text, mapping.image):
        return bool(len(display) >= AGAIN * n_items)
    if NUMBER_OF_ITEM.fullmatch(name.strip()):
        return texts is None or bool(texts.groupby(cells).nunique().max() == 1)
    if mapping.text is None and CAMEL_ID.fullmatch(name.strip()):
        return True
    return len(display.columns) == 1 and not mapping.features  # nothing else tells rows apart
