"""Figure 2 of "Support vector comparison machines" as a self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from concordant.evaluation.plots import new_figure
from concordant.evaluation.reproduction.svmcompare_margins import Panel
from concordant.types import FloatArray

__all__ = ["margins_figure"]

COLOURS: Mapping[str, str] = {"tie": "#009E73", "difference": "#666666", "LP": "#0072B2", "QP": "#D55E00"}
TITLE = "The widest margin, in values of the ranking function (LP) and in distances (QP)"
SUBTITLE = (
    "whole lines: r is 1 or -1, beyond which a difference is predicted; dashed: the margins around it. "
    "Pairs chosen so that scaling matters"
)
HEIGHT = 620
ROOM = 0.08  # around the points, as a share of their extent


def margins_figure(shown: Sequence[Panel]) -> Any:
    """Give a plot of panels side by side, each with axes of its own."""
    figure = new_figure([one.title for one in shown], TITLE, SUBTITLE, HEIGHT)
    listed: set[str] = set()
    for column, panel in enumerate(shown, start=1):
        for trace in (*points(panel), *lines(panel)):
            figure.add_trace(trace.update(showlegend=trace.name not in listed), row=1, col=column)
            listed.add(trace.name)
        low, high = corners(panel)
        figure.update_xaxes(title="angle", range=[low[0], high[0]], row=1, col=column)
        figure.update_yaxes(range=[low[1], high[1]], row=1, col=column)
    figure.update_yaxes(matches=None, showticklabels=True)
    figure.update_yaxes(title="distance", row=1, col=1)
    return figure


def corners(panel: Panel) -> tuple[FloatArray, FloatArray]:
    """Give the corners of a panel: a little more than its points need."""
    low, high = panel.differences.min(axis=0), panel.differences.max(axis=0)
    return low - ROOM * (high - low), high + ROOM * (high - low)


def points(panel: Panel) -> list[Any]:
    """Give ties and differences."""
    from plotly.graph_objects import Scatter

    traces = []
    for name, kind, symbol in (("tie", 0, "circle-open"), ("difference", 1, "circle")):
        chosen = panel.differences[np.abs(panel.y) == kind]
        marker = {"color": COLOURS[name], "symbol": symbol, "size": 7}
        x, y = chosen.T.tolist()
        traces.append(Scatter(x=x, y=y, mode="markers", name=name, legendgroup=name, marker=marker))
    return traces


def lines(panel: Panel) -> list[Any]:
    """Give, for each program, the boundaries and the margins around them, each as one trace with breaks."""
    from plotly.graph_objects import Scatter

    low, high = corners(panel)
    traces = []
    for name, found in panel.found.items():
        margin = f"{name}, margin"
        for label, offsets, dash in ((name, (0.0,), "solid"), (margin, (-found.mu, found.mu), "dash")):
            levels = [level + offset for level in panel.levels for offset in offsets]
            ends = [end for level in levels for end in across(found.w, level, low, high)]
            style = {"color": COLOURS[name], "dash": dash, "width": 4.0 if name == "LP" else 1.8}
            x, y = (
                [None if np.isnan(place) else place for place in axis] for axis in zip(*ends, strict=True)
            )
            traces.append(Scatter(x=x, y=y, mode="lines", name=label, legendgroup=name, line=style))
    return traces


def across(w: FloatArray, level: float, low: FloatArray, high: FloatArray) -> list[tuple[float, float]]:
    """Give two points of the line w @ d = level that lie beyond the corners or on a side, and a break.

    >>> across(np.array([0.0, 2.0]), 1.0, np.zeros(2), np.ones(2))
    [(0.0, 0.5), (1.0, 0.5), (nan, nan)]
    """
    along = int(np.argmin(np.abs(w) * (high - low)))
    ends = np.full((3, 2), np.nan)
    ends[:2, along] = low[along], high[along]
    ends[:2, 1 - along] = (level - w[along] * ends[:2, along]) / w[1 - along]
    return [(float(x), float(y)) for x, y in ends]
