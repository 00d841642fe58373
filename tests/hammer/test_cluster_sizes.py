"""Trainings on clusters of 2 and 4 real workers beside the same here.

Seconds are printed, and how far a training without blocks ends: AdamW magnifies its other rounding.
"""

from time import perf_counter

import numpy as np
import pytest
from dask_cluster import dask_cluster

from core.bench.data import mixtures
from core.cluster.executors import LocalExecutor
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
def test_clusters_end_with_the_bits_of_the_same_blocks(n, n_labels, tmp_path):
    one = mixtures(n, 64, n_labels)
    dataset = CandidateDataset(one.X, one.noisy(2, seed=0))
    whole, seconds = trained(dataset)
    print(f"\n{n:,} rows, {n_labels} labels: here {seconds:.1f} s")
    for n_workers in (2, 4):
        folder = tmp_path / f"{n_workers}"
        with dask_cluster(folder, n_workers) as cluster:
            config = STUDIO.model_copy(update={"cluster": cluster.address})
            found, seconds = trained(dataset, config, folder=folder)
        (folder / "blocks").mkdir()
        blocks, own = trained(dataset, executor=LocalExecutor(folder / "blocks", n_workers))
        apart = [float(np.abs(a - b).max()) for a, b in zip(whole, found, strict=True)]
        far = ", ".join(f"{name} {by:.1e}" for name, by in zip(NAMES, apart, strict=True))
        print(f"{n_workers} workers {seconds:.1f} s, as blocks {own:.1f} s; from whole: {far}")
        assert all(np.array_equal(a, b) for a, b in zip(blocks, found, strict=True))
