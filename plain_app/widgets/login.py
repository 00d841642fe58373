"""Logging in with an OpenID Connect provider: the page before it, and who is there after it."""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import PlainError
from plain_app.server.launcher import OIDC
from plain_app.widgets.errors import show_error

LONGEST = 80  # characters of an annotator's name


def require_login() -> None:
    """Draw nothing but the way in until the provider has said who this is."""
    if not os.environ.get(OIDC):
        return
    if st.user.is_logged_in:
        if identity(st.user) is None:
            _draw_nobody()
        return
    middle = st.container(horizontal=True, horizontal_alignment="center", key="login")
    with middle.container(border=True, width=340):
        st.subheader("PLAIN Studio")
        st.caption("Log in with your organisation's account. Decisions you make carry its name.")
        st.button("Log in", key="frame.login", on_click=st.login, type="primary", width="stretch")
    st.stop()


def known_person() -> str | None:
    """Return who logged in, none where nobody has to."""
    return identity(st.user) if os.environ.get(OIDC) else None


def identity(claims: Mapping[str, Any]) -> str | None:
    """Return the name that decisions of a person carry, none where the provider tells nothing sure.

    An e-mail address only if the provider has verified it: else anybody could claim that of
    another. Names are not asked for at all, as people choose them. `sub` is never another's.
    """
    email, subject = claims.get("email"), claims.get("sub")
    name = email if email and claims.get("email_verified") in (True, "true") else subject
    if not name:
        return None
    text = str(name)
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 17]} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _draw_nobody() -> None:
    detail = "It has to give a subject (`sub`), or an e-mail address with `email_verified`."
    hint = "Ask whoever runs this server to look at the provider's settings."
    show_error(PlainError("The provider does not say who you are.", detail, hint), "login")
    st.button("Log out", key="frame.logout", on_click=st.logout)
    st.stop()
