"""What `reproduce buffoni` found: as a table, as plain values, as CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant.cli.output import compared, mark, new_table, number, significance

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.buffoni import Cell, Reproduction

__all__ = ["as_dict", "remarks", "table", "write_csv"]

FIELDS = (
    "data",
    "method",
    "metric",
    "value",
    "c",
    "alpha",
    "p_value",
    "p_permutation",
    "p_adjusted",
    "significant",
    "paper",
)


def table(result: Reproduction) -> Table:
    """Give one row a method, in the blocks of the paper's tables; its figures stand beside ours."""
    from concordant.evaluation.reproduction.buffoni import TABLES

    columns = [result.column(metric) for metric in result.metrics]
    beside = [any(cell.published for cell in column.values()) for column in columns]
    heads: list[str] = []
    for metric, published in zip(result.metrics, beside, strict=True):
        heads += [metric, "paper"] if published else [metric]
    title = f"Buffoni et al. (2011) on {result.data}: {result.n_queries:,} test queries"
    shown = new_table(title, "method", *heads, numeric=heads)
    for methods in TABLES.values():
        for method in methods:
            row: list[Text] = []
            for column, published in zip(columns, beside, strict=True):
                row += [compared(column[method.name].comparison), *[theirs(column[method.name])] * published]
            shown.add_row(method.name, *row)
        shown.add_section()
    return shown


def theirs(cell: Cell) -> Text:
    """The paper's figure, with its mark."""
    if cell.published is None:
        return Text("")
    told = number(cell.published.value) + mark(significant=cell.published.significant)
    return Text(told, style="dim")


def remarks(result: Reproduction) -> list[str]:
    """Give what a reader of the numbers should know."""
    from concordant.evaluation.reproduction.buffoni import METHODS

    choices = [fold for cell in result.cells for fold in cell.folds]
    at_edge = sum(fold.at_edge for fold in choices)
    test = significance([cell.comparison for cell in result.cells], len(METHODS))
    penalty = (
        f"penalty: c times the loss at w = 0, c = {result.shares[0]:g} to {result.shares[-1]:g}, the best on "
        f"validation queries for each fold and metric; {at_edge} of {len(choices)} at an end of the grid"
    )
    features = "divided by their spread within queries" if result.scaled else "as they are"
    words = (f"{name}: {convention}" for name, convention in result.conventions.items())
    return [*result.notes, test, penalty, f"features: {features}", *words]


def as_dict(result: Reproduction) -> dict[str, Any]:
    """Give all numbers as plain values."""
    return {
        "data": result.data,
        "n_folds": result.n_folds,
        "n_queries": result.n_queries,
        "scaled": result.scaled,
        "quick": result.quick,
        "grid": result.shares.tolist(),
        "conventions": dict(result.conventions),
        "agreement": {metric: result.agreement(metric) for metric in result.metrics},
        "notes": list(result.notes),
        "results": [values(cell) for cell in result.cells],
    }


def values(cell: Cell) -> dict[str, Any]:
    """Give one method and metric as plain values; the best has no p-values."""
    told, test, paper = cell.comparison, cell.comparison.test, cell.published
    return {
        "method": cell.method,
        "metric": cell.metric,
        "value": told.mean,
        "best": told.best,
        "c": [fold.share for fold in cell.folds],
        "alpha": [fold.alpha for fold in cell.folds],
        "validation": [fold.validation for fold in cell.folds],
        "p_value": test.t_test if test else None,
        "p_permutation": test.permutation if test else None,
        "p_adjusted": told.adjusted if test else None,
        "significant": told.significant,
        "paper": paper.value if paper else None,
        "paper_significant": paper.significant if paper else None,
    }


def write_csv(path: Path, result: Reproduction) -> None:
    """Write one line a method and metric, whole or not at all; the folds' penalties are joined by ";"."""
    from concordant.supervision.readers.text import write_atomically

    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for cell in result.cells:
        row = {"data": result.data} | values(cell)
        joined = {name: ";".join(f"{one:.6g}" for one in row[name]) for name in ("c", "alpha")}
        writer.writerow(row | joined | {"significant": str(row["significant"]).lower()})
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())
