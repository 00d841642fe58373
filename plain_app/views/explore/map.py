"""The map of instances with its tools, what a lasso holds, and the chosen instance beside it."""

from collections.abc import Sequence

import streamlit as st

from plain_app import state
from plain_app.services import explore, maps
from plain_app.services.explore import Explored
from plain_app.services.lens import Slider
from plain_app.services.maps import Colour, Kind, Lasso
from plain_app.views.explore.instance import draw_instance, instance_rows, open_instance
from plain_app.widgets.figures import counted, listed
from plain_app.widgets.links import open_in_review
from plain_app.widgets.scatter import scatter
from plain_app.widgets.sliders import last_move, sliders

COLOURS: dict[Kind, str] = {
    "confidence": "Confidence in a label",
    "uncertainty": "Uncertainty",
    "doubtful": "Doubtful candidates",
    "decision": "Decisions",
    "candidates": "Number of candidates",
    "votes": "Divided votes",
    "source": "Votes of a source",
    "column": "A column of the data",
}
TRAVEL = "explore.travel"
AT_AN_EPOCH: tuple[Kind, ...] = ("confidence", "uncertainty", "doubtful")
POLL_SECONDS = 2.0


def draw_map(run_id: str) -> None:
    """Draw map and instance; the instance is a fragment of its own, which leaves the map alone."""
    results = explore.explored(run_id)
    found = maps.layouts(run_id)
    left, right = st.columns(2, gap="medium")
    with left:
        if found:
            epoch = _draw_map(results, found[0])
            _draw_selected(results, epoch)
        else:
            st.info("This run has no layout, so there is no map. Choose an instance by its id.")
    with right:
        draw_instance(run_id)


def _draw_map(results: Explored, layout: str) -> int | None:
    """Draw tools and map; return the epoch it shows, none for the newest."""
    colour, epoch = _draw_tools(results)
    event = scatter(*maps.packed_map(results, layout, colour, epoch), "explore.map")
    if event.picked is not None and 0 <= event.picked < results.dataset.n_instances:
        open_instance(results.dataset.ids[event.picked])
    if event.lasso:
        state.remember("explore.lasso", (results.run.id, Lasso(layout, event.lasso)))
    if layout != "umap":
        _await_umap(results.run.id)
    return epoch


def _draw_tools(results: Explored) -> tuple[Colour, int | None]:
    """Let choose by what to colour, of it which, and the epoch; the address has the colour."""
    votes = results.dataset.votes
    needs = {"column": results.colour_columns, "votes": votes, "source": votes}
    which: dict[str, tuple[str, Sequence[str]]] = {
        "confidence": ("Label", results.dataset.label_names),
        "column": ("Column", results.colour_columns),
        "source": ("Source", votes.sources if votes else ()),
    }
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        kind = st.selectbox(
            "Colour by",
            [kind for kind in COLOURS if kind not in needs or needs[kind]],
            format_func=COLOURS.__getitem__,
            key="explore.colour",
            width=165,
            bind="query-params",
        )
        name = ""
        if kind in which:
            title, options = which[kind]
            key = f"explore.colour_{kind}"
            name = st.selectbox(title, options, key=key, width=150, bind="query-params")
        return Colour(kind, name), _draw_epoch(results, kind)


def _draw_epoch(results: Explored, kind: Kind) -> int | None:
    """Let travel to an epoch; the last one is the end."""
    last = len(results.history) - 1
    if last < 1 or kind not in AT_AN_EPOCH or results.version:
        return None
    key = f"explore.epoch.{results.run.id}"
    move = last_move(TRAVEL)
    if move is not None:
        place = move.place("epoch", last)
        state.remember(key, (move.number, place if place < last else None))
    answered, shown = state.recall(key) or (0, None)
    stops = tuple(str(epoch) for epoch in range(1, last + 2))
    at = last if shown is None else shown
    travel = Slider("epoch", "Epoch", "Colours as they were", stops, at, last)
    sliders([travel], answered, TRAVEL, width=200)
    return None if shown is None else shown + 1


@st.fragment(run_every=POLL_SECONDS)
def _await_umap(run_id: str) -> None:
    """Say that the better layout is on its way, and show it when it is there."""
    status = maps.start_layout(run_id)
    if status == "there":
        st.rerun()
    notes = {
        "working": "Laid out by PCA. UMAP is being computed and appears here by itself.",
        "failed": "Laid out by PCA. UMAP could not be computed; layout.log of the run says why.",
    }
    st.caption(notes[status])


def _draw_selected(results: Explored, epoch: int | None) -> None:
    """List the instances of the last lasso."""
    run_id, lasso = state.recall("explore.lasso") or (None, None)
    if lasso is None or run_id != results.run.id:
        return
    rows = maps.inside(run_id, lasso)
    with st.container(horizontal=True, vertical_alignment="center"):
        count = f"{counted(len(rows), 'instance')} selected"
        st.caption(count + listed(len(rows), explore.MAX_LISTED))
        st.button("Clear", key="explore.clear", type="tertiary", on_click=on_clear)
        ids = results.dataset.ids
        open_in_review(lambda: [ids[row] for row in rows], "explore.review_lasso")
    instance_rows(results, rows, "explore.selected", epoch)


def on_clear() -> None:
    """Forget the lasso."""
    state.forget("explore.lasso")
