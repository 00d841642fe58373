"""Beneath the review desk: how far its answers can be trusted, when it is done, and retraining."""

from typing import Literal

import pandas as pd
import streamlit as st

from core.errors import PlainError
from core.review import AutoResolve
from core.store import RunRow
from plain_app import state
from plain_app.services import review, runs, trust
from plain_app.widgets.errors import show_error
from plain_app.widgets.figures import Figure, counted, figure_row, state_badge, text_caption
from plain_app.widgets.tables import HEAD, ROW, cell_table

VERDICTS: tuple[Literal["keep"], Literal["reject"]] = ("keep", "reject")


def draw_agreement(run: RunRow, annotator: str) -> None:
    """Say how far people agree, and let someone settle where they do not."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        table = trust.agreement_table(run.fingerprint)
        if not table["shared cells"].iloc[0]:
            st.caption(
                "No cell has two opinions yet. Let a share of the instances be asked of two people "
                "(More, above)."
            )
        cell_table(table, "review.agreement", 300, {"alpha": ".3f", "kappa": ".3f"})
        st.caption("Krippendorff's alpha and Cohen's kappa: 1 is full agreement, 0 is chance.")
        _draw_self_agreement(run)
    with right:
        _draw_disagreements(run, annotator)


def _draw_self_agreement(run: RunRow) -> None:
    """Say how far people agree with themselves: of twenty answers one comes back, blind."""
    table = trust.self_agreement_table(run.fingerprint)
    st.caption("With oneself: now and then an instance that was answered comes back, blind.")
    if len(table):
        cell_table(table, "review.self_agreement", 200)


def _draw_disagreements(run: RunRow, annotator: str) -> None:
    found = trust.differing(run.fingerprint)
    table = pd.DataFrame(
        [
            (
                one.instance_id[:60],
                one.label[:60],
                ", ".join(f"{who[:20]}: {said}" for who, said in one.verdicts.items()),
                one.adjudicated or "",
            )
            for one in found
        ],
        columns=["instance", "label", "said", "adjudicated"],
    )
    if not found:
        st.caption("No two people have answered the same cell differently.")
        return
    st.caption("Cells that people answered differently")
    chosen = _chosen(table, "review.disagreements")
    cells = [(one.instance_id, one.label) for one in (found[at] for at in chosen)]
    _draw_settle(run, annotator, cells, "review.adjudicate", adjudicates=True)


def _chosen(table: pd.DataFrame, key: str) -> list[int]:
    """Draw rows that can be chosen; return those that are."""
    event = st.dataframe(
        table,
        hide_index=True,
        height=min(HEAD + ROW * max(len(table), 1), 260),
        row_height=ROW,
        key=key,
        on_select="rerun",
        selection_mode="multi-row",
        alt=f"Table of {', '.join(map(str, table.columns))}",
        column_config={
            "strength": st.column_config.NumberColumn(format="%.2f", width=80),
        },
    )
    rows = event["selection"]["rows"] if event else []
    return [at for at in rows if at < len(table)]


def _draw_settle(
    run: RunRow,
    annotator: str,
    cells: list[tuple[str, str]],
    key: str,
    *,
    adjudicates: bool,
) -> None:
    """Offer to decide the chosen cells, or to have them asked again on the desk."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for verdict in ("keep", "reject"):
            st.button(
                verdict.capitalize(),
                key=f"{key}_{verdict}",
                disabled=not cells,
                on_click=trust.decide,
                args=((run.fingerprint, run.id), cells, verdict, annotator),
                kwargs={"adjudicates": adjudicates},
            )
        st.button(
            "Look at them on the desk",
            key=f"{key}_ask",
            disabled=not cells,
            type="tertiary",
            on_click=on_ask_again,
            args=(sorted({instance for instance, _ in cells}),),
        )
        st.caption("Choose rows; what you press goes before what was said.")


def on_ask_again(instances: list[str]) -> None:
    """Put instances on the desk again, whatever was decided."""
    state.remember("review.selection", review.open_selection(instances))
    state.remember("review.states", ["open", "settled", "decided", "unsure"])


def draw_contradictions(run: RunRow, annotator: str) -> None:
    """List decisions that do not fit each other or everything else."""
    found = trust.contradicting(run.id)
    if not found:
        st.caption("No decision contradicts a near-duplicate, a rule of the labels, or the model.")
        return
    chosen = _chosen(trust.contradiction_table(run.id, found), "review.contradictions")
    cells = [cell for at in chosen for cell in trust.names_of(run.id, found[at])]
    _draw_settle(run, annotator, cells, "review.reconcile", adjudicates=False)


def draw_finish(run: RunRow, annotator: str) -> None:
    """Say what is still wrong, how far it is, and what may be decided unseen."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        target = st.slider(
            "Cells to be right", 0.9, 1.0, 0.98, 0.005, key="review.target", format="%.3f"
        )
        done = trust.how_far(run.id, target)
        left_ = done.remaining
        figure_row(
            [
                Figure(
                    "false kept ≈",
                    f"{left_.total:,.0f}",
                    "Estimated from cells that were drawn at random: false, and kept as it is now",
                ),
                Figure("95% interval", f"{left_.total_low:,.0f} – {left_.total_high:,.0f}"),
                Figure("decisions left", f"{done.n_clicks:,}", "To the share above, at most"),
                Figure("audited", f"{int(left_.n_audited.sum()):,}", "Random cells decided"),
            ],
            "review.left",
        )
        columns = ["false ≈", "at least", "at most"]
        is_large = done.table[columns].to_numpy().max(initial=0) >= 100
        kinds = dict.fromkeys(columns, ",.0f" if is_large else ".1f")
        table = done.table.round(dict.fromkeys(columns, 0 if is_large else 1))
        cell_table(table, "review.remaining", 220, kinds)
    with right:
        _draw_auto(run, annotator)


def _draw_auto(run: RunRow, annotator: str) -> None:
    precision = st.slider(
        "Decide the rest unseen at a precision of",
        0.9,
        0.995,
        0.95,
        0.005,
        format="%.3f",
        key="review.precision",
    )
    found = {verdict: trust.resolvable(run.id, precision, verdict) for verdict in VERDICTS}
    for verdict, one in found.items():
        st.caption(_about(verdict, one))
    if people := sorted({one.annotator[:40] for one in trust.habits(run.id)}):
        st.caption(f"Answers given as if without looking do not count here: {', '.join(people)}.")
    count = sum(len(one.rows) for one in found.values())
    with st.container(horizontal=True):
        st.button(
            f"Decide {counted(count, 'cell')}",
            key="review.auto",
            disabled=not count,
            type="primary",
            on_click=on_resolve_rest,
            args=(run.id, precision, annotator),
        )
        n_made = trust.n_resolved(run.fingerprint, annotator)
        if n_made:
            st.button(
                f"Undo {counted(n_made, 'cell')}",
                key="review.auto_undo",
                icon=":material/undo:",
                on_click=trust.undo_resolved,
                args=(run.fingerprint, annotator),
            )


def on_resolve_rest(run_id: str, precision: float, annotator: str) -> None:
    """Decide unseen what is guaranteed."""
    trust.resolve_rest(run_id, precision, annotator)


def _about(verdict: str, found: AutoResolve) -> str:
    seen = f"{counted(found.n_audited, 'random cell')}, {found.n_wrong:,} of them wrong"
    if found.cut is None:
        return (
            f"**{verdict}**: refused. {seen}. At least {found.n_needed:,} more must be answered, "
            "and be right: choose the order “Random, for the estimates”."
        )
    share = found.cut if verdict == "keep" else 1 - found.cut
    side = "from" if verdict == "keep" else "up to"
    return (
        f"**{verdict}** {counted(len(found.rows), 'cell')} with a confidence {side} {share:.2f}: "
        f"{seen}, so with 95% certainty at least {100 * found.bound:.1f}% are right."
    )


def draw_retrain(run: RunRow, annotator: str) -> None:
    """Offer to train on with the decisions, and say what that changed when it has ended."""
    count = review.progress(run.id).n_decided
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Retrain with {counted(count, 'decision')}",
            key="review.retrain",
            type="primary",
            icon=":material/model_training:",
            disabled=not count,
            on_click=on_retrain,
            args=(run.id,),
        )
        st.caption(
            "Goes on from this run's weights, in the background. You can go on reviewing."
            if count
            else "A run learns from decisions: answer some questions first."
        )
    if refusal := state.recall("review.retrain_refusal"):
        show_error(PlainError(*refusal), "review.retrain")
    if new := state.recall("review.retrained"):
        _draw_retraining(new)
    before = runs.retrained_from(run.id)
    if before is not None:
        _draw_retraining_effect(run, before)


def on_retrain(run_id: str) -> None:
    """Start the run, or say why not."""
    state.forget("review.retrain_refusal")
    try:
        state.remember("review.retrained", runs.retrain(run_id))
    except PlainError as error:
        state.remember("review.retrain_refusal", (error.title, error.detail, error.hint))


@st.fragment(run_every=2)
def _draw_retraining(run_id: str) -> None:
    """Follow the new run; when it has ended, offer to go on with it."""
    runs.start_queued()
    new = runs.get(run_id)
    with st.container(horizontal=True, vertical_alignment="center", key="review.retraining"):
        state_badge(runs.status(new))
        st.caption(f"epoch {new.epoch} of {new.config.epochs}")
        if new.state.is_ended and new.epoch:
            text = "Review with it, and see what changed"
            if st.button(text, key="review.take", on_click=on_take, args=(run_id,)):
                st.rerun()  # the frame too


def on_take(run_id: str) -> None:
    """Choose the retrained run in the frame."""
    state.choose(run_id=run_id)
    state.forget("review.retrained")


def _draw_retraining_effect(run: RunRow, before: RunRow) -> None:
    found = trust.retraining_effect(run.id)
    text_caption(f"What decisions changed, against {runs.title(before)} without them:")
    figure_row(
        [
            Figure("settled", f"{found.n_settled:,}", "Need not be asked any more"),
            Figure("resolved otherwise", f"{found.n_flipped:,}", "Cells that changed sides"),
            Figure("opened", f"{found.n_opened:,}", "Were sure and are not any more"),
            Figure("open before", f"{found.n_open_before:,}"),
            Figure("open now", f"{found.n_open_after:,}"),
        ],
        "review.effect",
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        cell_table(found.cells, "review.effect_cells", 240)
    with right:
        cell_table(found.credit, "review.credit", 240)
