"""What `reproduce pairs` found: as tables and as plain values."""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant.cli.output import compared, new_table, number, show, significance

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.pairs_points import Reproduction, Summary

__all__ = ["as_dict", "show_all"]

TITLES = {"ap": "average precision", "pd": "pairwise disagreement, a loss"}
COSTS = ("alpha", "fit, s", "decode, ms", "proven", "gap")
LEVEL = 0.05


def show_all(result: Reproduction, *, quiet: bool) -> None:
    """Print, for each metric, the methods and the contrasts."""
    for metric in result.questions:
        show(methods(result, metric), [] if quiet else remarks(result, metric))
        show(contrasts(result, metric), [] if quiet else [difference(metric)])


def methods(result: Reproduction, metric: str) -> Table:
    """Give one row a method."""
    columns = result.columns(metric)
    title = f"{result.data}: {TITLES[metric]}, {result.n_queries:,} test queries"
    table = new_table(title, "method", *columns, *COSTS, numeric=(*columns, *COSTS))
    for one in result.summaries(metric):
        table.add_row(one.method, *(compared(told) for told in one.compared.values()), *costs(one))
    return table


def costs(one: Summary) -> tuple[str, ...]:
    """Give penalty, times and proofs; a linear ranker has nothing to decode."""
    spent = f"{median(one.alphas):.2g}", f"{one.fit_seconds:.1f}"
    if math.isnan(one.proven):
        return (*spent, "-", "-", "-")
    return (*spent, f"{1000 * one.decode_seconds:.1f}", f"{100 * one.proven:.1f} %", f"{100 * one.gap:.1f} %")


def remarks(result: Reproduction, metric: str) -> list[str]:
    """Give what a reader of the methods should know."""
    from concordant.evaluation.reproduction.pairs_paths import WIDTH

    own = result.summaries(metric)
    edge, total = sum(one.n_at_edge for one in own), len(own) * result.n_folds
    grids = " and ".join(f"{grid[0]:g} to {grid[-1]:g} ({name})" for name, grid in result.grids.items())
    told = [
        significance((one for summary in own for one in summary.compared.values()), len(own)),
        f"alpha: {grids}; in each fold the best for the method and its decoder on the validation queries",
        f"(shown: the median over folds); {edge} of {total} at an end of the grid",
        "fit: at all penalties, mean over folds; decode: a test query, as one of several at a time",
        "proven: test queries whose order is proven best for their pair scores; gap: the largest of the rest",
    ]
    if metric == "ap":
        told.append(f"beam: {WIDTH} sets on validation queries, as many as by default on test queries")
    else:
        told.append("pd: wrong pairs a query; share: of the query's pairs of different grades")
    return [*told, "one fold and few penalties: a look, not a result"] if result.quick else told


def contrasts(result: Reproduction, metric: str) -> Table:
    """Give one row a contrast."""
    numeric = ("difference", "p, t-test", "p, sign flips", "p, Holm")
    title = f"{result.data}: {TITLES[metric]}, what makes the difference"
    table = new_table(title, "differ in", "first", "second", *numeric, numeric=numeric)
    for one in result.contrasts(metric):
        values = f"{one.test.difference:+.4f}", *map(number, (one.test.t_test, one.test.permutation))
        adjusted = Text(number(one.adjusted), style="bold" if one.adjusted < LEVEL else "")
        table.add_row(one.what, one.first, one.second, *values, adjusted)
    return table


def difference(metric: str) -> str:
    """Say which sign is good."""
    better = "above" if metric == "ap" else "below"
    return f"difference: first less second, mean over test queries; {better} 0 the first is better"


def as_dict(result: Reproduction) -> dict[str, Any]:
    """Give all numbers as plain values."""
    return {
        "data": result.data,
        "n_folds": result.n_folds,
        "n_queries": result.n_queries,
        "quick": result.quick,
        "grids": {name: grid.tolist() for name, grid in result.grids.items()},
        "methods": {metric: [asdict(one) for one in result.summaries(metric)] for metric in result.questions},
        "contrasts": {
            metric: [asdict(one) for one in result.contrasts(metric)] for metric in result.questions
        },
    }
