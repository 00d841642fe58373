"""Export: choose which confidences are enough, see what that changes, take the file away."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.errors import PlainError
from core.review import Threshold
from core.review.outcome import Kind
from core.store import RunRow
from plain_app import state
from plain_app.charts.distribution import together_option, together_points
from plain_app.charts.outcome import outcome_option, outcome_points
from plain_app.services import explore, export
from plain_app.services.export import Outcome
from plain_app.widgets.audit import draw_audit
from plain_app.widgets.chart import draw_chart
from plain_app.widgets.empty import NO_RESULTS, draw_lost, empty_state
from plain_app.widgets.errors import error_guard, show_error
from plain_app.widgets.figures import Figure, counted, figure_row, listed
from plain_app.widgets.following import follow_run
from plain_app.widgets.links import DATA, TRAIN
from plain_app.widgets.tables import cell_table
from plain_app.widgets.tabs import tab_bar

RULES = ("One threshold", "One per label", "Precision target", "Top of each instance")
CHART = 330
CUTS = "export.cuts"
ALL = "all labels"
PER_ITEM = "export.per_item"
USERS = "export.users"
WHAT: tuple[Kind, ...] = ("removed", "kept", "added")
KEPT: dict[str, Any] = {"persist_state": "session"}


def draw() -> None:
    """Draw the rule, what it does, and the file; or say what is missing."""
    chosen = state.current()
    situation, run = explore.situation(chosen.run_id)
    if situation == "lost" and run is not None:
        return draw_lost(run.fingerprint, run)
    if situation == "ready" and run is not None:
        return _draw_export(run)
    texts = {
        "no run": "Choose a run at the left, or train one: its confidences and your decisions make "
        "the labels.",
        "working": "This run has not ended. Its labels are there when it has.",
        "live": "This run has not ended. Its labels are there when it has.",
        **NO_RESULTS,
    }
    page, link = (TRAIN, "Go to Train") if chosen.fingerprint else (DATA, "Go to Data")
    empty_state("Nothing to export yet", texts[situation], page=page, link=link)
    return follow_run(run, situation)


@st.fragment
def _draw_export(run: RunRow) -> None:
    with error_guard("export"):
        made = _draw_rule(run)
        _draw_figures(made)
        draw_audit(run, "export.audit", made.threshold)
        left, right = st.columns([1, 1], gap="medium")
        with left:
            _draw_charts(made)
        with right:
            _draw_differences(made)
        _draw_file(made)


# ------------------------------------------------------------------------------------ the rule


def _draw_rule(run: RunRow) -> Outcome:
    with st.container(horizontal=True, vertical_alignment="bottom", key="export.rule_row"):
        title = "Keep a candidate by"
        rule = st.segmented_control(
            title, RULES, default=RULES[0], required=True, key="export.rule", **KEPT
        )
        threshold = _draw_threshold(rule or RULES[0])
        about = "Also resolves labels outside the candidates, by the network's prediction."
        new = st.toggle("Labels that were not offered too", key="export.new", help=about, **KEPT)
    if rule == RULES[1]:
        threshold = _draw_cuts(export.outcome(run.id, threshold, new))
    with st.spinner("Resolving the labels …"):
        return export.outcome(run.id, threshold, new)


def _draw_threshold(rule: str) -> Threshold:
    """Let choose the amount that a rule needs."""
    if rule == RULES[0]:
        title = "Confidence of at least"
        cut = st.slider(title, 0.0, 1.0, 0.5, 0.01, key="export.cut", width=240, **KEPT)
        return Threshold(value=cut)
    if rule == RULES[2]:
        about = "Keeps as many as it can while their mean confidence stays this high."
        precision = st.slider(
            "Precision", 0.5, 1.0, 0.95, 0.01, key="export.precision", help=about, width=240, **KEPT
        )
        return Threshold(precision=precision)
    if rule == RULES[3]:
        title = "Labels per instance"
        top = st.number_input(title, 1, 50, 3, key="export.top", width=160, **KEPT)
        return Threshold(top_k=top)
    return Threshold()


def _draw_cuts(made: Outcome) -> Threshold:
    """Let every label have its own cut."""
    names = list(made.results.dataset.label_names)
    with st.expander("Thresholds", expanded=True, key="export.cuts_box"):
        table = st.data_editor(
            pd.DataFrame({"label": names, "threshold": [0.5] * len(names)}),
            hide_index=True,
            disabled=["label"],
            height=min(38 + 28 * len(names), 240),
            row_height=28,
            column_config={
                "threshold": st.column_config.NumberColumn(min_value=0, max_value=1, step=0.01)
            },
            key=CUTS,
            alt="The confidence from which each label is kept",
        )
    cuts = dict(zip(names, table["threshold"].fillna(0.5).tolist(), strict=True))
    return Threshold(per_label={name: cut for name, cut in cuts.items() if cut != 0.5})


# ------------------------------------------------------------------------------- what it does


def _draw_figures(made: Outcome) -> None:
    found = export.figures(made)
    share = 100 * found.n_removed / max(found.n_candidates, 1)
    figures = [
        Figure("resolved", f"{found.n_resolved:,}", "Labels that are written as true"),
        Figure("removed", f"{found.n_removed:,}", f"{share:.1f}% of all candidates"),
        Figure("added", f"{found.n_added:,}", "Though they were not offered"),
        Figure("decided", f"{found.n_decided:,}", "By people; these go before any confidence"),
        Figure("left empty", f"{found.n_empty:,}", "Instances that keep nothing"),
        Figure(
            "precision ≈", _rate(found.precision), "Expected: the mean confidence of what is kept"
        ),
        Figure("recall ≈", _rate(found.recall), "Expected: of the true candidates, those kept"),
    ]
    if found.true_precision is not None:
        rates = f"{found.true_precision:.2f} / {found.true_recall:.2f}"
        figures.append(
            Figure("true P / R", rates, "Precision and recall; the data came with the truth")
        )
    figure_row(figures, "export.figures")


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _draw_charts(made: Outcome) -> None:
    dataset, labels = made.results.dataset, made.resolution.labels
    which = tab_bar("Chart", ("Frequencies", "Together before", "Together after"), "export.chart")
    if which == "Frequencies":
        option = outcome_option(outcome_points(dataset.candidates, labels, dataset.label_names))
    else:
        chosen = dataset.candidates if which == "Together before" else labels
        option = together_option(together_points(chosen, dataset.label_names))
        option["title"]["text"] = f"Beside the row's label, {which.split()[1]}"
    draw_chart(option, CHART, "export.plot")


def _draw_differences(made: Outcome) -> None:
    """List cells with the reason for each."""
    names = made.results.dataset.label_names
    bare: dict[str, Any] = {"label_visibility": "collapsed", **KEPT}
    with st.container(horizontal=True, vertical_alignment="center", key="export.listed"):
        what = st.segmented_control(
            "Cells", WHAT, default=WHAT[0], required=True, key="export.what", **bare
        )
        label = st.selectbox("Label", [ALL, *names], key="export.label", width=180, **bare)
    shown: Kind = what or WHAT[0]
    table, total = export.differences(made, shown, None if label == ALL else label)
    st.caption(f"{counted(total, 'cell')}{listed(total, len(table))}")
    cell_table(table, "export.cells", CHART - 50, {"confidence": "bar"})


# ------------------------------------------------------------------------------------ the file


def _draw_file(made: Outcome) -> None:
    known = export.offered(made)
    with st.container(horizontal=True, vertical_alignment="bottom", key="export.file_row"):
        names = list(known)
        own = names.index(export.own_format(made))
        format_ = st.selectbox("Format", names, own, key="export.format", width=180, **KEPT)
        title = st.text_input("Name", "clean", max_chars=100, key="export.name", width=180, **KEPT)
        name = f"{Path(title).name or 'clean'}{known[format_]}"
        per_item = export.has_several_rows_per_item(made) and st.checkbox(
            "One row per item",
            key=PER_ITEM,
            help="Not the rows of the file, one per person; who said what is in one column.",
            **KEPT,
        )
        _draw_users(made, format_)
        how: dict[str, Any] = {"per_item": per_item, "users": _users(made, format_)}
        st.download_button(
            "Download",
            data=lambda: export.packed(made, name, format_, **how),
            file_name=f"{Path(name).stem}.zip",
            mime="application/zip",
            key="export.download",
            type="primary",
            icon=":material/download:",
            on_click="ignore",
            help="A ZIP with the file, and beside it the record of how it was made.",
        )
        if export.allowed_folders() != []:
            with st.popover("Write to a folder", key="export.elsewhere"):
                _draw_folder(made, name, format_)
        with st.popover("Provenance", key="export.provenance"):
            record = json.dumps(export.provenance(made), indent=1, ensure_ascii=False)
            st.code(record, language=None, wrap_lines=True)
    _draw_written()
    with error_guard("export.preview"):
        for file, begins in export.preview(made, name, format_, **how):
            st.text(file)
            st.code(begins, language=None, wrap_lines=True)


def _draw_users(made: Outcome, format_: str) -> None:
    """Let say who annotators are in Label Studio, whose users are numbers."""
    people = export.annotators(made)
    if people and format_.startswith("labelstudio"):
        st.text_input(
            "Users there",
            placeholder=f"{people[0]}=1",
            max_chars=2000,
            key=USERS,
            width=220,
            help="Which user of Label Studio an annotator is, by number or e-mail address: "
            "anna=3, bob=bob@uni.de. Who is not named stays a remark on the annotation.",
            **KEPT,
        )


def _users(made: Outcome, format_: str) -> dict[str, int | str]:
    typed = state.recall(USERS) if format_.startswith("labelstudio") else None
    return export.users_of(made, str(typed or ""))


def _draw_folder(made: Outcome, name: str, format_: str) -> None:
    allowed = export.allowed_folders()
    later: dict[str, Any] = {"on_change": "ignore", **KEPT}  # read when it is written
    if allowed is None:
        st.text_input(
            "A folder of this machine",
            max_chars=1000,
            key="export.folder",
            width=330,
            placeholder="/home/me/clean",
            **later,
        )
    else:
        st.selectbox("A folder of the server", allowed, key="export.folder", width=330, **later)
    st.toggle("Replace", key="export.force", help="Overwrite a file of this name.", **later)
    st.button("Write", key="export.write", on_click=on_write, args=(made, name, format_))


def _draw_written() -> None:
    written = state.recall("export.written")
    if isinstance(written, str):
        st.success("Written, with its record beside it:", icon=":material/check:")
        st.text(written)
    elif written is not None:
        show_error(PlainError(*written), "export.refused")


def on_write(made: Outcome, name: str, format_: str) -> None:
    """Write the file where the form says, or say why not."""
    folder = str(state.recall("export.folder") or "")
    force = bool(state.recall("export.force"))
    per_item = export.has_several_rows_per_item(made) and bool(state.recall(PER_ITEM))
    try:
        how: dict[str, Any] = {"per_item": per_item, "users": _users(made, format_)}
        written = export.write_below(made, folder, name, format_, force=force, **how)
    except PlainError as error:
        state.remember("export.written", (error.title, error.detail, error.hint))
    else:
        state.remember("export.written", str(written))


if __name__ == "__main__":
    draw()
