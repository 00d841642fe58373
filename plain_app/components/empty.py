"""Empty states: say what is missing and give the next step."""

from collections.abc import Callable
from typing import Any

import streamlit as st

DATA, TRAIN = "views/data.py", "views/train.py"


def empty_state(title: str, text: str, *, page: str | None = None, link: str = "") -> None:
    """Say why there is nothing here, and link to the page that changes it. Texts are ours."""
    with st.container(border=True, key="empty"):
        st.subheader(title)
        st.caption(text)
        if page is not None:
            st.page_link(page, label=link, icon=":material/arrow_forward:")


def next_step(text: str, label: str, key: str, on_click: Callable[..., Any], *args: Any) -> None:
    """Draw the one thing to do next."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_box"):
        st.button(label, key=key, type="primary", on_click=on_click, args=args)
        st.caption(text)
