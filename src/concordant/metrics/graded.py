"""GradedMetric: a metric of one number >= 0 per row, computed by a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from concordant._base.segments import run_chunks
from concordant._base.validate import check_whole, freeze
from concordant.data.labels import Grades
from concordant.data.queries import Queries
from concordant.exceptions import GradeError, LabelError
from concordant.metrics.metric import Metric
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Runs a metric's kernel over all queries: the only code that sorts long lists and starts threads.


def cutoff(k: int | None, offsets: IntArray) -> int:
    """Return the number of places that can count: k, or the length of the longest list."""
    longest = max(int(np.diff(offsets).max(initial=1)), 1)
    return longest if k is None else min(k, longest)


def run_metric(
    chunk: Callable[..., None], rows: KernelRows, k: int, *parameters: Any
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Run a chunk kernel: return the two numbers per query that it fills, and whether ties matter to them.

    Long lists are sorted here by numpy, which is several times faster than a compiled sort; short ones are
    sorted, and small heads selected, inside the kernel.
    """
    from concordant.metrics.list_kernels import LONG, SELECT

    strict = rows.strict
    # Writeable arrays would cause another compilation.
    scores, grades, offsets = freeze(rows.scores), freeze(rows.grades), freeze(rows.offsets)
    long = np.flatnonzero(np.diff(offsets) >= LONG) if k > SELECT else np.empty(0, np.int64)
    presorted = np.empty(len(scores) if long.size else 0, np.int64)
    n_queries = len(offsets) - 1
    values, second, tied = np.empty(n_queries), np.empty(n_queries), np.empty(n_queries, dtype=np.bool_)

    def body(first: int, last: int) -> None:
        for q in long[np.searchsorted(long, first) : np.searchsorted(long, last)]:
            query_rows = slice(offsets[q], offsets[q + 1])
            presorted[query_rows] = np.argsort(-scores[query_rows], kind="stable" if strict else "quicksort")
        chunk(scores, grades, offsets, presorted, first, last, k, values, second, tied, strict, *parameters)

    if n_queries:
        run_chunks(offsets, body)
    return values, second, tied


HIGHEST_EXP2 = 1000  # 2^grade, summed over any list that fits in memory, stays below the largest double
HIGHEST_GAIN = 2.0**HIGHEST_EXP2
MOST_PLACES = 2**53  # a cutoff beyond any list


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Input of a kernel: the rows of each query adjacent.

    `highest` is the highest grade of the whole data; with `strict`, tied rows stand in row order.
    """

    grades: FloatArray
    scores: FloatArray
    offsets: IntArray
    highest: float
    strict: bool


class KernelValues(NamedTuple):
    """Output of a kernel: value of each query, whether it is defined, and whether tied rows matter to it."""

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
        if self.k is not None:
            object.__setattr__(self, "k", check_whole("k", self.k, 1, MOST_PLACES, also="None"))

    def read_labels(self, y: ArrayLike) -> Grades:
        """Check grades."""
        if isinstance(y, Grades):
            return y
        if type(y).__name__ in ("Preferences", "Permutations"):
            raise LabelError(f"{self.name} reads grades, not {type(y).__name__}", "pass one grade per row.")
        return Grades.passing(y)

    def evaluate(
        self, labels: Grades, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Run the kernel, and again in the order of the tie rule on queries in which ties matter."""
        usable, rule = self.usable(labels), self.convention.ties
        grades, ordered = queries.gather(usable.values), queries.gather(scores)
        rows = KernelRows(grades, ordered, queries.offsets, usable.highest, strict=rule == "input")
        measured = self.measure(rows)
        if rule not in ("expected", "input") and measured.tied.any():
            measured.values[measured.tied] = self.break_ties(rows, measured.tied, queries, docid)
        return measured.values, measured.defined

    def break_ties(
        self, rows: KernelRows, tied: BoolArray, queries: Queries, docid: NDArray[Any] | None
    ) -> FloatArray:
        """Values of the tied queries, with tied rows in the order of the convention."""
        places = np.flatnonzero(np.repeat(tied, queries.sizes))
        some = Queries.from_sizes(queries.sizes[tied])
        key = self.tie_key(queries.order[places], docid, rows.grades[places])
        order = places[np.lexsort((key, some.codes))]
        ordered = KernelRows(rows.grades[order], rows.scores[order], some.offsets, rows.highest, strict=True)
        return self.measure(ordered).values

    def relevance(self, labels: Grades, queries: Queries) -> FloatArray:
        """1 for a relevant row, 0 for another, by sorted row."""
        return (queries.gather(labels.values) >= self.convention.relevant_from).astype(np.float64)

    def usable(self, labels: Grades) -> Grades:
        """Convert labels to the grades that the kernel reads, e.g. by a user's gain function."""
        return labels

    def measure(self, rows: KernelRows) -> KernelValues:
        """Run the metric's kernel."""
        raise NotImplementedError


def refuse_grades_above(labels: Grades, highest: float, problem: str, hint: str) -> None:
    """Raise GradeError for the first grade, in the caller's order, above what the metric can use."""
    if labels.highest > highest:
        row = int(np.argmax(labels.values > highest))
        raise GradeError(float(labels.values[row]), f"row {row}", problem, hint).at(row)


def divide_by_query(values: FloatArray, divisors: FloatArray, queries: Queries) -> FloatArray:
    """Divide the rows of each query by the divisor of the query; 0 where that is 0.

    >>> divide_by_query(np.array([1.0, 2.0, 5.0]), np.array([4.0, 0.0]), Queries.from_sizes([2, 1])).tolist()
    [0.25, 0.5, 0.0]
    """
    scale: FloatArray = np.divide(1.0, divisors, out=np.zeros_like(divisors), where=divisors > 0)
    return values * np.repeat(scale, queries.sizes)
