"""Files that come together in a folder or a zip file: which one is the data, which belong to it."""

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from core.formats.shared.profiles import PICTURE

LISTS = (".txt", ".names", ".labels", ".classes", ".lst")  # a name of a class per line
NAMES = re.compile(r"label|class|name|categor|emotion|tag|topic|genre|vocab|ontolog", re.IGNORECASE)
MAX_LIST = 2**18  # bytes
SIDE_FILE = ".plain.npz"
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval"}
SHARD = re.compile(r".*[_-]\d+[_-]of[_-]\d+")
DESCRIBES = re.compile(  # the data, and holds none; where nothing else is there, it may be data
    r"(dataset_infos?|dataset_dict|state|croissant|metadata|config|info|classes|annotations-legend"
    r"|(id2)?labels?(2id|_?map|_?names|s_map)?|class_?names|tokenizer.*)\.json"
    r"|class-descriptions.*\.csv|.*(tr|tst|train|test|val)[_-]?splits?\.txt|.*\.ya?ml|.*\.conf",
    re.IGNORECASE,
)
ABOUT = re.compile(
    r"(read[ _-]?me|licen[cs]e|copying|notice|citation|change(s|log))(\W.*)?"
    r"|.*\.(md|rst|pdf|html?|bib|plain\.npz|provenance\.json)",
    re.IGNORECASE,
)


def data_file_among(names: Iterable[str]) -> str | None:
    """Return the one file that holds the data; None where there is none, or more than one."""
    found = without_parts(visible(names))
    belongs: tuple[Callable[[str], bool], ...] = (
        is_note,
        lambda name: PICTURE.search(name) is not None,
        lambda name: name.lower().endswith(".xml"),  # Mulan's, of an ARFF file
        describes,
        lambda name: _is_list(name) and NAMES.search(PurePosixPath(name).stem) is not None,
        _is_list,
    )
    for is_beside in belongs:
        found = [name for name in found if not is_beside(name)] or found
    return found[0] if len(found) == 1 else None


def without_parts(names: list[str]) -> list[str]:
    """Return the files without those that are parts of another: `a-train.arff` of `a.arff`."""
    wholes = {(PurePosixPath(name).stem.casefold(), PurePosixPath(name).suffix) for name in names}
    return [
        name
        for name in names
        if split_in(PurePosixPath(name).name) is None
        or (_without_split(PurePosixPath(name).stem), PurePosixPath(name).suffix) not in wholes
    ]


def _without_split(stem: str) -> str:
    words = re.split(r"([\W_]+)", stem.casefold())
    return "".join(word for word in words[:-1] if word not in SPLITS).rstrip("-_. ")


def split_in(name: str) -> str | None:
    """Return the word for a part of the data in the path of a file, such as `train`."""
    words = re.split(r"[\W_]+", name.casefold())
    return next((word for word in words if word in SPLITS), None)


def describes(name: str) -> bool:
    """Whether a file is called like one that says something of the data beside it."""
    return DESCRIBES.fullmatch(PurePosixPath(name).name) is not None


def is_note(name: str) -> bool:
    """Whether a file is for people: a README, a licence, how an export was made."""
    return ABOUT.fullmatch(PurePosixPath(name).name) is not None


def is_read_with(name: str, data: str, n_bytes: int) -> bool:
    """Whether a file says something that a reader wants to know of the data file beside it."""
    if _is_list(name) or describes(name):
        return n_bytes <= MAX_LIST
    own = PurePosixPath(data).name + SIDE_FILE
    return name.lower().endswith(".xml") or PurePosixPath(name).name == own


def visible(names: Iterable[str]) -> list[str]:
    """Return the files of a listing without folders, hidden files and what macOS adds."""
    return [
        name
        for name in names
        if not name.endswith("/")
        and not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)
    ]


def _is_list(name: str) -> bool:
    return name.lower().endswith(LISTS)
