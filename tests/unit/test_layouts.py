"""Files as people have them: every layout is found by its content, read right and given back."""

import json
import random
from pathlib import Path
from typing import Any

import format_cases as cases
import layouts
import numpy as np
import pytest
from challenge_layouts import CHALLENGES
from cloud_layouts import CLOUD
from crowd_layouts import CROWD
from document_layouts import DOCUMENTS
from fuzzing import survive
from layouts import MADE, Layout
from number_layouts import NUMBERS
from public_layouts import PUBLIC
from rated_set_layouts import RATED_SETS
from scipy.io import savemat
from set_layouts import SETS
from survey_layouts import SURVEYS
from table_layouts import TABLES
from tool_layouts import TOOLS
from typer.testing import CliRunner
from vote_table import vote_table
from wild_layouts import WILD

from core import formats
from core.cli import app, screen
from core.data.votes import Votes
from core.errors import Problem, grouped
from core.formats import ColumnMapping
from core.formats.readers.json_tables.wide import wide_table

STRANGERS = Path(__file__).parents[2].parent / "shared" / "strangers"
NAMED = {make.__name__: make() for make in MADE}
NAMED |= {
    make.__name__: make(random.Random(0))
    for group in (
        *(WILD, PUBLIC, TOOLS, CLOUD, SURVEYS, SETS, RATED_SETS, NUMBERS, CROWD, TABLES),
        *(DOCUMENTS, CHALLENGES),
    )
    for make in group
}
each_layout = pytest.mark.parametrize(
    "layout", [pytest.param(layout, id=name) for name, layout in NAMED.items()]
)
MUTATIONS = 6  # per layout here; `python tests/unit/test_layouts.py 2000` makes many


def said(votes: Votes | None, ids: Any, labels: Any) -> Any:
    return None if votes is None else vote_table(votes, ids, labels).to_dict("list")


@each_layout
def test_a_layout_is_found_by_its_content(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    found = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert found.exit_code == 0, found.output
    summary = json.loads(found.stdout)["summary"]
    sizes = summary["n_instances"], summary["n_labels"], summary["n_sources"]
    assert sizes == (layout.n_instances, layout.n_labels, layout.n_sources)
    assert (summary["n_features"] > 0) == layout.has_features


@pytest.mark.parametrize("name", ["no_label_words", "scored_toxicity", "yes_no_unsure"])
def test_what_check_says_fits_a_screen(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = NAMED[name].write(tmp_path)
    monkeypatch.setattr(screen.out, "_width", 100)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


@each_layout
def test_a_layout_comes_back_as_it_came(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    first = formats.read(path)
    data = first.dataset
    out = tmp_path / f"out{path.suffix}"
    formats.write(data, out, resolution=cases.resolution_of(data), format=first.format)
    again = formats.read(out).dataset
    assert again.ids == data.ids
    assert tuple(again.label_names) == tuple(data.label_names)
    np.testing.assert_array_equal(again.candidates, data.candidates)
    assert said(again.votes, again.ids, again.label_names) == said(
        data.votes, data.ids, data.label_names
    )


@each_layout
def test_a_saved_mapping_reads_the_same(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    first = formats.read(path)
    if first.mapping is None:
        pytest.skip("tasks state the role of everything in them")
    first.mapping.save(tmp_path / "mapping.json")
    again = formats.read(path, ColumnMapping.load(tmp_path / "mapping.json"))
    assert again.dataset.fingerprint == first.dataset.fingerprint
    assert again.mapping is not None
    assert again.mapping.model_dump(exclude={"reasons"}) == first.mapping.model_dump(
        exclude={"reasons"}
    )


@each_layout
def test_one_row_per_item_keeps_the_votes(layout: Layout, tmp_path: Path) -> None:
    data = formats.read(layout.write(tmp_path)).dataset
    for kind in ("csv", "jsonl", "parquet"):
        path = formats.write(data, tmp_path / f"items.{kind}", per_item=True)
        again = formats.read(path).dataset
        assert again.ids == data.ids
        assert sorted(again.label_names) == sorted(data.label_names)
        assert said(again.votes, again.ids, again.label_names) == said(
            data.votes, data.ids, data.label_names
        )


@each_layout
def test_mutated_files_are_read_or_refused(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    survive(formats.read, path.read_bytes(), path, MUTATIONS)


def test_mutated_folders_of_hugging_face_are_read_or_refused(tmp_path: Path) -> None:
    folder = formats.write(cases.small_dataset(), tmp_path / "set", format="datasets")
    for path in sorted(folder.iterdir()):
        healthy = path.read_bytes()
        survive(lambda _: formats.read(folder), healthy, path, 10 * MUTATIONS)
        path.write_bytes(healthy)
    formats.read(folder)


def test_a_dense_table_of_mostly_zeros_in_a_mat_file_is_read_as_sparse(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = (rng.random((400, 2000)) < 0.01) * rng.random((400, 2000))
    labels = (rng.random((6, 400)) < 0.3).astype(float)
    path = tmp_path / "dense.mat"
    savemat(path, {"data": data, "target": labels, "partial_labels": labels}, do_compression=True)
    assert data.nbytes > 20 * path.stat().st_size
    found = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert found.exit_code == 0
    summary = json.loads(found.stdout)["summary"]
    assert (summary["n_instances"], summary["n_features"], summary["n_labels"]) == (400, 2000, 6)
    assert summary["sparse"]
    np.testing.assert_array_equal(
        formats.read(path).dataset.features.toarray(), data.astype(np.float32)
    )


def test_wide_json_lines_are_read_alike_by_both_parsers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    records = [
        {
            "id": f"i{i}",
            "text": "2020-01-01",
            **{f"feature_{j}": 0 for j in range(120)},
            "label_a": i % 2,
        }
        for i in range(80)
    ]
    for record in records:
        record["feature_3"] = float(rng.random()) if record["id"] > "i6" else 0
    path = tmp_path / "wide.jsonl"
    path.write_text(layouts.lines(records))
    assert wide_table(path) is not None
    fast = formats.read(path).dataset
    path.write_text(layouts.lines([*records[:-1], {**records[-1], "more": [1, {"a": 2}]}]))
    assert wide_table(path) is None
    slow = formats.read(path).dataset
    np.testing.assert_array_equal(cases.dense(fast.features), cases.dense(slow.features))
    assert (fast.ids, fast.label_names) == (slow.ids, slow.label_names)
    assert fast.display is not None
    assert fast.display["text"][0] == "2020-01-01"


def test_findings_of_many_rows_are_one_line() -> None:
    listed = [Problem("must hold", "Fix.", row=i) for i in range(20)]
    rest = Problem("… and 80 more: must hold", "Fix.", count=80, repeats="must hold")
    (one,) = grouped([*listed, rest])
    assert (one.count, one.row, one.message) == (100, "0, 1, 2 …", "must hold")
    alone = Problem("other", "Fix.", row=3)
    assert grouped([alone]) == [alone]


KNOWN = {
    "goemotions_dev.tsv": (5426, 28, 0, True),
    "convabuse_train.csv": (2501, 17, 8, True),
    "lewidi_varierr_dev.json": (50, 3, 4, True),
    "fsd_train_noisy.csv": (19815, 80, 0, False),
    "YeastBP.mat": (6139, 217, 0, True),
}


@pytest.mark.skipif(not STRANGERS.is_dir(), reason="the files of strangers are not here")
@pytest.mark.parametrize("name", KNOWN)
def test_real_files_are_read_without_a_mapping(name: str) -> None:
    data = formats.read(STRANGERS / name).dataset
    n_sources = 0 if data.votes is None else data.votes.n_sources
    assert (data.n_instances, data.n_labels, n_sources, data.has_features) == KNOWN[name]


def main(n: int) -> None:
    import resource
    import tempfile
    import time

    for name, layout in NAMED.items():
        with tempfile.TemporaryDirectory() as folder:
            path = layout.write(Path(folder))
            start = time.perf_counter()
            outcomes = survive(formats.read, path.read_bytes(), path, n)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            seconds = time.perf_counter() - start
            print(name, dict(outcomes), f"{seconds:.0f} s, peak {peak} MB", flush=True)


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
