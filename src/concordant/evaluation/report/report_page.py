"""The page of a report: the formats of its template, and its plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from concordant.evaluation.report.page import BLUE, LARGEST, ORANGE, base_layout, render_page, short
from concordant.evaluation.report.report_values import (
    Bin,
    Curve,
    Distribution,
    Estimate,
    FeatureWeights,
    Gains,
    GradeByScore,
    JudgedData,
    MetricRow,
    RankedRow,
    WorstQuery,
)
from concordant.evaluation.report.scored import thin

if TYPE_CHECKING:
    from concordant.evaluation.report.document import Report


def report_page(report: Report) -> str:
    """Build the page; sections without data say so, and have no plot."""
    axis = AXES.get(report.weights.kind, "").format(metric=report.conventions.metric)
    figures = _figures(report, axis)
    values = {"title": report.title, "report": report, "weights_axis": axis}
    return render_page("evaluation/report/report.html", figures, FORMATS, **values)


# Formats of numbers and of whole rows; a dash stands for a number that is not defined.


def _p_value(value: float) -> str:
    """Format a p-value.

    >>> _p_value(0.00001), _p_value(0.25)
    ('< 0.001', '0.250')
    """
    return "-" if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _signed(value: float, undefined: str = "-") -> str:
    return undefined if math.isnan(value) else f"{value:+.4f}"


def _interval(estimate: Estimate | Bin, digits: int = 4) -> str:
    return _ends((estimate.low, estimate.high), digits)


def _ends(ends: tuple[float, float], digits: int) -> str:
    """Format an interval; empty if there is none."""
    return "" if any(map(math.isnan, ends)) else f"{ends[0]:.{digits}f} to {ends[1]:.{digits}f}"


def _between(estimate: Estimate) -> str:
    """Format an interval in brackets; empty if there is none."""
    ends = _interval(estimate)
    return f" ({ends})" if ends else ""


def _plural(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"


def _tone(row: MetricRow) -> str:
    """CSS class of a difference: good or bad if interval and test both exclude 0."""
    low, high = row.difference.low, row.difference.high
    if not ((low > 0.0 or high < 0.0) and row.p_value < 0.05):
        return ""
    return "good" if (low > 0.0) == row.greater_is_better else "bad"


def _verdict(row: MetricRow) -> str:
    """Describe the difference, and whether chance could explain it."""
    apart = row.difference.value
    if math.isnan(apart):
        return "No query can be compared."
    if apart == 0.0:
        return "There is no difference."
    better = (apart > 0.0) == row.greater_is_better
    words = f"The model is {'better' if better else 'worse'} by {abs(apart):.4f}{_between(row.difference)}"
    chance = "chance rarely gives so much" if row.p_value < 0.05 else "chance could give as much"
    return f"{words}, p {_p_value(row.p_value)}: {chance}."


def _grades(judged: JudgedData) -> str:
    listed = ", ".join(f"{grade:g}: {count:,}" for grade, count in judged.grades)
    n_graded = sum(count for _, count in judged.grades)
    return listed + " and higher ones" * (n_graded < judged.n_rows)


def _score(row: RankedRow) -> str:
    return "not ranked" if math.isinf(row.score) else f"{row.score:.4g}{' (tied)' * row.tied}"


def _extent(query: WorstQuery) -> str:
    """Describe which rows of a query are shown."""
    head = sum(row.rank == rank for rank, row in enumerate(query.rows, start=1))
    below = len(query.rows) - head
    if head == query.n_rows:
        return _plural(query.n_rows, "row", "rows")
    return f"first {head} of {query.n_rows:,} rows" + f", and {below} of higher grade below" * (below > 0)


FORMATS: Mapping[str, Callable[..., Any]] = {
    "between": _between,
    "ends": _ends,
    "extent": _extent,
    "grades": _grades,
    "interval": _interval,
    "number": _number,
    "p_value": _p_value,
    "percent": "{:.0%}".format,
    "plural": _plural,
    "score": _score,
    "signed": _signed,
    "thin": lambda values, most: thin(len(values), most),  # rows in the table of a plot
    "tone": _tone,
    "verdict": _verdict,
    "whole": "{:,}".format,
}

# Plots, as data and layout for plotly.js.

AXES = {
    "weights": "weight times spread",
    "importances": "share in the gains",
    "foreign": "importance",
    "drops": "loss of {metric}",
}
HEIGHT = 320
ROW, MARGIN = 24, 60  # pixels of a horizontal bar, and around all of them
Figure = dict[str, Any]


def _figures(report: Report, weights_axis: str) -> dict[str, Figure]:
    """Build the plots for which there are data, by their ids."""
    figures = {}
    if any(report.distribution.model):
        names = report.judged.model, report.judged.baseline
        figures["plot-distribution"] = _distribution_figure(report.distribution, names)
    if report.gains.n_queries:
        figures["plot-gains"] = _gains_figure(report.gains)
    for number, curve in enumerate(report.learning.curves):
        figures[f"plot-learning-{number}"] = _curve_figure(curve)
    if report.calibration.bins:
        figures["plot-calibration"] = _calibration_figure(report.calibration)
    if report.weights.names:
        figures["plot-weights"] = _weights_figure(report.weights, weights_axis)
    return figures


def _distribution_figure(distribution: Distribution, names: Sequence[str]) -> Figure:
    """Build two histograms side by side in each bin, the baseline's paler."""
    centres = [
        (low + high) / 2.0 for low, high in zip(distribution.edges, distribution.edges[1:], strict=False)
    ]
    ends = [[low, high] for low, high in zip(distribution.edges, distribution.edges[1:], strict=False)]
    shared = {"type": "bar", "x": centres, "customdata": ends}
    hover = "%{customdata[0]:.3g} to %{customdata[1]:.3g}: %{y} queries"
    drawn = [
        {**shared, "y": distribution.model, "marker": {"color": BLUE}},
        {**shared, "y": distribution.baseline, "marker": {"color": ORANGE, "opacity": 0.75}},
    ]
    data = [
        {**trace, "name": short(name, 32), "hovertemplate": f"{hover}<extra></extra>"}
        for trace, name in zip(drawn, names, strict=True)
    ]
    axes = {
        "xaxis": _axis_title(distribution.metric),
        "yaxis": {**_axis_title("queries"), "rangemode": "tozero"},
    }
    return {"data": data, "layout": base_layout(HEIGHT, showlegend=True, bargap=0.1, **axes)}


def _gains_figure(gains: Gains) -> Figure:
    """Build a bar per query, gains up and losses down."""
    names = [
        f"query {escape(qid[:60])}: {gain:+.4f}"
        for qid, gain in zip(gains.qid, gains.differences, strict=True)
    ]
    colours = [BLUE if gain >= 0.0 else ORANGE for gain in gains.differences]
    places = list(range(1, len(names) + 1))
    bars = {
        "type": "bar",
        "x": places,
        "y": gains.differences,
        "marker": {"color": colours, "line": {"width": 0}},
        "customdata": names,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    # A gain of 0 has no height: a dot marks the query.
    level = [position for position, gain in zip(places, gains.differences, strict=True) if gain == 0.0]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": level,
        "y": [0.0] * len(level),
        "marker": {"color": BLUE, "size": 4},
        "hoverinfo": "skip",
    }
    xaxis = {**_axis_title("queries, largest gain first"), "showticklabels": False, "showgrid": False}
    layout = base_layout(HEIGHT, bargap=0.0, xaxis=xaxis, yaxis=_axis_title(f"gain in {gains.metric}"))
    return {"data": [bars, dots] if level else [bars], "layout": layout}


def _curve_figure(curve: Curve) -> Figure:
    """Build a line, with error bars if there are intervals."""
    few = len(curve.x) <= 40
    line = {
        "type": "scatter",
        "mode": "lines+markers" if few else "lines",
        "x": curve.x,
        "y": curve.y,
        "line": {"color": BLUE, "width": 2.5},
        "marker": {"color": BLUE, "size": 7},
        "hovertemplate": f"{escape(curve.x_name)} %{{x:.4g}}: %{{y:.4f}}<extra></extra>",
    }
    if curve.low:
        line["error_y"] = _bars_around(curve.y, curve.low, curve.high)
    xaxis = _axis_title(curve.x_name)
    if curve.log_x:
        ends = [min(curve.x), max(curve.x)]
        ticks = curve.x if len(curve.x) <= 6 else ends
        xaxis |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,.4g}" for tick in ticks]}
    return {
        "data": [line],
        "layout": base_layout(HEIGHT, xaxis=xaxis, yaxis=_axis_title(short(curve.y_name, 40))),
    }


def _calibration_figure(calibration: GradeByScore) -> Figure:
    """Plot the mean grade against the mean score, bin by bin."""
    grades, scores = [each.grade for each in calibration.bins], [each.score for each in calibration.bins]
    title = "mean score of the bin"
    if max(map(abs, scores)) > LARGEST:
        title, scores = "groups of rows, lowest scores first", list(map(float, range(1, len(scores) + 1)))
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": scores,
        "y": grades,
        "error_y": _bars_around(
            grades, [each.low for each in calibration.bins], [each.high for each in calibration.bins]
        ),
        "line": {"color": BLUE, "width": 2},
        "marker": {"color": BLUE, "size": 8},
        "customdata": [[each.lowest, each.highest, each.n_rows] for each in calibration.bins],
        "hovertemplate": "scores %{customdata[0]:.4g} to %{customdata[1]:.4g}: mean grade %{y:.3f} of "
        "%{customdata[2]:,} rows<extra></extra>",
    }
    axes = {
        "xaxis": _axis_title(title),
        "yaxis": {**_axis_title("mean grade"), "rangemode": "tozero"},
    }
    return {"data": [points], "layout": base_layout(HEIGHT, **axes)}


def _weights_figure(weights: FeatureWeights, axis: str) -> Figure:
    """Build a horizontal bar per feature, the largest on top."""
    places = list(range(len(weights.names)))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": weights.values,
        "y": places,
        "marker": {"color": [BLUE if value >= 0.0 else ORANGE for value in weights.values]},
        "customdata": [escape(name[:80]) for name in weights.names],
        "hovertemplate": "%{customdata}: %{x:.4g}<extra></extra>",
    }
    yaxis = {
        "tickvals": places,
        "ticktext": [short(name) for name in weights.names],
        "range": [len(places) - 0.4, -0.6],
        "showgrid": False,
        "zeroline": False,
    }
    height = MARGIN + ROW * len(places) + 20
    return {"data": [bars], "layout": base_layout(height, xaxis=_axis_title(axis), yaxis=yaxis)}


def _axis_title(text: str) -> Figure:
    return {"title": {"text": text, "standoff": 8}}


def _bars_around(values: Sequence[float], low: Sequence[float], high: Sequence[float]) -> Figure:
    """Return intervals as plotly expects them: how far above, how far below."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [top - value for value, top in zip(values, high, strict=True)],
        "arrayminus": [value - bottom for value, bottom in zip(values, low, strict=True)],
        "color": BLUE,
        "thickness": 1.5,
        "width": 4,
    }
