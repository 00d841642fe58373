"""The report of `plain bench quality --methods`: one HTML file with everything in it."""

import html
from functools import partial
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from core.bench.comparison import TESTED, Comparison
from core.paths import REPORT, require_replaceable
from core.store import files
from plain_app.charts import methods as charts
from plain_app.report import STYLE, table_html


def write(
    target: Path,
    comparison: Comparison,
    about: str,
    sensitivities: list[dict[str, Any]],
    convergence: dict[str, Any],
) -> None:
    """Write the report; the file appears when it is complete."""
    drawn = figures(comparison, sensitivities, convergence)
    check = partial(require_replaceable, target, REPORT)
    with files.replacing(target, is_private=False, check=check) as file:
        file.write(_page(comparison, about, drawn).encode())


def figures(
    comparison: Comparison, sensitivities: list[dict[str, Any]], convergence: dict[str, Any]
) -> dict[str, go.Figure]:
    """Return all figures that say something, by title."""
    found = {}
    for measure in TESTED:
        tested = comparison.tested(measure)
        if tested is not None:
            points = charts.critical_points(tested.names, tested.ranks.tolist(), tested.nemenyi)
            found[f"Mean ranks: {tested.title}"] = charts.critical_figure(points)
    found["Seconds of one fit"] = charts.seconds_figure(comparison.seconds())
    curves = [*charts.sensitivity_points(sensitivities), *charts.convergence_points(convergence)]
    return found | {points.title: charts.curve_figure(points) for points in curves}


def _page(comparison: Comparison, about: str, drawn: dict[str, go.Figure]) -> str:
    title = "Methods side by side"
    parts = [f"<h1>{title}</h1>", f"<p class=dim>{html.escape(about)}</p>"]
    if not any(name.startswith("Mean ranks") for name in drawn):
        parts.append(
            "<p>No critical-difference diagram: it needs three methods that finished two cases or "
            "more.</p>"
        )
    for at, (name, figure) in enumerate(drawn.items()):
        figure.update_layout(template="plotly_white", paper_bgcolor="#fbfaf7")
        body = figure.to_html(full_html=False, include_plotlyjs=at == 0)
        parts.append(f"<h2>{html.escape(name)}</h2>{body}")
    for name, (header, *rows) in comparison.tables():
        parts.append(f"<h2>{html.escape(name)}</h2>{table_html(tuple(header), rows)}")
    head = f"<meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
    return f"{REPORT}<html><head>{head}</head><body>{''.join(parts)}</body></html>"
