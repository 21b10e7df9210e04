"""Report of `studies maxmargin`: four tables, plain values, and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from concordant._internals import new_table, number
from studies.shared.significance import compared, significance

if TYPE_CHECKING:
    from studies.riezler_debona.maxmargin.results import MaxMarginResult, PenaltyPoint, RuleSummary
    from studies.shared.output import RemarkedTable

ORIGIN = {"regulariser": "penalty", "union": "union"}
UNLIKE = "(that of the column bound needs no M)"
LEAST = ("alpha", "B", "bound", "largest", "test loss", "worst")


@dataclass(frozen=True, eq=False)
class MaxMarginReport:
    """Rankers, their test losses and their bounds."""

    result: MaxMarginResult

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield rankings, losses, bounds, and the smallest penalties with a bound that is not vacuous."""
        for table in (_quality, _losses, _bounds, _least):
            yield table(self.result)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        result = self.result
        smallest = [result.least(summary.method, summary.rule) for summary in result.summaries()]
        return {
            "data": result.data,
            "n_folds": result.n_folds,
            "n_train": result.n_train,
            "n_queries": result.n_queries,
            "delta": result.delta,
            "grid": result.alphas.tolist(),
            "compared": {
                metric: {name: asdict(comparison) for name, comparison in column.items()}
                for metric, column in result.compared().items()
            },
            "chosen": [asdict(summary) for summary in result.summaries()],
            "least": [asdict(summary) for summary in smallest if summary is not None],
            "points": [row for point in result.points for row in _point_rows(point)],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per method, fold, penalty and rule; "nan" and "inf" are written as such."""
        return [
            {"data": self.result.data} | {name: _written(value) for name, value in row.items()}
            for point in self.result.points
            for row in _point_rows(point)
        ]


def _quality(result: MaxMarginResult) -> RemarkedTable:
    """Metrics of the chosen rankers."""
    columns = result.compared()
    title = f"{result.data}: rankings of {result.n_queries:,} test queries"
    table = new_table(title, "method", *columns, numeric=columns)
    for name in result.rules:
        table.add_row(name, *(compared(column[name]) for column in columns.values()))
    grid = f"alpha = {result.alphas[0]:g} to {result.alphas[-1]:g}"
    edge = f"{result.n_at_edge} of {len(result.rules) * result.n_folds} at an end of the grid"
    return table, [
        significance(
            (comparison for column in columns.values() for comparison in column.values()), len(result.rules)
        ),
        f"penalty: {grid}, in each fold the one of best ndcg@10 on the validation queries; {edge}",
        "features: each one of each list from 0 to 1; queries where nothing is relevant are skipped",
    ]


def _losses(result: MaxMarginResult) -> RemarkedTable:
    """Hinge of the chosen rankers, and the loss that it dominates, in training and in test."""
    numeric = ("alpha", "hinge", "loss", "test hinge", "test loss", "worst")
    title = f"{result.data}: losses of these rankers, means over folds"
    table = new_table(title, "method", "loss that is bounded", *numeric, numeric=numeric)
    for summary in (summary for summary in result.summaries() if summary.rule == "union"):
        means = (
            summary.train.hinge,
            summary.train.loss,
            summary.test.hinge,
            summary.test.loss,
            summary.test.worst,
        )
        table.add_row(summary.method, summary.bounds, f"{summary.alpha:.2g}", *map(number, means))
    return table, [
        "alpha: the median; hinge: cut off, as in the bounds; worst: what the worst orders lose in test",
        "a query whose labels are all equal counts here, and loses nothing",
        *without_weights(result),
    ]


def without_weights(result: MaxMarginResult) -> Iterator[str]:
    """Yield the methods for which weights of 0 are optimal somewhere."""
    for name in result.rules:
        points = [point for point in result.points if point.method == name]
        if zero := sum(point.length == 0.0 for point in points):
            yield f"{name}: weights 0, which rank nothing, are optimal in {zero} of {len(points)} fits"


def _bounds(result: MaxMarginResult) -> RemarkedTable:
    """Guarantees of the chosen rankers."""
    numeric = (
        "B",
        "|w|",
        "complexity",
        "confidence",
        "bound",
        "test loss",
        "vacuous",
        "queries",
        "sharp",
        "paper",
    )
    title = (
        f"{result.data}: bounds on the expected loss of these rankers, {result.n_train:,} training queries"
    )
    table = new_table(title, "method", "B from", *numeric, numeric=numeric)
    for summary in result.summaries():
        terms = summary.complexity, summary.confidence, summary.value, summary.test.loss
        lengths, vacuous = (
            (_few(summary.B), _few(summary.length)),
            f"{summary.n_vacuous} of {summary.n_folds}",
        )
        table.add_row(*_named(result, summary), *lengths, *map(number, terms), vacuous, *_far_off(summary))
    M = max(guarantee.M for point in result.points for guarantee in point.guarantees.values())
    return table, [
        "bound: training hinge + complexity + confidence; medians over folds, but for the mean test loss",
        "B from the penalty: no ranker at this alpha is longer; union: the next of 1/64, 1/32, ... above |w|",
        f"each with probability {1 - result.delta:g} for all penalties of the grid at once",
        "queries: as many training queries as the bound needs to fall below what the worst orders lose",
        f"sharp: the bound without cutting off, at this B and M = {M:.3g} {UNLIKE}",
        "paper: excess by the paper's theorems, corrected, at the same B and M",
        *_count_bounds(result),
    ]


def _named(result: MaxMarginResult, summary: RuleSummary) -> tuple[str, str]:
    """Method, in its first row only, and origin of B."""
    return summary.method if summary.rule == result.rules[summary.method][0] else "", ORIGIN[summary.rule]


def _far_off(summary: RuleSummary) -> tuple[str, str, str]:
    """Queries needed, sharp bound, and the paper's excess; huge numbers as powers of ten."""
    return _power(math.log10(summary.needed)), _few(summary.sharp), _power(summary.paper)


def _count_bounds(result: MaxMarginResult) -> Iterator[str]:
    """Count the bounds that the test contradicts, and those that say more than the labels do."""
    broken, total = result.count(lambda point, guarantee: point.test.loss > guarantee.value)
    telling, _ = result.count(lambda point, guarantee: guarantee.value < point.train.worst)
    yield f"of {total:,} bounds, at all penalties and in all folds, {broken:,} are below the test loss,"
    yield f"and {telling:,} below what the worst orders of the training queries lose"


def _least(result: MaxMarginResult) -> RemarkedTable:
    """Smallest penalties at which bounds are not vacuous, and the rankings there."""
    metrics = ("map", "ndcg@10")
    title = f"{result.data}: the smallest penalty at which no fold's bound is vacuous"
    table = new_table(title, "method", "B from", *LEAST, *metrics, numeric=(*LEAST, *metrics))
    for summary in result.summaries():
        smallest = result.least(summary.method, summary.rule)
        if smallest is None:
            table.add_row(*_named(result, summary), "none", *["-"] * (len(LEAST) + len(metrics) - 1))
            continue
        means = (
            smallest.value,
            smallest.largest,
            smallest.test.loss,
            smallest.test.worst,
            *(smallest.metrics[name] for name in metrics),
        )
        table.add_row(
            *_named(result, smallest), f"{smallest.alpha:.2g}", _few(smallest.B), *map(number, means)
        )
    return table, ["largest: the largest value of the loss; worst: what the worst orders lose in test"]


def _few(value: float) -> str:
    """Format a length in three digits.

    >>> _few(44.7213), _few(0.015625)
    ('44.7', '0.0156')
    """
    return f"{value:.3g}"


def _power(log10: float) -> str:
    """Format a number, given its logarithm: whole, or as a power of ten where it is huge.

    >>> _power(2.0), _power(203.4), _power(math.inf), _power(math.nan)
    ('100', '10^203', 'none', '-')
    """
    if math.isnan(log10):
        return "-"
    if math.isinf(log10):
        return "none"
    return f"{round(10.0**log10):,}" if log10 < 9.0 else f"10^{log10:.0f}"


def _point_rows(point: PenaltyPoint) -> Iterator[dict[str, Any]]:
    """Plain values of a point, one row a rule."""
    for rule, guarantee in point.guarantees.items():
        yield {
            "method": point.method,
            "fold": point.fold,
            "alpha": point.alpha,
            "chosen": point.is_selected,
            "length": point.length,
            **{f"train_{name}": value for name, value in asdict(point.train).items()},
            **{f"test_{name}": value for name, value in asdict(point.test).items()},
            **asdict(guarantee),
            "rule": rule,
            **point.metrics,
        }


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
