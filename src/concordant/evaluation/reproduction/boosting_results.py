"""What `boosting` found: choices made on validation queries, and what the test queries say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from concordant.evaluation.reproduction.boosting_runs import Run, best_of
from concordant.evaluation.reproduction.boosting_trees import Plan, Shape
from concordant.evaluation.significance import Comparison, Paired, against_best, holm, paired
from concordant.types import FloatArray

__all__ = ["BASE", "CHOSEN", "DEFAULT", "Choice", "Contrast", "Reproduction", "Row", "Study"]

BASE = "LightGBM lambdarank"
DEFAULT = "BoostedRanker, lightgbm"
CHOSEN = ("BoostedRanker, chosen", "peers, chosen")
LEVEL = 0.05


@dataclass(frozen=True)
class Row:
    """A row of a table: the methods from which validation chooses, of the boosters' own or of ours."""

    name: str
    side: str
    methods: tuple[str, ...]
    single: bool = True


@dataclass(frozen=True, eq=False)
class Choice:
    """What validation chose in a fold, and how it does on the test queries.

    Attributes
    ----------
    method, shape, stage
        The method, the shape of its trees and their number; of a linear ranker no shape, and the penalty.
    last
        Whether it is the last stage there was.
    validation
        Mean over the validation queries.
    per_query
        Value on each test query, ascending ids; NaN where skipped.
    """

    method: str
    shape: str
    stage: float
    last: bool
    validation: float
    per_query: FloatArray

    @classmethod
    def of(cls, runs: Sequence[Run], metric: str) -> Choice:
        """Choose the best run and its best stage for a metric, on validation queries alone."""
        best = best_of(runs, metric)
        place = best.best(metric)
        return cls(
            method=best.spot.method,
            shape=best.spot.shape,
            stage=best.stages[place],
            last=place == len(best.stages) - 1,
            validation=best.told(metric),
            per_query=best.test[metric],
        )


@dataclass(frozen=True)
class Contrast:
    """Two rows on the same test queries.

    Attributes
    ----------
    data
        The set, or "all sets".
    metric, first, second
        What is compared.
    test
        Mean of first less second, and the paired tests.
    low, high
        The 95 % interval of that mean, by Student's t.
    wins, ties, losses
        Queries on which the first is better, equal, worse.
    adjusted
        p-value of the t-test after Holm's correction over what was asked together.
    """

    data: str
    metric: str
    first: str
    second: str
    test: Paired
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    adjusted: float = 1.0


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All rows on one set.

    Attributes
    ----------
    data
        Name of the dataset that was read.
    rows
        Metric -> its rows.
    runs
        (method, fold) -> its runs, one for each shape.
    """

    data: str
    rows: Mapping[str, tuple[Row, ...]]
    runs: Mapping[tuple[str, int], Sequence[Run]]

    @property
    def folds(self) -> tuple[int, ...]:
        """Numbers of the folds."""
        return tuple(sorted({fold for _, fold in self.runs}))

    def choices(self, row: Row, metric: str) -> tuple[Choice, ...]:
        """What was chosen in each fold."""
        return tuple(
            Choice.of([run for name in row.methods for run in self.runs[name, fold]], metric)
            for fold in self.folds
        )

    @cached_property
    def chosen(self) -> dict[str, dict[str, tuple[Choice, ...]]]:
        """Metric -> row -> what was chosen in each fold."""
        return {
            metric: {row.name: self.choices(row, metric) for row in rows}
            for metric, rows in self.rows.items()
        }

    def column(self, metric: str) -> dict[str, FloatArray]:
        """Row -> value on each test query, fold after fold."""
        return {name: pooled(folds) for name, folds in self.chosen[metric].items()}

    @property
    def n_queries(self) -> int:
        """Test queries over all folds."""
        return len(next(iter(self.column(next(iter(self.rows))).values())))

    def crossed(self) -> dict[str, dict[str, Comparison]]:
        """Evaluated metric -> metric trained for -> the default of ours, compared with the best of these."""
        told = {}
        for metric in self.rows:
            values = {
                target: pooled(self.choices(row_of(rows, DEFAULT), metric))
                for target, rows in self.rows.items()
            }
            told[metric] = against_best(values)
        return told


@dataclass(frozen=True, eq=False)
class Study:
    """All sets.

    Attributes
    ----------
    sets
        One result a set.
    metrics
        What everyone is measured by.
    plan, shapes
        Trees, stages and shapes there were to choose from.
    quick
        Whether only a look was asked for.
    """

    sets: tuple[Reproduction, ...]
    metrics: tuple[str, ...]
    plan: Plan
    shapes: tuple[Shape, ...]
    quick: bool

    def column(self, metric: str) -> dict[str, FloatArray]:
        """Row -> value on each test query, set after set."""
        columns = [one.column(metric) for one in self.sets]
        return {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}

    def sides(self, metric: str) -> dict[str, str]:
        """Row -> whose it is."""
        return {row.name: row.side for row in self.sets[0].rows[metric]}

    def against_base(self, metric: str) -> list[Contrast]:
        """Test our rows against lambdarank over all sets, Holm's correction over our rows."""
        ours = [name for name, side in self.sides(metric).items() if side == "ours"]
        return contrasts("all sets", metric, self.column(metric), [(name, BASE) for name in ours])

    def against_peers(self, metric: str) -> list[Contrast]:
        """Test our default against each of the others over all sets, and the two choices."""
        return contrasts("all sets", metric, self.column(metric), duels(self.sets[0].rows[metric]))

    @cached_property
    def cells(self) -> tuple[Contrast, ...]:
        """Our default against each peer, and the two choices, for each set and metric; corrected together."""
        return tuple(
            corrected(
                [
                    contrast(one.data, metric, one.column(metric), *pair)
                    for one in self.sets
                    for metric in self.metrics
                    for pair in duels(one.rows[metric])
                ]
            )
        )

    def behind(self) -> list[Contrast]:
        """Where a peer, or the choice among them, has the higher mean: the surest first."""
        told = [one for one in self.cells if one.test.difference < 0.0]
        return sorted(told, key=lambda one: one.test.t_test)

    def standing(self, name: str) -> tuple[int, int]:
        """In how many sets and metrics a row is the best, and in how many not significantly worse than it."""
        told = [column[name] for column in self.compared]
        return sum(one.best for one in told), sum(not one.significant for one in told)

    @cached_property
    def compared(self) -> tuple[dict[str, Comparison], ...]:
        """Row -> its comparison with the best, for each set and metric."""
        return tuple(against_best(one.column(metric)) for one in self.sets for metric in self.metrics)


def duels(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Pair our default with each of the others, and the two choices with one another."""
    return [*((DEFAULT, row.name) for row in rows if row.side == "peers" and row.single), CHOSEN]


def row_of(rows: Iterable[Row], name: str) -> Row:
    """Give the row of this name."""
    return next(row for row in rows if row.name == name)


def pooled(folds: Iterable[Choice]) -> FloatArray:
    """Value on each test query, fold after fold."""
    return np.concatenate([choice.per_query for choice in folds])


def contrasts(
    data: str, metric: str, values: Mapping[str, FloatArray], asked: Iterable[tuple[str, str]]
) -> list[Contrast]:
    """Compare pairs of rows, and correct for their number."""
    return corrected([contrast(data, metric, values, *pair) for pair in asked])


def contrast(data: str, metric: str, values: Mapping[str, FloatArray], first: str, second: str) -> Contrast:
    """Compare two rows."""
    differences = values[first] - values[second]
    known = differences[~np.isnan(differences)]
    signs = [int((np.sign(known) == sign).sum()) for sign in (1, 0, -1)]
    return Contrast(
        data, metric, first, second, paired(values[first], values[second]), *interval(known), *signs
    )


def interval(differences: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Give the interval of a mean by Student's t; of fewer than two differences there is none.

    >>> [round(end, 4) for end in interval(np.array([0.0, 1.0, 2.0]))]
    [-1.4841, 3.4841]
    """
    if len(differences) < 2:
        return float("nan"), float("nan")
    from scipy.stats import t

    half = (
        float(t.ppf(0.5 + level / 2, len(differences) - 1))
        * float(differences.std(ddof=1))
        / float(np.sqrt(len(differences)))
    )
    return float(differences.mean()) - half, float(differences.mean()) + half


def corrected(found: Sequence[Contrast]) -> list[Contrast]:
    """Correct the p-values of contrasts that were asked together."""
    if not found:
        return []
    adjusted = holm([one.test.t_test for one in found]).tolist()
    return [replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True)]
