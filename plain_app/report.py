"""The report of a study: one HTML file with everything in it, readable without us."""

import html
from functools import partial
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from core import tuning
from core.paths import REPORT, require_replaceable
from core.store import Workspace, files
from core.tuning import Study
from plain_app.charts import study as charts

STYLE = """
body {font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem;
      color: #22302f; background: #fbfaf7}
h1 {font-size: 1.5rem} h2 {font-size: 1.1rem; margin-top: 2rem}
table {border-collapse: collapse} td, th {padding: .2rem .8rem .2rem 0; text-align: left}
th {border-bottom: 1px solid #dcd8cd} .dim {color: #6a7473}
"""


def write(workspace: Workspace, study_id: str, target: Path) -> None:
    """Write the report; the file appears when it is complete."""
    check = partial(require_replaceable, target, REPORT)
    with files.replacing(target, is_private=False, check=check) as file:
        file.write(make(workspace, study_id))


def make(workspace: Workspace, study_id: str) -> bytes:
    """Return the report as one HTML file."""
    study = tuning.read_study(workspace, study_id)
    data = workspace.dataset(study.row.fingerprint)
    return _page(study, data.name if data else "", workspace).encode()


def figures(study: Study, importances: dict[str, float]) -> dict[str, go.Figure]:
    """Return all figures that say something of this study, by title."""
    points = charts.setting_points(study)
    found = {
        "History": charts.history_figure(charts.history_points(study)),
        "Learning curves": charts.curves_figure(charts.curves_points(study)),
        "Value by setting": charts.slice_figure(points),
    }
    if len(points.axes) > 1:
        found["All settings together"] = charts.parallel_figure(points)
        first, second = points.axes[0].name, points.axes[1].name
        contour = charts.contour_points(study, first, second)
        found[f"{first} and {second}"] = charts.contour_figure(contour)
    if importances:
        found["What matters"] = charts.importance_figure(importances)
    found["Two measures"] = charts.pareto_figure(charts.pareto_points(study))
    return found


def _page(study: Study, data: str, workspace: Workspace) -> str:
    importances = tuning.importances(workspace, study.row.id)
    title = f"Study {study.row.name or study.row.id} on {data}"
    trust = tuning.explain(study.settings.objective, workspace, study.row.fingerprint)
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p class=dim>{html.escape(study.row.created[:16].replace('T', ' '))} UTC · "
        f"{study.status} · {len(study.finished)} finished, "
        f"{study.n_done - len(study.finished)} pruned</p>",
        f"<p>{html.escape(trust)}</p>",
        _best_table(study),
    ]
    for at, (name, figure) in enumerate(figures(study, importances).items()):
        figure.update_layout(template="plotly_white", paper_bgcolor="#fbfaf7")
        drawn = figure.to_html(full_html=False, include_plotlyjs=at == 0)
        parts.append(f"<h2>{html.escape(name)}</h2>{drawn}")
    parts += ["<h2>Trials</h2>", _trial_table(study), "<h2>Settings of the study</h2>"]
    parts.append(f"<pre>{html.escape(study.settings.model_dump_json(indent=1))}</pre>")
    head = f"<meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
    return f"{REPORT}<html><head>{head}</head><body>{''.join(parts)}</body></html>"


def _best_table(study: Study) -> str:
    """Return the best trial beside the first, which is the preset: the only held-out figures."""
    first = next((one for one in study.finished if one.number == 0), None)
    rows = [
        (what, one.number, one.value, one.reported, charts.words(one))
        for what, one in (("best", study.best), ("first", first))
        if one is not None
    ]
    return table_html(("", "trial", "tuned on", "held out", "settings"), rows)


def _trial_table(study: Study) -> str:
    rows = [
        (one.number, one.state, one.value, one.seconds, charts.words(one), one.note)
        for one in study.trials
    ]
    return table_html(("trial", "state", "tuned on", "seconds", "settings", "note"), rows)


def table_html(header: tuple[str, ...], rows: list[Any]) -> str:
    """Return a table; what is in it is text."""

    def cell(value: Any) -> str:
        shown = "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
        return f"<td>{html.escape(shown)}</td>"

    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
