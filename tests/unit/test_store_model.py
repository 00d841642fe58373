"""Whatever is done to the store, in whatever order, by two processes: it does as its model."""

import pytest
from store_model import check_agreement


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_two_processes_and_the_model_agree(request, tmp_path, monkeypatch, database):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    if database == "postgresql":
        monkeypatch.setenv("PLAIN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    check_agreement(tmp_path, max_examples=10, stateful_step_count=30)
