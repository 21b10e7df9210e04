"""Report of `studies pairs`: methods and contrasts, and plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from concordant._internals import new_table
from studies.shared.contrasts import TESTS, p_cells
from studies.shared.significance import compared, significance

if TYPE_CHECKING:
    from rich.table import Table

    from studies.ramaswamy.pairs.results import MethodSummary, PairsResult
    from studies.shared.output import RemarkedTable

TITLES = {"ap": "average precision", "pd": "pairwise disagreement, a loss"}
COSTS = ("alpha", "fit, s", "decode, ms", "proven", "gap")


@dataclass(frozen=True, eq=False)
class PairsReport:
    """All methods on one set."""

    result: PairsResult

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield the methods and the contrasts of each metric."""
        for metric in self.result.questions:
            yield _methods(self.result, metric), _remarks(self.result, metric)
            yield _contrasts(self.result, metric), [_difference(metric)]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        result = self.result
        metrics = result.questions
        return {
            "data": result.data,
            "n_folds": result.n_folds,
            "n_queries": result.n_queries,
            "quick": result.quick,
            "grids": {name: grid.tolist() for name, grid in result.grids.items()},
            "methods": {metric: list(map(asdict, result.summaries(metric))) for metric in metrics},
            "contrasts": {metric: list(map(asdict, result.contrasts(metric))) for metric in metrics},
        }


def _methods(result: PairsResult, metric: str) -> Table:
    columns = result.columns(metric)
    title = f"{result.data}: {TITLES[metric]}, {result.n_queries:,} test queries"
    table = new_table(title, "method", *columns, *COSTS, numeric=(*columns, *COSTS))
    for summary in result.summaries(metric):
        table.add_row(
            summary.method,
            *(compared(comparison) for comparison in summary.compared.values()),
            *_costs(summary),
        )
    return table


def _costs(summary: MethodSummary) -> tuple[str, ...]:
    """Penalty, times and proofs; a linear ranker has nothing to decode."""
    spent = f"{median(summary.alphas):.2g}", f"{summary.fit_seconds:.1f}"
    if math.isnan(summary.proven):
        return (*spent, "-", "-", "-")
    return (
        *spent,
        f"{1000 * summary.decode_seconds:.1f}",
        f"{100 * summary.proven:.1f} %",
        f"{100 * summary.gap:.1f} %",
    )


def _remarks(result: PairsResult, metric: str) -> list[str]:
    from studies.ramaswamy.pairs.methods import WIDTH

    summaries = result.summaries(metric)
    edge, total = sum(summary.n_at_edge for summary in summaries), len(summaries) * result.n_folds
    grids = " and ".join(f"{grid[0]:g} to {grid[-1]:g} ({name})" for name, grid in result.grids.items())
    lines = [
        significance(
            (comparison for summary in summaries for comparison in summary.compared.values()), len(summaries)
        ),
        f"alpha: {grids}; in each fold the best for the method and its decoder on the validation queries",
        f"(shown: the median over folds); {edge} of {total} at an end of the grid",
        "fit: at all penalties, mean over folds; decode: a test query, as one of several at a time",
        "proven: test queries whose order is proven best for their pair scores; gap: the largest of the rest",
    ]
    if metric == "ap":
        lines.append(f"beam: {WIDTH} sets on validation queries, as many as by default on test queries")
    else:
        lines.append("pd: wrong pairs a query; share: of the query's pairs of different grades")
    return [*lines, "one fold and few penalties: a look, not a result"] if result.quick else lines


def _contrasts(result: PairsResult, metric: str) -> Table:
    numeric = ("difference", *TESTS)
    title = f"{result.data}: {TITLES[metric]}, what makes the difference"
    table = new_table(title, "differ in", "first", "second", *numeric, numeric=numeric)
    for contrast in result.contrasts(metric):
        names = contrast.what, contrast.first, contrast.second
        table.add_row(*names, f"{contrast.test.difference:+.4f}", *p_cells(contrast))
    return table


def _difference(metric: str) -> str:
    better = "above" if metric == "ap" else "below"
    return f"difference: first less second, mean over test queries; {better} 0 the first is better"
