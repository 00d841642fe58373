import json
import subprocess
import sys

import numpy as np
import pytest
from command_line import plain
from typer.testing import CliRunner

from core.cli.screen import parse_settings
from core.errors import PlainError
from plain_app import cli

RUNNER = CliRunner()


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plain_app", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_demo_trains_and_prints_figures():
    done = process("demo", "--json", "--set", "epochs=4")
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["auc"] > 0.6


def test_bad_input_is_a_message_and_exit_code_two():
    done = process("demo", "--set", "alpha=-1")
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


def test_check_says_how_a_file_is_understood(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(
        "id,f1,f2,label_a,label_b\n" + "".join(f"r{i},{i},1.5,1,{i % 2}\n" for i in range(30))
    )
    done = plain("check", str(path), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["summary"]["n_instances"] == 30
    assert told["mapping"]["id"] == "id"
    assert any("every" in problem["message"] for problem in told["problems"])


def test_a_file_that_cannot_be_used_is_a_table_of_problems_and_exit_code_two(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,f1,label_a\nx,1,1\nx,oops,0\ny,2,1\nz,3,7\n")
    for command in (["check"], ["train", "--workspace", str(tmp_path / "space")]):
        done = plain(command[0], str(path), *command[1:])
        assert done.returncode == 2
        assert "must be fixed" in done.stderr
    missing = plain("check", str(tmp_path / "nothing.csv"))
    assert missing.returncode == 2


def test_convert_refuses_to_overwrite_and_never_changes_the_original(tmp_path):
    target = tmp_path / "demo.parquet"
    assert plain("convert", "demo", str(target)).returncode == 0
    before = target.read_bytes()
    again = tmp_path / "again.npz"
    assert plain("convert", str(target), str(again)).returncode == 0
    assert plain("convert", "demo", str(target)).returncode == 2
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [["runs", "--workspace"], ["app", "--no-browser", "--workspace"], ["backup", "--full"]],
)
def test_a_home_folder_that_is_not_there_is_a_message(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = RUNNER.invoke(cli.app, [*command, "~nosuchuser/space"])
    assert isinstance(done.exception, PlainError)
    assert "~nosuchuser" in done.exception.detail


@pytest.mark.parametrize("command", ["convert", "clean"])
def test_force_on_a_folder_is_refused_before_anything_is_done(command, tmp_path):
    folder = tmp_path / "out.csv"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    done = RUNNER.invoke(cli.app, [command, "demo", str(folder), "--force"])
    assert isinstance(done.exception, PlainError)
    assert "folder" in done.exception.title
    assert (folder / "mine.txt").read_text() == "mine"


def test_clean_gives_labels_closer_to_the_truth_with_provenance(tmp_path):
    target = tmp_path / "clean.csv"
    done = plain("clean", "demo", str(target), "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["f1_resolved"] > figures["f1_candidates"]
    record = json.loads((tmp_path / "clean.csv.provenance.json").read_text())
    assert record["config"]["epochs"] == 12


def test_a_run_from_the_shell_is_listed_shown_exported_and_deleted(tmp_path):
    data, space = tmp_path / "data.csv", ["--workspace", str(tmp_path / "space")]
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},note {i},x{i},{int(a > 0)},1" for i, a in enumerate(rng.normal(size=40))]
    data.write_text("f1,remark,id,label_a,label_b\n" + "\n".join(lines) + "\n")
    trained = plain("train", str(data), "--set", "epochs=2", "--json", *space)
    assert trained.returncode == 0, trained.stderr
    run = json.loads(trained.stdout)["run"]
    assert json.loads(plain("runs", "--json", *space).stdout)[0]["state"] == "finished"
    assert json.loads(plain("runs", "show", run[:11], "--json", *space).stdout)["epoch"] == "2/2"
    target = tmp_path / "out.csv"
    assert plain("export", run, str(target), "--top-k", "1", *space).returncode == 0
    header = target.read_text().splitlines()[0]
    assert header.startswith("f1,remark,id,label_a,label_b,resolved_a,resolved_b,conf_a")
    assert plain("runs", "delete", run, "--yes", *space).returncode == 0
    assert json.loads(plain("runs", "--json", *space).stdout) == []
    assert plain("runs", "restore", run, *space).returncode == 0
    assert "epoch 2" in plain("log", run, *space).stdout
    assert plain("stop", run, *space).returncode == 2


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("quality", "--r", "x"),
        ("quality", "--r", "-1"),
        ("quality", "--r", "1,,2"),
        ("quality", "--seed", "-1"),
        ("scale", "--sizes", "many"),
        ("scale", "--sizes", "0"),
        ("harm", "--shares", "a"),
        ("harm", "--shares", "120"),
        ("disambiguation", "--noise", "wild"),
    ],
)
def test_benchmarks_refuse_bad_options_with_a_message(command, option, value, tmp_path):
    data = ["--data", str(tmp_path)] if command == "quality" else []
    done = plain("bench", command, *data, option, value)
    assert done.returncode == 2
    assert value in done.stderr or option in done.stderr
