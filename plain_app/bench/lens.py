"""Times the lens as the server draws it: `python -m plain_app.bench.lens [MOVES]`.

A run is made on synthetic data of 7,000 x 11 and of 7,000 x 159; sliders move at random; timed is
the whole rerun of the page's fragment, charts and tables included. Processor time is told too: it
is what counts where others use the machine.
"""

import os
import sys
import tempfile
from time import perf_counter, process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import logging

logging.disable(logging.WARNING)  # Streamlit's, of running without a browser

import numpy as np  # noqa: E402
from finished_run import finished_run  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

from core.bench.data import clusters  # noqa: E402
from core.data.dataset import CandidateDataset  # noqa: E402
from core.engine.graphs import build_instance_graph  # noqa: E402
from core.runs.results import keep_neighbors  # noqa: E402
from core.store import Workspace  # noqa: E402


def page() -> None:
    import os

    from plain_app.services.workspace import workspace
    from plain_app.views.tune.lens import draw_lens

    draw_lens(workspace().runs.get(os.environ["LENS_RUN"]))


def measure(n_labels: int, moves: int) -> None:
    one = clusters(7000, 64, n_labels)
    dataset = CandidateDataset(one.X, one.noisy(3, 0), truth=one.truth)
    with tempfile.TemporaryDirectory() as folder:
        space = Workspace(folder)
        graph = build_instance_graph(dataset.features)
        run_id = finished_run(space, dataset, instance_graph=graph)
        keep_neighbors(space, run_id)
        os.environ |= {"PLAIN_WORKSPACE": folder, "LENS_RUN": run_id}
        app = AppTest.from_function(page, default_timeout=60).run()
        rng, spent, worked = np.random.default_rng(0), [], []
        names = ("alpha", "beta", "eta", "k", "rho", "threshold")
        limits = dict(zip(names, (20, 20, 20, 49, 11, 48), strict=True))
        for _ in range(moves):
            name = names[rng.integers(len(names))]
            places = {name: int(rng.integers(limits[name]))}
            app.session_state["tune.places"] = (run_id, places)
            app.session_state["tune.moved"] = name
            start, begun = perf_counter(), process_time()
            app.run()
            spent.append(perf_counter() - start)
            worked.append(process_time() - begun)
            assert not app.exception
            assert not app.error
        print(f"7,000 x {n_labels}, {int(dataset.candidates.sum()):,} cells")
        for name, times in (("time", spent), ("processor time", worked)):
            p50, p95 = np.percentile(1000 * np.array(times), (50, 95))
            print(f"  {name}: p50 {p50:.0f} ms, p95 {p95:.0f} ms")
        space.close()


if __name__ == "__main__":
    for labels in (11, 159):
        measure(labels, int(sys.argv[1]) if len(sys.argv) > 1 else 60)
