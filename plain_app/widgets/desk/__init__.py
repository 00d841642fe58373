"""The review desk as a component: it asks and answers itself (`plain_app.server.routes`).

Key presses never wait for a rerun: the desk has its own queue, keeps every answer in the browser
until the server has committed it, and tells the page only what the page has to draw.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from plain_app.widgets.modules import component

_HTML = """
<div class="desk" data-part="desk" data-item="" tabindex="-1">
  <div class="head">
    <strong data-part="name"></strong><span class="reason" data-part="reason"></span>
    <span class="status" data-part="status" role="status"></span>
  </div>
  <div class="frame">
    <div class="empty" data-part="empty"></div>
    <div class="stage" data-part="stage" hidden>
      <div class="one" data-part="one">
        <div class="item">
          <img data-part="picture" alt="The instance" title="Look closer" decoding="sync">
          <dl class="texts" data-part="texts"></dl>
          <div class="nearby" data-part="nearby"><span>Nearest instances</span>
            <div class="near" data-part="near"></div></div>
        </div>
        <div class="rows" data-part="rows"></div>
      </div>
      <div class="grid" data-part="grid" hidden></div>
    </div>
    <div class="panel" data-part="panel" hidden></div>
  </div>
  <dialog class="zoom" data-part="zoom" aria-label="The picture, large" closedby="any">
    <div class="lens" tabindex="0" role="group" aria-label="Picture" autofocus>
      <img alt="The instance, large"></div>
    <form method="dialog"><button>Close<kbd>Esc</kbd></button></form>
  </dialog>
  <div class="foot">
    <div data-part="actions" role="toolbar" aria-label="Answers"></div>
    <div class="progress"><span data-part="progress"></span>
      <progress data-part="meter" max="1" hidden></progress></div>
  </div>
  <div class="last" data-part="last"></div>
  <div class="refused" data-part="aside" role="alert" hidden></div>
</div>
"""


class DeskEvent(NamedTuple):
    """What the page has to draw: the cell to explain, if one was asked for just now."""

    instance: str | None
    label: str | None


def review_desk(settings: Mapping[str, Any], key: str) -> DeskEvent:
    """Draw the desk. `settings` has a token, a scope that names the queue, a query, and blind."""
    result = _component()(
        key=key,
        data=dict(settings),
        on_why_change=_nothing,
        on_answered_change=_nothing,
    )
    asked = getattr(result, "why", None) or {}
    return DeskEvent(asked.get("instance"), asked.get("label"))


def _nothing() -> None:
    """Streamlit sends events only to components with a callback; the value is read instead."""


@cache
def _component() -> Any:
    return component("plain_review_desk", "desk/desk.js", _HTML, "desk/desk.css")
