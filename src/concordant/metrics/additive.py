"""Additive metrics: a sum over places of gain times discount. DCG, NDCG, precision, expected rank utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from concordant._segments import segment_sum
from concordant.exceptions import ParameterError
from concordant.metrics.driver import cutoff, run_metric
from concordant.metrics.gains import ABOVE, BINARY, EXP2, LINEAR, gains
from concordant.metrics.graded import (
    HIGHEST_EXP2,
    HIGHEST_GAIN,
    GradedMetric,
    Measured,
    Rows,
    divided,
    refuse_grades_above,
)
from concordant.metrics.metric import check_number
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.labels import Grades
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray, OrderLoss

__all__ = ["DCG", "ERU", "NDCG", "Additive", "Precision"]


@dataclass(frozen=True, repr=False)
class Additive(GradedMetric):
    """Sum over the first k places of gain(grade) times discount(place); a subclass says which."""

    def gain(self) -> tuple[int, float]:
        """Kind of gain and its parameter."""
        return (EXP2 if self.convention.gain == "exp2" else LINEAR), 0.0

    def discounts(self, places: int) -> FloatArray:
        """Discount of the first places: 1/log2(1 + place), MSLR's 1, 1, 1/log2(place), or a user's."""
        rule, numbers = self.convention.discount, np.arange(1, places + 1)
        if callable(rule):
            return check_discounts(rule(numbers), places)
        discounts: FloatArray = 1.0 / np.log2(np.maximum(numbers + (rule == "log2"), 2))
        return discounts

    def usable(self, labels: Grades) -> Grades:
        """Apply a user's gain; refuse grades whose 2^grade overflows."""
        return usable_gains(self, labels)

    def sums(self, rows: Rows) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Value of each query, its best value (normalised metrics) or highest gain (others), and ties."""
        from concordant.metrics.kernels.additive import additive_chunk

        k = cutoff(self.k, rows.offsets)
        discounts = self.discounts(k)
        cumulated = np.r_[0.0, discounts.cumsum()]
        return run_metric(additive_chunk, rows, k, *self.gain(), discounts, cumulated, self.normalised)

    def measure(self, rows: Rows) -> Measured:
        """Sums as they are; undefined where no item has a gain."""
        values, highest, tied = self.sums(rows)
        return Measured(values, highest > 0, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """The gains themselves: the metric is linear in them."""
        return gains(*self.gain(), queries.gather(self.usable(labels).values))

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Linear in the places; 0 beyond the cutoff."""
        queries = Queries.from_sizes(sizes)
        discounts, k = np.zeros(cutoff(None, queries.offsets)), cutoff(self.k, queries.offsets)
        discounts[:k] = self.discounts(k)
        return OrderLoss("additive", self.unit_gains(self.read_labels(y), queries), discounts)

    def unit_gains(self, labels: Grades, queries: Queries) -> FloatArray:
        """Gain by sorted row, such that the metric is the sum of gain times discount."""
        return self.standardize(labels, queries)


def check_discounts(given: ArrayLike, places: int) -> FloatArray:
    """One discount >= 0 per place, none above the one before: else the best list is not the sorted one."""
    discounts = check_nonnegative(given, "discount", "place")
    check_lengths("the list of places", places, discount=discounts)
    if (np.diff(discounts) > 0).any():
        raise ParameterError("discount", discounts[:5].tolist(), "not rising with the place")
    return discounts


def usable_gains(metric: GradedMetric, labels: Grades) -> Grades:
    """Apply a user's gain function; refuse grades whose gains overflow when they are added up."""
    if metric.convention.gain == "exp2":
        hint = "grades are small whole numbers; for raw counts use gain='linear'."
        refuse_grades_above(labels, HIGHEST_EXP2, "makes 2^grade overflow", hint)
        return labels
    if callable(metric.convention.gain):
        given = Grades.passing(metric.convention.gain(labels.values))
        check_lengths("y", len(labels), gain=given)
        labels = given
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
    normalised: ClassVar[bool] = True

    def measure(self, rows: Rows) -> Measured:
        """DCG over its best value; undefined where that is 0."""
        sums, best, tied = self.sums(rows)
        defined = best > 0
        values = np.divide(sums, best, out=np.zeros_like(sums), where=defined)
        if self.convention.short_list == "zero" and self.k is not None:
            values[np.diff(rows.offsets) < self.k] = 0.0
        return Measured(values, defined, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Gain over the best DCG of the query; 0 where that is 0."""
        values = super().standardize(labels, queries)
        # Plain numpy, unlike the kernels: torch losses ask for targets where numba is absent.
        ideal = values[np.lexsort((-values, queries.codes))]
        best = segment_sum(ideal * self.place_discounts(queries), queries.offsets)
        return divided(values, best, queries)

    def unit_gains(self, labels: Grades, queries: Queries) -> FloatArray:
        """Gain over the best DCG; nothing where the convention gives short lists 0 whatever their order."""
        values = self.standardize(labels, queries)
        if self.convention.short_list == "zero" and self.k is not None:
            values[np.repeat(queries.sizes < self.k, queries.sizes)] = 0.0
        return values

    def place_discounts(self, queries: Queries) -> FloatArray:
        """Discount of each sorted row, read as a place in its query; 0 beyond the cutoff."""
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise ParameterError("k", None, "given for precision: write p@5")

    def gain(self) -> tuple[int, float]:
        """1 for a relevant item."""
        return BINARY, self.convention.relevant_from

    def usable(self, labels: Grades) -> Grades:
        """Any grade: it counts as relevant or not."""
        return labels

    def discounts(self, places: int) -> FloatArray:
        """Every place counts the same."""
        return np.ones(places)

    def measure(self, rows: Rows) -> Measured:
        """Relevant items found, over k or over min(k, n)."""
        found, defined, tied = super().measure(rows)
        return Measured(found / self.places(np.diff(rows.offsets)), defined, tied)

    def places(self, sizes: IntArray) -> FloatArray:
        """Give what lists of these sizes divide by."""
        most = float(self.k or 1)
        short = self.convention.precision_denominator == "min"
        return np.clip(sizes, 1.0, most) if short else np.full(len(sizes), most)

    def unit_gains(self, labels: Grades, queries: Queries) -> FloatArray:
        """Relevance over what the list divides by."""
        return divided(self.standardize(labels, queries), self.places(queries.sizes), queries)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "v", check_number("v", self.v))
        object.__setattr__(self, "w", check_number("w", self.w))
        if not self.w > 1:
            raise ParameterError("w", self.w, "a half-life > 1")

    def gain(self) -> tuple[int, float]:
        """How far the grade lies above the neutral one."""
        return ABOVE, float(self.v)

    def usable(self, labels: Grades) -> Grades:
        """Refuse grades that overflow when they are added up."""
        refuse_grades_above(labels, HIGHEST_GAIN, "overflows when added up", "rescale the grades.")
        return labels

    def discounts(self, places: int) -> FloatArray:
        """Halves every w - 1 places."""
        return np.exp2(-np.arange(places) / (self.w - 1.0))
