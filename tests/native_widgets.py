"""How a person presses Streamlit's own widgets in a browser."""

from typing import Any

HEAD, ROW = 36, 28  # pixels of tables, as `cards` draws them


def choose(page: Any, label: str, option: str) -> None:
    """Choose an option of a select box."""
    page.get_by_role("combobox", name=label, exact=True).first.click()
    page.get_by_role("option", name=option, exact=True).click()


def open_part(page: Any, key: str, name: str) -> None:
    """Open one of the names of a switch."""
    page.locator(f".st-key-{key}").get_by_text(name, exact=True).first.click()


def choose_row(table: Any, at: int, row: int = ROW) -> None:
    """Tick a row of a table that rows can be chosen in."""
    grid = table.locator(".dvn-scroller").first
    grid.scroll_into_view_if_needed()
    grid.click(position={"x": 14, "y": HEAD + row * at + row // 2})


def cells(table: Any, column: int) -> list[str]:
    """Return what a column holds, in the order it is drawn; the first is 1."""
    found = table.locator(f"td[aria-colindex='{column}']")
    found.first.wait_for(state="attached")
    return found.all_text_contents()


def point_at(page: Any, canvas: Any, part: float, told: Any) -> None:
    """Point at a chart, at a part of its width, until it tells what is there.

    A chart that is still drawn, or moved by what comes above it, misses the first pointer.
    """
    for _ in range(60):
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 3)
        page.mouse.move(box["x"] + part * box["width"], box["y"] + 60, steps=3)
        page.wait_for_timeout(400)
        if told.count():
            return
    raise AssertionError(f"the chart never told {told}")


FOCUSED = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  const text = one?.textContent ?? "";
  return `${one?.tagName} ${text.length < 100 ? text : ""} ${one?.getAttribute("aria-label")}`;
}"""
MAX_TABS = 80


def tab_to(page: Any, text: str, tag: str = "") -> None:
    """Press Tab until something with this text or name has the focus."""
    seen = []
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED).strip())
        if seen[-1].startswith(tag) and text in seen[-1]:
            return
    raise AssertionError(f"Tab never comes to {text}, but to {seen}")
