"""The store and its model, for as many examples as the given minutes allow.

PLAIN_MODEL_SECONDS says for how long, per database.
"""

import os
from time import monotonic

import pytest
from store_model import check_agreement

pytestmark = pytest.mark.hammer

SECONDS = float(os.environ.get("PLAIN_MODEL_SECONDS", "300"))
EXAMPLES, STEPS = 10, 60


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_two_processes_and_the_model_agree_for_long(
    request, tmp_path, monkeypatch, capsys, database
):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    if database == "postgresql":
        monkeypatch.setenv("PLAIN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    end, n_rounds = monotonic() + SECONDS, 0
    while monotonic() < end:
        check_agreement(tmp_path, max_examples=EXAMPLES, stateful_step_count=STEPS)
        n_rounds += 1
        with capsys.disabled():
            print(f"\n{database}: {2 * EXAMPLES * n_rounds} examples of up to {STEPS} steps")
