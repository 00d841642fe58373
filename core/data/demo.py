"""The embedded data set: scenes of handwritten digits with candidates as careless people give them.

A scene is a 2 x 2 mosaic of the real digits that scikit-learn ships; its labels are the digits in
it. Features describe the scene without regard to place: how strongly each of a fixed set of digit
images is resembled by some quarter, and by the scene as a whole. False candidates are mostly digits
that one of the quarters could be mistaken for (1 and 7, 3 and 8, 4 and 9, 5 and 6 ...), judged
from the picture itself. The truth is kept aside for scoring.
"""

import base64
import io
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.data.crowd_demo import load_crowd_demo
from core.data.dataset import CandidateDataset
from core.data.noise import confusable_candidates

N_INSTANCES = 3000
_N_PROTOTYPES = 128
_CONFUSABLE = ((1, 7), (3, 8), (4, 9), (5, 6), (0, 6), (2, 7), (8, 9), (3, 5), (1, 4), (2, 3))


def load_demo(n_instances: int = N_INSTANCES, seed: int = 0) -> CandidateDataset:
    """Return the demo data: n scenes, 10 labels, 1 to 3 false candidates each, with pictures."""
    from sklearn.datasets import load_digits  # slow to import

    digits, classes = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    tiles = rng.integers(0, len(digits), (n_instances, 4))
    truth = np.zeros((n_instances, 10), np.uint8)
    np.put_along_axis(truth, classes[tiles], 1, axis=1)
    likeness = _likeness(digits, classes)
    looks = likeness[tiles].max(axis=1)
    candidates = confusable_candidates(truth, looks, int(rng.integers(2**31)))
    prototypes = rng.choice(len(digits), _N_PROTOTYPES, replace=False)
    similar = _similar(digits, digits[prototypes])[tiles]  # (n, 4, prototypes)
    features = np.concatenate([similar.max(axis=1), similar.mean(axis=1)], axis=1)
    return CandidateDataset(
        features=features.astype(np.float32),
        candidates=candidates,
        label_names=[str(digit) for digit in range(10)],
        ids=[f"scene-{i:04d}" for i in range(n_instances)],
        truth=truth,
        display=pd.DataFrame({"image": [_picture(digits[four]) for four in tiles]}),
    )


class Demo(NamedTuple):
    """An embedded data set: what a workspace calls it, and how it is made."""

    title: str
    load: Callable[[], CandidateDataset]


DEMOS = {
    "demo": Demo("demo: scenes of digits", load_demo),
    "demo-crowd": Demo("demo: messages to a town hall", load_crowd_demo),
}
"""By the word that stands for it on the command line."""


def _similar(
    images: npt.NDArray[np.float64], prototypes: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return a Gaussian similarity of every image with every prototype."""
    squares = (images**2).sum(axis=1)[:, None] + (prototypes**2).sum(axis=1)
    distances = np.maximum(squares - 2 * images @ prototypes.T, 0)
    return np.asarray(np.exp(-distances / np.median(distances) * 4))


def _likeness(
    digits: npt.NDArray[np.float64], classes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return how likely each digit image is mistaken for each other digit: near and confusable."""
    means = np.stack([digits[classes == digit].mean(axis=0) for digit in range(10)])
    likeness = np.sqrt(_similar(digits, means))
    confusable = np.full((10, 10), 0.05)
    for one, other in _CONFUSABLE:
        confusable[one, other] = confusable[other, one] = 1
    return np.asarray(likeness * confusable[classes])


def _picture(four: npt.NDArray[np.float64]) -> str:
    """Return the 2 x 2 mosaic of four 8 x 8 digits as a PNG data URI."""
    from PIL import Image

    quarters = (255 - four.reshape(2, 2, 8, 8) * (255 / 16)).astype(np.uint8)
    mosaic = quarters.transpose(0, 2, 1, 3).reshape(16, 16)
    file = io.BytesIO()
    Image.fromarray(mosaic).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
