"""ROC curves and calibration of outcomes as self-contained HTML files; plotly is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.evaluation.condition_plots import check_page
from concordant.evaluation.outcome_calibration import OUTCOMES, Calibration
from concordant.evaluation.plots import need_plotly, new_figure, write_page
from concordant.exceptions import EmptyDataError
from concordant.metrics.comparison import ROC
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["plot_calibration", "plot_roc"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")  # Okabe and Ito's
DASHES = ("solid", "dash", "dashdot", "10px,3px")
PANELS: Mapping[int, str] = {-1: "the left is better", 0: "a tie", 1: "the right is better"}
MOST_POINTS = 1000  # of a curve: more cannot be seen, and make a page of megabytes
HEIGHT = 620
ENDS = [-0.02, 1.02]  # of both axes: points at 0 and 1 are whole
CALIBRATION = "Do the probabilities hold what they say?"
CALIBRATION_SUBTITLE = "share seen against predicted probability, per bin of pairs; {level:.0%} intervals"
CURVES = "Detecting a difference, as the threshold falls"
CURVES_SUBTITLE = "a tie called a difference is a false positive; dotted: no difference left to be found"


def plot_roc(curves: Mapping[str, ROC], path: str | Path) -> None:
    """Write ROC curves as one HTML file that needs nothing else; whole, or not at all.

    Parameters
    ----------
    curves
        Name of each model -> what `comparison_roc` gave. The legend adds the area.
    path
        Where to: FILE.html, in a folder that exists.
    """
    need_plotly()
    check_page(Path(path))
    write_page(roc_figure(curves), path)


def roc_figure(curves: Mapping[str, ROC]) -> Any:
    """Give one panel, a line per model."""
    if not curves:
        raise EmptyDataError("curves")
    figure = new_figure([""], CURVES, CURVES_SUBTITLE, HEIGHT)
    for (name, curve), (colour, dash) in zip(curves.items(), looks(), strict=False):
        figure.add_traces(curve_traces(f"{name}: area {curve.area:.3f}", curve, colour, dash))
    figure.update_xaxes(title="false-positive rate: share of ties called a difference", range=ENDS)
    figure.update_yaxes(title="true-positive rate: share of differences found", range=ENDS)
    figure.update_layout(margin={"t": 100})
    return figure


def looks() -> Any:
    """Give colours and dashes without end; the first lines differ in both."""
    return zip(cycle(PALETTE), cycle(DASHES), strict=False)


def curve_traces(name: str, curve: ROC, colour: str, dash: str) -> list[Any]:
    """Give the curve, and the last piece, which no threshold reaches, dotted and thin."""
    from plotly.graph_objects import Scatter

    shown = thinned(curve.false_positive[:-1], curve.true_positive[:-1])
    line = Scatter(
        x=curve.false_positive[shown],
        y=curve.true_positive[shown],
        customdata=curve.tau[shown],
        mode="lines",
        name=name,
        legendgroup=name,
        line={"color": colour, "dash": dash, "width": 2.5},
        hovertemplate="threshold %{customdata:.4g}: %{y:.3f} found, %{x:.3f} false",
    )
    rest = Scatter(
        x=curve.false_positive[-2:],
        y=curve.true_positive[-2:],
        mode="lines",
        legendgroup=name,
        showlegend=False,
        hoverinfo="skip",
        line={"color": colour, "dash": "dot", "width": 1.0},
    )
    return [line, rest]


def thinned(x: FloatArray, y: FloatArray, most: int = MOST_POINTS) -> IntArray:
    """Give at most so many points of a rising curve, evenly along it, both ends among them."""
    if len(x) <= most:
        return np.arange(len(x))
    along: NDArray[Any] = x + y
    return np.unique(np.searchsorted(along, np.linspace(along[0], along[-1], most)).clip(0, len(x) - 1))


def plot_calibration(tables: Calibration | Mapping[str, Calibration], path: str | Path) -> None:
    """Write calibration as one HTML file that needs nothing else: a panel per outcome, a line per model.

    Parameters
    ----------
    tables
        What `calibration_table` gave; of several models, by name.
    path
        Where to: FILE.html, in a folder that exists.
    """
    need_plotly()
    check_page(Path(path))
    write_page(calibration_figure(tables), path)


def calibration_figure(tables: Calibration | Mapping[str, Calibration]) -> Any:
    """Give a panel per outcome, each with the diagonal."""
    from plotly.graph_objects import Scatter

    named = {"model": tables} if isinstance(tables, Calibration) else tables
    if not named:
        raise EmptyDataError("tables")
    subtitle = CALIBRATION_SUBTITLE.format(level=next(iter(named.values())).level)
    figure = new_figure([PANELS[y] for y in OUTCOMES], CALIBRATION, subtitle, HEIGHT)
    for column, outcome in enumerate(OUTCOMES, start=1):
        diagonal = {"color": "#999999", "dash": "dot", "width": 1.5}
        ideal = Scatter(x=[0, 1], y=[0, 1], mode="lines", line=diagonal, showlegend=False, hoverinfo="skip")
        figure.add_trace(ideal, row=1, col=column)
        for (name, table), (colour, dash) in zip(named.items(), looks(), strict=False):
            trace = bin_trace(name, table, outcome, colour, dash)
            figure.add_trace(trace.update(showlegend=column == 1 and len(named) > 1), row=1, col=column)
    figure.update_xaxes(title="predicted probability", range=ENDS, dtick=0.25)
    figure.update_yaxes(range=ENDS, dtick=0.25)
    figure.update_yaxes(title="share seen", row=1, col=1)
    return figure


def bin_trace(name: str, table: Calibration, outcome: int, colour: str, dash: str) -> Any:
    """Give the bins of an outcome with their intervals."""
    from plotly.graph_objects import Scatter

    own = table.outcome == outcome
    observed = table.observed[own]
    return Scatter(
        x=table.predicted[own],
        y=observed,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": table.high[own] - observed,
            "arrayminus": observed - table.low[own],
            "thickness": 1.2,
            "width": 3,
        },
        customdata=table.count[own],
        mode="lines+markers",
        name=name,
        legendgroup=name,
        line={"color": colour, "dash": dash, "width": 2.0},
        marker={"size": 7},
        hovertemplate="predicted %{x:.3f}, seen %{y:.3f} of %{customdata} pairs",
    )
