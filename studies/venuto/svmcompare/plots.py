"""Figures 1, 3, 4 and 5 of "Support vector comparison machines" as self-contained HTML files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from concordant._internals import need_plotly, write_page
from concordant.types import FloatArray
from studies.shared.styles import Style
from studies.venuto.svmcompare.data import LabelledPairs
from studies.venuto.svmcompare.patterns import Geometry, Patterns
from studies.venuto.svmcompare.results import ERROR, SplitStudy

STYLES: Mapping[str, Style] = {  # published thresholds are dashed, in the colour of their method
    "truth": Style("#999999", "dot", "circle", 4),
    "compare": Style("#0072B2", "solid", "circle-open", 12),
    "rank": Style("#D55E00", "solid", "square-open", 9),
    "rank2": Style("#009E73", "solid", "diamond", 6),
    "rank, published": Style("#D55E00", "dash", "x", 7),
    "rank2, published": Style("#009E73", "dash", "cross", 7),
}
TIE, DIFFERENCE, LINE = "#0072B2", "#D55E00", "#BBBBBB"
PANEL = 400


def _panels(titles: Sequence[str], title: str, subtitle: str, *, rows: int = 1) -> Any:
    """Figure with a title above those of the panels and the legend below; each panel has its own axes."""
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=rows,
        cols=len(titles) // rows,
        subplot_titles=list(titles),
        horizontal_spacing=0.05,
        vertical_spacing=0.16,
    )
    height = rows * PANEL + 200
    figure.update_layout(
        title={"text": f"{title}<br><sub>{subtitle}</sub>", "x": 0.5, "y": 1 - 20 / height, "yanchor": "top"},
        template="plotly_white",
        height=height,
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -90 / height, "yanchor": "top"},
        margin={"t": 130, "b": 110},
    )
    return figure


# --- pairs in the plane


def plot_geometry(shape: Geometry, path: str | Path) -> None:
    """Draw pairs in the plane, in the space where r is linear, and as differences: Figure 1."""
    need_plotly()
    titles = ("pairs in the plane", "squares of the coordinates", "differences, right less left")
    subtitle = "segments: ties; arrows point to the better item. Grey: where r = |x|² is constant"
    figure = _panels(titles, "Pairs, and what a comparison machine makes of them", subtitle)
    top, square = np.linspace(-3.2, 3.2, 81), np.abs(shape.features).max()
    _level_curves(figure, top, np.add.outer(top**2, top**2), column=1, step=1.0)
    steps = np.linspace(0.0, square, 41)
    _level_curves(figure, steps, np.add.outer(steps, steps), column=2, step=1.0)
    for column, points in ((1, shape.pairs.points), (2, shape.features)):
        _draw_pairs(figure, LabelledPairs(points, shape.pairs.y), column)
    _draw_differences(figure, shape)
    for column, name in enumerate(("x{}", "x{}²", "x{}², right less left"), start=1):
        _name_axes(figure, column, name)
    write_page(_square_panels(figure, 3), path)


def _name_axes(figure: Any, column: int, name: str) -> None:
    """Put the name of each coordinate at its axis."""
    figure.update_xaxes(title=name.format(1), row=1, col=column)
    figure.update_yaxes(title=name.format(2), title_standoff=2, row=1, col=column)


def _level_curves(figure: Any, axis: FloatArray, levels: FloatArray, *, column: int, step: float) -> None:
    """Draw where a function of the plane is constant, at multiples of the step."""
    from plotly.graph_objects import Contour

    low, high = np.floor(levels.min() / step) * step, np.ceil(levels.max() / step) * step
    lines = Contour(
        x=axis,
        y=axis,
        z=levels,
        contours={"coloring": "none", "start": low, "end": high, "size": step},
        line={"color": LINE, "width": 1},
        showscale=False,
        showlegend=False,
        hovertemplate="r = %{z:.2f}<extra></extra>",
    )
    figure.add_trace(lines, row=1, col=column)


def _draw_pairs(figure: Any, pairs: LabelledPairs, column: int) -> None:
    """Draw ties as segments and differences as arrows to the better item."""
    from plotly.graph_objects import Scatter

    tie = pairs.y == 0
    name = "tie", "difference"
    for rows, colour, label in ((tie, TIE, name[0]), (~tie, DIFFERENCE, name[1])):
        ends = pairs.points[rows]
        gaps = np.full((len(ends), 1), np.nan)
        shared = {"legendgroup": label, "name": label, "mode": "lines", "hoverinfo": "skip"}
        line = Scatter(
            x=np.concatenate((ends[:, :, 0], gaps), axis=1).ravel(),
            y=np.concatenate((ends[:, :, 1], gaps), axis=1).ravel(),
            line={"color": colour, "width": 2},
            showlegend=column == 1,
            **shared,
        )
        figure.add_trace(line, row=1, col=column)
    for (left, right), y in zip(pairs.points[~tie], pairs.y[~tie], strict=True):
        tail, head = (left, right) if y > 0 else (right, left)
        _add_arrow(figure, tail, head, column)


def _add_arrow(figure: Any, tail: FloatArray, head: FloatArray, column: int) -> None:
    """Put a head on a line."""
    axis = "" if column == 1 else str(column)
    figure.add_annotation(
        x=head[0],
        y=head[1],
        ax=tail[0],
        ay=tail[1],
        xref=f"x{axis}",
        yref=f"y{axis}",
        axref=f"x{axis}",
        ayref=f"y{axis}",
        text="",
        showarrow=True,
        arrowhead=2,
        arrowsize=1,
        arrowwidth=2,
        arrowcolor=DIFFERENCE,
    )


def _draw_differences(figure: Any, shape: Geometry) -> None:
    """Draw one point a pair, and the two boundaries."""
    from plotly.graph_objects import Scatter

    differences, tie = shape.differences, shape.pairs.y == 0
    far = float(np.abs(differences).max()) + 1.0
    for side, first in ((1.0, True), (-1.0, False)):
        boundary = Scatter(
            x=[-far, far],
            y=[side + far, side - far],
            mode="lines",
            line={"color": "black", "width": 1.5, "dash": "dash"},
            name="boundary: r(right) - r(left) = 1 or -1",
            showlegend=first,
            hoverinfo="skip",
        )
        figure.add_trace(boundary, row=1, col=3)
    for rows, colour, marker, name in ((tie, TIE, "circle", "tie"), (~tie, DIFFERENCE, "x", "difference")):
        dots = Scatter(
            x=differences[rows, 0],
            y=differences[rows, 1],
            mode="markers",
            marker={"color": colour, "symbol": marker, "size": 8},
            legendgroup=name,
            showlegend=False,
            text=[f"r(right) - r(left) = {gap:.2f}" for gap in shape.gap[rows]],
            hovertemplate="%{text}<extra></extra>",
        )
        figure.add_trace(dots, row=1, col=3)


def plot_patterns(result: Patterns, path: str | Path) -> None:
    """Draw the training pairs over the true ranking function, and what each method learned: Figure 3."""
    need_plotly()
    order = [
        machine
        for name in ("rank", "rank2", "compare")
        for machine in result.learned
        if machine.method == name
    ]
    names = [
        f"{machine.method}<br><sub>test error {machine.test:.2f}, agreement {machine.agreement:.3f}</sub>"
        for machine in order
    ]
    titles = [f"truth and {result.n} training pairs<br><sub>half of them ties</sub>", *names]
    subtitle = "level curves a threshold apart; agreement: rank correlation with the truth over the square"
    figure = _panels(titles, f"Ranking functions learned from {result.data} pairs", subtitle)
    for column, levels in enumerate((result.truth, *(machine.levels for machine in order)), start=1):
        _level_curves(figure, result.axis, levels, column=column, step=1.0)
        _name_axes(figure, column, "x{}")
    _draw_pairs(figure, result.train, 1)
    ends = [result.axis[0], result.axis[-1]]
    figure.update_xaxes(range=ends).update_yaxes(range=ends)
    write_page(_square_panels(figure, 4), path)


def _square_panels(figure: Any, n: int) -> Any:
    """Scale both axes of each panel alike."""
    for column in range(1, n + 1):
        anchor = "x" if column == 1 else f"x{column}"
        figure.update_yaxes(scaleanchor=anchor, constrain="domain", row=1, col=column)
        figure.update_xaxes(constrain="domain", row=1, col=column)
    return figure


# --- curves


def plot_errors(study: SplitStudy, path: str | Path) -> None:
    """Draw test error against pairs, a panel for each kind of data: Figure 4."""
    need_plotly()
    subtitle = "mean and standard deviation over splits; dashed: the threshold as published; stars: the paper"
    figure = _panels(study.data, "Test error of comparison and ranking machines", subtitle)
    for column, data in enumerate(study.data, start=1):
        x = [n for n, _ in study.settings(data)]
        _draw_methods(figure, study, data, ERROR, x, cell=(1, column))
        if data == "l2" and study.paper_splits().points:
            _draw_paper(figure, study, column)
        figure.update_xaxes(
            title="training pairs", type="log", tickvals=x, ticktext=[f"{n}" for n in x], row=1, col=column
        )
    figure.update_yaxes(title="test error", row=1, col=1)
    write_page(figure, path)


def plot_areas(study: SplitStudy, path: str | Path) -> None:
    """Draw areas against the share of ties, a panel for each kind of data and version: Figure 5."""
    need_plotly()
    titles = [f"{data}: {measure}" for measure in study.measures for data in study.data]
    n = study.points[0].n
    subtitle = f"{n} pairs; mean and standard deviation over splits; unsigned: inversions are no errors"
    figure = _panels(titles, "Area under the ROC curve", subtitle, rows=len(study.measures))
    for row, measure in enumerate(study.measures, start=1):
        for column, data in enumerate(study.data, start=1):
            x = [share for _, share in study.settings(data)]
            _draw_methods(figure, study, data, measure, x, cell=(row, column))
            figure.update_xaxes(title="share of ties", row=row, col=column)
    figure.update_yaxes(title="test area", col=1)
    write_page(figure, path)


def _draw_methods(
    figure: Any, study: SplitStudy, data: str, measure: str, x: Sequence[float], *, cell: tuple[int, int]
) -> None:
    """Draw a line and a band for each method; the legend lists it once."""
    from plotly.graph_objects import Scatter

    listed = {trace.name for trace in figure.data if trace.showlegend}
    for method in study.methods(data):
        tests = [study.tests(data, measure, method, setting) for setting in study.settings(data)]
        mean, spread = (
            np.array([values.mean() for values in tests]),
            np.array([_deviation(values) for values in tests]),
        )
        style, shared = STYLES[method], {"legendgroup": method, "name": method}
        if method == method.split(",", maxsplit=1)[0]:  # bands of published thresholds would hide the rest
            band = Scatter(
                x=[*x, *reversed(x)],
                y=[*(mean + spread), *(mean - spread)[::-1]],
                fill="toself",
                fillcolor=style.colour,
                opacity=0.12,
                line={"width": 0},
                mode="lines",
                hoverinfo="skip",
                showlegend=False,
                **shared,
            )
            figure.add_trace(band, row=cell[0], col=cell[1])
        line = Scatter(
            x=list(x),
            y=mean,
            mode="lines+markers",
            line={"color": style.colour, "dash": style.dash, "width": 2},
            marker={"symbol": style.marker, "size": style.size, "line": {"width": 2, "color": style.colour}},
            showlegend=method not in listed,
            customdata=spread,
            hovertemplate="%{x}: %{y:.4f} ± %{customdata:.4f}",
            **shared,
        )
        figure.add_trace(line, row=cell[0], col=cell[1])


def _draw_paper(figure: Any, study: SplitStudy, column: int) -> None:
    """Put the paper's values beside ours, as stars."""
    from plotly.graph_objects import Scatter

    for method in ("compare", "rank", "rank2"):
        numbers = [n for n, _ in study.settings("l2") if (n, method) in study.paper]
        if not numbers:
            continue
        stars = Scatter(
            x=numbers,
            y=[study.paper[n, method][0] for n in numbers],
            mode="markers",
            marker={"symbol": "star", "size": 10, "color": STYLES[method].colour},
            name=f"{method}, in the paper",
            hovertemplate="%{x}: %{y:.4f}",
        )
        figure.add_trace(stars, row=1, col=column)


def _deviation(values: FloatArray) -> float:
    """Standard deviation; 0 of one value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
