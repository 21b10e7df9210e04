"""Metric: a frozen value that turns labels and scores into one number per query, and their mean."""

from __future__ import annotations

import dataclasses
import math
import numbers
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from concordant.exceptions import (
    GradeError,
    LabelError,
    LengthMismatchError,
    NoStandardizationError,
    ParameterError,
)
from concordant.metrics.convention import PRESETS, Convention, written
from concordant.supervision.columns import check_ids, check_lengths, check_nonnegative, check_scores
from concordant.supervision.labels import Grades
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GradedMetric", "Measured", "Metric", "MetricValue", "Rows"]

HIGHEST_EXP2 = 1000  # 2^grade, summed over any list that fits in memory, stays below the largest double
HIGHEST_GAIN = 2.0**HIGHEST_EXP2
MOST_PLACES = 2**53  # a cutoff beyond any list


class MetricValue(float):
    """A float that also says over how many queries it is the mean, and how many were skipped.

    >>> value = MetricValue(0.5, name="ndcg@10", n_queries=4, n_skipped=1)
    >>> value + 1, value.n_skipped
    (1.5, 1)
    """

    __slots__ = ("n_queries", "n_skipped", "name")
    name: str
    n_queries: int
    n_skipped: int

    def __new__(cls, value: float, name: str = "", n_queries: int = 0, n_skipped: int = 0) -> Self:
        """Attach what the mean was taken over."""
        self = super().__new__(cls, value)
        self.name, self.n_queries, self.n_skipped = name, n_queries, n_skipped
        return self

    def __getnewargs__(self) -> tuple[float, str, int, int]:  # type: ignore[override]
        return float(self), self.name, self.n_queries, self.n_skipped

    def __repr__(self) -> str:
        counted = self.n_queries - self.n_skipped
        return f"{self.name} = {float(self):.6g} over {counted} of {self.n_queries} queries"

    def __str__(self) -> str:
        return float.__repr__(self)


@dataclass(frozen=True, repr=False)
class Metric:
    """What a ranking is worth.

    A metric is called with labels, scores (high is better) and query ids, in any row order::

        metric(y, scores, qid=qid)            # the mean over queries, as a MetricValue
        metric.per_query(y, scores, qid=qid)  # one number per query, ascending ids; NaN where skipped

    Parameters
    ----------
    convention
        What the name leaves open: ties, empty queries, gains (see `Convention`).
    """

    convention: Convention = field(default=PRESETS["concordant"], kw_only=True)

    name: ClassVar[str] = ""
    greater_is_better: ClassVar[bool] = True
    normalised: ClassVar[bool] = False  # divides by what is best: 0/0 on an empty query

    def __call__(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        *,
        qid: ArrayLike = None,
        weights: ArrayLike = None,
        docid: ArrayLike = None,
    ) -> MetricValue:
        """Mean over the queries on which the metric is defined.

        Parameters
        ----------
        y
            One grade per row; or `Preferences`, `Permutations` or outcomes in {-1, 0, 1}, as it reads.
        scores
            One score per row, high is better; -inf marks a row that is not in the ranking.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        weights
            One weight >= 0 per query, in ascending order of the ids; the mean divides by their sum over the
            queries that count.
        docid
            Document ids, for the tie rule `id_descending`.
        """
        return self.average(self.per_query(y, scores, qid=qid, docid=docid), weights)

    def per_query(
        self, y: ArrayLike, scores: ArrayLike, *, qid: ArrayLike = None, docid: ArrayLike = None
    ) -> FloatArray:
        """One value per query, in ascending order of the ids; NaN where the convention skips the query."""
        with naming_query(qid):
            labels = self.read_labels(y)
            checked = check_scores(scores, len(labels))
            queries = Queries.of(qid, len(labels))
            ids = None if docid is None else check_ids(docid, "docid")
            check_lengths("y", len(labels), docid=ids)
            values, defined = self.evaluate(labels, checked, queries, ids)
        return self.fill(values, defined)

    def read_labels(self, y: ArrayLike) -> Any:
        """Give the labels in the kind this metric reads."""
        raise NotImplementedError

    def evaluate(
        self, labels: Any, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """One value per query, and whether it is defined there."""
        raise NotImplementedError

    def targets(self, y: ArrayLike, *, qid: ArrayLike = None) -> FloatArray:
        """Give the standardization r(y), whose mean is an optimal score vector for every distribution of y.

        One number per row, in the caller's order; 0 on queries where the metric is undefined.
        """
        with naming_query(qid):
            labels = self.read_labels(y)
            queries = Queries.of(qid, len(labels))
            return queries.scatter(self.standardize(labels, queries))

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """Give r(y) by sorted row; metrics without one name the theorem."""
        del labels, queries
        hint = "name a metric of grades, such as ndcg."
        raise NoStandardizationError(str(self), "none is known for every distribution of its labels", hint)

    @property
    def empty_rule(self) -> str | float:
        """What a query without anything relevant gives."""
        return self.convention.empty

    def tie_key(
        self, rows: IntArray, docid: NDArray[Any] | None, grades: FloatArray | None = None
    ) -> FloatArray | IntArray:
        """Give the key by which tied rows (of the caller's numbers) stand, lowest first."""
        rule = self.convention.ties
        if rule == "random":
            return np.random.default_rng(self.convention.seed).random(len(rows))
        if rule == "id_descending":
            return -rows if docid is None else -np.unique(docid[rows], return_inverse=True)[1]
        if grades is None or rule == "input":
            return rows
        return -grades if rule == "best" else grades

    def fill(self, values: FloatArray, defined: BoolArray) -> FloatArray:
        """Apply the convention's rule to the queries on which the metric is undefined."""
        if defined.all():
            return values
        if isinstance(self.empty_rule, str):
            return np.where(defined, values, np.nan)
        return np.where(defined, values, self.empty_rule) if self.normalised else values

    def average(self, values: FloatArray, weights: ArrayLike = None) -> MetricValue:
        """Weighted mean of per-query values; skipped queries (NaN) are left out and counted."""
        counts = ~np.isnan(values) if self.empty_rule == "skip" else np.ones(len(values), dtype=bool)
        shares = np.ones(len(values)) if weights is None else check_weights(weights, len(values))
        used = shares[counts]
        mean = float("nan")
        if used.any():
            used = used / used.max()  # so that neither huge nor tiny weights leave the range of doubles
            mean = float(used @ values[counts] / used.sum())
        return MetricValue(mean, str(self), len(values), int((~counts).sum()))

    def arguments(self) -> dict[str, Any]:
        """Parameters that differ from their defaults, without the convention and the cutoff."""
        own = (f for f in dataclasses.fields(self) if f.name not in ("convention", "k"))
        return {f.name: getattr(self, f.name) for f in own if getattr(self, f.name) != f.default}

    def __str__(self) -> str:
        # Read back by `metric`: metric(str(m)) == m.
        values = ",".join(f"{name}={written(value)}" for name, value in self.arguments().items())
        cutoff = getattr(self, "k", None)
        base = self.name + (f"({values})" if values else "") + (f"@{cutoff}" if cutoff else "")
        return base if self.convention == PRESETS["concordant"] else f"{base}[{self.convention}]"

    def __repr__(self) -> str:
        return f"metric({str(self)!r})"


def check_number(name: str, value: object) -> float:
    """Give a parameter of a metric as a plain float; refuse what is no finite number."""
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise ParameterError(name, value, "a finite number")


def check_weights(weights: ArrayLike, n_queries: int) -> FloatArray:
    """One weight >= 0 per query, not all 0."""
    values = check_nonnegative(weights, "weights", "query")
    if len(values) != n_queries:
        raise LengthMismatchError("weights", len(values), n_queries, "the data, counted in queries,")
    if not values.any():
        raise ParameterError("weights", "all 0", "positive for at least one query")
    return values


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
