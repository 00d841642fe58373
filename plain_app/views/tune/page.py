"""Tune: look through other settings at once (lens), or search for better ones (studies)."""

from plain_app import state
from plain_app.services import explore
from plain_app.views.tune.lens import draw_lens
from plain_app.views.tune.search import draw_search
from plain_app.widgets.empty import NO_RESULTS, draw_lost, empty_state
from plain_app.widgets.following import follow_run
from plain_app.widgets.links import DATA, TRAIN
from plain_app.widgets.tabs import tab_bar

PARTS = ("Lens", "Search")


def draw() -> None:
    """Draw the part that is open, or say what is missing."""
    chosen = state.current()
    if chosen.fingerprint is None:
        text = "Settings are tuned on a data set. Load a file or the demo first."
        return empty_state("Nothing to tune yet", text, page=DATA, link="Go to Data")
    if tab_bar("Part", PARTS, "tune.part") == "Search":
        return draw_search(chosen.fingerprint)
    return _draw_lens(chosen.run_id)


def _draw_lens(run_id: str | None) -> None:
    situation, run = explore.situation(run_id)
    if situation == "ready" and run is not None:
        return draw_lens(run)
    if situation == "lost" and run is not None:
        return draw_lost(run.fingerprint, run)
    texts = {
        "no run": "The lens looks at a run's predictions. Choose a run, or train one.",
        "working": "This run has not ended. The lens opens when it has.",
        "live": "This run has not ended. The lens opens when it has.",
        **NO_RESULTS,
    }
    empty_state("No lens yet", texts[situation], page=TRAIN, link="Go to Train")
    return follow_run(run, situation)


if __name__ == "__main__":
    draw()
