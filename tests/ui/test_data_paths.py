"""Data on the server's disk: opened by path, where that is allowed."""

import io
import json

import pandas as pd
import pytest

from core.data.votes import Votes
from core.store.files import remove_leftovers
from plain_app.server import launcher
from plain_app.services import data


def good_csv() -> bytes:
    rows = range(40)
    labels = {f"label_{name}": [(i + j) % 2 for i in rows] for j, name in enumerate("abc")}
    table = pd.DataFrame({"id": [f"i{i}" for i in rows], "x": [i / 7 for i in rows], **labels})
    return table.to_csv(index=False).encode()


def open_path(app, path):
    app.text_input(key="data.path").set_value(str(path))
    return app.button(key="data.open_path").click().run()


def test_a_path_on_the_server_is_read_where_it_is(stage, open_app, tmp_path):
    path = tmp_path / "sea.csv"
    path.write_bytes(good_csv())
    app = open_path(open_app(), path)
    assert not app.exception
    app.button(key="data.load").click().run()
    assert [row.name for row in stage.space.datasets()] == ["sea.csv"]
    assert path.read_bytes() == good_csv()
    assert not (stage.space.folder / "incoming").exists()


def test_votes_that_a_killed_server_was_reading_are_removed_later(stage, monkeypatch):
    def read(path, *_):
        remove_leftovers(path.parent)
        raise KeyboardInterrupt(path.exists())

    monkeypatch.setattr(Votes, "read", read)
    with pytest.raises(KeyboardInterrupt, match="False"):
        data.store_votes(stage.dataset, io.BytesIO(b"instance,label,source,vote"))


@pytest.mark.parametrize("typed", ["", "nowhere.csv", "a\0b", "~nobody-has-this-name/x.csv"])
def test_a_path_that_leads_nowhere_is_a_message(stage, open_app, typed):
    app = open_path(open_app(), typed)
    assert not app.exception
    assert any("path" in one.value or "no such file" in one.value for one in app.text)


def test_on_a_shared_server_paths_are_open_below_named_folders_only(
    stage, open_app, tmp_path, monkeypatch
):
    inside, outside = tmp_path / "open", tmp_path / "closed"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "sea.csv").write_bytes(good_csv())
    (inside / "link.csv").symlink_to(outside / "sea.csv")
    monkeypatch.setenv(launcher.DATA_FOLDERS, json.dumps([str(inside)]))
    for typed in (outside / "sea.csv", inside / ".." / "closed" / "sea.csv", inside / "link.csv"):
        app = open_path(open_app(), typed)
        assert any("not open" in one.value for one in app.text)
    app = open_path(open_app(), inside / "sea.csv")
    app.button(key="data.load").click().run()
    assert len(stage.space.datasets()) == 1
    monkeypatch.setenv(launcher.DATA_FOLDERS, "[]")
    app = open_app(data="")
    assert not [one for one in app.text_input if one.key == "data.path"]


def test_the_launchers_file_is_offered_until_it_is_loaded(stage, open_app, tmp_path, monkeypatch):
    path = tmp_path / "sea.csv"
    path.write_bytes(good_csv())
    monkeypatch.setenv("PLAIN_FILE", str(path))
    open_app().button(key="data.load").click().run()
    assert [row.name for row in stage.space.datasets()] == ["sea.csv"]
    later = open_app()
    assert [one.key for one in later.button if one.key == "data.load"] == []
    assert path.read_bytes() == good_csv()
