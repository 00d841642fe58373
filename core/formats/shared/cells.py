"""Single cells of a table: sets of label names, lists of numbers, numbers and flags given as text.

Owns how one cell is spelled, both ways. Nothing is ever evaluated: text lists go through JSON,
`ast.literal_eval` (of limited length), or are split.
"""

import ast
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_LIST_TEXT = 100_000
MAX_WORDS = 3  # of an option; what has more, beside ticks, is a remark
TAGS = "><"  # between the names in <sea><sunset>
PLACED = " # # # #"  # between those in `sea 85 1 499 272 boat 9 9 40 40`: where each is
NAME_KEYS = (
    *("label", "name", "displayname", "labelname", "classname", "value", "choice", "category"),
    *("class", "tag", "answer"),
)
ARRAY = re.compile(  # as pandas writes what it holds
    r"(?:array|(?:frozen)?set|list|tuple)\(([\[{].*[\]}])(,\s*dtype=.*)?\)", re.DOTALL
)
BRACKETED = re.compile(r"(\[[^\[\]]+\]\s*){2,}")  # [sea] [sun]
TUPLE = re.compile(r"\(\s*['\"].*\)", re.DOTALL)
NO_COMMA = re.compile(r"(?<=['\"])\s+(?=['\"])")  # ['sea' 'sun'], which Python reads as one name
VECTOR = {"0", "1", "True", "False"}
UNSPOKEN = re.compile(r"[ _-]")
YES = {"1", "1.0", "true", "t", "yes", "y", "x", "on", "accept", "checked", "selected"}
YES |= {"present", "ja", "oui", "si", "sí", "sì", "sim", "vrai", "wahr"}
WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
NO = {"0", "0.0", "-1", "-1.0", "false", "f", "no", "n", "off", "reject", "unchecked"}
UNSURE = ("unsure", "not sure", "maybe", "don't know", "not applicable")
NO |= {"absent", "not selected", "unselected", "nein", "nee", "non", "não", "faux", "falsch"}


def parse_names(cell: Any, delimiter: str | None) -> list[str]:
    """Return the label names in a cell: a list, the text of a list, or delimited text.

    Raises
    ------
    ValueError
        When the cell is none of these.
    """
    return _ticked(_names_in(cell, delimiter))


def _names_in(cell: Any, delimiter: str | None) -> list[str]:
    if cell is None:
        return []
    if isinstance(cell, str):
        text = cell.strip()
        text = ARRAY.sub(r"\1", text)
        if BRACKETED.fullmatch(text):
            return [name.strip() for name in re.findall(r"\[([^\[\]]+)\]", text)]
        if text[:1] + text[-1:] in ("[]", "{}") or TUPLE.fullmatch(text):
            return _names_of(_listed(text))
        if delimiter == TAGS:
            text = text.removeprefix("<").removesuffix(">")
            return [name for part in text.split(TAGS) if (name := part.strip())]
        if delimiter == PLACED and text[:1] != "[":
            return _placed(text)
        parts = cell.split(delimiter) if delimiter else [cell]
        return [name for part in parts if (name := part.strip())]
    return _names_of(cell)


def _placed(text: str) -> list[str]:
    words = text.split()
    names, *places = (words[k::5] for k in range(5))
    if len(words) % 5 or None in (parse_number(word) for each in places for word in each):
        raise ValueError("not names with four numbers behind each")
    return names


def are_placed(texts: Sequence[str]) -> bool:
    """Whether cells hold names, which are no numbers, with four numbers behind each."""
    try:
        names = [name for text in texts for name in _placed(text)]
    except ValueError:
        return False
    return bool(names) and all(parse_number(name) is None for name in names)


def _ticked(names: list[str]) -> list[str]:
    """Return the places of the ones in `0 1 0 0 1`: no list of three names has but these two."""
    if len(names) < 3 or not VECTOR.issuperset(names):
        return names
    return [str(j) for j, mark in enumerate(names) if mark in ("1", "True")]


def join_names(names: Sequence[str], delimiter: str | None) -> str:
    """Return the cell that `parse_names` reads back as these names; sorted."""
    names = sorted(names)
    if delimiter == TAGS and all(is_plain(name, TAGS) for name in names):
        return "".join(f"<{name}>" for name in names)
    if (
        delimiter is None
        or delimiter == PLACED
        or not all(is_plain(name, delimiter) for name in names)
    ):
        return json.dumps(names, ensure_ascii=False)
    return delimiter.join(names)


def is_plain(name: str, delimiter: str) -> bool:
    """Whether a name can stand between delimiters and be found again."""
    return bool(name) and name == name.strip() and delimiter not in name and name[0] not in "[{"


def parse_number(cell: str, decimal: str = ".") -> float | None:
    """Return the number a cell holds: NaN for an empty cell, None when it is not a number."""
    text = cell.strip().replace(decimal, ".")
    if not text or text.casefold() in {"na", "n/a", "null", "none", "?"}:
        return float("nan")
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def parse_word(cell: str) -> float | None:
    """Return 1 or 0 for true, false, yes or no; NaN for an empty cell, None for anything else."""
    text = cell.strip().casefold()
    return WORDS.get(text, float("nan") if not text else None)


def parse_flag(cell: Any) -> int | None:
    """Return 1 or 0 for a cell that offers a label or not, None when it says neither."""
    text = "" if cell is None else str(cell).strip().casefold()
    return 1 if text in YES else 0 if text in NO or not text else None


def parse_marks(cell: Any) -> list[int] | None:
    """Return the flags of a cell, several where somebody was asked more than once; none if empty.

    None when it says neither yes nor no.
    """
    parts = [part for part in str("" if cell is None else cell).split(",") if part.strip()]
    marks = [parse_flag(part) for part in parts]
    return None if None in marks else [mark or 0 for mark in marks]


def parse_numbers(
    cell: Any, dtype: type[np.floating[Any]] = np.float32
) -> npt.NDArray[np.floating[Any]]:
    """Return the list of numbers in a cell, given as a list or as its text.

    Raises
    ------
    ValueError
        When an element is not a number.
    """
    if isinstance(cell, str):
        cell = cell.strip().strip("[]()").replace(",", " ").split()
    try:
        numbers = np.array([] if cell is None else cell, np.float64)
    except (TypeError, OverflowError) as error:  # NumPy on an object, and on a number too long
        raise ValueError(str(error)) from None
    with np.errstate(over="ignore"):
        return numbers.astype(dtype)


def _names_of(cell: Any) -> list[str]:
    if isinstance(cell, dict):
        cell = _names_by_key(cell)
    if isinstance(cell, str | int | float):
        cell = [cell]
    if not isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        raise ValueError("not a list of names")
    parts = [_inner(list(one)) if isinstance(one, list | tuple) else _held(one) for one in cell]
    flat = [part for group in parts for part in group]
    return [_name(one) for one in flat if one is not None]


def _held(one: Any) -> list[Any]:
    """Return what is chosen in `{"task": "T0", "value": ["sea"]}` and `{"seen": {"sea": true}}`."""
    if not isinstance(one, dict):
        return [one]
    key = name_key(one)
    if key is not None:
        return list(one[key]) if isinstance(one[key], list) else [one]
    ticks = [value for value in one.values() if isinstance(value, dict)]
    are_ticks = all(type(tick) is bool for value in ticks for tick in value.values())
    is_ticked = bool(ticks) and len(ticks) == len(one) and are_ticks
    return [name for value in ticks for name, tick in value.items() if tick] if is_ticked else [one]


def _inner(part: list[Any]) -> list[Any]:
    """Return the names of a list within a list: the path to one, ["sea", 80], or [0, 3, "sea"]."""
    if len(part) == 2 and isinstance(part[1], str) and parse_number(part[1]) is not None:
        part = part[:1]  # ["sea", "80"]
    return [one for one in part if isinstance(one, str)] or part


def _names_by_key(cell: dict[Any, Any]) -> Any:
    """`{"choices": [...]}` of Label Studio, `{"sea": 0.9, "sun": 0.4}`, or `{"/m/06": "sea"}`."""
    if "choices" in cell:
        return cell["choices"]
    given = {key: value for key, value in cell.items() if value is not None}
    if all(isinstance(value, int | float) for value in given.values()):
        return [key for key, value in given.items() if value]
    if all(isinstance(value, str) for value in given.values()):
        named = name_key(cell) is not None
        return [_name(cell)] if named else [value for value in given.values() if value]
    lists = [value for value in given.values() if isinstance(value, list)]
    if len(lists) == 1 and all(isinstance(name, str) for name in lists[0]):
        return lists[0]  # {"labels": ["sea", "sun"], "unclear": false}
    return _chosen_options(given)


def _chosen_options(given: dict[Any, Any]) -> list[Any] | None:
    """`{"kind": "boat", "seen": {"sea": true}}`: what was chosen among options, and ticked."""
    found: list[Any] = []
    for value in given.values():
        if isinstance(value, dict) and all(type(tick) is bool for tick in value.values()):
            found += [name for name, tick in value.items() if tick]
        elif isinstance(value, str):
            found += [value] if 0 < len(value.split()) <= MAX_WORDS else []
        else:
            return None
    return found


def plain_key(key: Any) -> str:
    """Return a key as others spell it too: workerId and worker_id are one."""
    return UNSPOKEN.sub("", str(key).casefold())


def name_key(value: dict[Any, Any]) -> Any:
    """Return the key of an object that holds its name, if it has one."""
    keys = {plain_key(key): key for key, held in value.items() if held is not None}
    return next((keys[key] for key in NAME_KEYS if key in keys), None)


def _name(value: Any) -> str:
    if isinstance(value, dict):  # {"name": "sea", "id": 4}, {"category": {"label": "sea"}}
        key = name_key(value)
        found = None if key is None else value[key]
        if found is None or found is value:
            raise ValueError("an object without a name")
        return _name(found)
    if isinstance(value, list | tuple | set):
        raise ValueError("a list inside a list")
    if isinstance(value, float) and value.is_integer():  # a column with gaps makes 3 of it 3.0
        return str(int(value))
    return str(value)


def _listed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    text = NO_COMMA.sub(", ", text)
    try:
        return ast.literal_eval(text) if len(text) <= MAX_LIST_TEXT else _bare(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return _bare(text)


def _bare(text: str) -> list[str]:
    """`[sea, blue sky]`: names without quotes."""
    if "[" in text[1:] or text[0] == "{":
        raise ValueError("not a list of names")
    inner = text[1:-1]
    parts = inner.split() if inner.replace(" ", "").isdecimal() else inner.split(",")
    return [name for part in parts if (name := part.strip().strip("'\""))]
