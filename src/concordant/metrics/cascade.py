"""Metrics of a user who reads from the top and stops: average precision, reciprocal rank, ERR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant.data.labels import Grades
from concordant.data.queries import Queries
from concordant.metrics.convention import BINARY, EXP2, LINEAR, gains
from concordant.metrics.graded import (
    HIGHEST_EXP2,
    GradedMetric,
    KernelRows,
    KernelValues,
    cutoff,
    divide_by_query,
    refuse_grades_above,
    run_metric,
)
from concordant.metrics.metric import Family, Standardization
from concordant.types import ArrayLike, FloatArray, IntArray, OrderLoss

REFUTED = "the labels (1,1,0,0) and (0,0,1,1) refute every one (as in Buffoni et al. 2011, Theorem 3)"


@dataclass(frozen=True, repr=False)
class AP(GradedMetric):
    """Average precision: mean over the relevant items of (relevant items at or above it)/place.

    An item below place k, or not in the ranking, contributes 0. The convention sets the divisor of AP@k.

    References
    ----------
    McSherry and Najork (2008) for the expectation under tied scores.

    Examples
    --------
    >>> AP()([1, 0, 1], [0.9, 0.8, 0.1])
    ap = 0.833333 over 1 of 1 queries
    """

    name: ClassVar[str] = "ap"
    by_relevance: ClassVar[bool] = True
    normalised: ClassVar[bool] = True

    @property
    def empty_rule(self) -> str | float:
        """The convention's rule for AP on queries without a relevant item; else its general rule."""
        return self.convention.empty if self.convention.empty_ap is None else self.convention.empty_ap

    def measure(self, rows: KernelRows) -> KernelValues:
        """Precision sum over the convention's denominator."""
        from concordant.metrics.value_kernels import average_precision_chunk

        rule = self.convention.ap_denominator
        k = cutoff(None if rule == "uncut" else self.k, rows.offsets)
        parameters = (float(self.convention.relevant_from), rule == "found")
        sums, relevant, tied = run_metric(average_precision_chunk, rows, k, *parameters)
        divisors = {"min": np.minimum(relevant, k), "found": np.ones(1)}.get(rule, relevant)
        return KernelValues(sums / np.maximum(divisors, 1.0), relevant > 0, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Return the shares for AP@1, which is linear in them; else no standardization exists."""
        if self.k == 1 and self.convention.ap_denominator != "uncut":
            return self.shares(labels, queries)
        instead = 'use the exact pair surrogate, which scores pairs of items: PairRanker("ap").'
        raise self.unstandardized(labels, REFUTED, instead)

    def itemwise_targets(self, space: str) -> bool:
        """Return True where AP is p@1."""
        del space
        return self.k == 1 and self.convention.ap_denominator in ("min", "found")

    def conditional(self, labels: Any, f: Family | None = None) -> Mapping[str, Standardization]:
        """Return the shares under P_reinforce, unless AP divides by what the ranking itself finds."""
        del labels, f
        divides_by_found = self.convention.ap_denominator == "found" and self.k is not None
        return {} if divides_by_found else {"P_reinforce": self.shares}

    def shares(self, labels: Grades, queries: Queries) -> FloatArray:
        """Relevance over what AP divides by, which is y_i / sum(y) without a cutoff; 0 where that is 0."""
        relevant = self.relevance(labels, queries)
        divisors = segment_sum(relevant, queries.offsets)
        if self.k is not None and self.convention.ap_denominator in ("min", "found"):
            divisors = np.minimum(divisors, self.k)
        return divide_by_query(relevant, divisors, queries)

    @property
    def share_divisor(self) -> str:
        """Divisor of the shares, in words of relevance y in {0, 1}."""
        capped = self.k is not None and self.convention.ap_denominator in ("min", "found")
        return f"min(sum(y), {self.k})" if capped else "sum(y)"

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """1 - AP of the whole list; for AP@k no fast search is known."""
        if self.k is not None:
            return super().order_loss(y, sizes)
        relevant = self.relevance(self.read_labels(y), Queries.from_sizes(sizes))
        return OrderLoss("precision", relevant, np.empty(0))

    def stand_in(self, labels: Grades, queries: Queries) -> FloatArray:
        """Return the shares."""
        return self.shares(labels, queries)


@dataclass(frozen=True, repr=False)
class Cascade(GradedMetric):
    """Mean of 1/place over the places where the user stops, within the first k places."""

    def stopping(self, highest: float) -> tuple[int, float, float]:
        """Return kind of gain, its parameter, and the scale that makes it a probability."""
        raise NotImplementedError

    def measure(self, rows: KernelRows) -> KernelValues:
        """Cascade value; undefined where no item can stop the user."""
        from concordant.metrics.value_kernels import cascade_chunk

        k = cutoff(self.k, rows.offsets)
        values, highest, tied = run_metric(cascade_chunk, rows, k, *self.stopping(rows.highest))
        return KernelValues(values, highest > 0, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Return stopping probabilities if only the first place counts; else no standardization exists."""
        if self.k == 1:
            return self.stand_in(labels, queries)
        raise self.unstandardized(labels, REFUTED, f"optimise ndcg or {self.name}@1, which have one.")

    def itemwise_targets(self, space: str) -> bool:
        """Return True where only the first place counts."""
        del space
        return self.k == 1

    def stand_in(self, labels: Grades, queries: Queries) -> FloatArray:
        """Probability of stopping at each row."""
        usable = self.usable(labels)
        kind, parameter, scale = self.stopping(usable.highest)
        return gains(kind, parameter, queries.gather(usable.values)) * scale


@dataclass(frozen=True, repr=False)
class RR(Cascade):
    """Reciprocal rank: 1/place of the first relevant item, 0 if it is below place k.

    Examples
    --------
    >>> RR()([0, 1, 1], [0.9, 0.8, 0.1])
    rr = 0.5 over 1 of 1 queries
    """

    name: ClassVar[str] = "rr"
    by_relevance: ClassVar[bool] = True

    def stopping(self, highest: float) -> tuple[int, float, float]:
        """Return the rule that the first relevant item stops the user."""
        del highest
        return BINARY, float(self.convention.relevant_from), 1.0


@dataclass(frozen=True, repr=False)
class ERR(Cascade):
    """Expected reciprocal rank: the user stops at grade y with probability (2^y - 1)/2^max_grade.

    Tied scores: the mean over orders of a block needs the elementary symmetric means of the probabilities
    of passing, by dynamic programming. A grade above the convention's `max_grade` (default 4) is an error.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan (2009).

    Examples
    --------
    >>> ERR()([4, 0, 1], [0.9, 0.8, 0.1])
    err = 0.938802 over 1 of 1 queries
    """

    name: ClassVar[str] = "err"

    @property
    def by_query(self) -> bool:
        """True if the highest grade is a parameter, not taken from all rows."""
        return self.convention.max_grade != "data"

    def usable(self, labels: Grades) -> Grades:
        """Raise for grades that give no probability."""
        highest = self.convention.max_grade
        if highest == "probability":
            hint = "this convention reads grades as probabilities."
            refuse_grades_above(labels, 1.0, "is no probability", hint)
            return labels
        refuse_grades_above(labels, HIGHEST_EXP2, "makes 2^grade overflow", "grades are small numbers.")
        if highest != "data":
            hint = "set max_grade in the convention: metric('err', convention='max_grade=...')."
            refuse_grades_above(labels, float(highest), f"is above max_grade={highest:g}", hint)
        return labels

    def stopping(self, highest: float) -> tuple[int, float, float]:
        """Return the scaled gain, or the grade itself."""
        rule = self.convention.max_grade
        if rule == "probability":
            return LINEAR, 0.0, 1.0
        return EXP2, 0.0, float(np.exp2(-(highest if rule == "data" else float(rule))))
