"""How texts and pictures become features: a select per column with what it costs, and doing it."""

from time import monotonic

import streamlit as st

from core.encoders import Planned, absent_pictures, changes_features, encode, shown_time
from core.errors import PlainError
from core.formats import ReadResult
from core.formats.shared.tabular import NO_FEATURES
from plain_app.services import data, encoders
from plain_app.services.data import Staged
from plain_app.widgets.errors import show_error

NONE = "none"


def draw_encoders(result: ReadResult) -> list[Planned]:
    """Draw a select per column of texts or pictures; return what is to be encoded by what."""
    by_default = encoders.planned(result, {})
    found = encoders.columns(result, by_default)
    if not found:
        return []
    defaults = {one.column: one.offer.name for one in by_default}
    chosen: dict[str, str] = {}
    for column, offers in found.items():
        about = {one.name: f"{one.name}: {one.about}" for one in offers}
        about[NONE] = "not used as features"
        names = list(about)
        chosen[column] = st.selectbox(
            f"Features from {column[:80]}",
            names,
            index=names.index(defaults.get(column, NONE)),
            format_func=about.__getitem__,
            key=f"data.map_encode_{column}",
        )
    steps = encoders.planned(result, chosen)
    if steps and changes_features(result, steps):
        st.caption("When loaded: " + "; ".join(one.sentence for one in steps))
    elif changes_features(result, steps):
        st.caption(f"{NO_FEATURES.message.capitalize()}.")
    for problem in absent_pictures(result, steps):
        st.info(str(problem), icon=":material/image_not_supported:")
    return steps


def store_with_progress(staged: Staged, result: ReadResult, steps: list[Planned]) -> str | None:
    """Store a file, encoded where that was chosen; return its fingerprint, none when refused."""
    if not steps or not changes_features(result, steps):
        with st.spinner("Loading into the workspace …"):
            return data.store_read(encode(result, steps).result, staged.name)
    bar, started = st.progress(0.0, "Loading the encoder …"), dict[str, float]()

    def show(column: str, done: int, total: int) -> None:
        begun = started.setdefault(column, monotonic())
        left = (monotonic() - begun) * (total - done) / done if done else None
        text = f"{column[:40]}: {done:,} of {total:,}"
        bar.progress(done / max(1, total), text + (f", {shown_time(left)} left" if left else ""))

    left_out = [name for name in encoders.columns(result, steps) if name not in _names(steps)]
    try:
        return encoders.store(staged, result.mapping, steps, left_out, show)
    except PlainError as error:
        show_error(error, "data.encoding")
        return None
    finally:
        bar.empty()


def _names(steps: list[Planned]) -> set[str]:
    return {one.column for one in steps}
