"""Results of `pairs`: points, one for each method and fold, their summaries and contrasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from concordant.decoders import Decoded
from concordant.evaluation import Comparison, Paired, against_best, paired
from concordant.types import FloatArray
from studies.shared.contrasts import correct_jointly

LOSSES = ("pd", "share")  # columns where less is better


@dataclass(frozen=True, eq=False)
class FoldPoint:
    """One method on one fold, at the penalty that the validation queries chose.

    Attributes
    ----------
    metric, method, fold
        What it is.
    alpha, at_edge
        The penalty, and whether it is the largest or the smallest of the grid.
    validation
        Mean of the metric over the validation queries there.
    per_query
        "map"; or "pd" and, divided by the pairs of different grades, "share": value on each test query,
        ascending ids, NaN where undefined.
    fit_seconds
        Time of the fits at all penalties.
    decoded
        Orders of the test queries; none of a linear ranker, which sorts.
    has_own_penalty
        Whether the penalty was chosen for this method; else for the same fit with another decoder.
    """

    metric: str
    method: str
    fold: int
    alpha: float
    at_edge: bool
    validation: float
    per_query: Mapping[str, FloatArray]
    fit_seconds: float
    decoded: tuple[Decoded, ...] = ()
    has_own_penalty: bool = True


@dataclass(frozen=True)
class MethodSummary:
    """A method over all folds.

    Attributes
    ----------
    method
        Its name.
    compared
        Column -> its mean, and the test against the best method of the column.
    alphas, validation
        Of each fold: the penalty chosen, and the mean over the validation queries.
    n_at_edge
        Folds in which the penalty is at an end of the grid.
    fit_seconds
        Time of the fits at all penalties, the mean over folds.
    decode_seconds, proven, gap
        Of the test queries: mean time to decode one, the share whose order is proven best for its pair
        scores, and the largest gap; NaN of a linear ranker.
    """

    method: str
    compared: Mapping[str, Comparison]
    alphas: tuple[float, ...]
    validation: tuple[float, ...]
    n_at_edge: int
    fit_seconds: float
    decode_seconds: float
    proven: float
    gap: float


@dataclass(frozen=True)
class MethodContrast:
    """Two methods that differ in one thing.

    Attributes
    ----------
    what
        The thing.
    first, second
        The methods.
    column
        The column in which they are compared.
    test
        The mean of first less second over the test queries, and the paired tests.
    adjusted
        p-value of the t-test after Holm's correction over the contrasts of the column.
    """

    what: str
    first: str
    second: str
    column: str
    test: Paired
    adjusted: float = 1.0


@dataclass(frozen=True, eq=False)
class PairsResult:
    """All methods on one set.

    Attributes
    ----------
    data
        Name of the dataset that was read.
    n_folds, n_queries
        Folds, and test queries over all of them.
    quick
        Whether only a look was asked for.
    grids
        Penalties of linear and of pair rankers.
    points
        Fold by fold, metric by metric, method by method.
    questions
        Metric -> the contrasts asked for: what, first method, second method.
    """

    data: str
    n_folds: int
    n_queries: int
    quick: bool
    grids: Mapping[str, FloatArray]
    points: tuple[FoldPoint, ...]
    questions: Mapping[str, Sequence[tuple[str, str, str]]]

    def points_by_method(self, metric: str) -> dict[str, tuple[FoldPoint, ...]]:
        """Method -> its points, one a fold."""
        grouped: dict[str, tuple[FoldPoint, ...]] = {}
        for point in self.points:
            if point.metric == metric:
                grouped[point.method] = (*grouped.get(point.method, ()), point)
        return grouped

    def columns(self, metric: str) -> tuple[str, ...]:
        """Names of what is measured."""
        return tuple(next(point for point in self.points if point.metric == metric).per_query)

    def summaries(self, metric: str) -> list[MethodSummary]:
        """Methods with penalties of their own, pooled over folds, compared column by column."""
        selected = {
            name: points
            for name, points in self.points_by_method(metric).items()
            if points[0].has_own_penalty
        }
        columns = self.columns(metric)
        comparisons = {column: _compare(_pool(selected, column), column) for column in columns}
        return [
            _summarise(points, {column: comparisons[column][name] for column in columns})
            for name, points in selected.items()
        ]

    def contrasts(self, metric: str) -> list[MethodContrast]:
        """Test what was asked, in the column by which penalties were chosen."""
        column = self.columns(metric)[0]
        values = _pool(self.points_by_method(metric), column)
        asked = self.questions[metric]
        tests = [paired(values[first], values[second]) for _, first, second in asked]
        return correct_jointly(
            [MethodContrast(*names, column, test) for names, test in zip(asked, tests, strict=True)]
        )


def _pool(methods: Mapping[str, Sequence[FoldPoint]], column: str) -> dict[str, FloatArray]:
    """Method -> value on each test query, fold after fold."""
    return {
        name: np.concatenate([point.per_query[column] for point in points])
        for name, points in methods.items()
    }


def _compare(values: Mapping[str, FloatArray], column: str) -> dict[str, Comparison]:
    """Compare with the best; of losses the least is."""
    if column not in LOSSES:
        best: dict[str, Comparison] = against_best(values)
        return best
    comparisons = against_best({name: -column_values for name, column_values in values.items()})
    return {name: replace(comparison, mean=-comparison.mean) for name, comparison in comparisons.items()}


def _summarise(points: Sequence[FoldPoint], comparisons: Mapping[str, Comparison]) -> MethodSummary:
    """Put the folds of a method together."""
    orders = [order for point in points for order in point.decoded]

    def over(value: Callable[[Decoded], float], together: Callable[[list[float]], float]) -> float:
        return float(together([value(order) for order in orders])) if orders else float("nan")

    return MethodSummary(
        method=points[0].method,
        compared=comparisons,
        alphas=tuple(point.alpha for point in points),
        validation=tuple(point.validation for point in points),
        n_at_edge=sum(point.at_edge for point in points),
        fit_seconds=float(np.mean([point.fit_seconds for point in points])),
        decode_seconds=over(lambda order: order.seconds, np.mean),
        proven=over(lambda order: order.proven, np.mean),
        gap=over(lambda order: order.gap, max),
    )
