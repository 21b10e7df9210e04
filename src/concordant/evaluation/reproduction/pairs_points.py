"""What `pairs` found: points, one for each method and fold, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from concordant.decoders import Decoded
from concordant.evaluation.significance import Comparison, Paired, against_best, holm, paired
from concordant.types import FloatArray

__all__ = ["LOSSES", "Contrast", "Point", "Reproduction", "Summary"]

LOSSES = ("pd", "share")  # columns where less is better


@dataclass(frozen=True, eq=False)
class Point:
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
    own
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
    own: bool = True


@dataclass(frozen=True)
class Summary:
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
class Contrast:
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
    adjusted: float


@dataclass(frozen=True, eq=False)
class Reproduction:
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
    points: tuple[Point, ...]
    questions: Mapping[str, Sequence[tuple[str, str, str]]]

    def of(self, metric: str) -> dict[str, tuple[Point, ...]]:
        """Method -> its points, one a fold."""
        found: dict[str, tuple[Point, ...]] = {}
        for point in self.points:
            if point.metric == metric:
                found[point.method] = (*found.get(point.method, ()), point)
        return found

    def columns(self, metric: str) -> tuple[str, ...]:
        """Names of what is measured."""
        return tuple(next(point for point in self.points if point.metric == metric).per_query)

    def summaries(self, metric: str) -> list[Summary]:
        """Methods with penalties of their own, pooled over folds, compared column by column."""
        own = {name: points for name, points in self.of(metric).items() if points[0].own}
        columns = self.columns(metric)
        told = {column: compared(pooled(own, column), column) for column in columns}
        return [
            summary(points, {column: told[column][name] for column in columns})
            for name, points in own.items()
        ]

    def contrasts(self, metric: str) -> list[Contrast]:
        """Test what was asked, in the column by which penalties were chosen."""
        column = self.columns(metric)[0]
        values = pooled(self.of(metric), column)
        asked = self.questions[metric]
        tests = [paired(values[first], values[second]) for _, first, second in asked]
        adjusted = holm([test.t_test for test in tests]).tolist()
        return [
            Contrast(*names, column, test, p) for names, test, p in zip(asked, tests, adjusted, strict=True)
        ]


def pooled(methods: Mapping[str, Sequence[Point]], column: str) -> dict[str, FloatArray]:
    """Method -> value on each test query, fold after fold."""
    return {
        name: np.concatenate([point.per_query[column] for point in points])
        for name, points in methods.items()
    }


def compared(values: Mapping[str, FloatArray], column: str) -> dict[str, Comparison]:
    """Compare with the best; of losses the least is."""
    if column not in LOSSES:
        return against_best(values)
    told = against_best({name: -own for name, own in values.items()})
    return {name: replace(one, mean=-one.mean) for name, one in told.items()}


def summary(points: Sequence[Point], told: Mapping[str, Comparison]) -> Summary:
    """Put the folds of a method together."""
    found = [one for point in points for one in point.decoded]

    def over(value: Callable[[Decoded], float], together: Callable[[list[float]], float]) -> float:
        return float(together([value(one) for one in found])) if found else float("nan")

    return Summary(
        method=points[0].method,
        compared=told,
        alphas=tuple(point.alpha for point in points),
        validation=tuple(point.validation for point in points),
        n_at_edge=sum(point.at_edge for point in points),
        fit_seconds=float(np.mean([point.fit_seconds for point in points])),
        decode_seconds=over(lambda one: one.seconds, np.mean),
        proven=over(lambda one: one.proven, np.mean),
        gap=over(lambda one: one.gap, max),
    )
