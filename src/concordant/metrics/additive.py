"""Additive metrics: a sum over places of gain times discount. DCG, NDCG, precision, expected rank utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import check_lengths, check_nonnegative, check_number
from concordant.data.labels import Grades
from concordant.data.queries import Queries
from concordant.exceptions import ParameterError
from concordant.metrics.convention import ABOVE, BINARY, EXP2, LINEAR, gains
from concordant.metrics.graded import (
    HIGHEST_EXP2,
    HIGHEST_GAIN,
    GradedMetric,
    KernelRows,
    KernelValues,
    cutoff,
    divide_by_query,
    refuse_grades_above,
    run_metric,
)
from concordant.metrics.metric import GRADED, TWO_GRADES
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray, OrderLoss


@dataclass(frozen=True, repr=False)
class Additive(GradedMetric):
    """Sum over the first k places of gain(grade) times discount(place), which subclasses define."""

    def gain(self) -> tuple[int, float]:
        """Return the kind of gain and its parameter."""
        return (EXP2 if self.convention.gain == "exp2" else LINEAR), 0.0

    def discounts(self, places: int) -> FloatArray:
        """Discounts of the first places: 1/log2(1 + place), MSLR's 1, 1, 1/log2(place), or a user's."""
        rule, numbers = self.convention.discount, np.arange(1, places + 1)
        if callable(rule):
            return _check_discounts(rule(numbers), places)
        discounts: FloatArray = 1.0 / np.log2(np.maximum(numbers + (rule == "log2"), 2))
        return discounts

    def usable(self, labels: Grades) -> Grades:
        """Apply a user's gain function; raise for grades whose 2^grade overflows."""
        return usable_gains(self, labels)

    def sums(self, rows: KernelRows) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Value per query, its best value (normalised metrics) or highest gain, and whether ties matter."""
        from concordant.metrics.value_kernels import additive_chunk

        k = cutoff(self.k, rows.offsets)
        discounts = self.discounts(k)
        cumulated = np.r_[0.0, discounts.cumsum()]
        return run_metric(additive_chunk, rows, k, *self.gain(), discounts, cumulated, self.normalised)

    def measure(self, rows: KernelRows) -> KernelValues:
        """Return the sums, undefined for queries in which no item has a gain."""
        values, highest, tied = self.sums(rows)
        return KernelValues(values, highest > 0, tied)

    def standardized_on(self, space: str) -> bool:
        """Return True: the value is linear in the gains."""
        del space
        return True

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Return the gains: the metric is linear in them."""
        return gains(*self.gain(), queries.gather(self.usable(labels).values))

    def linear_discounts(self, n_items: int, space: str) -> FloatArray | None:
        """Return the discounts of the first k places; 0 beyond."""
        del space
        discounts, k = np.zeros(n_items), min(self.k or n_items, n_items)
        discounts[:k] = self.discounts(k)
        return discounts

    def itemwise_targets(self, space: str) -> bool:
        """Return True: the gain of an item depends on its label alone."""
        del space
        return True

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Return the loss of each order, linear in the places; 0 beyond the cutoff."""
        queries = Queries.from_sizes(sizes)
        discounts, k = np.zeros(cutoff(None, queries.offsets)), cutoff(self.k, queries.offsets)
        discounts[:k] = self.discounts(k)
        return OrderLoss("additive", self.unit_gains(self.read_labels(y), queries), discounts)

    def unit_gains(self, labels: Grades, queries: Queries) -> FloatArray:
        """Gain by sorted row, scaled such that the metric is the sum of gain times discount."""
        return self.standardize(labels, queries)


def _check_discounts(user_discounts: ArrayLike, places: int) -> FloatArray:
    """Check that discounts are >= 0 and never rise: else the best list is not the sorted list."""
    discounts = check_nonnegative(user_discounts, "discount", "place")
    check_lengths("the list of places", places, discount=discounts)
    if (np.diff(discounts) > 0).any():
        raise ParameterError("discount", discounts[:5].tolist(), "non-increasing from the first place on")
    return discounts


def usable_gains(metric: GradedMetric, labels: Grades) -> Grades:
    """Apply a user's gain function; raise for grades whose gains overflow when they are added up."""
    if metric.convention.gain == "exp2":
        hint = "grades are small integers; for raw counts use gain='linear'."
        refuse_grades_above(labels, HIGHEST_EXP2, "makes 2^grade overflow", hint)
        return labels
    if callable(metric.convention.gain):
        user_gains = Grades.passing(metric.convention.gain(labels.values))
        check_lengths("y", len(labels), gain=user_gains)
        labels = user_gains
    refuse_grades_above(labels, HIGHEST_GAIN, "overflows when added up", "rescale the grades.")
    return labels


@dataclass(frozen=True, repr=False)
class DCG(Additive):
    """Discounted cumulative gain: sum over the first k places of (2^y - 1)/log2(1 + place).

    Gain and discount follow the convention. Tied scores: a block shares its mean discount. A query
    without gain is skipped by default, though its DCG is 0.

    References
    ----------
    Järvelin and Kekäläinen (2002); McSherry and Najork (2008) for ties.

    Examples
    --------
    >>> DCG(k=2)([1, 0, 2], [0.3, 0.1, 0.2])
    dcg@2 = 2.89279 over 1 of 1 queries
    """

    name: ClassVar[str] = "dcg"
    bounded: ClassVar[bool] = False
    label_spaces: ClassVar[tuple[str, ...]] = GRADED
    convention_fields: ClassVar[tuple[str, ...]] = ("gain", "discount", "ties", "empty")


@dataclass(frozen=True, repr=False)
class NDCG(DCG):
    """DCG divided by the best DCG of the query.

    Examples
    --------
    >>> y, scores = [3, 0, 1, 2, 0], [0.1, 0.9, 0.5, 0.5, 0.2]
    >>> NDCG(k=3)(y, scores)
    ndcg@3 = 0.240808 over 1 of 1 queries
    """

    name: ClassVar[str] = "ndcg"
    bounded: ClassVar[bool] = True
    convention_fields: ClassVar[tuple[str, ...]] = ("gain", "discount", "ties", "empty", "short_list")
    normalised: ClassVar[bool] = True

    def measure(self, rows: KernelRows) -> KernelValues:
        """DCG over its best value; undefined where that is 0."""
        sums, best, tied = self.sums(rows)
        defined = best > 0
        values = np.divide(sums, best, out=np.zeros_like(sums), where=defined)
        if self.convention.short_list == "zero" and self.k is not None:
            values[np.diff(rows.offsets) < self.k] = 0.0
        return KernelValues(values, defined, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Gain over the best DCG of the query; 0 where that is 0."""
        values = super().standardize(labels, queries)
        # Plain numpy, unlike the kernels: torch losses ask for targets where numba is absent.
        ideal = values[np.lexsort((-values, queries.codes))]
        best = segment_sum(ideal * self.place_discounts(queries), queries.offsets)
        return divide_by_query(values, best, queries)

    def linear_discounts(self, n_items: int, space: str) -> FloatArray | None:
        """Return the discounts; 0 for lists that the convention finds too short."""
        if self.convention.short_list == "zero" and n_items < (self.k or 0):
            return np.zeros(n_items)
        return super().linear_discounts(n_items, space)

    def itemwise_targets(self, space: str) -> bool:
        """Return True if the best DCG is the same for all labels with a gain: at place 1, of two grades."""
        return self.k == 1 and space == "binary" and not callable(self.convention.gain)

    def unit_gains(self, labels: Grades, queries: Queries) -> FloatArray:
        """Gain over the best DCG; 0 for short lists if the convention gives them 0 whatever their order."""
        values = self.standardize(labels, queries)
        if self.convention.short_list == "zero" and self.k is not None:
            values[np.repeat(queries.sizes < self.k, queries.sizes)] = 0.0
        return values

    def place_discounts(self, queries: Queries) -> FloatArray:
        """Discount of each sorted row, taken as a place in its query; 0 beyond the cutoff."""
        places = np.arange(queries.n_rows) - np.repeat(queries.offsets[:-1], queries.sizes)
        k = cutoff(self.k, queries.offsets)
        return np.where(places < k, self.discounts(k)[np.minimum(places, k - 1)], 0.0)


@dataclass(frozen=True, repr=False)
class Precision(Additive):
    """Share of relevant items among the first k; `wta` (winner takes all) is `p@1`.

    Examples
    --------
    >>> Precision(k=2)([1, 0, 1], [0.9, 0.8, 0.1])
    p@2 = 0.5 over 1 of 1 queries
    """

    name: ClassVar[str] = "p"
    label_spaces: ClassVar[tuple[str, ...]] = TWO_GRADES
    convention_fields: ClassVar[tuple[str, ...]] = ("ties", "empty", "precision_denominator", "relevant_from")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise ParameterError.because("Precision needs a cutoff k. Write p@5, for example.")

    def gain(self) -> tuple[int, float]:
        """Return the gain: 1 for a relevant item."""
        return BINARY, self.convention.relevant_from

    def usable(self, labels: Grades) -> Grades:
        """Return the labels unchanged: any grade is either relevant or not."""
        return labels

    def discounts(self, places: int) -> FloatArray:
        """Return 1 for every place."""
        return np.ones(places)

    def measure(self, rows: KernelRows) -> KernelValues:
        """Number of relevant items in the first k places, over k or over min(k, n)."""
        n_relevant, defined, tied = super().measure(rows)
        return KernelValues(n_relevant / self.places(np.diff(rows.offsets)), defined, tied)

    def places(self, sizes: IntArray) -> FloatArray:
        """Return the divisors for lists of these sizes."""
        largest = float(self.k or 1)
        short = self.convention.precision_denominator == "min"
        return np.clip(sizes, 1.0, largest) if short else np.full(len(sizes), largest)

    def linear_discounts(self, n_items: int, space: str) -> FloatArray | None:
        """Return 1 over the divisor for each of the first k places."""
        del space
        shown = np.arange(n_items) < (self.k or 1)
        return np.asarray(shown / self.places(np.array([n_items]))[0])

    def unit_gains(self, labels: Grades, queries: Queries) -> FloatArray:
        """Relevance over the divisor of the list."""
        return divide_by_query(self.standardize(labels, queries), self.places(queries.sizes), queries)


@dataclass(frozen=True, repr=False)
class ERU(Additive):
    """Expected rank utility: sum of max(y - v, 0) * 2^((1 - place)/(w - 1)).

    Parameters
    ----------
    v
        Neutral grade: at or below it an item is worth nothing.
    w
        Half-life, > 1: at place w an item is worth half.

    References
    ----------
    Breese, Heckerman and Kadie (1998).

    Examples
    --------
    >>> ERU(v=1, w=2)([3, 0, 2], [0.9, 0.5, 0.1])
    eru(v=1,w=2) = 2.25 over 1 of 1 queries
    """

    v: float = 0.0
    w: float = 5.0
    name: ClassVar[str] = "eru"
    bounded: ClassVar[bool] = False
    label_spaces: ClassVar[tuple[str, ...]] = GRADED
    convention_fields: ClassVar[tuple[str, ...]] = ("ties", "empty")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "v", check_number("v", self.v))
        object.__setattr__(self, "w", check_number("w", self.w, above=1.0))

    def gain(self) -> tuple[int, float]:
        """Return the gain: the distance of the grade above the neutral grade."""
        return ABOVE, float(self.v)

    def usable(self, labels: Grades) -> Grades:
        """Raise for grades that overflow when they are added up."""
        refuse_grades_above(labels, HIGHEST_GAIN, "overflows when added up", "rescale the grades.")
        return labels

    def discounts(self, places: int) -> FloatArray:
        """Discounts that halve every w - 1 places."""
        return np.exp2(-np.arange(places) / (self.w - 1.0))
