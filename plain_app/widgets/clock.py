"""When something happened, by the clock of whoever looks at it."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st


def local_time(stored: str | None) -> str:
    """Return a stored moment as date and time where the browser is; UTC where it does not say."""
    if not stored:
        return ""
    return f"{datetime.fromisoformat(stored).astimezone(_zone()):%Y-%m-%d %H:%M:%S}"


def _zone() -> tzinfo:
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):  # a name this machine does not know
        return UTC
