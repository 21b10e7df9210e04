"""Figure 6 of "Support vector comparison machines" as a self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from concordant._internals import need_plotly, write_page
from studies.venuto.chess.results import PUBLISHED, ChessStudy

TITLE = "Outcomes of chess games: area under the ROC curve, one point a year"
SUBTITLE = (
    "January to April train, May to December test, {first} to {last}. Line: mean; "
    "grey crosses: the paper's means, on other games"
)
NOTE = "linear hinge, no printed rating: the optimum ignores all features; areas are a matter of tolerance"
GROUPS = (  # (legend, colour of Okabe and Ito, what a name must be or begin with, and end with)
    ("no features", "#000000", ("trivial",), ""),
    ("one rating", "#0072B2", ("Elo", "Glicko", "printed"), ""),
    ("logistic or squared hinge, with the printed rating", "#009E73", ("logistic", "squared"), "printed"),
    ("logistic or squared hinge, all 16 statistics", "#D55E00", ("logistic", "squared"), ", 16"),
    ("logistic or squared hinge, fewer", "#E69F00", ("logistic", "squared"), ""),
    ("hinge", "#56B4E9", ("linear", "poly", "rbf"), ""),
)


def plot_chess(study: ChessStudy, path: str | Path) -> None:
    """Draw a row for each model, best mean on top."""
    need_plotly()
    write_page(_figure(study), path)


def _figure(study: ChessStudy) -> Any:
    """Figure with a row for each model, a point for each year."""
    from plotly.graph_objects import Figure, Scatter

    order = sorted(study.models, key=lambda model: study.values(model).mean())
    figure = Figure()
    for number, (legend, colour, *_) in enumerate(GROUPS):
        members = [model for model in order if _group(model) == number]
        for model in members:
            for trace in _row_traces(
                study, model, legend, colour, order.index(model), first=model == members[0]
            ):
                figure.add_trace(trace)
    published = [model for model in order if model in PUBLISHED]
    crosses = Scatter(
        x=[float(np.mean(PUBLISHED[model])) for model in published],
        y=[order.index(model) - 0.3 for model in published],
        mode="markers",
        marker={"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": "#888888"}},
        name="the paper's mean",
        text=published,
        hovertemplate="%{text}, the paper's mean: %{x:.3f}<extra></extra>",
    )
    figure.add_trace(crosses)
    height = 42 * len(order) + 280
    subtitle = SUBTITLE.format(first=study.years[0], last=study.years[-1])
    figure.update_layout(
        title={
            "text": f"{TITLE}<br><sub>{subtitle}</sub><br><sub>{NOTE}</sub>",
            "x": 0.5,
            "y": 1 - 20 / height,
            "yanchor": "top",
        },
        template="plotly_white",
        height=height,
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -90 / height, "yanchor": "top"},
        margin={"t": 130, "b": 120, "l": 210},
    )
    figure.update_yaxes(tickvals=list(range(len(order))), ticktext=order, range=[-0.7, len(order) - 0.4])
    figure.update_xaxes(title="area under the ROC curve (Table 3: the wrong sign is an error)")
    return figure


def _group(model: str) -> int:
    """Number of the first group to which a model belongs."""
    return next(
        number
        for number, (_, _, heads, part) in enumerate(GROUPS)
        if model.startswith(heads) and (part in model)
    )


def _row_traces(
    study: ChessStudy, model: str, legend: str, colour: str, position: int, *, first: bool
) -> list[Any]:
    """Years of a model as points, and its mean as a line across the row."""
    from plotly.graph_objects import Scatter

    areas = study.values(model)
    shared = {"legendgroup": legend, "name": legend}
    spread = np.linspace(-0.12, 0.12, len(areas)) if len(areas) > 1 else np.zeros(1)
    points = Scatter(
        x=areas,
        y=position + spread,
        mode="markers",
        marker={"color": colour, "size": 9, "opacity": 0.75},
        showlegend=first,
        text=[f"{model}, {year}" for year in study.years],
        hovertemplate="%{text}: %{x:.4f}<extra></extra>",
        **shared,
    )
    mean = float(areas.mean())
    line = Scatter(
        x=[mean, mean],
        y=[position - 0.32, position + 0.32],
        mode="lines",
        line={"color": colour, "width": 3},
        showlegend=False,
        hovertemplate=f"{model}, mean: {mean:.4f}<extra></extra>",
        **shared,
    )
    return [points, line]
