"""What a person is asked about the rows of a table: findings that begin with `what is one row?`."""

import re
from typing import TYPE_CHECKING

from core.formats.shared.findings import Findings
from core.formats.shared.folding import is_folded
from core.formats.shared.guessing_flags import IN_BETWEEN
from core.formats.shared.guessing_long import TRIPLES
from core.formats.shared.guessing_numbers import ALIKE_FLAGS, FAMILY, GRADED, NUMBERED
from core.formats.shared.guessing_pairs import PAIRS
from core.formats.shared.guessing_sets import REPEATS
from core.formats.shared.mapping import LABEL_PREFIXES, ColumnMapping, plain_names
from core.formats.shared.people import rater_named_in
from core.formats.shared.people_cells import EITHER_WAY
from core.formats.shared.people_columns import ALIKE, STANCES, WORDS_ALONE
from core.formats.shared.people_grids import ambiguous_grid
from core.formats.shared.profiles import RIVALS, STATED

if TYPE_CHECKING:
    import pandas as pd

AGAIN = 1.5  # rows of an item, in the mean, that is named by nothing but its text or picture
NUMBER_OF_ITEM = re.compile(
    r"_?(item|task|unit|comment|tweet|post|text|doc|document|sentence|question|example|sample|image"
    r"|img|picture|file|clip|record|instance|subject|hit)[ _-]?(id|nr|no|number|key|idx)",
    re.IGNORECASE,
)


def ask_what_a_row_is(mapping: ColumnMapping, findings: Findings) -> None:
    """Ask where rows are taken for items and may be something else, unless somebody said so."""
    if mapping.reasons.get("row", "").startswith(TRIPLES):
        rule = f"what is one row? {mapping.id!r} is taken for items, {mapping.source!r} for people"
        fix = (
            f"If it is the other way round, say so (--row view --source {mapping.id}); if a row is "
        )
        findings.add(rule, fix + "an item, --row item.")
    if mapping.row == "people" and mapping.reasons.get("row", "").startswith(ALIKE_FLAGS):
        rule = f"what is one row? {len(mapping.labels)} columns are taken for people's yes or no"
        fix = "If each is a label of the item, say so (--row item)."
        findings.add(rule, fix, value=", ".join(mapping.labels[:4]))
    elif mapping.row == "people" and mapping.reasons.get("row", "").startswith(ALIKE):
        _ask_about_alike(mapping, findings)
    elif mapping.row == "people" and mapping.reasons.get("row", "").startswith(WORDS_ALONE):
        some = ", ".join(list(dict.fromkeys(mapping.sources))[:4])
        rule = f"what is one row? {some} are taken for people, each with a column per label"
        fix = "If every column is a label of the item, say so (--row item)."
        findings.add(rule, fix, value=", ".join(mapping.labels[:4]))
    if mapping.reasons.get("answers", "").startswith(EITHER_WAY):
        _ask_which_way(mapping, findings)
    if mapping.reasons.get("labels", "").startswith(GRADED):
        rule = f"what do the numbers say? {mapping.reasons['labels']} are taken for labels"
        fix = "If they are something else, say which columns are labels (--labels COLUMN)."
        findings.add(rule, fix, value=", ".join(mapping.labels[:4]))
    if mapping.reasons.get("labels", "").startswith((IN_BETWEEN, FAMILY)):
        rule = f"which columns are labels? {mapping.reasons['labels']} are taken"
        fix = "If it is another, say so (--labels COLUMN, Candidate labels on Data)."
        findings.add(rule, fix, value=", ".join(mapping.labels[:4]))
    if mapping.reasons.get("labels", "").startswith(REPEATS):
        rule = f"which column holds the labels? {mapping.labels[0]!r} is taken: {REPEATS}"
        others = mapping.reasons["labels"].partition(RIVALS)[2]
        fix = "If it is another, say so (--labels COLUMN, Candidate labels on Data)."
        findings.add(rule, fix, value=f"may also be {others}" if others else None)
    else:
        _ask_about_rivals(mapping, findings)
    if mapping.row == "people" and mapping.reasons.get("row", "").startswith(STANCES):
        rule = "what does -1 say? It is taken for somebody who was not asked"
        fix = "If it is an answer as 0 and 1 are, state not_asked=[] in the mapping (--mapping)."
        findings.add(rule, fix, value=", ".join(mapping.labels[:4]))
    if mapping.row != "item" or mapping.reasons.get("row") == STATED:
        return
    if mapping.reasons.get("labels", "").startswith(PAIRS):
        rule = f"what is one row? It is taken for a label ({mapping.labels[0]!r}) of {mapping.id!r}"
        fix = "If a row is an item, say so (--row item), and which columns are labels (--labels)."
        findings.add(rule, fix)
    if mapping.layout == "one_hot":
        _ask_who(mapping, findings)
    if mapping.layout != "answers":
        _ask_whose(mapping, findings)


def _ask_which_way(mapping: ColumnMapping, findings: Findings) -> None:
    by_source = mapping.answers == "by_source"
    ways = ("people with what each chose", "labels with who chose each")
    rule = f"who says what? Objects in {mapping.labels[0]!r} are taken for "
    other = "by_label" if by_source else "by_source"
    fix = f'If they are {ways[by_source]}, state answers="{other}" in the mapping (--mapping).'
    findings.add(rule + ways[not by_source], fix)


def _ask_about_rivals(mapping: ColumnMapping, findings: Findings) -> None:
    _, _, rivals = mapping.reasons.get("labels", "").partition(RIVALS)
    if rivals:
        rule = f"which column holds the labels? {mapping.labels[0]!r} is taken"
        fix = "If it is another, say so (--labels COLUMN, Candidate labels on Data)."
        findings.add(rule, fix, value=f"may also be {rivals}")


def _ask_about_alike(mapping: ColumnMapping, findings: Findings) -> None:
    some = ", ".join(mapping.labels[:3]) + (" …" if len(mapping.labels) > 3 else "")
    rule = (
        f"what is one row? {len(mapping.labels)} columns are taken for what people said of an item"
    )
    fix = (
        "If columns are parts of one answer, say so (--row item); if each is an item and a row is "
    )
    findings.add(rule, fix + "a person, turn the table, so that items are rows.", value=some)


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
    if not mapping.header and (texts is None or texts.duplicated().any()):
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
    return len(display.columns) == 1 and not mapping.features  # nothing else tells rows apart
