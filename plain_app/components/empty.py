"""Empty states: say what is missing and give the next step."""

import streamlit as st


def empty_state(
    title: str, text: str, *, page: str | None = None, link: str = "", found: str = ""
) -> None:
    """Say why there is nothing here, and link to the page that changes it.

    Texts are ours, but `found` may hold data.
    """
    with st.container(border=True, key="empty"):
        st.subheader(title)
        st.caption(text)
        if found:
            st.text(found[:2000])
        if page is not None:
            st.page_link(page, label=link, icon=":material/arrow_forward:")
