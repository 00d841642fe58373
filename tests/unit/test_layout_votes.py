"""Who said what, in every layout that names people: votes as they were given, and given back."""

import csv
import random
from pathlib import Path
from typing import Any

import format_cases as cases
import layouts
import numpy as np
import pytest
from survey_layouts import turk_sparse

from core import formats
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer

RATED = (
    (layouts.rater_rows_one_hot, lambda who: who[1:]),
    (layouts.rater_rows_sets, str),
    (layouts.worker_task_label, str),
    (layouts.long_with_value, str),
    (layouts.annotator_columns, lambda who: f"annotator_{who[1:]}"),
    (layouts.keyed_by_source, str),
)


@pytest.mark.parametrize(("make", "name"), RATED, ids=[make.__name__ for make, _ in RATED])
def test_votes_are_who_said_what(make: Any, name: Any, tmp_path: Path) -> None:
    data = formats.read(make().write(tmp_path)).dataset
    by_text = {item.text: item for item in layouts.crowd()}
    items = {item.id: item for item in layouts.crowd()}
    assert data.votes is not None
    for row, key in enumerate(data.ids):
        item = items.get(key)
        if item is None:
            assert data.display is not None
            item = by_text[data.display["text.context"][row]]
        for j, label in enumerate(data.label_names):
            yes = sorted(name(who) for who, names in item.answers.items() if label in names)
            no = sorted(name(who) for who, names in item.answers.items() if label not in names)
            found = data.votes.offered_by(row, j)
            assert (sorted(found[0]), sorted(found[1])) == (yes, no)


def test_probabilities_of_models_are_votes_and_stay_in_the_export(tmp_path: Path) -> None:
    path = layouts.model_probabilities().write(tmp_path)
    data = formats.read(path).dataset
    assert data.votes is not None
    with path.open() as file:
        rows = list(csv.DictReader(file))
    j = data.label_names.index("joy")
    for i, row in enumerate(rows):
        yes, no = data.votes.offered_by(i, j)
        assert yes == [m for m in data.votes.sources if float(row[f"{m}_joy"]) >= 0.5]
        assert len(yes) + len(no) == 3
    out = formats.write(data, tmp_path / "b.csv", resolution=cases.resolution_of(data))
    with out.open() as file:
        kept = list(csv.DictReader(file))
    assert [row["model_a_joy"] for row in kept] == [row["model_a_joy"] for row in rows]


def test_rows_of_raters_stay_rows_of_raters(tmp_path: Path) -> None:
    path = layouts.rater_rows_one_hot().write(tmp_path)
    data = formats.read(path).dataset
    resolution = cases.resolution_of(data)
    out = formats.write(data, tmp_path / "b.csv", resolution=resolution)
    given, written = path.read_text().splitlines(), out.read_text().splitlines()
    assert len(given) == len(written)
    assert all(new.startswith(old) for old, new in zip(given, written, strict=True))
    for row in csv.DictReader(written):
        i = data.row_of[row["id"]]
        assert [int(row[f"resolved_{x}"]) for x in data.label_names] == resolution.labels[
            i
        ].tolist()


def test_rejected_labels_are_no_candidates(tmp_path: Path) -> None:
    said = [("sea", "accept"), ("sun", "reject"), ("sky", "reject"), ("sea", "ignore")]
    given = [
        {
            "text": f"words of text {k}",
            "_input_hash": k,
            "label": name,
            "answer": answer,
            "score": 0.5,
        }
        for k, (name, answer) in enumerate(5 * said)
    ]
    for keys in (("_input_hash", "text", "label", "answer", "score"), ("text", "label", "answer")):
        path = tmp_path / "teach.jsonl"
        path.write_text(layouts.lines([{key: one[key] for key in keys} for one in given]))
        data = formats.read(path).dataset
        assert (data.n_instances, data.label_names) == (20, ("sea", "sky", "sun"))
        assert data.candidates.sum() == 5
        assert data.has_features


def test_boxes_that_were_not_ticked_are_no(tmp_path: Path) -> None:
    data = formats.read(turk_sparse(random.Random(0)).write(tmp_path)).dataset
    assert data.votes is not None
    for row, item in enumerate(layouts.crowd()):
        for j, label in enumerate(layouts.LABELS):
            yes = sorted(f"W{who}" for who, names in item.answers.items() if label in names)
            no = sorted(f"W{who}" for who, names in item.answers.items() if label not in names)
            found = data.votes.offered_by(row, j)
            assert (sorted(found[0]), sorted(found[1])) == (yes, no)


def test_without_features_a_run_goes_by_votes_and_labels_alone(tmp_path: Path) -> None:
    data = formats.read(layouts.worker_task_label().write(tmp_path)).dataset
    trainer = PlainTrainer(PlainConfig.preset("studio", epochs=2))
    events = list(trainer.epochs(data))
    assert events[0].kind == "run_started"
    assert events[0].config.alpha == 0
    offered = data.candidates > 0
    assert data.votes is not None
    votes = (data.votes.n_yes / np.maximum(data.votes.n_asked, 1))[offered]
    assert np.corrcoef(votes, trainer.confidences[offered])[0, 1] > 0.5
