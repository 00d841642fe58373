"""Logging in with an OpenID Connect provider: the page before it, and who is there after it."""

import os

import streamlit as st

from plain_app.launcher import OIDC


def require_login() -> None:
    """Draw nothing but the way in until the provider has said who this is."""
    if not os.environ.get(OIDC) or st.user.is_logged_in:
        return
    middle = st.container(horizontal=True, horizontal_alignment="center", key="login")
    with middle.container(border=True, width=340):
        st.subheader("PLAIN Studio")
        st.caption("Log in with your organisation's account. Decisions you make carry its name.")
        st.button("Log in", key="frame.login", on_click=st.login, type="primary", width="stretch")
    st.stop()


def known_person() -> str | None:
    """Return who logged in, none where nobody has to."""
    if not os.environ.get(OIDC):
        return None
    told = (st.user.get(claim) for claim in ("email", "name", "sub"))
    return str(next(filter(None, told), "somebody"))[:80]
