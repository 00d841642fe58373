"""What one person has open: data set, run, annotator, and small things views remember.

The only user of `st.session_state`. Holds ids, never arrays. The choices of the frame are mirrored
in the address, so a link, a reload or a second tab opens the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

DATA, RUN, ANNOTATOR = "frame.data", "frame.run", "frame.annotator"
INSTANCE, LAST_INSTANCE = "explore.instance", "explore.last"
EXPLAINED = "explore.cell.{}"  # of a row: the label whose confidence is explained
_IN_ADDRESS = {"data": DATA, "run": RUN, "annotator": ANNOTATOR}
_PENDING = "frame.pending"
NEW = "new"  # in the address: no run
_SHOWN = 12  # characters of a fingerprint in the address


class AppState(NamedTuple):
    """The choices of the frame; none where nothing is chosen."""

    fingerprint: str | None
    run_id: str | None
    annotator: str | None


def current() -> AppState:
    """Return what is chosen in the frame."""
    chosen = (st.session_state.get(key) or None for key in (DATA, RUN, ANNOTATOR))
    return AppState(*chosen)


def choose(
    *, fingerprint: str | None = None, run_id: str | None = None, annotator: str | None = None
) -> None:
    """Choose a data set, run or annotator from the next rerun on; "" as run means none."""
    wanted = {DATA: fingerprint, RUN: run_id, ANNOTATOR: annotator}
    pending = st.session_state.setdefault(_PENDING, {})
    pending |= {key: value for key, value in wanted.items() if value is not None}


def apply_choices() -> None:
    """Take over what `choose` left, before the frame draws its select boxes."""
    for key, value in st.session_state.pop(_PENDING, {}).items():
        st.session_state[key] = value


def restore_choice(key: str, options: Sequence[str], default: str | None) -> None:
    """Give a select box the value of the address in a new session, and none that is gone.

    Else it is the default, and where that is gone the first.
    """
    name = next(name for name, one in _IN_ADDRESS.items() if one == key)
    value = st.session_state.get(key)
    if value is None and key not in st.session_state:
        begins = st.query_params.get(name, "")
        value = next((one for one in options if begins and one.startswith(begins)), None)
    known = [one for one in (value, default, *options[:1]) if one in options]
    st.session_state[key] = next(iter(known), None)


def restore_run(options: Sequence[str], default: str | None) -> None:
    """Choose the run: a new one ("") only if somebody or the address asks for it."""
    if RUN not in st.session_state and st.query_params.get("run") == NEW:
        st.session_state[RUN] = ""
    if st.session_state.get(RUN) != "":
        restore_choice(RUN, options, default)
    st.session_state[RUN] = st.session_state[RUN] or ""


def forget_run() -> None:
    """Leave the run open: another data set was chosen."""
    st.session_state.pop(RUN, None)
    st.query_params.pop("run", None)


def restore_annotator(person: str | None) -> None:
    """Take the annotator of the address in a new session; who is logged in is no choice."""
    if person is not None:
        st.session_state[ANNOTATOR] = person
    elif st.session_state.get(ANNOTATOR) is None:
        st.session_state[ANNOTATOR] = st.query_params.get("annotator", "")[:80]


def address() -> dict[str, str]:
    """Return the choices as the address has them."""
    chosen = {name: str(st.session_state.get(key) or "") for name, key in _IN_ADDRESS.items()}
    chosen["data"] = chosen["data"][:_SHOWN]
    if chosen["data"] and not chosen["run"]:
        chosen["run"] = NEW
    return {name: value for name, value in chosen.items() if value}


def mirror_in_address() -> None:
    """Write the choices into the address where they differ from it."""
    chosen = address()
    for name in _IN_ADDRESS.keys() - chosen.keys():
        if name in st.query_params:
            del st.query_params[name]
    if any(st.query_params.get(name) != value for name, value in chosen.items()):
        st.query_params.update(chosen)  # at once: the browser takes its time with every change


def recall(key: str, default: Any = None) -> Any:
    """Return what a view remembered, or the value of one of its widgets."""
    return st.session_state.get(key, default)


def remember(key: str, value: Any) -> None:
    """Keep a small value for this session, or set a widget that is not drawn yet."""
    st.session_state[key] = value


def remember_all(values: Mapping[str, Any]) -> None:
    """Keep small values, or set widgets."""
    for key, value in values.items():
        remember(key, value)


def forget(*keys: str) -> None:
    """Drop what was remembered; a widget starts anew."""
    for key in keys:
        st.session_state.pop(key, None)


def forget_all(prefix: str) -> None:
    """Drop everything whose key begins so."""
    forget(*[key for key in map(str, st.session_state) if key.startswith(prefix)])
