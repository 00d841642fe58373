"""Real runs: real child processes, real database, killed and resumed."""

import random
import threading
from time import sleep

import filelock
import numpy as np
import pytest
from real_runs import assert_same_results, kill, kill_all, queue, results, wait

from core.errors import StoreError
from core.review.load import retraining_difference
from core.runs import processes as background
from core.runs import worker
from core.runs.recorder import checkpoint_interval
from core.runs.results import (
    confidence_history,
    give_graphs,
    lay_out,
    load_graphs,
    retrained_from,
)
from core.store import Decision, RunState, Workspace


@pytest.fixture
def workspace(tmp_path, demo):
    space = Workspace(tmp_path / "space")
    space.add_dataset(demo, "demo")
    yield space
    kill_all(space)
    space.close()


def test_a_run_records_events_results_and_every_epochs_confidences(workspace, demo):
    run = queue(workspace, demo, epochs=5, members=2)
    told = []
    ended = worker.run_training(workspace, run.id, on_event=told.append)
    assert ended.state is RunState.FINISHED
    stored = workspace.runs.events_after(run.id)
    assert [seq for seq, _ in stored] == list(range(8))
    assert [event for _, event in stored] == told
    history = confidence_history(workspace, run.id)
    assert history.shape == (5, demo.candidates.sum())
    confidences = results(workspace, run)[2]
    # The last epoch takes one reading of the level, the end all of them.
    assert np.abs(history[-1] - confidences[demo.candidates > 0]).mean() < 0.01
    instances, labels = load_graphs(workspace, run.id)
    assert instances.n_instances == demo.n_instances
    assert labels.n_labels == demo.n_labels
    folder = workspace.runs.folder(run.id)
    assert np.load(folder / "layout_pca.npy").shape == (400, 2)
    assert not any(one.stat().st_mode & 0o077 for one in (folder, *folder.iterdir()))


def test_a_map_is_laid_out_by_one_process_at_a_time_and_only_once(workspace, demo):
    run = queue(workspace, demo, epochs=1, members=2)
    worker.run_training(workspace, run.id)
    made = workspace.runs.folder(run.id) / "layout_umap.npy"
    other = threading.Thread(target=lay_out, args=(workspace, run.id))
    with filelock.FileLock(workspace.folder / "layout.lock"):  # as a process that is at it
        other.start()
        other.join(0.5)
        assert other.is_alive()
        assert not made.exists()
        made.write_bytes(b"made by the first")
    other.join()
    assert made.read_bytes() == b"made by the first"
    made.unlink()
    lay_out(workspace, run.id)
    assert np.load(made).shape == (400, 2)


@pytest.fixture
def standby(workspace, monkeypatch):
    monkeypatch.delenv("PLAIN_STANDBY")
    monkeypatch.setattr(background, "standby", background.Standby())
    background.standby.open(workspace.folder)
    return background.standby


def test_a_process_that_stood_by_gives_the_same_bits(workspace, demo, standby):
    there = queue(workspace, demo, members=2)
    ready = standby._process
    worker.launch(workspace, there.id)
    wait(lambda: workspace.runs.get(there.id).pid is not None)
    assert workspace.runs.get(there.id).pid == ready.pid
    assert standby.give(workspace.folder, "another") is None  # it has its run
    here = queue(workspace, demo, members=2)
    worker.run_training(workspace, here.id)
    wait(lambda: workspace.runs.get(there.id).state.is_ended)
    assert_same_results(workspace, here, there)
    assert worker.log_of(workspace, there.id).exists()


def test_a_process_that_stands_by_is_replaced_and_ends_with_who_started_it(
    workspace, demo, standby
):
    standby._process.kill()
    standby._process.wait()
    run = queue(workspace, demo, epochs=1)
    worker.launch(workspace, run.id)  # by a process of its own
    standby.renew()
    assert standby._process.poll() is None
    wait(lambda: workspace.runs.get(run.id).state is RunState.FINISHED)
    standby._process.stdin.close()
    assert standby._process.wait(120) == 0


def test_a_child_process_gives_the_same_bits_as_the_foreground(workspace, demo):
    here, there = queue(workspace, demo), queue(workspace, demo)
    worker.run_training(workspace, here.id)
    worker.launch(workspace, there.id)
    wait(lambda: workspace.runs.get(there.id).state.is_ended)
    assert_same_results(workspace, here, there)


def test_a_run_killed_again_and_again_ends_as_if_nothing_happened(workspace, demo, monkeypatch):
    monkeypatch.setenv("PLAIN_CHECKPOINT_SECONDS", "0.2")
    epochs = 100
    settings = {"epochs": epochs, "batch_size": 4}  # small steps: an epoch lasts long enough
    broken = queue(workspace, demo, **settings)
    chance = random.Random(1)
    kills = 0
    while kills < 2:
        worker.launch(workspace, broken.id)
        wait(lambda: workspace.runs.get(broken.id).pid is not None)
        before = workspace.runs.get(broken.id).epoch
        wait(lambda at=before: workspace.runs.get(broken.id).epoch > at)
        sleep(chance.uniform(0, 0.1))
        run = workspace.runs.get(broken.id)
        assert not run.state.is_ended, "too fast to be killed"
        kill(run)
        wait(lambda: worker.is_interrupted(workspace, workspace.runs.get(broken.id)))
        kills += 1
    worker.launch(workspace, broken.id)
    wait(lambda: workspace.runs.get(broken.id).state.is_ended)
    assert workspace.runs.get(broken.id).state is RunState.FINISHED
    whole = queue(workspace, demo, **settings)
    worker.run_training(workspace, whole.id)
    assert_same_results(workspace, whole, broken)
    events = workspace.runs.events_after(broken.id)
    assert [seq for seq, _ in events] == list(range(epochs + 3))
    assert [event.epoch for _, event in events if event.kind == "epoch"] == list(
        range(1, epochs + 1)
    )
    one, other = (confidence_history(workspace, run.id) for run in (whole, broken))
    assert np.array_equal(one, other)


def test_checkpoints_take_a_tenth_of_the_time_at_most():
    assert checkpoint_interval(0.01, least=3) == 3
    assert 4 / (4 + checkpoint_interval(4, least=3)) == pytest.approx(0.1)
    assert checkpoint_interval(4, least=0) == 0  # after every epoch, as somebody wants


def test_a_run_at_work_is_nobody_elses_pauses_goes_on_and_stops_with_its_results(workspace, demo):
    run = queue(workspace, demo, epochs=100_000, batch_size=4)
    worker.launch(workspace, run.id)
    wait(lambda: workspace.runs.get(run.id).epoch > 0)
    with pytest.raises(StoreError, match="already at work"):
        worker.run_training(workspace, run.id)
    workspace.runs.command(run.id, "pause")
    wait(lambda: workspace.runs.get(run.id).state is RunState.PAUSED)
    sleep(0.5)
    held = workspace.runs.get(run.id).epoch
    sleep(0.5)
    assert workspace.runs.get(run.id).epoch == held
    workspace.runs.command(run.id, "resume")
    wait(lambda: workspace.runs.get(run.id).epoch > held)
    workspace.runs.command(run.id, "stop")
    wait(lambda: workspace.runs.get(run.id).state is RunState.STOPPED)
    ended = workspace.runs.get(run.id)
    assert workspace.runs.events_after(run.id)[-1][1].epochs == ended.epoch
    assert results(workspace, run)[0].shape == demo.candidates.shape


def test_no_more_runs_at_once_than_allowed_and_the_rest_follow(workspace, demo):
    queued = [queue(workspace, demo, epochs=5) for _ in range(2)]
    for run in queued:
        worker.launch(workspace, run.id)
    most = 0
    while not all(workspace.runs.get(run.id).state.is_ended for run in queued):
        most = max(most, sum(run.state is RunState.RUNNING for run in workspace.runs.list()))
        sleep(0.05)
    assert most == 1
    assert {workspace.runs.get(run.id).state for run in queued} == {RunState.FINISHED}


def test_an_interrupted_run_can_be_stopped_with_its_last_checkpoint(workspace, demo):
    run = queue(workspace, demo, epochs=100_000)
    worker.launch(workspace, run.id)
    folder = workspace.runs.folder(run.id)
    wait(lambda: (folder / "checkpoint.npz").exists())
    kill(workspace.runs.get(run.id))
    wait(lambda: worker.is_interrupted(workspace, workspace.runs.get(run.id)))
    worker.stop(workspace, run.id)
    assert workspace.runs.get(run.id).state is RunState.STOPPED
    assert results(workspace, run)[0].shape == demo.candidates.shape


def test_a_damaged_checkpoint_only_costs_time(workspace, demo):
    whole, broken = queue(workspace, demo, epochs=10), queue(workspace, demo, epochs=10)
    (workspace.runs.folder(broken.id) / "checkpoint.npz").write_bytes(b"not an archive")
    for run in (whole, broken):
        worker.run_training(workspace, run.id)
    assert np.array_equal(results(workspace, whole)[0], results(workspace, broken)[0])


def test_a_failed_training_is_told_and_kept(workspace, demo):
    run = queue(workspace, demo, loss="mse", learning_rate=10, weight_decay=1, epochs=30)
    with pytest.raises(Exception, match="diverged"):
        worker.run_training(workspace, run.id)
    failed = workspace.runs.get(run.id)
    assert failed.state is RunState.FAILED
    assert "diverged" in failed.error
    assert workspace.runs.events_after(run.id)[-1][1].state == "failed"


def test_stop_from_another_thread_ends_after_a_whole_epoch(workspace, demo):
    run, halt = queue(workspace, demo, epochs=100_000), threading.Event()
    threading.Timer(1.0, halt.set).start()
    ended = worker.run_training(workspace, run.id, stop=halt)
    assert ended.state is RunState.STOPPED
    assert ended.epoch >= 1


def test_given_graphs_are_used(workspace, demo):
    from core.engine.graphs import build_instance_graph

    run = queue(workspace, demo, epochs=1)
    graph = build_instance_graph(np.random.default_rng(0).random((demo.n_instances, 3)), k=3)
    give_graphs(workspace.runs.folder(run.id), instance_graph=graph)
    worker.run_training(workspace, run.id)
    used, _ = load_graphs(workspace, run.id)
    assert (used.affinity != graph.affinity).nnz == 0


def test_a_reviewed_run_is_retrained_from_its_weights_with_the_decisions(workspace, demo):
    run = queue(workspace, demo, epochs=4, members=2)
    worker.run_training(workspace, run.id)
    cells = np.random.default_rng(0).permutation(np.argwhere(demo.candidates))[:200]
    workspace.decisions.add_many(
        Decision(
            fingerprint=demo.fingerprint,
            instance_id=demo.ids[i],
            label=demo.label_names[j],
            verdict="keep" if demo.truth[i, j] else "reject",
            annotator="ann",
        )
        for i, j in cells
    )
    warm = worker.retrain(workspace, run.id)
    ended = worker.run_training(workspace, warm.id)
    assert (ended.state, ended.epoch, ended.config.epochs) == ("finished", 2, 2)
    assert retrained_from(workspace, warm.id) == run.id
    assert retrained_from(workspace, run.id) is None
    rejected = tuple(cells[demo.truth[cells[:, 0], cells[:, 1]] == 0].T)
    _, before, _ = results(workspace, run)
    _, after, _ = results(workspace, warm)
    assert after[rejected].mean() < before[rejected].mean()
    found = retraining_difference(workspace, ended)
    assert found.settled
    with pytest.raises(StoreError, match="began anew"):
        retraining_difference(workspace, workspace.runs.get(run.id))


def test_a_run_without_results_cannot_be_retrained(workspace, demo):
    with pytest.raises(StoreError, match="no results"):
        worker.retrain(workspace, queue(workspace, demo).id)
