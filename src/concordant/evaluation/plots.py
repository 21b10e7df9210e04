"""Plots as self-contained HTML files; plotly is imported here, when it is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from concordant.evaluation.consistency import Consistency, Curve
from concordant.exceptions import MissingExtraError
from concordant.supervision.readers.text import write_atomically

__all__ = [
    "PAIR_STYLES",
    "STYLES",
    "Decades",
    "Style",
    "need_plotly",
    "new_figure",
    "plot_consistency",
    "style_of",
    "write_page",
]

TITLE = "Regret of linear rankers as training queries become many"
SUBTITLE = "exact {metric} regret: mean and 90% band over {n_seeds} training sets; dotted: the limit"
HEIGHT = 560


@dataclass(frozen=True)
class Style:
    """How a method is drawn: consistent ones in cold colours and whole lines, the others warm and dashed.

    Markers of methods that coincide are of different sizes, large ones hollow, so that each can be seen.
    """

    colour: str
    dash: str
    marker: str
    size: int


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
    """Give the style of a method, of either experiment."""
    return {**STYLES, **PAIR_STYLES}[method]


@dataclass(frozen=True)
class Decades:
    """A logarithmic axis with a place for zero: everything below `floor` is drawn there, and labelled 0."""

    floor: float
    top: float

    @classmethod
    def of(cls, curves: Iterable[Curve]) -> Decades:
        """Give the axis on which all means and limits can be seen.

        >>> Decades.of([Curve("p", "m", True, (10, 100), (0.02, 0.0), (0.0, 0.0), (0.5, 0.0), 0.0)])
        Decades(floor=0.005, top=0.75)
        """
        found = list(curves)
        seen = [value for curve in found for value in (*curve.mean, curve.limit) if value > 0.0]
        highest = max((value for curve in found for value in (*curve.high, *curve.mean)), default=0.0)
        least = 10.0 ** math.floor(math.log10(min(seen, default=1e-3)))
        return cls(least / 2.0, 1.5 * max(highest, 2.0 * least))

    def place(self, value: float) -> float:
        """Give where a value is drawn."""
        return max(value, self.floor)

    def ticks(self) -> dict[float, str]:
        """Give the labelled places: powers of ten, and zero."""
        first, last = math.ceil(math.log10(self.floor)), math.floor(math.log10(self.top))
        powers = range(first, last + 1)
        return {self.floor: "0"} | {10.0**power: f"{10.0**power:.{max(-power, 0)}f}" for power in powers}


def need_plotly() -> None:
    """Raise where plotly is not installed: before the work whose result it is to draw."""
    if find_spec("plotly") is None:
        raise MissingExtraError("plotly", "report", "an HTML plot")


def plot_consistency(result: Consistency, path: str | Path) -> None:
    """Write the curves as one HTML file that needs nothing else; whole, or not at all.

    Parameters
    ----------
    result
        What `evaluation.consistency.run` or `evaluation.exactness.run` gave.
    path
        Where to.
    """
    need_plotly()
    write_page(consistency_figure(result), path)


def write_page(figure: Any, path: str | Path) -> None:
    """Write a figure as one HTML file; whole, or not at all."""
    page = figure.to_html(include_plotlyjs=True, full_html=True)
    with write_atomically(path) as stream:
        stream.write(page.encode())


def new_figure(titles: list[str], title: str, subtitle: str, height: int) -> Any:
    """Give panels side by side, a title above theirs, and a place for the legend below."""
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


def consistency_figure(result: Consistency) -> Any:
    """Give a panel per population, a line per method."""
    titles, axis = [about for _, about in result.about], Decades.of(result.curves)
    subtitle = SUBTITLE.format(metric=result.metric.upper(), n_seeds=result.n_seeds)
    figure = new_figure(titles, TITLE, subtitle, HEIGHT)
    for column, (name, _) in enumerate(result.about, start=1):
        for curve in result.of(name):
            for trace in traces(curve, axis, first=column == 1):
                figure.add_trace(trace, row=1, col=column)
    ticks = axis.ticks()
    ends = [math.log10(axis.floor) - 0.15, math.log10(axis.top)]
    figure.update_yaxes(type="log", tickvals=list(ticks), ticktext=list(ticks.values()), range=ends)
    figure.update_yaxes(title=f"{result.metric.upper()} regret", row=1, col=1)
    figure.update_xaxes(type="log", title="training queries", dtick=1, tickformat=",d")
    return figure


def traces(curve: Curve, axis: Decades, *, first: bool) -> list[Any]:
    """Give the band, the limit and the line of a curve; the legend lists it once."""
    from plotly.graph_objects import Scatter

    style, x = style_of(curve.method), list(curve.n_queries)
    shared = {"legendgroup": curve.method, "name": curve.method}
    silent = {**shared, "showlegend": False, "hoverinfo": "skip", "mode": "lines"}
    around = [axis.place(value) for value in (*curve.high, *reversed(curve.low))]
    outline = {"width": 0}
    band = Scatter(
        x=x + x[::-1], y=around, fill="toself", fillcolor=style.colour, opacity=0.12, line=outline, **silent
    )
    level = axis.place(curve.limit)
    dotted = {"color": style.colour, "dash": "dot", "width": 1.5}
    limit = Scatter(x=[x[0], x[-1]], y=[level, level], line=dotted, **silent)
    line = Scatter(
        x=x,
        y=[axis.place(value) for value in curve.mean],
        mode="lines+markers",
        line={"color": style.colour, "dash": style.dash, "width": 2.5},
        marker={"symbol": style.marker, "size": style.size, "line": {"width": 2, "color": style.colour}},
        showlegend=first,
        customdata=list(zip(curve.mean, curve.low, curve.high, strict=True)),
        hovertemplate="%{x} queries: %{customdata[0]:.5f} (%{customdata[1]:.5f} to %{customdata[2]:.5f})",
        **shared,
    )
    return [band, limit, line] if curve.limit > 0.0 else [band, line]
