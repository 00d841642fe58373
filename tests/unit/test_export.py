import json

import numpy as np
import pytest

from core.engine.config import PlainConfig
from core.errors import ExportError
from core.export import provenance
from core.formats import read, write
from core.review import Threshold, resolve


@pytest.fixture
def resolution(demo):
    confidences = np.where(demo.truth > 0, 0.9, 0.2).astype(np.float32) * demo.candidates
    return resolve(demo, confidences)


def about(demo, resolution):
    return provenance(
        demo, resolution, threshold=Threshold(), config=PlainConfig().model_dump(mode="json")
    )


def test_an_export_has_resolved_labels_and_the_record_of_its_making(demo, resolution, tmp_path):
    path = write(
        demo, tmp_path / "clean.csv", resolution=resolution, record=about(demo, resolution)
    )
    again = read(path)
    assert np.array_equal(again.dataset.candidates, demo.candidates)
    header = path.read_text().splitlines()[0]
    assert "resolved_7" in header
    assert "conf_7" in header
    assert "reason_7" in header
    record = json.loads((tmp_path / "clean.csv.provenance.json").read_text())
    assert record["data"]["fingerprint"] == demo.fingerprint
    assert record["n_resolved"] == demo.truth.sum()
    assert record["threshold"] == {"value": 0.5}
    assert sum(record["cells_by_reason"].values()) == demo.candidates.size


def test_existing_files_are_refused_unless_forced(demo, resolution, tmp_path):
    target = tmp_path / "clean.csv"
    target.write_text("precious")
    with pytest.raises(ExportError):
        write(demo, target, resolution=resolution, record={})
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["clean.csv"]
    write(demo, target, resolution=resolution, record={}, force=True)
    assert target.read_text() != "precious"
