"""Write the files that the other programs are given: `python make_files.py FOLDER`, in our venv.

`expected.json` says what they must find in them. Emotions is taken where the shared data is there,
else the demo stands in for it.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.data.noise import uniform_candidates
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer
from core.formats import read, writable, write
from core.review import resolve

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "emotions.npz"
ODD = [
    ("007", "The sky, at night", ["Übung", "a, b"]),
    ("008", 'She said "no" — 東京', ["-ve", "sky"]),
    ("0009", "plain words", []),
    ("010", "  red sky and sea  ", ["sky", "x y"]),
    ("11", "sky over the sea", ["日本", "sky", "a, b"]),
    ("012", 'two\nlines; "text"', ["it's 100%", "a|b;c", "Sky", "🙂", "text"]),
]
CROWD = [
    ("p1", "red sky", "2", ["sky", "Sky"]),
    ("p1", "red sky", "Zoë", ["sky", "a|b"]),
    ("p2", "a dog, or two", "2", []),
    ("p2", "a dog, or two", "李雷, K.", ["dog"]),
    ("p3", "grey sky", "Zoë", ["sky"]),
]
MANY = 100_000


class Said:
    """A decision."""

    def __init__(self, instance_id: str, label: str, verdict: str, annotator: str) -> None:
        self.instance_id, self.label, self.verdict = instance_id, label, verdict
        self.annotator, self.time = annotator, "2026-03-01T10:00:00+00:00"


def trained() -> tuple[CandidateDataset, np.ndarray, np.ndarray]:
    """Return data with three false labels added to every instance, as a run knows it."""
    clean = read(SHARED).dataset if SHARED.is_file() else load_demo()
    assert clean.truth is not None
    candidates = uniform_candidates(clean.truth, 3)
    data = CandidateDataset(
        clean.features, candidates, clean.label_names, clean.ids, clean.feature_names, clean.truth
    )
    trainer = PlainTrainer(PlainConfig.preset("studio", epochs=10))
    for _ in trainer.epochs(data):
        pass
    return data, trainer.confidences, trainer.predictions


def table(path: Path, header: tuple[str, ...], rows: list[tuple]) -> CandidateDataset:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(header)
        lines.writerows([*cells, json.dumps(labels, ensure_ascii=False)] for *cells, labels in rows)
    return read(path).dataset


def odd(folder: Path) -> CandidateDataset:
    return table(folder / "odd-source.csv", ("id", "text", "labels"), ODD)


def crowd(folder: Path) -> CandidateDataset:
    return table(folder / "crowd-source.csv", ("id", "text", "annotator", "labels"), CROWD)


def pictures(folder: Path) -> CandidateDataset:
    rows = ["image,labels"]
    (folder / "img").mkdir(exist_ok=True)
    for i, labels in enumerate(("sea|sky", "dog", "", "dog|sea")):
        Image.new("RGB", (8, 8), (40 * i, 90, 200)).save(folder / "img" / f"picture {i}.png")
        rows.append(f"img/picture {i}.png,{labels}")
    (folder / "pictures-source.csv").write_text("\n".join(rows) + "\n")
    return read(folder / "pictures-source.csv").dataset


def many() -> CandidateDataset:
    """Return 100,000 rows; the confidences of the first half are whole numbers."""
    rng = np.random.default_rng(0)
    features = rng.random((MANY, 4), dtype=np.float32)
    return CandidateDataset(features, rng.random((MANY, 6)) < 0.3, [f"l{j}" for j in range(6)])


def write_all(folder: Path, name: str, data: CandidateDataset, confidences: np.ndarray) -> None:
    """Write a data set in every format, with decisions of two people."""
    cells = np.argwhere(data.candidates)[:3].tolist()
    made = [
        Said(data.ids[i], data.label_names[j], verdict, who)
        for (i, j), verdict, who in zip(
            cells, ("keep", "reject", "keep"), ("anna", "2", "2"), strict=True
        )
    ]
    resolution = resolve(data, confidences, decisions=made)
    for format, ending in writable().items():
        target = folder / name / format / f"{name}{ending}"
        target.parent.mkdir(parents=True)
        options = {"format": format, "decisions": made, "record": {}}
        write(data, target, resolution=resolution, **options)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    data, confidences, predictions = trained()
    resolution = resolve(data, confidences, predictions=predictions)
    write(data, folder / "emotions.json", format="cleanlab", resolution=resolution)
    np.save(folder / "predictions.npy", predictions)
    np.save(folder / "candidates.npy", data.candidates)
    write(data, folder / "emotions.arff", resolution=resolution)
    write(data, folder / "emotions.mat", resolution=resolution)
    expected["emotions"] = [data.n_instances, data.n_features, data.n_labels]
    few = {"odd": odd(folder), "pictures": pictures(folder), "crowd": crowd(folder)}
    for name, made in {"demo": load_demo(), **few}.items():
        values = np.random.default_rng(0).random(made.candidates.shape, dtype=np.float32)
        write_all(folder, name, made, values * made.candidates)
        expected[name] = [made.n_instances, made.n_features, made.n_labels]
        expected[f"{name} labels"] = list(made.label_names)
    large = many()
    values = large.candidates * np.random.default_rng(1).random((MANY, 6), dtype=np.float32)
    values[: MANY // 2] = np.round(values[: MANY // 2])
    outcome = resolve(large, values)
    for ending, format in (
        ("jsonl", None),
        ("parquet", None),
        ("csv", None),
        ("hf.jsonl", "huggingface"),
    ):
        write(large, folder / f"many.{ending}", format=format, resolution=outcome)
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
