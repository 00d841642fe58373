"""FiftyOne with its database: the folder becomes samples with classifications and pictures."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

folder, mongod = Path(sys.argv[1]).resolve(), sys.argv[2]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ["FIFTYONE_DATABASE_URI"] = f"mongodb://127.0.0.1:{port}"
os.environ["FIFTYONE_DO_NOT_TRACK"] = "true"
with tempfile.TemporaryDirectory() as data:
    options = ["--dbpath", data, "--port", str(port), "--bind_ip", "127.0.0.1", "--quiet"]
    server = subprocess.Popen([mongod, *options], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as test:
                if test.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        import fiftyone as fo

        expected = json.loads((folder / "expected.json").read_text())
        for name in ("demo", "odd", "pictures", "crowd"):
            where = str(folder / name / "fiftyone" / name)
            found = fo.Dataset.from_dir(where, dataset_type=fo.types.FiftyOneDataset)
            assert len(found) == expected[name][0]
            assert found.classes["labels"] == expected[f"{name} labels"]
            first = found.first()
            assert isinstance(first.candidate_labels, fo.Classifications)
            told = [one for sample in found for one in sample.candidate_labels.classifications]
            assert told
            assert all(0 <= one.confidence <= 1 for one in told)
            assert all(Path(sample.filepath).is_file() for sample in found)
            assert found.count_values("candidate_labels.classifications.label")
        assert (
            next(
                one.instance_id
                for one in fo.Dataset.from_dir(
                    str(folder / "odd/fiftyone/odd"), dataset_type=fo.types.FiftyOneDataset
                )
            )
            == "007"
        )
    finally:
        server.terminate()
        server.wait(20)
print("four folders: samples, classes, confidences, pictures and ids")
