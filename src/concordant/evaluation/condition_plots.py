"""Conditions on data as self-contained HTML files; plotly is imported here, when it is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from concordant.evaluation.plots import need_plotly, new_figure, write_page
from concordant.exceptions import EmptyDataError, ParameterError
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
        Where to: FILE.html, in a folder that exists.
    """
    need_plotly()
    check_page(Path(path))
    write_page(conditions_figure(reports), path)


def check_page(path: Path) -> None:
    """Refuse a file that is to be something else, or has no place."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("path", str(path), "a file that ends in .html: other pictures are not drawn")
    if not path.parent.is_dir():
        raise ParameterError("path", str(path), f"in a folder that exists, and {str(path.parent)!r} does not")


def conditions_figure(reports: ConditionReport | Iterable[ConditionReport]) -> Any:
    """Give a panel per report, a point per query: support against the number of annotators."""
    shown = [reports] if isinstance(reports, ConditionReport) else list(reports)
    if not shown:
        raise EmptyDataError("reports")
    figure = new_figure([title(one) for one in shown], TITLE, SUBTITLE, HEIGHT)
    for column, report in enumerate(shown, start=1):
        for state in STATES:
            own = [one for one in report.queries if one.state == state]
            figure.add_trace(points(state, own, first=column == 1), row=1, col=column)
    figure.update_yaxes(range=[-0.05, 1.05])
    figure.update_yaxes(title="support", row=1, col=1)
    powers = decades([one.n_annotators for report in shown for one in report.queries])
    ticks = {10**power: f"{10**power:,}" for power in powers}
    figure.update_xaxes(
        type="log",
        title="annotators",
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        range=[powers[0] - 0.1, powers[-1] + 0.1],
    )
    return figure


def decades(sizes: Iterable[int]) -> range:
    """Give the powers of ten from at most the least to at least the largest size, two or more.

    >>> list(decades([7, 120])), list(decades([10]))
    ([0, 1, 2, 3], [1, 2])
    """
    seen = [math.log10(size) for size in sizes]
    first = math.floor(min(seen))
    return range(first, max(math.ceil(max(seen)), first + 1) + 1)


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
