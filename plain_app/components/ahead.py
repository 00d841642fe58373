"""Loads ahead, while the browser has nothing to do, what pages not opened yet are drawn with."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

ELEMENTS = (
    "EChartsChart",
    "Button",
    "Progress",
    "TextInput",
    "Slider",
    "Checkbox",
    "ButtonGroup",
    "DataFrame",
)

_JS = """
let isAsked = false;
export default function ({ data }) {
  if (isAsked) return;
  isAsked = true;
  const home = document.querySelector("script[type=module][src]")?.src;
  const load = ([name, ...rest]) =>
    name && requestIdleCallback(() =>
      import(new URL(name, home)).catch(() => {}).finally(() => load(rest)));
  if (home) load(data);
}
"""


def load_ahead() -> None:
    """Have the browser load Streamlit's scripts of the elements that the first page lacks."""
    _component()(key="frame.ahead", data=scripts(), height=1)


@cache
def scripts() -> list[str]:
    """Return the names of the scripts; an element that is called otherwise now is left out."""
    folder = Path(st.__file__).parent / "static" / "static" / "js"
    return [found.name for name in ELEMENTS for found in folder.glob(f"{name}.*.js")]


@cache
def _component() -> Any:
    return st.components.v2.component("plain_ahead", js=_JS)
