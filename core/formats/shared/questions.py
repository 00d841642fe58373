"""What a person is asked about the rows of a table: findings that begin with `what is one row?`."""

from core.formats.shared.findings import Findings
from core.formats.shared.mapping import LABEL_PREFIXES, ColumnMapping, plain_names
from core.formats.shared.people import ambiguous_grid, rater_named_in
from core.formats.shared.profiles import STATED


def ask_what_a_row_is(mapping: ColumnMapping, findings: Findings) -> None:
    """Ask where rows are taken for items and may be something else, unless somebody said so."""
    if mapping.row != "item" or mapping.reasons.get("row") == STATED:
        return
    if mapping.layout == "one_hot":
        _ask_who(mapping, findings)
    if mapping.layout in ("one_hot", "delimited"):
        _ask_whose(mapping, findings)
    if not mapping.header and mapping.id is None and mapping.display:
        rule = "what is one row? There is no header, and no column has another id in every row"
        fix = "If a row is one person's view of an item, say so (--row view --source column2)."
        findings.add(rule, fix)


def _ask_who(mapping: ColumnMapping, findings: Findings) -> None:
    """Ask about columns such as anna_sea, bob_sea: labels, or a person's view of a label?"""
    halves = ambiguous_grid(plain_names(mapping.labels, LABEL_PREFIXES))
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
