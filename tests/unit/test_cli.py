import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from core import cli
from core.cli.screen import parse_settings
from core.errors import PlainError

RUNNER = CliRunner()


def plain(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "core", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_demo_trains_and_prints_figures():
    done = plain("demo", "--json", "--set", "epochs=4")
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["auc"] > 0.6


def test_bad_input_is_a_message_and_exit_code_two():
    done = plain("demo", "--set", "alpha=-1")
    assert done.returncode == 2
    assert "alpha" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_are_parsed():
    parsed = parse_settings(["alpha=0.5", "n_steps=none", "hidden=[8,8]", "loss=mse"])
    assert parsed == {"alpha": 0.5, "n_steps": None, "hidden": [8, 8], "loss": "mse"}
    with pytest.raises(PlainError):
        parse_settings(["alpha"])


def test_quality_benchmark_writes_its_table(tmp_path):
    rng = np.random.default_rng(0)
    truth = np.eye(4, dtype=np.uint8)[rng.integers(0, 4, 60)]
    np.savez(tmp_path / "toy.npz", X=rng.random((60, 5), dtype=np.float32), Y=truth)
    report = tmp_path / "benchmarks.md"
    arguments = ["bench", "quality", "--data", str(tmp_path), "--folds", "2", "--r", "1", "--json"]
    done = RUNNER.invoke(cli.app, [*arguments, "--write", str(report)])
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout.splitlines()[-1])
    assert results[0]["variant"] == "PLAIN"
    assert len(results) == 5
    for result in results:
        last, best = result["last"], result["best_test_epoch"]
        assert best["average_precision"][0] >= last["average_precision"][0]
    assert "| toy | 1 | two-stage |" in report.read_text()


def test_benchmarks_without_data_say_what_to_give(tmp_path):
    for arguments in (["bench", "quality"], ["bench", "quality", "--data", str(tmp_path)]):
        done = plain(*arguments)
        assert done.returncode == 2
        assert "--data" in done.stderr
