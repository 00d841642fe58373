"""Names of which one is open; it is in the address, so a link or a reload opens the same."""

from collections.abc import Sequence

import streamlit as st


def tab_bar(label: str, options: Sequence[str], key: str) -> str:
    """Draw a row of names and return the open one, at first the first.

    The label is for screen readers. The key is the name in the address, too.
    """
    chosen = st.segmented_control(
        label,
        options,
        default=options[0],
        required=True,
        key=key,
        label_visibility="collapsed",
        bind="query-params",
    )
    return chosen or options[0]
