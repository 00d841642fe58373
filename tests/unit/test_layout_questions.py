"""What a file does not say is asked, and what the question says answers it reads the file right."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from challenge_layouts import codes_in_places, relevant_items
from document_layouts import first_names_of_labels
from layouts import LABELS, Layout, N, table
from number_layouts import galaxies
from public_layouts import skin_lesions, three_subtasks
from table_layouts import composite_labels
from wild_layouts import text

from core import formats
from core.formats import ColumnMapping


def _table(name: str, header: list[str], row: Callable[[int, random.Random], list[Any]]) -> Layout:
    rng = random.Random(0)
    rows = [header, *(row(k, rng) for k in range(N))]
    return Layout(name, table(rows), N, len(LABELS), 0)


def _flags(rng: random.Random, n: int) -> list[int]:
    return rng.choices([0, 1], k=n)


TWO_PARTS = ["user_error", "user_request", "model_error", "model_request"]
ARENA = ["question_id", "model_a", "model_b", "winner"]
MODELS = ["gpt", "vicuna", "alpaca"]
MESH = ["abstract", "meshMajor", *"ABCD"]
SCORED = ["prompt", "helpfulness", "correctness", "coherence"]
BOXES = ["patientId", "x", "width", "Target"]

CASES = {
    "labels of two parts": (
        _table("parts.csv", ["text", *TWO_PARTS], lambda k, rng: [text(rng), *_flags(rng, 4)]),
        "what is one row? user, model are taken for people",
        {"row": "item"},
        4,
        0,
    ),
    "HAM10000": (
        skin_lesions(random.Random(0)),
        "which column holds the labels? 'dx'",
        {"labels": ("localization",)},
        3,
        0,
    ),
    "OLID": (
        three_subtasks(random.Random(0)),
        "which column holds the labels? 'subtask_a'",
        {"labels": ("subtask_b",)},  # NULL is none
        2,
        0,
    ),
    "Galaxy Zoo": (
        galaxies(random.Random(0)),
        "which columns are labels? columns of numbers that end in 'fraction'",
        {"labels": tuple(f"t01_a0{j}_{x}_debiased" for j, x in enumerate(LABELS))},
        5,
        10,
    ),
    "who chose what": (
        first_names_of_labels(random.Random(0)),
        "who says what? Objects in 'votes'",
        {"answers": "by_source"},
        4,
        5,
    ),
    "labels in ids": (
        composite_labels(random.Random(0)),
        "what is one row? 'id' is taken for an item and one of 4 labels",
        {"label_names": ("left", "right")},
        2,
        0,
    ),
    "Chatbot Arena": (
        _table(
            "arena.csv",
            ARENA,
            lambda k, rng: [f"q{k}", *rng.sample(MODELS, 2), ["model_a", "model_b", "tie"][k % 3]],
        ),
        "which column holds the labels? ",
        {"labels": ("winner",)},
        3,
        0,
    ),
    "MeSH": (
        _table(
            "mesh.csv",
            MESH,
            lambda k, rng: [text(rng), str(rng.sample(LABELS, 2)), *_flags(rng, 4)],
        ),
        "which column holds the labels? 'A'",
        {"labels": ("meshMajor",)},
        5,
        0,
    ),
    "codes in places": (
        codes_in_places(random.Random(0)),
        "which columns are labels? columns of class numbers, filled from the left",
        {"labels": ("main", "more")},
        5,
        0,
    ),
    "RCV1": (
        relevant_items(random.Random(0)),
        "what is one row? It is taken for a label ('column1') of 'column2'",
        {"row": "view", "source": "column2", "id": "column1", "labels": ("column3",)},
        1,
        N,
    ),
    "HelpSteer": (
        _table("steer.csv", SCORED, lambda k, rng: [text(rng), *rng.choices(range(5), k=3)]),
        "what do the numbers say? ",
        {"labels": ("helpfulness", "correctness", "coherence")},
        3,
        4,
    ),
    "boxes in X-rays": (
        _table(
            "boxes.csv",
            BOXES,
            lambda k, rng: [f"{k // 2:08x}", *([k, 9] if k % 4 < 2 else ["", ""]), int(k % 4 < 2)],
        ),
        "what is one row? 'patientId' has the same in several rows",
        {"row": "view", "id": "patientId"},
        1,
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_question_says_what_answers_it(name: str, tmp_path: Path) -> None:
    layout, question, answer, n_labels, n_sources = CASES[name]
    path = layout.write(tmp_path)
    asked = [one.message for one in formats.read(path).problems if "?" in one.message]
    assert [one for one in asked if one.startswith(question)], asked
    found = formats.read(path, ColumnMapping(**answer)).dataset
    assert found.n_labels == n_labels
    assert (0 if found.votes is None else found.votes.n_sources) == n_sources
