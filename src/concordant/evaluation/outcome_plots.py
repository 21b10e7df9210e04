"""Plots as self-contained HTML files; plotly is imported here, when it is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.files import write_atomically
from concordant.evaluation.outcomes import OUTCOMES, OutcomeCalibration
from concordant.exceptions import EmptyDataError, MissingExtraError, ParameterError
from concordant.metrics.comparison import ROC
from concordant.theory.replicates.condition_report import STATES, ConditionReport, QueryCheck
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


def need_plotly() -> None:
    """Raise if plotly is not installed, before any work whose result would be drawn."""
    if find_spec("plotly") is None:
        raise MissingExtraError("plotly", "report", "an HTML plot")


def need_pages() -> None:
    """Raise if plotly or jinja2 is not installed, before any work that would be shown on a page."""
    if missing := [name for name in ("plotly", "jinja2") if find_spec(name) is None]:
        raise MissingExtraError(" and ".join(missing), "report", "an HTML page")


def write_page(figure: Any, path: str | Path) -> None:
    """Write a figure as one HTML file, completely or not at all."""
    page = figure.to_html(include_plotlyjs=True, full_html=True)
    with write_atomically(path) as stream:
        stream.write(page.encode())


def new_figure(titles: list[str], title: str, subtitle: str, height: int) -> Any:
    """Create panels side by side, with a title above their titles, and room for the legend below."""
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=1, cols=len(titles), subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.03
    )
    figure.update_layout(
        title={
            "text": f"{title}<br><sub>{subtitle}</sub>",
            "x": 0.5,
            "y": 1.0 - 20.0 / height,
            "yanchor": "top",
        },
        template="plotly_white",
        height=height,
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -90.0 / height, "yanchor": "top"},
        margin={"t": 140, "b": 110},
    )
    return figure


# Conditions on data as self-contained HTML files; plotly is imported here, when it is used.

COLOURS: Mapping[str, tuple[str, str]] = {  # and markers, distinguishable with colour blindness
    "holds": ("#0072B2", "circle"),
    "fails": ("#D55E00", "x"),
    "undecided": ("#999999", "circle-open"),
}
TITLE = "Does the condition hold?"
SUBTITLE = "a point a query: the share of the resamples on which the condition holds; colour: what is stated"
CONDITIONS_HEIGHT = 480


def plot_conditions(reports: ConditionReport | Iterable[ConditionReport], path: str | Path) -> None:
    """Write a panel per report as one self-contained HTML file, completely or not at all.

    Parameters
    ----------
    reports
        Results of `theory.replicates.check`, one or several.
    path
        The file to write: FILE.html, in an existing folder.
    """
    need_plotly()
    check_page(Path(path))
    write_page(conditions_figure(reports), path)


def check_page(path: Path) -> None:
    """Check that the path ends in .html and that its folder exists."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("path", str(path), "a file that ends in .html")
    if not path.parent.is_dir():
        raise ParameterError("path", str(path), "in a folder that exists")


def conditions_figure(reports: ConditionReport | Iterable[ConditionReport]) -> Any:
    """Draw a panel per report, a point per query: support against the number of annotators."""
    shown = [reports] if isinstance(reports, ConditionReport) else list(reports)
    if not shown:
        raise EmptyDataError("reports")
    figure = new_figure([_panel_title(report) for report in shown], TITLE, SUBTITLE, CONDITIONS_HEIGHT)
    for column, report in enumerate(shown, start=1):
        for state in STATES:
            in_state = [query for query in report.queries if query.state == state]
            figure.add_trace(_draw_queries(state, in_state, first=column == 1), row=1, col=column)
    figure.update_yaxes(range=[-0.05, 1.05])
    figure.update_yaxes(title="support", row=1, col=1)
    powers = decades([query.n_annotators for report in shown for query in report.queries])
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
    """Return the powers of ten from at most the smallest to at least the largest size, two or more.

    >>> list(decades([7, 120])), list(decades([10]))
    ([0, 1, 2, 3], [1, 2])
    """
    exponents = [math.log10(size) for size in sizes]
    first = math.floor(min(exponents))
    return range(first, max(math.ceil(max(exponents)), first + 1) + 1)


def _panel_title(report: ConditionReport) -> str:
    counts = ", ".join(f"{state} {count}" for state, count in report.counts.items())
    margin = f", margin {report.margin:g}" if report.margin else ""
    return f"{report.condition}{margin}<br><sub>{counts}</sub>"


def _draw_queries(state: str, queries: list[QueryCheck], *, first: bool) -> Any:
    """Draw the queries of one state; the legend lists each state once, even if it has no query."""
    from plotly.graph_objects import Scatter

    colour, marker = COLOURS[state]
    empty: list[Any] = [] if queries else [None]
    return Scatter(
        x=[*(query.n_annotators for query in queries), *empty],
        y=[*(query.support for query in queries), *empty],
        text=[str(query) for query in queries],
        mode="markers",
        name=state,
        legendgroup=state,
        showlegend=first,
        marker={"color": colour, "symbol": marker, "size": 8, "opacity": 0.7},
        hovertemplate="%{text}<extra></extra>",
    )


# ROC curves and calibration of outcomes as self-contained HTML files; plotly is imported when it is used.

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")  # Okabe and Ito's
DASHES = ("solid", "dash", "dashdot", "10px,3px")
PANELS: Mapping[int, str] = {-1: "the left is better", 0: "a tie", 1: "the right is better"}
MOST_POINTS = 1000  # per curve: more are invisible, and make pages of megabytes
OUTCOMES_HEIGHT = 620
ENDS = [-0.02, 1.02]  # of both axes: points at 0 and 1 are not cut off
CALIBRATION = "Do the probabilities hold what they say?"
CALIBRATION_SUBTITLE = "share seen against predicted probability, per bin of pairs; {level:.0%} intervals"
CURVES = "Detecting a difference, as the threshold falls"
CURVES_SUBTITLE = "a tie called a difference is a false positive; dotted: no difference left to be found"


def plot_roc(curves: Mapping[str, ROC], path: str | Path) -> None:
    """Write ROC curves as one self-contained HTML file, completely or not at all.

    Parameters
    ----------
    curves
        Name of each model -> result of `comparison_roc`. The legend adds the area.
    path
        The file to write: FILE.html, in an existing folder.
    """
    need_plotly()
    check_page(Path(path))
    write_page(roc_figure(curves), path)


def roc_figure(curves: Mapping[str, ROC]) -> Any:
    """Draw one panel with a line per model."""
    if not curves:
        raise EmptyDataError("curves")
    figure = new_figure([""], CURVES, CURVES_SUBTITLE, OUTCOMES_HEIGHT)
    for (name, curve), (colour, dash) in zip(curves.items(), _line_styles(), strict=False):
        figure.add_traces(_curve_traces(f"{name}: area {curve.area:.3f}", curve, colour, dash))
    figure.update_xaxes(title="false-positive rate: share of ties called a difference", range=ENDS)
    figure.update_yaxes(title="true-positive rate: share of differences found", range=ENDS)
    figure.update_layout(margin={"t": 100})
    return figure


def _line_styles() -> Any:
    """Iterate endlessly over colours and dashes; the first lines differ in both."""
    return zip(cycle(PALETTE), cycle(DASHES), strict=False)


def _curve_traces(name: str, curve: ROC, colour: str, dash: str) -> list[Any]:
    """Draw the curve, and its last segment, which no threshold reaches, dotted and thin."""
    from plotly.graph_objects import Scatter

    indices = thin_curve(curve.false_positive[:-1], curve.true_positive[:-1])
    line = Scatter(
        x=curve.false_positive[indices],
        y=curve.true_positive[indices],
        customdata=curve.tau[indices],
        mode="lines",
        name=name,
        legendgroup=name,
        line={"color": colour, "dash": dash, "width": 2.5},
        hovertemplate="threshold %{customdata:.4g}: %{y:.3f} found, %{x:.3f} false",
    )
    last_segment = Scatter(
        x=curve.false_positive[-2:],
        y=curve.true_positive[-2:],
        mode="lines",
        legendgroup=name,
        showlegend=False,
        hoverinfo="skip",
        line={"color": colour, "dash": "dot", "width": 1.0},
    )
    return [line, last_segment]


def thin_curve(x: FloatArray, y: FloatArray, most: int = MOST_POINTS) -> IntArray:
    """Return at most `most` points of a rising curve, evenly along it, including both ends."""
    if len(x) <= most:
        return np.arange(len(x))
    along: NDArray[Any] = x + y
    return np.unique(np.searchsorted(along, np.linspace(along[0], along[-1], most)).clip(0, len(x) - 1))


def plot_calibration(tables: OutcomeCalibration | Mapping[str, OutcomeCalibration], path: str | Path) -> None:
    """Write calibration as one self-contained HTML file: a panel per outcome, a line per model.

    Parameters
    ----------
    tables
        Result of `calibration_table`; for several models, results by name.
    path
        The file to write: FILE.html, in an existing folder.
    """
    need_plotly()
    check_page(Path(path))
    write_page(calibration_figure(tables), path)


def calibration_figure(tables: OutcomeCalibration | Mapping[str, OutcomeCalibration]) -> Any:
    """Draw a panel per outcome, each with the diagonal."""
    from plotly.graph_objects import Scatter

    tables_by_name = {"model": tables} if isinstance(tables, OutcomeCalibration) else tables
    if not tables_by_name:
        raise EmptyDataError("tables")
    subtitle = CALIBRATION_SUBTITLE.format(level=next(iter(tables_by_name.values())).level)
    figure = new_figure([PANELS[y] for y in OUTCOMES], CALIBRATION, subtitle, OUTCOMES_HEIGHT)
    for column, outcome in enumerate(OUTCOMES, start=1):
        diagonal = {"color": "#999999", "dash": "dot", "width": 1.5}
        ideal = Scatter(x=[0, 1], y=[0, 1], mode="lines", line=diagonal, showlegend=False, hoverinfo="skip")
        figure.add_trace(ideal, row=1, col=column)
        for (name, table), (colour, dash) in zip(tables_by_name.items(), _line_styles(), strict=False):
            trace = _bin_trace(name, table, outcome, colour, dash)
            figure.add_trace(
                trace.update(showlegend=column == 1 and len(tables_by_name) > 1), row=1, col=column
            )
    figure.update_xaxes(title="predicted probability", range=ENDS, dtick=0.25)
    figure.update_yaxes(range=ENDS, dtick=0.25)
    figure.update_yaxes(title="share seen", row=1, col=1)
    return figure


def _bin_trace(name: str, table: OutcomeCalibration, outcome: int, colour: str, dash: str) -> Any:
    from plotly.graph_objects import Scatter

    in_outcome = table.outcome == outcome
    observed = table.observed[in_outcome]
    return Scatter(
        x=table.predicted[in_outcome],
        y=observed,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": table.high[in_outcome] - observed,
            "arrayminus": observed - table.low[in_outcome],
            "thickness": 1.2,
            "width": 3,
        },
        customdata=table.count[in_outcome],
        mode="lines+markers",
        name=name,
        legendgroup=name,
        line={"color": colour, "dash": dash, "width": 2.0},
        marker={"size": 7},
        hovertemplate="predicted %{x:.3f}, seen %{y:.3f} of %{customdata} pairs",
    )
