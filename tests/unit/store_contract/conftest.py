"""A workspace on every database that the store runs on, as fixtures."""

import pytest
from store_actors import small_data

from core.engine.config import PlainConfig
from core.store import Workspace


@pytest.fixture(params=["sqlite", "postgresql"])
def folder(request, tmp_path, monkeypatch):
    """The folder of a workspace; PLAIN_DATABASE_URL is set where its database is PostgreSQL."""
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    if request.param == "postgresql":
        monkeypatch.setenv("PLAIN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    return tmp_path / "workspace"


@pytest.fixture
def workspace(folder):
    workspace = Workspace(folder)
    yield workspace
    workspace.close()


@pytest.fixture
def data(workspace) -> str:
    return workspace.add_dataset(small_data(), "small")


@pytest.fixture
def runs(workspace):
    return workspace.runs


@pytest.fixture
def run(runs, data):
    """A run at work."""
    return runs.claim(runs.create(data, PlainConfig()).id, 100, 1.0)
