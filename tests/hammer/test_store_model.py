"""The store and its model, for as many examples as minutes allow."""

import pytest
from store_model import check_agreement

pytestmark = pytest.mark.hammer


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_two_connections_and_the_model_agree_for_long(request, tmp_path, monkeypatch, database):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    if database == "postgresql":
        monkeypatch.setenv("PLAIN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    check_agreement(tmp_path, max_examples=300, stateful_step_count=60)
