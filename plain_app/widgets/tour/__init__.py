"""The guided tour: nine stops on the demo data, from the first look to the export.

All of it happens in the browser; the page only says what the stops are. A browser remembers that it
has seen the tour, and where it is in it while it lasts.
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from plain_app.widgets.modules import component

_HERE = Path(__file__).parent


class Stop(NamedTuple):
    """Where the tour stops: a page, what is shown of it, and what is said about it.

    What is shown and pressed is named by the keys of widgets. `press` is pressed on the way there
    unless the target is on the page already; of several names in it, the one called `named`.
    """

    page: str
    target: str  # of several keys, what is there
    title: str
    text: str
    press: str = ""
    named: str = ""

    @property
    def selector(self) -> str:
        return selector(self.target)


def selector(keys: str) -> str:
    """Return where widgets with these keys are on the page."""
    return ", ".join(f".st-key-{key.replace('.', '-')}" for key in keys.split())


STOPS = (
    Stop(
        "Data",
        "data.figures",
        "Labels nobody checked",
        "3,000 scenes of four handwritten digits. Each was offered five or six labels; a good "
        "third of them are false, and the program is not told which.",
    ),
    Stop(
        "Data",
        "data.preview",
        "What a candidate set looks like",
        "The digits that are there, and some that a careless eye took them for. The truth is known "
        "here, so you can see whether the program is right; it never learns from it.",
    ),
    Stop(
        "Train",
        "train.bar",
        "A run has started",
        "Next pressed Start training for you. A run is a process of its own: close the tab, and it "
        "goes on.",
        press="train.start",
    ),
    Stop(
        "Train",
        "train.curves",
        "Every epoch, as it is computed",
        "Left, against the truth. The others need no truth: how well the propagation agrees with "
        "itself, and how many cells still change sides.",
    ),
    Stop(
        "Train",
        "train.evolution",
        "Confidences split apart",
        "All candidates begin alike. Epoch by epoch they part into those that are likely true, "
        "above, and those that are not, below.",
        press="train.section",
        named="Confidences",
    ),
    Stop(
        "Explore",
        "explore.map",
        "Every instance on a map",
        "Similar scenes lie side by side. Colours are confidences in one label. Click a dot, or "
        "hold Shift and draw around some.",
    ),
    Stop(
        "Explore",
        "explore.card",
        "Why this confidence?",
        "Own candidate, own prediction, neighbours, related labels: numbers that add up, and "
        "below them, by name, who voted.",
    ),
    Stop(
        "Review",
        "review.who review.tools empty",
        "Answer a few questions",
        "You are asked where an answer settles most. Keys: a accepts what is shown, x rejects it, "
        "u takes back, ? lists the others. One answer often settles a dozen other cells.",
    ),
    Stop(
        "Export",
        "frame.steps",
        "Take it home",
        "Export writes your file back with clean labels, a confidence and a reason for every cell. "
        "That is all: load your own file in Data.",
    ),
)


def draw_tour(is_demo: bool) -> bool:
    """Draw the button that starts the tour; return whether the demo data is wanted for it."""
    stops = [
        stop._asdict() | {"target": stop.selector, "press": selector(stop.press)} for stop in STOPS
    ]
    style = (_HERE / "card.css").read_text(encoding="utf-8")
    data = {"stops": stops, "is_demo": is_demo, "style": style}
    result = _component()(key="tour", data=data, on_wanted_change=lambda: None)
    return bool(getattr(result, "wanted", False))


@cache
def _component() -> Any:
    html = '<button type="button" data-part="start" class="start">Tour, two minutes</button>'
    return component("plain_tour", "tour/tour.js", html, "tour/tour.css")
