"""The columns of true labels: those called so, and a label among the candidates beside it."""

from core.formats.shared.cells import parse_names
from core.formats.shared.mapping import LABEL_PREFIXES, TRUTH_PREFIXES, plain_names
from core.formats.shared.people_cells import STATED_CANDIDATES
from core.formats.shared.profiles import TRUTH_NAMES, Kind, Profile, Roles


def _label_among_candidates(roles: Roles) -> Profile | None:
    """Return the column of labels beside a column that is called candidates and has them all."""
    stated = roles.fields.get("labels", ())
    found = roles.named(("label", "labels", "y", "target", "targets"))
    if len(stated) != 1 or found is None or stated[0].strip().casefold() not in STATED_CANDIDATES:
        return None
    try:
        pairs = [
            (set(parse_names(one, roles.fields.get("delimiter"))), parse_names(label, None))
            for one, label in zip(roles.cells(stated[0]), roles.cells(found.name), strict=True)
        ]
    except ValueError:
        return None
    return found if all(names.issuperset(label) for names, label in pairs) else None


def find_truth(roles: Roles) -> None:
    """Give the columns of true labels their role."""
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
    kinds: tuple[Kind, ...] = ("text", "names", "numbers", "other", "empty")
    found = roles.named(TRUTH_NAMES, *kinds)
    reason = "" if found is None else f"the column is called {found.name!r}"
    if found is None and (found := _label_among_candidates(roles)) is not None:
        reason = f"what {found.name!r} says is among the candidates"
    if found is not None:
        roles.take("truth", [found.name], reason, truth_layout="delimited")
