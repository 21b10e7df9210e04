"""GradedMetric: a metric of one number >= 0 per row, given by a kernel."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from concordant.exceptions import GradeError, LabelError, ParameterError
from concordant.metrics.metric import Metric
from concordant.supervision.labels import Grades
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GradedMetric", "Measured", "Rows", "divided", "refuse_grades_above"]

HIGHEST_EXP2 = 1000  # 2^grade, summed over any list that fits in memory, stays below the largest double
HIGHEST_GAIN = 2.0**HIGHEST_EXP2
MOST_PLACES = 2**53  # a cutoff beyond any list


@dataclass(frozen=True, eq=False)
class Rows:
    """What a kernel reads: the rows of each query adjacent.

    `highest` is the highest grade of the whole data; with `strict`, tied rows stand in row order.
    """

    grades: FloatArray
    scores: FloatArray
    offsets: IntArray
    highest: float
    strict: bool


class Measured(NamedTuple):
    """What a kernel found: the value of each query, whether it is defined, whether tied rows matter to it."""

    values: FloatArray
    defined: BoolArray
    tied: BoolArray


@dataclass(frozen=True, repr=False)
class GradedMetric(Metric):
    """A metric of grades: one number >= 0 per row.

    Parameters
    ----------
    k
        Only the first k places count; None: all.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is None:
            return
        whole = isinstance(self.k, numbers.Integral) and not isinstance(self.k, bool)
        if not (whole and 1 <= self.k <= MOST_PLACES):
            raise ParameterError("k", self.k, "a whole number >= 1, or None")
        object.__setattr__(self, "k", int(self.k))

    def read_labels(self, y: ArrayLike) -> Grades:
        """Grades, checked."""
        if isinstance(y, Grades):
            return y
        if type(y).__name__ in ("Preferences", "Permutations"):
            raise LabelError(f"{self.name} reads grades, not {type(y).__name__}", "pass one grade per row.")
        return Grades.passing(y)

    def evaluate(
        self, labels: Grades, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Run the kernel, and again, in the order of the tie rule, on the queries in which ties matter."""
        usable, rule = self.usable(labels), self.convention.ties
        grades, ordered = queries.gather(usable.values), queries.gather(scores)
        rows = Rows(grades, ordered, queries.offsets, usable.highest, strict=rule == "input")
        measured = self.measure(rows)
        if rule not in ("expected", "input") and measured.tied.any():
            measured.values[measured.tied] = self.break_ties(rows, measured.tied, queries, docid)
        return measured.values, measured.defined

    def break_ties(
        self, rows: Rows, tied: BoolArray, queries: Queries, docid: NDArray[Any] | None
    ) -> FloatArray:
        """Values of the tied queries, with tied rows in the order of the convention."""
        places = np.flatnonzero(np.repeat(tied, queries.sizes))
        some = Queries.from_sizes(queries.sizes[tied])
        key = self.tie_key(queries.order[places], docid, rows.grades[places])
        order = places[np.lexsort((key, some.codes))]
        ordered = Rows(rows.grades[order], rows.scores[order], some.offsets, rows.highest, strict=True)
        return self.measure(ordered).values

    def relevance(self, labels: Grades, queries: Queries) -> FloatArray:
        """1 for a relevant row, 0 for another, by sorted row."""
        return (queries.gather(labels.values) >= self.convention.relevant_from).astype(np.float64)

    def usable(self, labels: Grades) -> Grades:
        """Give the numbers the kernel reads as grades; a user's gain function is applied here."""
        return labels

    def measure(self, rows: Rows) -> Measured:
        """Run the metric's kernel."""
        raise NotImplementedError


def refuse_grades_above(labels: Grades, highest: float, problem: str, hint: str) -> None:
    """Raise GradeError for the first grade, in the caller's order, above what the metric can use."""
    if labels.highest > highest:
        row = int(np.argmax(labels.values > highest))
        raise GradeError(float(labels.values[row]), f"row {row}", problem, hint).at(row)


def divided(values: FloatArray, divisors: FloatArray, queries: Queries) -> FloatArray:
    """Divide the rows of each query by its own number; 0 where that is 0.

    >>> divided(np.array([1.0, 2.0, 5.0]), np.array([4.0, 0.0]), Queries.from_sizes([2, 1])).tolist()
    [0.25, 0.5, 0.0]
    """
    scale: FloatArray = np.divide(1.0, divisors, out=np.zeros_like(divisors), where=divisors > 0)
    return values * np.repeat(scale, queries.sizes)
