"""The second embedded data set: messages to a town hall, labelled by five people of different care.

A message speaks of one to three matters, in phrases that are put together at random; some phrases
fit two matters, so that neither words nor votes alone settle everything. Each is read by three of
five made raters (`RATERS`). The truth is kept aside for scoring.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import CandidateDataset
from core.data.votes import Votes

N_INSTANCES = 1200
READERS = 3  # of each message

PHRASES = {
    "roads": "a pothole on Mill Street|the zebra crossing has faded|"
    "cracks in the pavement|the kerb is broken|"
    "tarmac that comes loose|the speed bump is gone",
    "lights": "the street lamp flickers|it is pitch dark at night|"
    "three lamps are out|the traffic light stays red|"
    "a bulb hangs from its cable|the tunnel has no light",
    "waste": "bins that nobody empties|a mattress on the corner|"
    "rats around the containers|glass all over the ground|"
    "the recycling was not collected|bags torn open",
    "noise": "music until three in the morning|drilling on a Sunday|"
    "the bar next door is loud|a car alarm goes off every night|"
    "leaf blowers at six|shouting in the square",
    "water": "the drain is blocked|a puddle that never dries|"
    "the fountain leaks|no pressure in the taps|"
    "the cellar floods when it rains|brown water since Monday",
    "parks": "a fallen tree by the pond|the swings are rusty|"
    "the lawn was not mown|dogs off the lead on the meadow|"
    "the hedge grows over the bench|the playground gate is stuck",
    "transport": "the bus was late again|no shelter at the stop|"
    "the tram skips our stop|the ticket machine eats coins|"
    "cyclists on the bus lane|the timetable is out of date",
    "parking": "cars in front of the gate|nowhere to park after six|"
    "a van has stood here for weeks|someone parks on the cycle path|"
    "the meter takes no cards|residents' places are taken",
}
SHARED = {
    ("roads", "water"): "the road is under water|a manhole cover rattles",
    ("lights", "parks"): "the path through the park is dark",
    ("waste", "parks"): "litter all over the lawn|broken bottles in the sandpit",
    ("noise", "transport"): "the tram screeches in the curve",
    ("parking", "roads"): "trucks ruin the pavement when they park",
}
LABELS = tuple(PHRASES)
OPENINGS = "Hello,|Good morning,|Again:|Dear town hall,|For the third time:|Please help:|I report"
CLOSINGS = "Thank you.|When will this end?|Who is in charge?|It cannot go on.|Kind regards.|"


@dataclass(frozen=True)
class Rater:
    """How somebody reads: what is seen, what is added at random, or from what is alike."""

    name: str
    sees: float  # of the matters that are there
    adds: float  # of the matters that are not
    adds_alike: float  # of those not there that resemble one that is


RATERS = (
    Rater("Anna", 0.97, 0.01, 0.03),  # careful
    Rater("Ben", 0.60, 0.01, 0.02),  # in a hurry: names the first thing and goes on
    Rater("Carla", 0.93, 0.05, 0.60),  # generous: offers what may be meant too
    Rater("Dev", 0.85, 0.08, 0.15),  # middling
    Rater("Eva", 0.45, 0.30, 0.30),  # guesses
)


def load_crowd_demo(n_instances: int = N_INSTANCES, seed: int = 0) -> CandidateDataset:
    """Return the crowd's data: n messages, 8 labels, votes of five raters, three per message."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    rng = np.random.default_rng(seed)
    texts, truth = _messages(rng, n_instances)
    words = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    return CandidateDataset(
        features=sp.csr_array(words.fit_transform(texts)),
        candidates=None,  # type: ignore[arg-type]
        label_names=LABELS,
        ids=[f"message-{i:04d}" for i in range(n_instances)],
        feature_names=[str(word) for word in words.get_feature_names_out()],
        truth=truth,
        display=pd.DataFrame({"text": texts}),
        votes=_votes(rng, truth),
    )


def _messages(rng: np.random.Generator, n: int) -> tuple[list[str], npt.NDArray[np.uint8]]:
    """Return texts and what they speak of."""
    texts: dict[frozenset[str], str] = {}  # by their words: no two are alike
    truth = np.zeros((n, len(LABELS)), np.uint8)
    while len(texts) < n:
        text, labels = _message(rng)
        words = frozenset(text.split())
        if words not in texts:
            truth[len(texts), [LABELS.index(label) for label in labels]] = 1
            texts[words] = text
    return list(texts.values()), truth


def _message(rng: np.random.Generator) -> tuple[str, set[str]]:
    parts, labels, both = list[str](), set[str](), list(SHARED)
    for _ in range(rng.choice((1, 2, 3), p=(0.35, 0.45, 0.2))):
        if rng.random() < 0.2:
            pair = both[rng.integers(len(both))]
            parts.append(_one_of(rng, SHARED[pair]))
            labels.update(pair)
        else:
            label = LABELS[rng.integers(len(LABELS))]
            parts.append(_one_of(rng, PHRASES[label]))
            labels.add(label)
    said = ", and ".join(dict.fromkeys(parts))
    return f"{_one_of(rng, OPENINGS)} {said}. {_one_of(rng, CLOSINGS)}".strip(), labels


def _one_of(rng: np.random.Generator, phrases: str) -> str:
    known = phrases.split("|")
    return known[rng.integers(len(known))]


def _votes(rng: np.random.Generator, truth: npt.NDArray[np.uint8]) -> Votes:
    """Return who said what: three raters of each message, asked about every label."""
    alike = np.zeros((len(LABELS), len(LABELS)), bool)
    for one, other in SHARED:
        alike[LABELS.index(one), LABELS.index(other)] = True
    near = (truth @ (alike | alike.T) > 0) & (truth == 0)
    turn = rng.permuted(np.tile(np.arange(len(RATERS)), (len(truth), 1)), axis=1)
    said = np.full((*truth.shape, len(RATERS)), -1, np.int8)
    for at, rater in enumerate(RATERS):
        chance = np.where(truth > 0, rater.sees, np.where(near, rater.adds_alike, rater.adds))
        yes = rng.random(truth.shape) < chance
        asked = turn[:, at] < READERS
        said[asked, :, at] = yes[asked]
    return Votes.from_array(said, [rater.name for rater in RATERS])
