"""The figures of the documentation: `python docs/figures.py` draws them anew, without a browser."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from concordant.evaluation.consistency import Consistency, Curve, run
from concordant.evaluation.plots import STYLES, Decades

HERE = Path(__file__).resolve().parent
MARKERS = {"circle-open": ("o", 8), "square-open": ("s", 6), "diamond": ("D", 3.5)}
DASHES = {"solid": "-", "dash": "--"}


def consistency(result: Consistency, path: Path) -> None:
    """Draw a panel per population: the picture of `concordant reproduce consistency --output`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.hashsalt": "concordant", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(10, 3.9), layout="constrained")
    panels: Any = figure.subplots(1, len(result.about), sharey=True)
    axis = Decades.of(result.curves)
    for panel, (name, about) in zip(panels, result.about, strict=True):
        for curve in result.of(name):
            draw(panel, curve, axis)
        ticks = axis.ticks()
        panel.set(xscale="log", yscale="log", xlabel="training queries")
        panel.set_title(about, fontsize="medium")
        panel.set_yticks(list(ticks), list(ticks.values()))
        panel.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_ylim(axis.floor / 1.4, axis.top)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("NDCG regret")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def draw(panel: Any, curve: Curve, axis: Decades) -> None:
    """Draw one curve, its band and its limit."""
    style = STYLES[curve.method]
    marker, size = MARKERS[style.marker]
    inside = style.colour if math.isclose(size, 3.5) else "none"
    low, mean, high = ([axis.place(value) for value in row] for row in (curve.low, curve.mean, curve.high))
    panel.fill_between(curve.n_queries, low, high, color=style.colour, alpha=0.1, linewidth=0)
    if curve.limit > 0.0:
        panel.axhline(axis.place(curve.limit), color=style.colour, linestyle=":", linewidth=1)
    panel.plot(
        curve.n_queries,
        mean,
        DASHES[style.dash],
        color=style.colour,
        marker=marker,
        markersize=size,
        markerfacecolor=inside,
        label=curve.method,
    )


if __name__ == "__main__":
    consistency(run(), HERE / "consistency.svg")
