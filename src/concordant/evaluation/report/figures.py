"""The plots of a report, as data and layout for plotly.js."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from concordant.evaluation.report.page import LARGEST, base_layout, short
from concordant.evaluation.report.pieces import Calibration, Curve, Distribution, Gains, Weights
from concordant.evaluation.report.style import BLUE, ORANGE

__all__ = [
    "calibration_figure",
    "curve_figure",
    "distribution_figure",
    "gains_figure",
    "weights_figure",
]

HEIGHT = 320
ROW, MARGIN = 24, 60  # pixels of a bar that lies, and around all of them
Figure = dict[str, Any]


def distribution_figure(one: Distribution, names: Sequence[str]) -> Figure:
    """Give two histograms side by side in each bin, the baseline's hollow."""
    centres = [(low + high) / 2.0 for low, high in zip(one.edges, one.edges[1:], strict=False)]
    ends = [[low, high] for low, high in zip(one.edges, one.edges[1:], strict=False)]
    shared = {"type": "bar", "x": centres, "customdata": ends}
    told = "%{customdata[0]:.3g} to %{customdata[1]:.3g}: %{y} queries"
    drawn = [
        {**shared, "y": one.model, "marker": {"color": BLUE}},
        {**shared, "y": one.baseline, "marker": {"color": ORANGE, "opacity": 0.75}},
    ]
    data = [
        {**trace, "name": short(name, 32), "hovertemplate": f"{told}<extra></extra>"}
        for trace, name in zip(drawn, names, strict=True)
    ]
    axes = {"xaxis": titled(one.metric), "yaxis": {**titled("queries"), "rangemode": "tozero"}}
    return {"data": data, "layout": base_layout(HEIGHT, showlegend=True, bargap=0.1, **axes)}


def gains_figure(one: Gains) -> Figure:
    """Give a bar per query, gains up and losses down."""
    names = [
        f"query {escape(qid[:60])}: {gain:+.4f}" for qid, gain in zip(one.qid, one.differences, strict=True)
    ]
    colours = [BLUE if gain >= 0.0 else ORANGE for gain in one.differences]
    places = list(range(1, len(names) + 1))
    bars = {
        "type": "bar",
        "x": places,
        "y": one.differences,
        "marker": {"color": colours, "line": {"width": 0}},
        "customdata": names,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    # A gain of 0 has no height: a dot says that the query is there.
    level = [place for place, gain in zip(places, one.differences, strict=True) if gain == 0.0]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": level,
        "y": [0.0] * len(level),
        "marker": {"color": BLUE, "size": 4},
        "hoverinfo": "skip",
    }
    xaxis = {**titled("queries, largest gain first"), "showticklabels": False, "showgrid": False}
    layout = base_layout(HEIGHT, bargap=0.0, xaxis=xaxis, yaxis=titled(f"gain in {one.metric}"))
    return {"data": [bars, dots] if level else [bars], "layout": layout}


def curve_figure(one: Curve) -> Figure:
    """Give a line, and a band where there are intervals."""
    few = len(one.x) <= 40
    line = {
        "type": "scatter",
        "mode": "lines+markers" if few else "lines",
        "x": one.x,
        "y": one.y,
        "line": {"color": BLUE, "width": 2.5},
        "marker": {"color": BLUE, "size": 7},
        "hovertemplate": f"{escape(one.x_name)} %{{x:.4g}}: %{{y:.4f}}<extra></extra>",
    }
    if one.low:
        line["error_y"] = bars_around(one.y, one.low, one.high)
    xaxis = titled(one.x_name)
    if one.log_x:
        ends = [min(one.x), max(one.x)]
        ticks = one.x if len(one.x) <= 6 else ends
        xaxis |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,.4g}" for tick in ticks]}
    return {"data": [line], "layout": base_layout(HEIGHT, xaxis=xaxis, yaxis=titled(short(one.y_name, 40)))}


def calibration_figure(one: Calibration) -> Figure:
    """Give the mean grade against the mean score, bin by bin."""
    grades, scores = [each.grade for each in one.bins], [each.score for each in one.bins]
    title = "mean score of the bin"
    if max(map(abs, scores)) > LARGEST:
        title, scores = "groups of rows, lowest scores first", list(map(float, range(1, len(scores) + 1)))
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": scores,
        "y": grades,
        "error_y": bars_around(grades, [each.low for each in one.bins], [each.high for each in one.bins]),
        "line": {"color": BLUE, "width": 2},
        "marker": {"color": BLUE, "size": 8},
        "customdata": [[each.lowest, each.highest, each.n_rows] for each in one.bins],
        "hovertemplate": "scores %{customdata[0]:.4g} to %{customdata[1]:.4g}: mean grade %{y:.3f} of "
        "%{customdata[2]:,} rows<extra></extra>",
    }
    axes = {
        "xaxis": titled(title),
        "yaxis": {**titled("mean grade"), "rangemode": "tozero"},
    }
    return {"data": [points], "layout": base_layout(HEIGHT, **axes)}


def weights_figure(one: Weights, axis: str) -> Figure:
    """Give a lying bar per feature, the largest on top."""
    places = list(range(len(one.names)))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": one.values,
        "y": places,
        "marker": {"color": [BLUE if value >= 0.0 else ORANGE for value in one.values]},
        "customdata": [escape(name[:80]) for name in one.names],
        "hovertemplate": "%{customdata}: %{x:.4g}<extra></extra>",
    }
    yaxis = {
        "tickvals": places,
        "ticktext": [short(name) for name in one.names],
        "range": [len(places) - 0.4, -0.6],
        "showgrid": False,
        "zeroline": False,
    }
    height = MARGIN + ROW * len(places) + 20
    return {"data": [bars], "layout": base_layout(height, xaxis=titled(axis), yaxis=yaxis)}


def titled(text: str) -> Figure:
    """Give an axis with a title."""
    return {"title": {"text": text, "standoff": 8}}


def bars_around(values: Sequence[float], low: Sequence[float], high: Sequence[float]) -> Figure:
    """Give intervals as plotly has them: how far above, how far below."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [top - value for value, top in zip(values, high, strict=True)],
        "arrayminus": [value - bottom for value, bottom in zip(values, low, strict=True)],
        "color": BLUE,
        "thickness": 1.5,
        "width": 4,
    }
