"""Compare: two or more runs, or trials of a study, side by side."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from plain_app import state
from plain_app.charts import compare as charts
from plain_app.charts import setting_text
from plain_app.charts.compare import DisagreementPoints
from plain_app.services import compare, explore, maps, runs
from plain_app.services.compare import MAX_COMPARED, Subject
from plain_app.views.compare.which import draw_methods, draw_which
from plain_app.widgets import links
from plain_app.widgets.chart import draw_chart
from plain_app.widgets.empty import empty_state
from plain_app.widgets.errors import error_guard
from plain_app.widgets.figures import counted, listed
from plain_app.widgets.links import DATA, TRAIN
from plain_app.widgets.scatter import mark, scatter
from plain_app.widgets.tables import MAX_PICTURE, cell_table

OF, AWAITED, JOINING = "compare.of", "compare.awaited", "compare.joining"
VARIANTS, METHODS = "compare.variant", "compare.methods"
LASSO = "compare.lasso"
POLL_SECONDS = 1.0
CHART, LISTED = 260, 100

Cells = npt.NDArray[np.int64]  # places among the candidate cells


def draw() -> None:
    """Draw the comparison, or say what is missing."""
    chosen = state.current()
    if chosen.fingerprint is None:
        text_ = "Runs on one data set are compared. Load a file or the demo first."
        return empty_state("Nothing to compare yet", text_, page=DATA, link="Go to Data")
    titles = compare.choices(chosen.fingerprint)
    keys = _choose(chosen.fingerprint, titles)
    _draw_variants(chosen.fingerprint)
    if len(keys) < 2:
        what = "Choose two or more." if len(titles) > 1 else "Two runs that have ended are needed."
        return empty_state("Two or more, side by side", what, page=TRAIN, link="Go to Train")
    with error_guard("compare"):
        _draw(chosen.fingerprint, keys)
    return None


def _choose(fingerprint: str, titles: dict[str, str]) -> list[str]:
    """Let choose runs; trials come by the address, from Tune. The address keeps all of them."""
    asked = [one for one in st.query_params.get("of", "").split(",") if one]
    kept = [*asked, *(state.recall(OF) or [])]
    options = titles | compare.trial_titles(kept, fingerprint)
    if asked and asked != state.recall("compare.asked"):  # another page linked here
        state.remember(OF, [one for one in asked if one in options])
    elif state.recall(OF) is None:
        state.remember(OF, list(titles)[:2])
    joined = [*state.recall(OF), *(state.recall(JOINING) or ())]
    state.forget(JOINING)
    state.remember(OF, [one for one in dict.fromkeys(joined) if one in options][:MAX_COMPARED])
    keys = st.multiselect(
        "Runs and trials",
        list(options),
        format_func=options.__getitem__,
        key=OF,
        max_selections=MAX_COMPARED,
        placeholder=f"add another, {MAX_COMPARED} at most",
    )
    if keys:
        st.query_params["of"] = ",".join(keys)
    elif "of" in st.query_params:
        del st.query_params["of"]
    state.remember("compare.asked", keys)
    return keys


def _draw_variants(fingerprint: str) -> None:
    """Offer to train presets and the paper's ablations; they join as they end."""
    awaited = set(state.recall(AWAITED) or ())
    with st.container(horizontal=True, vertical_alignment="center", key="compare.variants"):
        with st.popover("Which method for my data?", key="compare.more"):
            st.caption("Train some in the background; they join the comparison as they end.")
            st.pills(
                "PLAIN",
                compare.variants(),
                selection_mode="multi",
                key=VARIANTS,
                help="Presets, and the paper's ablations of the first: DNN has no propagation, "
                "w/o LS no label graph, w/o IS no instance graph, two-stage propagates only once.",
            )
            draw_methods()
            st.button("Start", key="compare.start", on_click=on_start, args=(fingerprint,))
        if awaited:
            _await_runs(fingerprint)


@st.fragment(run_every=POLL_SECONDS)
def _await_runs(fingerprint: str) -> None:
    """Take the runs that were started here into the comparison as they end."""
    awaited = list(state.recall(AWAITED) or ())
    ended = [one for one in awaited if compare.has_ended(one)]
    st.caption(f"{len(awaited) - len(ended)} at work; they join as they end.")
    if ended:
        ready = compare.choices(fingerprint)
        state.remember(AWAITED, [one for one in awaited if one not in ended])
        state.remember(JOINING, [one for one in ended if one in ready])
        st.rerun()


def on_start(fingerprint: str) -> None:
    """Start the chosen variants."""
    names = [*(state.recall(VARIANTS) or ()), *(state.recall(METHODS) or ())]
    started = [compare.start(fingerprint, name) for name in names]
    state.remember(AWAITED, [*(state.recall(AWAITED) or ()), *started])
    state.forget(VARIANTS, METHODS)


def _draw(fingerprint: str, keys: list[str]) -> None:
    read = {key: compare.subject(key) for key in keys}
    subjects = [one for one in read.values() if one is not None]
    if len(subjects) < len(keys):
        st.caption("Trials that did not finish, or finished on another machine, are left out.")
    if len(subjects) < 2:
        return
    names = _letters(subjects)
    found = compare.disagreement(fingerprint, subjects)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _draw_figures(fingerprint, subjects, names, found)
    with right:
        _draw_settings(subjects, names)
    draw_which(fingerprint, subjects, names)
    _draw_curves(subjects, names)
    _draw_disagreement(fingerprint, subjects, names, found)


def _letters(subjects: list[Subject]) -> list[str]:
    """Return a letter for each: titles are long and stand once."""
    return [chr(ord("A") + at) for at in range(len(subjects))]


def _draw_figures(
    fingerprint: str, subjects: list[Subject], names: list[str], found: DisagreementPoints
) -> None:
    rows = []
    for at, (letter, one) in enumerate(zip(names, subjects, strict=True)):
        figures = compare.figures(fingerprint, one)
        row: dict[str, Any] = {"": letter, "run or trial": one.title, "kept ≥ 0.5": figures.kept}
        row |= {
            "agrees, %": figures.agreement and 100 * figures.agreement,
            "AUC on decisions": figures.decided_auc,
            "AUC on truth": figures.truth_auc,
            "F1": figures.truth_f1,
        }
        row |= {
            f"≠ {other}": None if to == at else found.pairs[at, to]
            for to, other in enumerate(names)
        }
        rows.append({**row, "open": _address(one)})
    table = pd.DataFrame(rows).dropna(axis=1, how="all")
    st.markdown("**Figures**")
    scores = dict.fromkeys(("AUC on decisions", "AUC on truth", "F1"), ".4f")
    apart = {f"≠ {name}": ",.0f" for name in names}
    kinds = {"run or trial": "name", "agrees, %": ".1f", "open": "link", **scores, **apart}
    cell_table(table, "compare.figures", 270, kinds)
    if "AUC on truth" in table:
        st.caption("AUC and F1: at the end, votes of sources included. The curves: at each epoch.")


def _address(one: Subject) -> str:
    """Return where a subject is looked at alone."""
    if one.run_id:
        return links.run_address(one.run_id)
    study_id, _, number = one.key.partition(".")
    return links.trial_address(study_id, int(number))


def _draw_settings(subjects: list[Subject], names: list[str]) -> None:
    differ = compare.settings_that_differ(subjects)
    st.markdown("**Settings that differ**")
    if not differ:
        st.caption("None.")
        return
    rows = [
        {"setting": name}
        | {letter: setting_text(name, value) for letter, value in zip(names, values, strict=True)}
        for name, values in differ.items()
    ]
    cell_table(pd.DataFrame(rows), "compare.settings", 270)


def _draw_curves(subjects: list[Subject], names: list[str]) -> None:
    measures = list(dict.fromkeys(name for one in subjects for name in one.curves))
    points = [
        charts.curve_points(
            measure,
            {
                letter: one.curves.get(measure, ())
                for letter, one in zip(names, subjects, strict=True)
            },
        )
        for measure in measures
    ]
    shown = [one for one in points if one.lines]
    if shown:
        draw_chart(charts.curves_option(shown, CHART), CHART, "compare.curves")


@st.fragment
def _draw_disagreement(
    fingerprint: str, subjects: list[Subject], names: list[str], found: DisagreementPoints
) -> None:
    run_id = next((one.run_id for one in subjects if one.run_id), None)
    run_id = run_id or next(iter(compare.choices(fingerprint)), None)
    head = st.container(horizontal=True, vertical_alignment="center", key="compare.bar")
    left, right = st.columns([1, 1], gap="medium")
    chosen = found.cells
    with right:
        if run_id:
            chosen = _draw_map(run_id, subjects, found)
        else:
            st.caption("A run that has ended gives the map.")
    with head:
        _draw_head(fingerprint, run_id, chosen)
    with left:
        _draw_cells(fingerprint, run_id, subjects, names, chosen[:LISTED])


def _draw_head(fingerprint: str, run_id: str | None, chosen: Cells) -> None:
    """Say how many cells are listed, and offer to review their instances."""
    n_rows = len(np.unique(runs.cells(fingerprint).rows[chosen]))
    st.markdown("**Cells on which they disagree**")
    st.caption(
        f"{counted(len(chosen), 'cell')} of {counted(n_rows, 'instance')}, the widest apart first"
        + listed(len(chosen), LISTED)
    )
    if state.recall(LASSO):
        st.button("Clear the lasso", key="compare.clear", type="tertiary", on_click=on_clear)
    if n_rows:
        links.open_in_review(lambda: _instances(fingerprint, run_id, chosen), "compare.review")


def on_clear() -> None:
    """List the cells of all instances again."""
    state.forget(LASSO)


def _draw_cells(
    fingerprint: str,
    run_id: str | None,
    subjects: list[Subject],
    names: list[str],
    chosen: Cells,
) -> None:
    cells = runs.cells(fingerprint)
    ids = [cells.ids[i] for i in cells.rows[chosen]]
    columns: dict[str, Any] = {
        "instance": [name[:80] for name in ids],
        "label": [cells.labels[j][:80] for j in cells.columns[chosen]],
    }
    for letter, one in zip(names, subjects, strict=True):
        columns[letter] = np.asarray(one.confidences[chosen], np.float32)
    table = pd.DataFrame(columns)
    kinds = {"picture": "picture", "explore": "link", **dict.fromkeys(names, "bar")}
    if run_id:
        results = explore.explored(run_id)
        table["explore"] = [links.instance_address(run_id, name) for name in ids]
        if results.picture_column is not None:
            pictures = [results.picture(int(row)) or "" for row in cells.rows[chosen]]
            table.insert(0, "picture", [one if len(one) <= MAX_PICTURE else "" for one in pictures])
    cell_table(table, "compare.cells", 420, kinds)


def _draw_map(run_id: str, subjects: list[Subject], found: DisagreementPoints) -> Cells:
    """Draw where they disagree, and return the cells that are lassoed, or all of them.

    A clicked instance opens in Explore.
    """
    packed = compare.disagreement_map(run_id, subjects, found)
    if packed is None:
        st.caption("This run has no layout, so there is no map.")
        return found.cells
    event = scatter(*packed, "compare.map")
    results = explore.explored(run_id)
    ids = results.dataset.ids
    if event.picked is not None and 0 <= event.picked < len(ids):
        links.open_instance(run_id, ids[event.picked])
    if event.lasso:
        state.remember(LASSO, (run_id, maps.Lasso(maps.layouts(run_id)[0], event.lasso)))
    of_run, lasso = state.recall(LASSO) or (None, None)
    if lasso is None or of_run != run_id:
        state.forget(LASSO)
        mark(maps.layout_name(run_id), -1, (), "compare.marks")
        return found.cells
    mark(maps.layout_name(run_id), -1, lasso.corners, "compare.marks")
    rows = runs.cells(results.run.fingerprint).rows[found.cells]
    return found.cells[np.isin(rows, maps.inside(run_id, lasso))]


def _instances(fingerprint: str, run_id: str | None, chosen: Cells) -> list[str]:
    """Return the instances of some cells, in their order; Review needs a run."""
    if state.current().run_id is None and run_id is not None:
        state.choose(run_id=run_id)
    cells = runs.cells(fingerprint)
    return [cells.ids[row] for row in dict.fromkeys(cells.rows[chosen].tolist())]


if __name__ == "__main__":
    draw()
