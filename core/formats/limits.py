"""How much a file may ask for: sizes are judged before anything is allocated.

A small file can declare huge arrays; whoever reads one asks here first.
"""

from core.formats.findings import refuse

MAX_BYTES = 8 * 2**30  # of one file, unpacked
FREE_BYTES = 256 * 2**20  # what any file may unpack to, however small it is
MAX_RATIO = 200  # beyond that: unpacked over packed size
MAX_FEATURES = 1_000_000
MAX_LABELS = 100_000
MAX_LABEL_CELLS = 2**30

SMALLER = "Check that the file is not damaged; otherwise split it, or drop columns."


def allowed_bytes(file_size: int) -> int:
    """Return how many bytes a file of this size may unpack to."""
    return min(MAX_BYTES, max(FREE_BYTES, MAX_RATIO * file_size))


def check_unpacked(n_bytes: int, file_size: int) -> None:
    """Refuse a file that declares more than one of its size can honestly hold."""
    if n_bytes > allowed_bytes(file_size):
        found = f"{n_bytes:,} bytes declared by a file of {file_size:,}"
        refuse("the file declares far more data than it can hold", SMALLER, value=found)


def check_shape(n: int, n_features: int, n_labels: int) -> None:
    """Refuse a table whose names and label matrix alone would not fit in memory."""
    if n_features > MAX_FEATURES:
        rule = f"a data set has at most {MAX_FEATURES:,} features"
        refuse(rule, SMALLER, value=f"{n_features:,}")
    if n_labels > MAX_LABELS:
        refuse(f"a data set has at most {MAX_LABELS:,} labels", SMALLER, value=f"{n_labels:,}")
    if n * n_labels > MAX_LABEL_CELLS:
        rule = f"instances times labels must stay below {MAX_LABEL_CELLS:,}"
        refuse(rule, SMALLER, value=f"{n:,} times {n_labels:,}")
