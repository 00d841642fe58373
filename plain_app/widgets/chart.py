"""Charts on the screen; `charts` says what they show."""

from typing import Any

import streamlit as st


def draw_chart(option: dict[str, Any], height: int, key: str) -> None:
    """Draw an ECharts option; what a chart is called is read out, too."""
    titles = [option.get("title", [])]
    texts = [one["text"] for part in titles for one in (part if isinstance(part, list) else [part])]
    st.echarts_chart(option, height=height, key=key, alt="; ".join(texts))
