"""Conditions on data as self-contained HTML files; plotly is imported here, when it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from concordant.evaluation.plots import need_plotly
from concordant.exceptions import EmptyDataError
from concordant.supervision.readers.text import write_atomically
from concordant.theory.replicates.report import STATES, ConditionReport, QueryCheck

__all__ = ["COLOURS", "conditions_figure", "plot_conditions"]

COLOURS: Mapping[str, tuple[str, str]] = {  # and markers; told apart by every eye
    "holds": ("#0072B2", "circle"),
    "fails": ("#D55E00", "x"),
    "undecided": ("#999999", "circle-open"),
}
TITLE = "Does the condition hold?"
SUBTITLE = "a point a query: the share of the resamples on which the condition holds; colour: what is stated"
HEIGHT = 480


def plot_conditions(reports: ConditionReport | Iterable[ConditionReport], path: str | Path) -> None:
    """Write a panel per report as one HTML file that needs nothing else; whole, or not at all.

    Parameters
    ----------
    reports
        What `theory.replicates.check` gave, one or several.
    path
        Where to.
    """
    need_plotly()
    page = conditions_figure(reports).to_html(include_plotlyjs=True, full_html=True)
    with write_atomically(path) as stream:
        stream.write(page.encode())


def conditions_figure(reports: ConditionReport | Iterable[ConditionReport]) -> Any:
    """Give a panel per report, a point per query: support against the number of annotators."""
    from plotly.subplots import make_subplots

    shown = [reports] if isinstance(reports, ConditionReport) else list(reports)
    if not shown:
        raise EmptyDataError("reports")
    figure = make_subplots(
        rows=1,
        cols=len(shown),
        subplot_titles=[title(one) for one in shown],
        shared_yaxes=True,
        horizontal_spacing=0.03,
    )
    for column, report in enumerate(shown, start=1):
        for state in STATES:
            own = [one for one in report.queries if one.state == state]
            figure.add_trace(points(state, own, first=column == 1), row=1, col=column)
    figure.update_yaxes(range=[-0.05, 1.05])
    figure.update_yaxes(title="support", row=1, col=1)
    figure.update_xaxes(type="log", title="annotators", tickformat=",d")
    figure.update_layout(
        title={"text": f"{TITLE}<br><sub>{SUBTITLE}</sub>", "x": 0.5},
        template="plotly_white",
        height=HEIGHT,
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.2},
        margin={"t": 130, "b": 90},
    )
    return figure


def title(report: ConditionReport) -> str:
    """Give the condition, and how many queries are in each state."""
    counts = ", ".join(f"{state} {count}" for state, count in report.counts.items())
    margin = f", margin {report.margin:g}" if report.margin else ""
    return f"{report.condition}{margin}<br><sub>{counts}</sub>"


def points(state: str, queries: list[QueryCheck], *, first: bool) -> Any:
    """Give the queries of one state; the legend lists it once, also where it has none."""
    from plotly.graph_objects import Scatter

    colour, marker = COLOURS[state]
    empty: list[Any] = [] if queries else [None]
    return Scatter(
        x=[*(one.n_annotators for one in queries), *empty],
        y=[*(one.support for one in queries), *empty],
        text=[str(one) for one in queries],
        mode="markers",
        name=state,
        legendgroup=state,
        showlegend=first,
        marker={"color": colour, "symbol": marker, "size": 8, "opacity": 0.7},
        hovertemplate="%{text}<extra></extra>",
    )
