"""Report of `studies consistency` and `studies exactness`: tables of regret, and plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from concordant._internals import new_table

if TYPE_CHECKING:
    from rich.table import Table

    from studies.consistency.study import Consistency
    from studies.shared.output import RemarkedTable

REMARKS = (
    "mean exact {metric} regret over {seeds} training sets; a penalty of 1 / (training queries)",
    "expected loss: the limit of infinitely many training queries",
)


@dataclass(frozen=True, eq=False)
class ConsistencyReport:
    """Regret of every method on every population."""

    result: Consistency

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield one table a population; the remarks are below the last one."""
        result = self.result
        *others, (last, _) = result.about
        for name, _ in others:
            yield self.population_table(name), ()
        metric = result.metric.upper()
        yield (
            self.population_table(last),
            [line.format(metric=metric, seeds=result.n_seeds) for line in REMARKS],
        )

    def population_table(self, population: str) -> Table:
        """One row for each number of queries, one column for each method."""
        curves = self.result.population_curves(population)
        methods = [curve.method for curve in curves]
        title = dict(self.result.about)[population]
        table = new_table(title, "training queries", *methods, numeric=["training queries", *methods])
        for index, n_queries in enumerate(curves[0].n_queries):
            table.add_row(f"{n_queries:,}", *(f"{curve.mean[index]:.5f}" for curve in curves))
        table.add_section()
        table.add_row("expected loss", *(f"{curve.limit:.5f}" for curve in curves), style="bold")
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "metric": self.result.metric,
            "n_seeds": self.result.n_seeds,
            "populations": dict(self.result.about),
            "curves": [asdict(curve) for curve in self.result.curves],
        }
