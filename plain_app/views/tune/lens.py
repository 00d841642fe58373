"""The lens: settings as sliders over a run's predictions, and what they do to labels."""

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import PlainError
from core.store import RunRow
from plain_app import state
from plain_app.charts import lens as charts
from plain_app.services import lens, runs
from plain_app.services.lens import LensData, Places, Seen
from plain_app.widgets import links
from plain_app.widgets.chart import draw_chart
from plain_app.widgets.errors import error_guard, show_error
from plain_app.widgets.figures import Figure, counted, figure_row
from plain_app.widgets.sliders import last_move, sliders
from plain_app.widgets.tables import MAX_PICTURE, cell_table, chosen_rows

PANEL, PLACES, ANSWERED, MOVED = "tune.sliders", "tune.places", "tune.answered", "tune.moved"
INSTANCE, CELLS = "tune.instance", "tune.cells"
CHART, LISTED = 250, 40
POLL_SECONDS = 1.0


def draw_lens(run: RunRow) -> None:
    """Draw the lens of an ended run."""
    status = lens.neighbors_status(run.id)
    if status == "working":
        _await_neighbors(run.id)
    with st.spinner("Reading the run …"):
        at = lens.lens_data(run.id)
    _draw(at, status)
    _draw_actions(at)


@st.fragment(run_every=POLL_SECONDS)
def _await_neighbors(run_id: str) -> None:
    if lens.neighbors_status(run_id) != "working":
        st.rerun()


@st.fragment
def _draw(at: LensData, status: str) -> None:
    """Draw panel and charts; the panel last, when everything its move changes is drawn."""
    with error_guard("tune.lens"):
        places = _places(at)
        left, right = st.columns([7, 9], gap="medium")
        with left:
            panel = st.container(key="tune.panel")
            _draw_note(at, status)
        try:
            with st.spinner("Looking at every candidate …"):
                seen = lens.see(at, places)
        except PlainError as error:
            with right:
                show_error(error, "tune.refused")
        else:
            with right:
                _draw_effect(seen)
            _draw_cells(at, places, seen)
        with panel:
            sliders(lens.panel(at, places), int(state.recall(ANSWERED) or 0), PANEL)


def _places(at: LensData) -> Places:
    """Return where the sliders stand; those of another run start anew."""
    owner, places = state.recall(PLACES) or (None, {})
    places = dict(places) if owner == at.run.id else {}
    move = last_move(PANEL)
    if move is not None and move.number > int(state.recall(ANSWERED) or 0):
        places = move.places
        state.remember(ANSWERED, move.number)
        state.remember(MOVED, move.name)
    state.remember(PLACES, (at.run.id, places))
    return places


def _draw_note(at: LensData, status: str) -> None:
    notes = {
        "working": "Neighbours for other k and ρ are being searched.",
        "failed": "Neighbours could not be searched: neighbors.log of the run says why.",
        "given": "This run's instance graph was given, so k and ρ do not apply.",
    }
    if not at.lens.settings:
        st.caption("No propagation follows this run's network: only the threshold has an effect.")
    else:
        st.caption(
            notes.get(status)
            or "The run's predictions stay as they are: what a run with these settings would make "
            "of them, exactly. Double-click a slider to take it back."
        )


def _draw_effect(seen: Seen) -> None:
    effect = seen.effect
    figures = [
        Figure("change sides", f"{len(effect.changed):,}", "Candidate cells, against the run"),
        Figure("now kept", f"{len(effect.gained):,}"),
        Figure("now removed", f"{len(effect.lost):,}"),
        Figure(
            "kept in all",
            f"{effect.n_kept:,}",
            f"Of {effect.n_cells:,}; {effect.n_kept_before:,} in the run",
        ),
    ]
    if seen.agreed is not None and seen.agreed_before is not None:
        share = f"{100 * seen.agreed_before.share:.1f}% in the run"
        change = f"{share}; {counted(seen.agreed.n, 'decision')}"
        figures.append(Figure("agrees", f"{100 * seen.agreed.share:.1f}%", change))
    figure_row(figures, "tune.figures")
    draw_chart(charts.effect_option(effect, seen.cut, CHART), CHART, "tune.distribution")


def _draw_cells(at: LensData, places: Places, seen: Seen) -> None:
    left, right = st.columns([7, 7], gap="medium")
    cells = seen.effect.changed
    with left:
        largest = f"; the {LISTED} largest changes" if len(cells) > LISTED else ""
        count = f"{counted(len(cells), 'cell')} on another side than in the run{largest}:"
        st.caption(count if len(cells) else "No cell changes sides yet: move a slider.")
        _draw_table(at, seen, cells[:LISTED])
    with right:
        _draw_along(at, places, cells)


def _draw_table(at: LensData, seen: Seen, cells: np.ndarray) -> None:
    """List cells; a row that is chosen shows its instance along the setting."""
    results = at.results
    rows, labels = (part[cells] for part in at.offered)
    ids = [results.dataset.ids[row] for row in rows]
    table = pd.DataFrame(
        {
            "instance": [name[:80] for name in ids],
            "label": [results.dataset.label_names[label][:80] for label in labels],
            "in the run": seen.before[cells],
            "here": seen.after[cells],
            "explore": [links.instance_address(at.run.id, name) for name in ids],
        }
    )
    if results.picture_column is not None:
        pictures = (results.picture(int(row)) or "" for row in rows)
        table.insert(0, "picture", [one if len(one) <= MAX_PICTURE else "" for one in pictures])
    kinds = {"in the run": "bar", "here": "bar", "explore": "link", "picture": "picture"}
    cell_table(table, CELLS, 300, kinds, on_select=lambda: on_row(ids))


def on_row(ids: list[str]) -> None:
    """Show the instance of the row that was chosen."""
    for row in chosen_rows(CELLS)[:1]:
        state.remember(INSTANCE, ids[row])


def _draw_along(at: LensData, places: Places, cells: np.ndarray) -> None:
    """Draw the chosen instance, and agreement, along the setting that moved last."""
    results = at.results
    names = [one.name for one in lens.panel(at, places) if not one.is_disabled]
    names = [name for name in names if name != lens.THRESHOLD]
    moved = state.recall(MOVED)
    name = moved if moved in names else next(iter(names), None)
    if name is None:
        return
    first = results.dataset.ids[int(at.offered[0][cells[0]]) if len(cells) else 0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.text_input(
            "Instance", key=INSTANCE, placeholder=first[:80], max_chars=500, width=240
        )
        show_all = at.is_small or st.button("Agreement along it", key="tune.agreement")
    row = results.row_of.get((chosen or "").strip() or first)
    if row is None:
        st.caption("There is no instance with this id.")
        return
    points = lens.sweep(at, places, name, row)
    option = charts.sweep_option(points, "Its confidences along the setting")
    draw_chart(option, CHART - 20, "tune.sweep")
    agreed = lens.agreement_along(at, places, name) if show_all else None
    if agreed is not None:
        option = charts.sweep_option(agreed, "Agreement along the setting")
        draw_chart(option, CHART - 60, "tune.agreed")


def _draw_actions(at: LensData) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="tune.actions"):
        if st.button("Start a run from here", key="tune.run", type="primary"):
            run_id = runs.start(at.run.fingerprint, at.config(_slider_places()), "from the lens")
            links.open_run(run_id)
        links.open_in_review(lambda: _changing(at), "tune.review")
        with st.popover("Save as preset", key="tune.save"):
            st.text_input("Name", key="tune.preset", max_chars=80)
            st.button("Save", key="tune.save_preset", on_click=on_save, args=(at,))
        st.button("As in the run", key="tune.reset", on_click=on_reset)


def _slider_places() -> Places:
    """Return where the sliders are."""
    places: Places = (state.recall(PLACES) or (None, {}))[1]
    return places


def _changing(at: LensData) -> list[str]:
    """Return the instances of the cells that change sides."""
    changed = lens.see(at, _slider_places()).effect.changed
    rows = dict.fromkeys(at.offered[0][changed].tolist())
    return [at.results.dataset.ids[row] for row in rows]


def on_save(at: LensData) -> None:
    try:
        runs.save_preset(str(state.recall("tune.preset") or ""), at.config(_slider_places()))
    except PlainError as error:
        st.toast(error.title, icon=":material/error:")
    else:
        st.toast("Saved: it is among the presets in Train.", icon=":material/check:")


def on_reset() -> None:
    state.forget(PLACES)
