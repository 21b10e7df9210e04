"""Figure 2 of "Support vector comparison machines" as a self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from concordant._internals import new_figure
from concordant.types import FloatArray
from studies.venuto.svmcompare.margins import Panel

COLOURS: Mapping[str, str] = {"tie": "#009E73", "difference": "#666666", "LP": "#0072B2", "QP": "#D55E00"}
TITLE = "The widest margin, in values of the ranking function (LP) and in distances (QP)"
SUBTITLE = (
    "whole lines: r is 1 or -1, beyond which a difference is predicted; dashed: the margins around it. "
    "Pairs chosen so that scaling matters"
)
HEIGHT = 620
ROOM = 0.08  # around the points, as a share of their extent


def margins_figure(shown: Sequence[Panel]) -> Any:
    """Figure with panels side by side, each with axes of its own."""
    figure = new_figure([panel.title for panel in shown], TITLE, SUBTITLE, HEIGHT)
    listed: set[str] = set()
    for column, panel in enumerate(shown, start=1):
        for trace in (*_point_traces(panel), *lines(panel)):
            figure.add_trace(trace.update(showlegend=trace.name not in listed), row=1, col=column)
            listed.add(trace.name)
        low, high = _corners(panel)
        figure.update_xaxes(title="angle", range=[low[0], high[0]], row=1, col=column)
        figure.update_yaxes(range=[low[1], high[1]], row=1, col=column)
    figure.update_yaxes(matches=None, showticklabels=True)
    figure.update_yaxes(title="distance", row=1, col=1)
    return figure


def _corners(panel: Panel) -> tuple[FloatArray, FloatArray]:
    """Corners of a panel: a little more than its points need."""
    low, high = panel.differences.min(axis=0), panel.differences.max(axis=0)
    return low - ROOM * (high - low), high + ROOM * (high - low)


def _point_traces(panel: Panel) -> list[Any]:
    """Ties and differences as points."""
    from plotly.graph_objects import Scatter

    traces = []
    for name, kind, symbol in (("tie", 0, "circle-open"), ("difference", 1, "circle")):
        of_kind = panel.differences[np.abs(panel.y) == kind]
        marker = {"color": COLOURS[name], "symbol": symbol, "size": 7}
        x, y = of_kind.T.tolist()
        traces.append(Scatter(x=x, y=y, mode="markers", name=name, legendgroup=name, marker=marker))
    return traces


def lines(panel: Panel) -> list[Any]:
    """Boundaries of each program and the margins around them, each as one trace with breaks."""
    from plotly.graph_objects import Scatter

    low, high = _corners(panel)
    traces = []
    for name, solution in panel.solutions.items():
        margin = f"{name}, margin"
        for label, offsets, dash in ((name, (0.0,), "solid"), (margin, (-solution.mu, solution.mu), "dash")):
            levels = [level + offset for level in panel.levels for offset in offsets]
            ends = [end for level in levels for end in _line_ends(solution.w, level, low, high)]
            style = {"color": COLOURS[name], "dash": dash, "width": 4.0 if name == "LP" else 1.8}
            x, y = (
                [None if np.isnan(coordinate) else coordinate for coordinate in axis]
                for axis in zip(*ends, strict=True)
            )
            traces.append(Scatter(x=x, y=y, mode="lines", name=label, legendgroup=name, line=style))
    return traces


def _line_ends(w: FloatArray, level: float, low: FloatArray, high: FloatArray) -> list[tuple[float, float]]:
    """Two points of the line w @ d = level that lie beyond the corners or on a side, and a break.

    >>> _line_ends(np.array([0.0, 2.0]), 1.0, np.zeros(2), np.ones(2))
    [(0.0, 0.5), (1.0, 0.5), (nan, nan)]
    """
    along = int(np.argmin(np.abs(w) * (high - low)))
    ends = np.full((3, 2), np.nan)
    ends[:2, along] = low[along], high[along]
    ends[:2, 1 - along] = (level - w[along] * ends[:2, along]) / w[1 - along]
    return [(float(x), float(y)) for x, y in ends]
