"""Data: open a file, see how it is understood and what is odd about it, load it."""

import streamlit as st

from core.data.dataset import CandidateDataset
from core.encoders import Planned
from core.errors import PlainError
from core.formats import ReadResult
from plain_app import state
from plain_app.charts.distribution import count_points, frequency_points, overview_option
from plain_app.services import data, runs
from plain_app.services.data import Report, Staged
from plain_app.views.data.encoders import draw_encoders, store_with_progress
from plain_app.views.data.opening import draw_opening, drop_staged
from plain_app.views.data.sources import draw_sources
from plain_app.views.data.understanding import draw_understanding
from plain_app.views.data.variants import draw_synthesis, draw_votes_upload
from plain_app.widgets.chart import draw_chart
from plain_app.widgets.empty import empty_state
from plain_app.widgets.errors import error_guard, problem_table, show_error
from plain_app.widgets.figures import Figure, figure_row
from plain_app.widgets.links import TRAIN
from plain_app.widgets.tables import cell_table

CHART = 300
EXAMPLE = [
    {"id": "p-01", "text": "waves under a red sky", "labels": "sea; sunset; fire"},
    {"id": "p-02", "text": "two boats in the harbour", "labels": "boat; sea"},
    {"id": "p-03", "text": "hikers above the clouds", "labels": "mountain; sea; people"},
]


def draw() -> None:
    """Draw the file that is looked at, or the data set that is open, or where to begin."""
    staged = _staged()
    if wanted := state.recall("data.wants_demo"):
        _load_demo(wanted)
    if refused := state.recall("data.refused"):
        show_error(PlainError(*refused), "data.refused")
    if staged is not None:
        _draw_staged(staged)
    elif (fingerprint := state.current().fingerprint) is not None:
        _draw_stored(fingerprint)
    else:
        _draw_nothing()


def _staged() -> Staged | None:
    if state.recall("data.launched") is None:
        state.remember("data.launched", True)
        state.remember("data.staged", data.staged_by_launcher())
    found: Staged | None = state.recall("data.staged")
    return found


def _draw_nothing() -> None:
    left, right = st.columns([1.2, 1], gap="large")
    with left:
        draw_opening()
    with right:
        empty_state(
            "Nothing loaded yet",
            "Drop a file with candidate labels: each row one instance, its labels some true and "
            "some not; or what several people or models said. Or open a demo: 3,000 scenes of "
            "handwritten digits, labelled carelessly; or what five people said of 1,200 messages.",
        )
        st.caption("For example, a CSV like this; columns of 0 and 1 per label do as well:")
        alt = "A file as it may be: an id, a text, and labels"
        st.dataframe(
            EXAMPLE,
            hide_index=True,
            row_height=28,
            column_config={"id": st.column_config.TextColumn(width=50)},
            key="data.example",
            alt=alt,
        )


def on_discard() -> None:
    drop_staged()


def on_load() -> None:
    state.remember("data.loading", True)


def _load_demo(word: str) -> None:
    state.forget("data.wants_demo")
    with error_guard("data.demo"), st.spinner("Making the demo data …"):
        state.choose(fingerprint=data.store_demo(word), run_id="")
        st.rerun()


def _draw_staged(staged: Staged) -> None:
    """Draw a file that is not stored yet: how it is understood, and what it holds."""
    with st.container(horizontal=True, vertical_alignment="center", key="data.staged_bar"):
        with st.container(key="data.name", width="content"):
            st.text(staged.name)
        st.badge("not loaded yet", color="orange")
        actions = st.container(horizontal=True, horizontal_alignment="right")
    with error_guard("data.staged"):
        result = draw_understanding(staged)
        with st.spinner("Checking …"):
            report = data.report(result.dataset, result.problems)
        steps = draw_encoders(result)
        actions.button(
            "Load into the workspace",
            key="data.load",
            type="primary",
            on_click=on_load,
            disabled=not report.is_usable,
        )
        if state.recall("data.loading") and report.is_usable:
            _store(staged, result, steps)
        _draw_report(result.dataset, report)
    actions.button("Discard", key="data.discard", on_click=on_discard)


def _store(staged: Staged, result: ReadResult, steps: list[Planned]) -> None:
    state.forget("data.loading")
    fingerprint = store_with_progress(staged, result, steps)
    if fingerprint is None:
        return
    drop_staged()
    state.choose(fingerprint=fingerprint, run_id="")
    st.rerun()


def _draw_stored(fingerprint: str) -> None:
    """Draw a data set of the workspace."""
    with st.spinner("Opening …"):
        dataset = data.load(fingerprint)
        report = data.report(dataset)
    with st.container(horizontal=True, vertical_alignment="center", key="data.stored_bar"):
        st.subheader("What it holds", width="content")
        st.page_link(TRAIN, label="Train on it", icon=":material/arrow_forward:")
        key = f"data.open_{fingerprint}"  # by data: closes when other data were opened
        with st.popover("Open another", key=key):
            draw_opening()
    _draw_level(dataset, report)
    _draw_report(dataset, report)
    draw_sources(dataset)
    draw_votes_upload(dataset)
    draw_synthesis(dataset)


def _draw_level(dataset: CandidateDataset, report: Report) -> None:
    """Say what is known of the share of false candidates: by the newest run, or not yet."""
    run = runs.newest_with_level(dataset.fingerprint)
    level = None if run is None else runs.level(run)
    if level is not None:
        st.caption(f"By the newest run, before any answers: {level.sentence}")
    elif report.summary.noise is None:
        st.caption(
            f"False candidates: {report.summary.noise_sentence}. A run gives an interval, thirty "
            "random answers narrow it."
        )


def _draw_report(dataset: CandidateDataset, report: Report) -> None:
    _draw_figures(report)
    if report.problems:
        problem_table(report.problems, "data.problems")
    frequencies = frequency_points(report.summary.label_frequencies)
    counts = count_points(report.per_instance)
    option = overview_option(counts, frequencies, report.together, CHART)
    draw_chart(option, CHART, "data.charts")
    _draw_preview(dataset)


def _draw_figures(report: Report) -> None:
    summary = report.summary
    noise = "unknown" if summary.noise is None else f"{summary.noise:.0%}"
    dense = f"{'Sparse' if summary.sparse else 'Dense'}; {summary.density:.0%} are not zero."
    most = f"Per instance: fewest {summary.candidates_min}, most {summary.candidates_max}"
    truth = "Truth is only ever used for scoring."
    figures = [
        Figure("instances", f"{summary.n_instances:,}"),
        Figure("features", f"{summary.n_features:,}", dense),
        Figure("labels", f"{summary.n_labels:,}"),
        Figure("candidates each", f"{summary.candidates_mean:.2f}", most),
        Figure("false candidates", noise, summary.noise_sentence.capitalize()),
        Figure("truth", "there" if summary.has_truth else "none", truth),
    ]
    figure_row(figures, "data.figures")


def _draw_preview(dataset: CandidateDataset) -> None:
    table = data.preview(dataset)
    pictures = data.picture_columns(table)
    st.caption(f"The first {len(table)} instances")
    cell_table(table, "data.preview", CHART, dict.fromkeys(pictures, "picture"))


if __name__ == "__main__":
    draw()
