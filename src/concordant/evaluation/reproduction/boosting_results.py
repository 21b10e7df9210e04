"""What `boosting` found: choices made on validation queries, and what the test queries say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concordant.evaluation.reproduction.boosting_contrasts import Contrast, contrast, corrected
from concordant.evaluation.reproduction.boosting_runs import Run, best_of
from concordant.evaluation.reproduction.boosting_trees import Plan, Shape
from concordant.evaluation.significance import Comparison, against_best, mean_of
from concordant.types import FloatArray

__all__ = ["BASE", "CHOSEN", "DEFAULT", "Choice", "Reproduction", "Row", "Study", "default_row"]

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

    def columns(self, metric: str) -> dict[str, dict[str, FloatArray]]:
        """Set -> row -> value on each test query."""
        return {one.data: one.column(metric) for one in self.sets}

    def column(self, metric: str) -> dict[str, FloatArray]:
        """Row -> value on each test query, set after set."""
        columns = [*self.columns(metric).values()]
        return {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}

    def by_set(self, metric: str) -> dict[str, float]:
        """Row -> mean over sets of the mean over each one's test queries."""
        columns = [*self.columns(metric).values()]
        return {name: float(np.mean([mean_of(column[name]) for column in columns])) for name in columns[0]}

    def against_choice(self, metric: str) -> list[Contrast]:
        """Test our choice against the peers': in each set and over all, corrected together."""
        columns = self.columns(metric)
        found = [contrast(metric, {name: column}, *CHOSEN) for name, column in columns.items()]
        return corrected([*found, contrast(metric, columns, *CHOSEN)] if len(columns) > 1 else found)

    def against_base(self, metric: str) -> list[Contrast]:
        """Test our rows against lambdarank over all sets, Holm's correction over our rows."""
        ours = [row.name for row in self.sets[0].rows[metric] if row.side == "ours"]
        return corrected([contrast(metric, self.columns(metric), name, BASE) for name in ours])

    def against_peers(self, metric: str) -> list[Contrast]:
        """Test our default against each of the others over all sets."""
        _, *pairs = duels(self.sets[0].rows[metric])
        return corrected([contrast(metric, self.columns(metric), *pair) for pair in pairs])

    @cached_property
    def cells(self) -> tuple[Contrast, ...]:
        """The two choices, and our default against each peer, for each set and metric; corrected together."""
        return tuple(
            corrected(
                [
                    contrast(metric, {one.data: one.column(metric)}, *pair)
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
    """Pair the two choices with one another, and our default with each of the others."""
    return [CHOSEN, *((DEFAULT, row.name) for row in rows if row.side == "peers" and row.single)]


def row_of(rows: Iterable[Row], name: str) -> Row:
    """Give the row of this name."""
    return next(row for row in rows if row.name == name)


def pooled(folds: Iterable[Choice]) -> FloatArray:
    """Value on each test query, fold after fold."""
    return np.concatenate([choice.per_query for choice in folds])
