"""Regret against training queries, drawn; also for the study `exactness`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concordant._internals import need_plotly, new_figure, write_page
from studies.consistency.study import Consistency, Curve
from studies.shared.styles import Style

TITLE = "Regret of linear rankers as training queries become many"
SUBTITLE = "exact {metric} regret: mean and 90% band over {n_seeds} training sets; dotted: the limit"
HEIGHT = 560

STYLES: Mapping[str, Style] = {  # colours of Okabe and Ito, told apart by every eye
    "pairwise": Style("#0072B2", "solid", "circle-open", 15),
    "softmax": Style("#009E73", "solid", "square-open", 10),
    "squared": Style("#56B4E9", "solid", "diamond", 6),
    "preorder unit": Style("#D55E00", "dash", "circle-open", 15),
    "preorder pairs": Style("#CC79A7", "dash", "square-open", 10),
    "preorder gain": Style("#E69F00", "dash", "diamond", 6),
}
PAIR_STYLES: Mapping[str, Style] = {
    "pairs, exact": Style("#0072B2", "solid", "circle", 8),
    "pairs, diagonal": Style("#E69F00", "dash", "triangle-up-open", 20),
    "pairs, edge-deletion": Style("#E69F00", "dash", "triangle-up-open", 20),
    "items, pairwise": Style("#D55E00", "dash", "circle-open", 15),
    "items, softmax": Style("#CC79A7", "dash", "square-open", 10),
    "items, squared": Style("#882255", "dash", "diamond", 6),
}


def style_of(method: str) -> Style:
    """Return the style of a method, of either experiment."""
    return {**STYLES, **PAIR_STYLES}[method]


@dataclass(frozen=True)
class Decades:
    """A logarithmic axis with a place for zero: everything below `floor` is drawn there, and labelled 0."""

    floor: float
    top: float

    @classmethod
    def from_curves(cls, curves: Iterable[Curve]) -> Decades:
        """Return the axis on which all means and limits can be seen.

        >>> Decades.from_curves([Curve("p", "m", True, (10, 100), (0.02, 0.0), (0.0, 0.0), (0.5, 0.0), 0.0)])
        Decades(floor=0.005, top=0.75)
        """
        all_curves = list(curves)
        positive = [value for curve in all_curves for value in (*curve.mean, curve.limit) if value > 0.0]
        highest = max((value for curve in all_curves for value in (*curve.high, *curve.mean)), default=0.0)
        least = 10.0 ** math.floor(math.log10(min(positive, default=1e-3)))
        return cls(least / 2.0, 1.5 * max(highest, 2.0 * least))

    def position(self, value: float) -> float:
        """Return where a value is drawn."""
        return max(value, self.floor)

    def ticks(self) -> dict[float, str]:
        """Positions and labels of the ticks: powers of ten, and zero."""
        first, last = math.ceil(math.log10(self.floor)), math.floor(math.log10(self.top))
        powers = range(first, last + 1)
        return {self.floor: "0"} | {10.0**power: f"{10.0**power:.{max(-power, 0)}f}" for power in powers}


def plot_consistency(result: Consistency, path: str | Path) -> None:
    """Write the curves as one HTML file that needs nothing else; whole, or not at all.

    Parameters
    ----------
    result
        The result of `studies.consistency.study.run` or `studies.ramaswamy.exactness.study.run`.
    path
        Where to.
    """
    need_plotly()
    write_page(consistency_figure(result), path)


def consistency_figure(result: Consistency) -> Any:
    """Return a figure with a panel per population, a line per method."""
    titles, axis = [about for _, about in result.about], Decades.from_curves(result.curves)
    subtitle = SUBTITLE.format(metric=result.metric.upper(), n_seeds=result.n_seeds)
    figure = new_figure(titles, TITLE, subtitle, HEIGHT)
    for column, (name, _) in enumerate(result.about, start=1):
        for curve in result.population_curves(name):
            for trace in _traces(curve, axis, first=column == 1):
                figure.add_trace(trace, row=1, col=column)
    ticks = axis.ticks()
    ends = [math.log10(axis.floor) - 0.15, math.log10(axis.top)]
    figure.update_yaxes(type="log", tickvals=list(ticks), ticktext=list(ticks.values()), range=ends)
    figure.update_yaxes(title=f"{result.metric.upper()} regret", row=1, col=1)
    figure.update_xaxes(type="log", title="training queries", dtick=1, tickformat=",d")
    return figure


def _traces(curve: Curve, axis: Decades, *, first: bool) -> list[Any]:
    """Band, limit and line of a curve; the legend lists it once."""
    from plotly.graph_objects import Scatter

    style, x = style_of(curve.method), list(curve.n_queries)
    shared = {"legendgroup": curve.method, "name": curve.method}
    silent = {**shared, "showlegend": False, "hoverinfo": "skip", "mode": "lines"}
    around = [axis.position(value) for value in (*curve.high, *reversed(curve.low))]
    outline = {"width": 0}
    band = Scatter(
        x=x + x[::-1], y=around, fill="toself", fillcolor=style.colour, opacity=0.12, line=outline, **silent
    )
    level = axis.position(curve.limit)
    dotted = {"color": style.colour, "dash": "dot", "width": 1.5}
    limit = Scatter(x=[x[0], x[-1]], y=[level, level], line=dotted, **silent)
    line = Scatter(
        x=x,
        y=[axis.position(value) for value in curve.mean],
        mode="lines+markers",
        line={"color": style.colour, "dash": style.dash, "width": 2.5},
        marker={"symbol": style.marker, "size": style.size, "line": {"width": 2, "color": style.colour}},
        showlegend=first,
        customdata=list(zip(curve.mean, curve.low, curve.high, strict=True)),
        hovertemplate="%{x} queries: %{customdata[0]:.5f} (%{customdata[1]:.5f} to %{customdata[2]:.5f})",
        **shared,
    )
    return [band, limit, line] if curve.limit > 0.0 else [band, line]
