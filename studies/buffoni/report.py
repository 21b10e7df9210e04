"""Report of `studies buffoni`: its table beside the paper's figures, plain values, and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant._internals import new_table, number
from studies.shared.significance import compared, mark, significance

if TYPE_CHECKING:
    from rich.table import Table

    from studies.buffoni.study import BuffoniResult, Cell
    from studies.shared.output import RemarkedTable

FIELDS = ("value", "c", "alpha", "p_value", "p_permutation", "p_adjusted", "significant", "paper")


@dataclass(frozen=True, eq=False)
class BuffoniReport:
    """Tables 1 and 2 of the paper."""

    result: BuffoniResult

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield a table with one row a method, in the blocks of the paper's tables."""
        yield self.means(), self.remarks()

    def means(self) -> Table:
        """Means over the test queries, the paper's figures beside ours."""
        from studies.buffoni.study import TABLES

        result = self.result
        columns = [result.column(metric) for metric in result.metrics]
        beside = [any(cell.published for cell in column.values()) for column in columns]
        heads: list[str] = []
        for metric, has_paper in zip(result.metrics, beside, strict=True):
            heads += [metric, "paper"] if has_paper else [metric]
        title = f"Buffoni et al. (2011) on {result.data}: {result.n_queries:,} test queries"
        table = new_table(title, "method", *heads, numeric=heads)
        for methods in TABLES.values():
            for method in methods:
                row: list[Text] = []
                for column, has_paper in zip(columns, beside, strict=True):
                    cell = column[method.name]
                    row += [compared(cell.comparison), *[_published_cell(cell)] * has_paper]
                table.add_row(method.name, *row)
            table.add_section()
        return table

    def remarks(self) -> list[str]:
        """Explain marks, penalties, features and conventions."""
        from studies.buffoni.study import METHODS

        result = self.result
        choices = [fold for cell in result.cells for fold in cell.folds]
        at_edge = sum(fold.at_edge for fold in choices)
        test = significance([cell.comparison for cell in result.cells], len(METHODS))
        penalty = (
            f"penalty: c times the loss at w = 0, c = {result.shares[0]:g} to {result.shares[-1]:g}, the "
            f"best on validation queries for each fold and metric; {at_edge} of {len(choices)} at an end of "
            "the grid"
        )
        features = "divided by their spread within queries" if result.scaled else "as they are"
        words = (f"{name}: {convention}" for name, convention in result.conventions.items())
        return [*result.notes, test, penalty, f"features: {features}", *words]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        result = self.result
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
            "results": [_cell_values(cell) for cell in result.cells],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per method and metric; the penalties of the folds are joined by ";"."""
        return [{"data": self.result.data} | _cell_row(cell) for cell in self.result.cells]


def _published_cell(cell: Cell) -> Text:
    if cell.published is None:
        return Text("")
    text = number(cell.published.value) + mark(significant=cell.published.significant)
    return Text(text, style="dim")


def _cell_values(cell: Cell) -> dict[str, Any]:
    """Plain values of a method and metric; the best has no p-values."""
    comparison, test, paper = cell.comparison, cell.comparison.test, cell.published
    return {
        "method": cell.method,
        "metric": cell.metric,
        "value": comparison.mean,
        "best": comparison.best,
        "c": [fold.share for fold in cell.folds],
        "alpha": [fold.alpha for fold in cell.folds],
        "validation": [fold.validation for fold in cell.folds],
        "p_value": test.t_test if test else None,
        "p_permutation": test.permutation if test else None,
        "p_adjusted": comparison.adjusted if test else None,
        "significant": comparison.significant,
        "paper": paper.value if paper else None,
        "paper_significant": paper.significant if paper else None,
    }


def _cell_row(cell: Cell) -> dict[str, Any]:
    values = _cell_values(cell)
    penalties = {name: ";".join(f"{penalty:.6g}" for penalty in values[name]) for name in ("c", "alpha")}
    values |= penalties | {"significant": str(values["significant"]).lower()}
    return {name: values[name] for name in ("method", "metric", *FIELDS)}
