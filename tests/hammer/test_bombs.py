"""Every reader against files of at most ten megabytes that would take all memory or all day.

Prints, per bomb, what came of it, the most memory and the time of the processor it took.
"""

import psutil
import pytest
from bombs import BOMBS, MAX_MEMORY, MB, Outcome, measure

pytestmark = pytest.mark.hammer

MAX_FILE = 11 * MB
MAX_SECONDS = 10
SAFETY = 12 * 1024 * MB  # address space: a bomb that goes off must not take the machine with it


@pytest.fixture(scope="module")
def table(request):
    rows = ["| file | size | outcome | memory | processor |", "|---|---|---|---|---|"]
    yield rows
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("", *rows, sep="\n")


def _held(name: str, outcome: Outcome) -> None:
    assert outcome.result in ("read", "refused"), f"{name}: {outcome}"
    assert outcome.peak < MAX_MEMORY, f"{name} took {outcome.peak // MB} MB"
    assert outcome.seconds < MAX_SECONDS, f"{name} took {outcome.seconds:.1f} s"
    assert " <- " not in outcome.message, f"{name} was refused by accident: {outcome.message}"


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_read_or_refused_within_memory_and_time(name, tmp_path, table):
    file_name, make = BOMBS[name]
    path = tmp_path / file_name
    make(path)
    size = sum(one.stat().st_size for one in tmp_path.iterdir())
    assert size < MAX_FILE
    (outcome,) = measure([path], memory=min(SAFETY, psutil.virtual_memory().available))
    table.append(
        f"| {name} | {size / MB:.1f} MB | {outcome.result} | {outcome.peak // MB} MB "
        f"| {outcome.seconds:.1f} s |"
    )
    _held(name, outcome)
