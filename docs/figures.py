"""Draw the figures of the documentation: `python -m docs.figures`, from the root of the repository."""

from __future__ import annotations

import io
import itertools
import math
import re
from pathlib import Path
from typing import Any

from concordant.cli.certify import matrix_table
from concordant.data.labels import Permutations
from concordant.data.synthetic import LabelDistribution
from concordant.theory.bounds import Bound, bipartite, listwise
from concordant.theory.certify import matrix
from concordant.theory.replicates import ConditionErrors, calibrate
from studies.consistency.plots import Decades, style_of
from studies.consistency.populations import misspecified
from studies.consistency.study import Consistency, Curve, run
from studies.ramaswamy.exactness import study as exactness
from studies.venuto.svmcompare.data import DATA
from studies.venuto.svmcompare.patterns import Patterns, patterns
from studies.venuto.svmcompare.plots import STYLES
from studies.venuto.svmcompare.results import SplitStudy
from studies.venuto.svmcompare.study import errors

HERE = Path(__file__).resolve().parent
STUDIES = HERE / "studies"
MARKERS = {
    "circle": ("o", 4),
    "circle-open": ("o", 8),
    "square-open": ("s", 6),
    "triangle-up-open": ("^", 11),
    "diamond": ("D", 3.5),
}
DASHES = {"solid": "-", "dash": "--"}
VERSIONS = {
    "published": ("#D55E00", "--"),
    "corrected": ("#CC79A7", "-"),
    "sharp": ("#0072B2", "-"),
    "tight": ("#009E73", ":"),
}
COLUMNS = 120  # of the terminal that is drawn
QUERIES = [10 ** (quarter / 4) for quarter in range(4, 29)]


def _new_figure(width: float, height: float) -> Any:
    """Figure of so many inches; its SVG is the same in every run, and has text as text."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.hashsalt": "concordant", "svg.fonttype": "none", "font.size": 9})
    return Figure(figsize=(width, height), layout="constrained")


def consistency(result: Consistency, path: Path) -> None:
    """Draw a panel per population: the picture of `python -m studies ... --output`."""
    import matplotlib as mpl

    figure = _new_figure(10, 3.9)
    panels: Any = figure.subplots(1, len(result.about), sharey=True)
    axis = Decades.from_curves(result.curves)
    for panel, (name, about) in zip(panels, result.about, strict=True):
        for curve in result.population_curves(name):
            _draw(panel, curve, axis)
        ticks = axis.ticks()
        panel.set(xscale="log", yscale="log", xlabel="training queries")
        panel.set_title(about, fontsize="medium")
        panel.set_yticks(list(ticks), list(ticks.values()))
        panel.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_ylim(axis.floor / 1.4, axis.top)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"{result.metric.upper()} regret")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def _draw(panel: Any, curve: Curve, axis: Decades) -> None:
    """Draw one curve, its band and its limit."""
    style = style_of(curve.method)
    marker, size = MARKERS[style.marker]
    inside = "none" if style.marker.endswith("-open") else style.colour
    low, mean, high = ([axis.position(value) for value in row] for row in (curve.low, curve.mean, curve.high))
    panel.fill_between(curve.n_queries, low, high, color=style.colour, alpha=0.1, linewidth=0)
    if curve.limit > 0.0:
        panel.axhline(axis.position(curve.limit), color=style.colour, linestyle=":", linewidth=1)
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


def bounds(path: Path) -> None:
    """Draw the excess of each version against the number of queries, for pairs and for lists."""
    figure = _new_figure(9, 3.9)
    left, right = figure.subplots(1, 2)
    pairs = [bipartite(1, 5, 35, version=version, reduction="pairs") for version in VERSIONS]
    lists = [listwise(1, 40, version=version) for version in VERSIONS]
    for panel, panel_bounds, about in (
        (left, pairs, "5 relevant items of 40: 0-1 error per pair"),
        (right, lists, "lists of 40 items: 1 - NDCG"),
    ):
        _draw_bounds(panel, panel_bounds)
        panel.set_title(about, fontsize="medium")
    left.set_ylabel("excess")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def _draw_bounds(panel: Any, version_bounds: list[Bound]) -> None:
    """Draw a line per version; above the grey one nothing is said."""
    for bound in version_bounds:
        colour, dash = VERSIONS[bound.version]
        excess = [10.0 ** bound.at(round(n)).log10 for n in QUERIES]
        width = 3.0 if dash == "--" else 1.5  # wide enough to be seen under its neighbour
        panel.plot(QUERIES, excess, dash, color=colour, linewidth=width, label=bound.version)
    panel.axhline(version_bounds[-1].largest, color="grey", linewidth=1, label="largest value of the loss")
    panel.set(xscale="log", yscale="log", xlabel="training queries")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def certificates(path: Path) -> None:
    """Draw what a terminal shows of `concordant certify --matrix`."""
    from rich.console import Console

    screen = Console(width=COLUMNS, file=io.StringIO(), record=True, force_terminal=True)
    table = matrix_table(matrix(), COLUMNS)
    table.title = None
    screen.print(table)
    drawn = screen.export_svg(title="concordant certify --matrix", unique_id="matrix")
    # Fonts from elsewhere are not fetched within a page: any font of fixed width will do.
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


def conditions(path: Path) -> None:
    """Draw how often the states of P_DAG are wrong on a light cycle, and right on random queries."""
    figure = _new_figure(9, 3.6)
    left, right = figure.subplots(1, 2, sharey=True)
    probs = [share / 3 for share in (0.55, 0.45, 0.45, 0.55, 0.55, 0.45)]
    labels = tuple(Permutations.from_orders([order]) for order in itertools.permutations(range(3)))
    cycle = LabelDistribution(labels, [probs], queries=[0] * 3)
    random = misspecified("preferences").distribution
    settings: Any = {"sizes": (5, 10, 20, 50, 100, 200, 500, 1000), "n_bootstrap": 500}
    _draw_states(left, calibrate(cycle, "P_DAG", n_samples=200, **settings), "wrong")
    _draw_states(right, calibrate(random, "P_DAG", **settings), "right")
    left.set_title("P_DAG on a light cycle: stated to hold, and wrong", fontsize="medium")
    right.set_title("P_DAG on 200 random queries: stated, and right", fontsize="medium")
    left.set_ylabel("share of the checks")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def _draw_states(panel: Any, rows: list[ConditionErrors], kind: str) -> None:
    """Draw the share of wrong or right statements, by the band and by the support."""
    sizes = [row.n_annotators for row in rows]
    wrong = [row.wrong for row in rows], [row.naive_wrong for row in rows]
    stated = [row.holds + row.fails for row in rows], [row.naive_holds + row.naive_fails for row in rows]
    styles = ("band", "#0072B2", "-", "o"), ("support", "#D55E00", "--", "s")
    for (name, colour, dash, marker), off, all_of in zip(styles, wrong, stated, strict=True):
        shares = off if kind == "wrong" else [total - lost for total, lost in zip(all_of, off, strict=True)]
        panel.plot(sizes, shares, dash, color=colour, marker=marker, markersize=4, label=f"by the {name}")
    if kind == "wrong":
        panel.axhline(0.05, color="grey", linewidth=1, label="what the confidence allows")
    panel.set(xscale="log", xlabel="annotators", ylim=(-0.02, 1))
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def learned(result: Patterns, path: Path) -> None:
    """Draw training pairs over the true ranking function, and the functions learned from them."""
    figure = _new_figure(10, 3)
    panels: Any = figure.subplots(1, 4)
    machines = {machine.method: machine for machine in result.learned}
    shown = [machines[name] for name in ("rank", "rank2", "compare")]
    titles = [
        f"truth and {result.n} pairs",
        *(f"{machine.method}: error {machine.test:.2f}" for machine in shown),
    ]
    for panel, levels, title in zip(
        panels, (result.truth, *(machine.levels for machine in shown)), titles, strict=True
    ):
        steps = range(math.floor(levels.min()), math.ceil(levels.max()) + 1)
        coarse = result.axis[::2], result.axis[::2], levels[::2, ::2]
        panel.contour(*coarse, levels=steps, colors="grey", linewidths=0.6, linestyles="solid")
        panel.set_title(title, fontsize="medium")
        panel.set(
            aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2], xlim=(-2, 2), ylim=(-2, 2), xlabel="x1"
        )
    for (left, right), y in zip(result.train.points, result.train.y, strict=True):
        tail, head = (left, right) if y >= 0 else (right, left)
        style = {"arrowstyle": "->" if y else "-", "color": "#D55E00" if y else "#0072B2"}
        arrow = {**style, "shrinkA": 0, "shrinkB": 0}
        drawn = panels[0].annotate("", xy=head, xytext=tail, arrowprops=arrow, annotation_clip=False)
        drawn.arrow_patch.set_clip_path(panels[0].patch)
    panels[0].set_ylabel("x2")
    figure.savefig(path, metadata={"Date": None})


def machine_errors(study: SplitStudy, path: Path) -> None:
    """Draw test error against pairs, with thresholds as they should be and as they were published."""
    import matplotlib as mpl

    figure = _new_figure(10, 3.4)
    panels: Any = figure.subplots(1, len(study.data), squeeze=False)[0]
    for panel, data in zip(panels, study.data, strict=True):
        settings = study.settings(data)
        sizes = [n for n, _ in settings]
        for method in study.methods(data):
            style = STYLES[method]
            means = [study.tests(data, "error", method, setting).mean() for setting in settings]
            dash = {"solid": "-", "dash": "--", "dot": ":"}[style.dash]
            panel.plot(sizes, means, dash, color=style.colour, marker="o", markersize=3, label=method)
        panel.set(xscale="log", xlabel="training pairs", ylim=(0, None))
        panel.set_xticks(sizes, [f"{n}" for n in sizes])
        panel.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        panel.set_title(data, fontsize="medium")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("test error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    learned(patterns()[0], STUDIES / "svmcompare-patterns.svg")
    machine_errors(errors(DATA), STUDIES / "svmcompare-errors.svg")  # minutes; reads CONCORDANT_DATA
    conditions(HERE / "conditions.svg")
    certificates(HERE / "certificates-matrix.svg")
    bounds(HERE / "bounds.svg")
    consistency(run(), STUDIES / "consistency.svg")
    for metric in exactness.METHODS:
        consistency(exactness.run(metric), STUDIES / f"exactness-{metric}.svg")
