import numpy as np

from core.export import Results
from plain_app.charts.notebook import figure, label_points


def test_a_data_set_and_a_run_have_a_figure(demo):
    points = label_points(demo)
    assert points.offered == sorted(points.offered, reverse=True)
    assert sum(points.offered) == demo.candidates.sum()
    assert points.likely is None
    half = np.full(demo.candidates.shape, 0.5, np.float32)
    made = label_points(Results(demo, half, half, [], None))
    assert np.allclose(np.array(made.likely) * 2, made.offered)  # labels not offered do not count
    assert [bar.name for bar in figure(Results(demo, half, half, [], None)).data] == [
        "offered",
        "true, by the run",
    ]
