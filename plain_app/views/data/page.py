"""Data: open a file, see how it is understood and what is odd about it, load it."""

from typing import Any, Literal

import streamlit as st

from core.data.dataset import CandidateDataset
from core.encoders import Planned
from core.errors import DatasetError, PlainError
from core.formats import ColumnMapping, ReadResult
from plain_app import state
from plain_app.charts.distribution import count_points, frequency_points, overview_option
from plain_app.services import data, runs
from plain_app.services.data import Report, Staged
from plain_app.views.data.encoders import draw_encoders, store_with_progress
from plain_app.views.data.sources import draw_sources
from plain_app.widgets.chart import draw_chart
from plain_app.widgets.empty import empty_state
from plain_app.widgets.errors import error_guard, problem_table, show_error
from plain_app.widgets.figures import Figure, figure_row
from plain_app.widgets.links import TRAIN
from plain_app.widgets.tables import cell_table

TYPES = (
    *("csv", "tsv", "txt", "parquet", "json", "jsonl", "ndjson", "arff", "mat", "npz"),
    *("svm", "libsvm", "svmlight", "zip", "gz"),
)
MAX_UPLOAD_MB = 200
MAX_CHOICES = 400  # columns in a multiselect
NONE = "—"
ROWS = {
    "item": "an item",
    "view": "one person's view of an item",
    "people": "an item with a column per person",
}
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
        _draw_sources()
    with right:
        empty_state(
            "Nothing loaded yet",
            "Drop a file with candidate labels: each row one instance, its labels some true and "
            "some not. Or open the demo: 3,000 scenes of handwritten digits, labelled carelessly.",
        )
        st.caption("For example, a CSV like this; columns of 0 and 1 per label do as well:")
        st.dataframe(EXAMPLE, hide_index=True, row_height=28, key="data.example")


def _draw_sources() -> None:
    generation = state.recall("data.generation", 0)
    with st.container(key="data.upload_box"):
        st.file_uploader(
            "A file with candidate labels",
            type=TYPES,
            key=f"data.upload_{generation}",
            max_upload_size=MAX_UPLOAD_MB,
            on_change=on_upload,
            args=(f"data.upload_{generation}",),
            help="CSV, Parquet, JSON, ARFF, MATLAB, libsvm, npz, Label Studio; packed or not. "
            "Read here, sent nowhere.",
        )
    kind: Literal["primary", "secondary"] = (
        "secondary" if state.current().fingerprint else "primary"
    )
    with st.container(horizontal=True):
        st.button("Open the demo", key="data.demo", on_click=on_demo, args=("demo",), type=kind)
        st.button(
            "Open the crowd's demo",
            key="data.demo_crowd",
            on_click=on_demo,
            args=("demo-crowd",),
            help="1,200 messages to a town hall, each labelled by three of five people: one is "
            "careful, one in a hurry, one generous, one guesses. See Sources tell who is who.",
        )


def on_upload(key: str) -> None:
    """Copy the upload to the disk and clear the widget."""
    upload = state.recall(key)
    if upload is None:
        return
    _drop_staged()
    try:
        state.remember("data.staged", data.stage(upload, upload.name))
    except PlainError as error:
        state.remember("data.refused", (error.title, error.detail, error.hint))
    state.remember("data.generation", state.recall("data.generation", 0) + 1)


def on_demo(word: str) -> None:
    _drop_staged()
    state.remember("data.wants_demo", word)


def on_discard() -> None:
    _drop_staged()


def on_load() -> None:
    state.remember("data.loading", True)


def on_synthesise() -> None:
    state.remember("data.synthesising", True)


def _drop_staged() -> None:
    staged = state.recall("data.staged")
    if staged is not None:
        data.discard(staged)
    state.forget("data.staged", "data.loading", "data.refused")
    state.forget_all("data.map_")


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
        with st.spinner("Reading and checking …"):
            result = _draw_mapping(staged)
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
    _drop_staged()
    state.choose(fingerprint=fingerprint, run_id="")
    st.rerun()


def _draw_mapping(staged: Staged) -> ReadResult:
    """Draw how columns were understood; return the file read as the selects say."""
    guessed = _guess(staged)
    mapping = guessed.mapping
    said = _ask_what_a_row_is(guessed)
    is_refused = isinstance(guessed, DatasetError)
    with st.expander("How the file is understood", is_refused, key="data.mapping"):
        if not isinstance(mapping, ColumnMapping) or not mapping.columns:
            st.caption("This format states the role of everything in it.")
            stated = {}
        else:
            stated = _draw_roles(mapping)
            _draw_reasons(mapping)
    stated = {**stated, **said}
    if stated:
        return data.read_staged(staged, ColumnMapping(**stated))
    if isinstance(guessed, DatasetError):
        raise guessed
    return guessed


def _ask_what_a_row_is(guessed: ReadResult | DatasetError) -> dict[str, Any]:
    """Ask in plain words where rows may be views of items; return what differs from the guess."""
    mapping = guessed.mapping
    if not isinstance(mapping, ColumnMapping) or not mapping.columns:
        return {}
    doubts = [one for one in guessed.problems if one.message.startswith("what is one row?")]
    if mapping.row == "item" and not doubts:
        return {}
    kinds = list(ROWS)
    row = st.radio(
        "What is one row?",
        kinds,
        index=kinds.index(mapping.row),
        format_func=ROWS.get,
        key="data.map_row",
        horizontal=True,
    )
    said: dict[str, Any] = {} if row == mapping.row else {"row": row}
    if row == "view":
        options = [None, *mapping.columns]
        source = st.selectbox(
            "Whose view is it?",
            options,
            index=options.index(mapping.source),
            format_func=lambda one: "not named" if one is None else one[:80],
            key="data.map_source",
        )
        said |= {} if source == mapping.source else {"source": source}
    return said


def _guess(staged: Staged) -> ReadResult | DatasetError:
    """Read a file by guess; where the guess may be at fault, return the refusal with it."""
    try:
        return data.read_staged(staged, None)
    except DatasetError as error:
        if error.mapping is None:
            raise
        return error


def _draw_reasons(mapping: ColumnMapping) -> None:
    rows = [{"role": role, "because": why[:300]} for role, why in mapping.reasons.items()]
    if rows:
        st.dataframe(rows, hide_index=True, row_height=28, key="data.reasons")


def _draw_roles(mapping: ColumnMapping) -> dict[str, Any]:
    """Draw one select per role; return those that differ from the guess."""
    columns, chosen = list(mapping.columns), dict[str, Any]()
    for place, role in zip(st.columns(3), ("id", "text", "image"), strict=True):
        options = [None, *columns]
        chosen[role] = place.selectbox(
            {"id": "Instance id", "text": "Text to show", "image": "Picture to show"}[role],
            options,
            index=options.index(getattr(mapping, role)),
            format_func=lambda one: NONE if one is None else one[:80],
            key=f"data.map_{role}",
        )
    if len(columns) <= MAX_CHOICES:
        names = {"labels": "Candidate labels", "features": "Features", "truth": "Truth"}
        for role, title in names.items():
            default = list(getattr(mapping, role))
            picked = st.multiselect(title, columns, default, key=f"data.map_{role}")
            chosen[role] = tuple(picked)
    return {role: value for role, value in chosen.items() if value != getattr(mapping, role)}


def _draw_stored(fingerprint: str) -> None:
    """Draw a data set of the workspace."""
    with st.spinner("Opening …"):
        dataset = data.load(fingerprint)
        report = data.report(dataset)
    with st.container(horizontal=True, vertical_alignment="center", key="data.stored_bar"):
        st.subheader("What it holds", width="content")
        st.page_link(TRAIN, label="Train on it", icon=":material/arrow_forward:")
        with st.popover("Open another", key="data.open", on_change="rerun") as box:
            if box.open:
                _draw_sources()
    _draw_level(dataset, report)
    _draw_report(dataset, report)
    draw_sources(dataset)
    _draw_votes_upload(dataset)
    _draw_synthesis(dataset)


def _draw_level(dataset: CandidateDataset, report: Report) -> None:
    """Say what is known of the share of false candidates: by the newest run, or not yet."""
    run = runs.newest_with_level(dataset.fingerprint)
    level = None if run is None else runs.level(run)
    if level is not None:
        st.caption(f"By the newest run: {level.sentence}")
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


@st.fragment
def _draw_votes_upload(dataset: CandidateDataset) -> None:
    """Offer to add a table of who said what, as a new data set."""
    if dataset.votes is not None:
        return
    key = "data.votes_box"
    with st.expander("Several people or models labelled this?", key=key, on_change="rerun") as box:
        if not box.open:
            return
        st.caption(
            "Add who said what: a CSV with the columns instance, label, source and vote (1 or 0). "
            "Without any 0, whoever is listed for an instance was asked about all its labels."
        )
        upload = st.file_uploader("Table of votes", type=["csv", "parquet"], key="data.votes")
        if upload is not None:
            with error_guard("data.votes"), st.spinner("Counting votes …"):
                state.choose(fingerprint=data.store_votes(dataset, upload), run_id="")
                st.rerun()


@st.fragment
def _draw_synthesis(dataset: CandidateDataset) -> None:
    """Offer candidates made from clean labels, to try the program where the truth is known."""
    source = "truth" if dataset.truth is not None else "labels as given"
    title, key = "Make candidates from clean labels", "data.synthesis"
    with st.expander(title, key=key, on_change="rerun") as box:
        if not box.open:
            return
        st.caption(
            f"Takes the {source} as true and adds false labels, as a new data set. "
            "Good for trying the program where the answer is known."
        )
        kinds = {"uniform": "any label", "confusable": "labels that look alike"}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "False labels",
                list(kinds),
                format_func=kinds.__getitem__,
                key="data.kind",
                width=220,
            )
            most = max(1, dataset.n_labels - 1)
            st.number_input("per instance (r)", 1, most, min(2, most), key="data.r", width=120)
            st.button("Make", key="data.synthesise", on_click=on_synthesise)
        if state.recall("data.synthesising"):
            _synthesise(dataset)


def _synthesise(dataset: CandidateDataset) -> None:
    state.forget("data.synthesising")
    kind, r = state.recall("data.kind"), int(state.recall("data.r"))
    with error_guard("data.synthesise"), st.spinner("Adding false labels …"):
        made = data.synthesise(dataset, kind, r)
        fingerprint = data.store(made, f"{kind} r={r} of {dataset.fingerprint[:6]}")
        state.choose(fingerprint=fingerprint, run_id="")
        st.rerun()


if __name__ == "__main__":
    draw()
