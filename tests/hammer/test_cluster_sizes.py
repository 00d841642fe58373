"""Trainings on clusters of 2 and 4 real workers beside the same here; seconds are printed."""

from time import perf_counter

import numpy as np
import pytest
from dask_cluster import dask_cluster

from core.bench.data import mixtures
from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer

pytestmark = pytest.mark.hammer

STUDIO = PlainConfig.preset("studio", epochs=3)
NAMES = ("predictions", "pseudo_labels", "confidences")


def trained(dataset, config=STUDIO, **options):
    trainer, begin = PlainTrainer(config, **options), perf_counter()
    assert list(trainer.epochs(dataset))[-1].state == "finished"
    return [getattr(trainer, name) for name in NAMES], perf_counter() - begin


@pytest.mark.parametrize(("n", "n_labels"), [(20_000, 30), (200_000, 50)])
def test_clusters_end_with_the_bits_of_a_training_without(n, n_labels, tmp_path):
    one = mixtures(n, 64, n_labels)
    dataset = CandidateDataset(one.X, one.noisy(2, seed=0))
    whole, seconds = trained(dataset)
    print(f"\n{n:,} rows, {n_labels} labels: here {seconds:.1f} s")
    for n_workers in (2, 4):
        folder = tmp_path / f"{n_workers}"
        with dask_cluster(folder, n_workers) as cluster:
            config = STUDIO.model_copy(update={"cluster": cluster.address})
            found, seconds = trained(dataset, config, folder=folder)
        print(f"{n_workers} workers {seconds:.1f} s")
        for name, a, b in zip(NAMES, whole, found, strict=True):
            assert np.array_equal(a, b), f"{name} differ by {np.abs(a - b).max()}"
