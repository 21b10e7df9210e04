"""Results of `boosting`: choices made on validation queries, and their values on the test queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concordant._internals import mean_of
from concordant.evaluation import Comparison, against_best
from concordant.types import FloatArray
from studies.boosting.contrasts import RowContrast, contrast
from studies.boosting.runs import Run, best_of
from studies.boosting.trees import Plan, Shape
from studies.shared.contrasts import correct_jointly

BASE = "LightGBM lambdarank"
CHOSEN = ("concordant, chosen", "peers, chosen")


def default_row(kind: str) -> str:
    """Name the row of one of our rankers as it is by default.

    >>> default_row("linear")
    'concordant, linear (default)'
    """
    return f"concordant, {kind} (default)"


DEFAULT = default_row("lightgbm")


@dataclass(frozen=True)
class Row:
    """A row of a table: the methods from which validation chooses, of the boosters' own or of ours."""

    name: str
    side: str
    methods: tuple[str, ...]
    single: bool = True


@dataclass(frozen=True, eq=False)
class StageChoice:
    """The choice of validation queries in a fold, and its values on the test queries.

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
    def from_runs(cls, runs: Sequence[Run], metric: str) -> StageChoice:
        """Choose the best run and its best stage for a metric, on validation queries alone."""
        best = best_of(runs, metric)
        index = best.best(metric)
        return cls(
            method=best.spot.method,
            shape=best.spot.shape,
            stage=best.stages[index],
            last=index == len(best.stages) - 1,
            validation=best.validation_mean(metric),
            per_query=best.test[metric],
        )


@dataclass(frozen=True, eq=False)
class BoostingSet:
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

    def choices(self, row: Row, metric: str) -> tuple[StageChoice, ...]:
        """Choice of each fold."""
        return tuple(
            StageChoice.from_runs([run for name in row.methods for run in self.runs[name, fold]], metric)
            for fold in self.folds
        )

    @cached_property
    def choices_by_row(self) -> dict[str, dict[str, tuple[StageChoice, ...]]]:
        """Metric -> row -> what was chosen in each fold."""
        return {
            metric: {row.name: self.choices(row, metric) for row in rows}
            for metric, rows in self.rows.items()
        }

    def column(self, metric: str) -> dict[str, FloatArray]:
        """Row -> value on each test query, fold after fold."""
        return {name: _pool(folds) for name, folds in self.choices_by_row[metric].items()}

    @property
    def n_queries(self) -> int:
        """Test queries over all folds."""
        return len(next(iter(self.column(next(iter(self.rows))).values())))

    def crossed(self) -> dict[str, dict[str, Comparison]]:
        """Evaluated metric -> metric trained for -> the default of ours, compared with the best of these."""
        comparisons = {}
        for metric in self.rows:
            values = {
                target: _pool(self.choices(_find_row(rows, DEFAULT), metric))
                for target, rows in self.rows.items()
            }
            comparisons[metric] = against_best(values)
        return comparisons


@dataclass(frozen=True, eq=False)
class BoostingStudy:
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

    sets: tuple[BoostingSet, ...]
    metrics: tuple[str, ...]
    plan: Plan
    shapes: tuple[Shape, ...]
    quick: bool

    def columns(self, metric: str) -> dict[str, dict[str, FloatArray]]:
        """Set -> row -> value on each test query."""
        return {data_set.data: data_set.column(metric) for data_set in self.sets}

    def column(self, metric: str) -> dict[str, FloatArray]:
        """Row -> value on each test query, set after set."""
        columns = [*self.columns(metric).values()]
        return {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}

    def by_set(self, metric: str) -> dict[str, float]:
        """Row -> mean over sets of the mean over each one's test queries."""
        columns = [*self.columns(metric).values()]
        return {name: float(np.mean([mean_of(column[name]) for column in columns])) for name in columns[0]}

    def against_choice(self, metric: str) -> list[RowContrast]:
        """Test our choice against the peers': in each set and over all, corrected together."""
        columns = self.columns(metric)
        set_contrasts = [contrast(metric, {name: column}, *CHOSEN) for name, column in columns.items()]
        return correct_jointly(
            [*set_contrasts, contrast(metric, columns, *CHOSEN)] if len(columns) > 1 else set_contrasts
        )

    def against_base(self, metric: str) -> list[RowContrast]:
        """Test our rows against lambdarank over all sets, Holm's correction over our rows."""
        ours = [row.name for row in self.sets[0].rows[metric] if row.side == "ours"]
        return correct_jointly([contrast(metric, self.columns(metric), name, BASE) for name in ours])

    def against_peers(self, metric: str) -> list[RowContrast]:
        """Test our default against each of the others over all sets."""
        _, *pairs = duels(self.sets[0].rows[metric])
        return correct_jointly([contrast(metric, self.columns(metric), *pair) for pair in pairs])

    @cached_property
    def cells(self) -> tuple[RowContrast, ...]:
        """The two choices, and our default against each peer, for each set and metric; corrected together."""
        return tuple(
            correct_jointly(
                [
                    contrast(metric, {data_set.data: data_set.column(metric)}, *pair)
                    for data_set in self.sets
                    for metric in self.metrics
                    for pair in duels(data_set.rows[metric])
                ]
            )
        )

    def behind(self) -> list[RowContrast]:
        """Contrasts in which a peer, or the choice among them, has the higher mean: the surest first."""
        losing = [pair for pair in self.cells if pair.test.difference < 0.0]
        return sorted(losing, key=lambda pair: pair.test.t_test)

    def standing(self, name: str) -> tuple[int, int]:
        """In how many sets and metrics a row is the best, and in how many not significantly worse than it."""
        comparisons = [column[name] for column in self.compared]
        return sum(comparison.best for comparison in comparisons), sum(
            not comparison.significant for comparison in comparisons
        )

    @cached_property
    def compared(self) -> tuple[dict[str, Comparison], ...]:
        """Row -> its comparison with the best, for each set and metric."""
        return tuple(
            against_best(data_set.column(metric)) for data_set in self.sets for metric in self.metrics
        )


def duels(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Pair the two choices with one another, and our default with each of the others."""
    return [CHOSEN, *((DEFAULT, row.name) for row in rows if row.side == "peers" and row.single)]


def _find_row(rows: Iterable[Row], name: str) -> Row:
    return next(row for row in rows if row.name == name)


def _pool(folds: Iterable[StageChoice]) -> FloatArray:
    """Value on each test query, fold after fold."""
    return np.concatenate([choice.per_query for choice in folds])
