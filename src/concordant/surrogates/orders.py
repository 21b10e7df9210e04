"""The listwise hinge: orders need a margin, the larger the more they lose by a metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from concordant._numbers import as_double
from concordant._segments import segment_sum
from concordant.exceptions import LabelError, ParameterError
from concordant.supervision.columns import frozen
from concordant.surrogates.pairwise import level_codes
from concordant.surrogates.position import ShiftedHinge
from concordant.surrogates.spaces import Spaces
from concordant.surrogates.surrogate import Loss, Surrogate, check_choice, repeat
from concordant.types import FloatArray, IntArray, OrderLoss, OrderMetric

__all__ = ["ListwiseHinge"]

MOST_ITEMS = 8
MOST_ORDERS = math.factorial(MOST_ITEMS)  # that are added up
LOG_MOST_ORDERS = math.log(MOST_ORDERS + 0.5)


class Labels(NamedTuple):
    """What kernels read: weights and best sums by query; gains, label numbers and gold by row."""

    weights: FloatArray
    gains: FloatArray
    codes: IntArray
    gold: FloatArray
    best: FloatArray
    kind: int
    discounts: FloatArray


class ListwiseLoss(Loss):
    """Listwise hinge of given labels, put together by a mode."""

    def __init__(self, offsets: IntArray, labels: Labels, mode: str, temperature: float) -> None:
        super().__init__(offsets)
        self.labels, self.mode = labels, mode
        self.spaces = Spaces(int(np.diff(offsets).max(initial=1)))
        self.temperature = float(temperature) if mode == "softmax" else 0.0
        self.harmonic = frozen(np.r_[0.0, np.cumsum(1.0 / np.arange(1, self.spaces.longest + 2))])

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """By search for the worst order, or by adding up all."""
        offsets = self.offsets
        if self.mode != "max":
            from concordant.surrogates.kernels.enumerated import enumerated_chunk

            how = self.temperature, self.mode == "sum_interleavings"
            enumerated_chunk(scores, *self.labels, *how, offsets, first, last, values, grad)
            return
        from concordant.surrogates.kernels.orders import worst_chunk

        with self.spaces.lent() as space:
            worst_chunk(scores, *self.labels, self.harmonic, offsets, first, last, space, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Of the soft-max; the others are straight between their corners."""
        if self.mode != "softmax":
            product[self.offsets[first] : self.offsets[last]] = 0.0
            return
        from concordant.surrogates.kernels.enumerated import enumerated_product_chunk

        how = self.temperature, False, vector, self.offsets
        enumerated_product_chunk(scores, *self.labels, *how, first, last, product)


def read(form: OrderLoss, codes: IntArray, offsets: IntArray, weights: FloatArray) -> Labels:
    """Put what kernels read together; frozen, since writeable arrays would be compiled for once more."""
    from concordant.surrogates.kernels.orders import ADDITIVE, PAIRS, PRECISION

    kind = {"additive": ADDITIVE, "precision": PRECISION, "pairs": PAIRS}[form.kind]
    best = best_sums(form, offsets) if kind == ADDITIVE else np.zeros(len(weights))
    gold = gold_coefficients(codes, offsets)
    per_query, per_row = (frozen(weights), frozen(best)), (frozen(form.gains), frozen(codes), frozen(gold))
    return Labels(per_query[0], *per_row, per_query[1], kind, frozen(form.discounts))


def best_sums(form: OrderLoss, offsets: IntArray) -> FloatArray:
    """Give the best sum of gains * discounts of each query."""
    queries = repeat(np.arange(len(offsets) - 1), offsets)
    ideal = form.gains[np.lexsort((-form.gains, queries))]
    return segment_sum(ideal * form.discounts[np.arange(len(ideal)) - repeat(offsets[:-1], offsets)], offsets)


def gold_coefficients(codes: IntArray, offsets: IntArray) -> FloatArray:
    """Items of lower labels, less items of higher labels, of each row's query."""
    queries = repeat(np.arange(len(offsets) - 1), offsets)
    order = np.lexsort((codes, queries))
    edges = np.diff(queries[order], prepend=-1) + np.abs(np.diff(codes[order], prepend=-1)) > 0
    starts = np.flatnonzero(edges)
    ends = np.r_[starts[1:], len(order)]
    runs = np.cumsum(edges) - 1
    coefficients = np.empty(len(order))
    lower = starts[runs] - offsets[:-1][queries[order]]
    coefficients[order] = lower - (offsets[1:][queries[order]] - ends[runs])
    return coefficients


@dataclass(frozen=True)
class ListwiseHinge(Surrogate):
    """Listwise hinge: what orders lose by a metric, as far as their score does not fall behind the labels'.

    With L(order) what the order loses against the best one, F(order) = 2/(n(n - 1)) times the sum, over the
    pairs of different labels, of the score of the one above less that of the one below, and
    dF = F(an order that the labels allow) - F(order):

    - `mode="max"`: the largest L - dF over all orders (a structural SVM; SVMmap for AP). The order is found
      by insertion for AP, O(n log n); by sorting for AUC and PD; by linear assignment for additive metrics.
    - `mode="sum"`: the sum of (L - dF)_+ over the orders that the labels do not allow, as published. Lists of
      at most 8 items.
    - `mode="softmax"`: T log(1 + sum of exp((L - dF)/T) over the same orders). Lists of at most 8 items.
    - `mode="sum_interleavings"`: the sum over the ways to mix two labels, each label sorted by score. At most
      40,320 ways in a query.

    Its targets are grades, which the metric reads. A list counts by the mean weight of its rows.
    Each mode dominates the metric's loss of sorting by score. No mode is consistent.

    Parameters
    ----------
    metric
        A `Metric`: ap, ndcg, dcg, eru, p@k, auc, wpd, or pd on two grades. `concordant.listwise_hinge` takes
        its name, too.
    mode
        How orders are put together.
    temperature
        T of the soft-max, > 0.

    References
    ----------
    Riezler and De Bona (2009), Definition 3; Yue et al. (2007); Chakrabarti et al. (2008).

    Examples
    --------
    >>> from concordant import metric
    >>> values, grad = ListwiseHinge(metric("ap"))([0.0, 0.0], [1, 0])
    >>> values.tolist(), grad.tolist()
    ([0.5], [-2.0, 2.0])
    """

    metric: OrderMetric | None = None
    mode: str = "max"
    temperature: float = 1.0
    name: ClassVar[str] = "listwise_hinge"
    reads: ClassVar[str] = "grades"

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, ("max", "softmax", "sum", "sum_interleavings"))
        if not hasattr(self.metric, "order_loss"):
            raise ParameterError("metric", self.metric, "a Metric; concordant.listwise_hinge takes names")
        if isinstance(self.temperature, bool) or not 0.0 < as_double(self.temperature) < math.inf:
            raise ParameterError("temperature", self.temperature, "a finite number > 0")

    @property
    def smooth(self) -> bool:
        """The soft-max is."""
        return self.mode == "softmax"

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Let the metric read the labels."""
        form = self.form(targets, offsets)
        codes = level_codes(form.gains, offsets)
        self.check_lists(codes, offsets)
        sizes = np.maximum(np.diff(offsets), 1).astype(np.float64)
        shares = segment_sum(weights, offsets) / sizes
        if form.kind == "pairs" and self.mode == "max":
            # Inverting a pair adds the difference of its gains less rate * that of its scores, whatever else
            # is inverted; one order inverts all pairs for which that is positive.
            rate = repeat(4.0 / np.maximum(sizes * (sizes - 1.0), 1.0), offsets)
            return ShiftedHinge(offsets, rate * repeat(shares, offsets), codes, form.gains / rate)
        return ListwiseLoss(offsets, read(form, codes, offsets, shares), self.mode, self.temperature)

    def form(self, targets: FloatArray, offsets: IntArray) -> OrderLoss:
        """Let the metric say what orders lose."""
        metric: Any = self.metric
        nothing = OrderLoss("precision", np.empty(0), np.empty(0))
        form: OrderLoss = metric.order_loss(targets, np.diff(offsets)) if len(targets) else nothing
        return form

    def levels(self, targets: FloatArray, offsets: IntArray) -> FloatArray:
        """Gains, as the metric reads the grades."""
        return self.form(targets, offsets).gains

    def check_lists(self, codes: IntArray, offsets: IntArray) -> None:
        """Refuse lists with too many orders to add up."""
        sizes = np.diff(offsets)
        if self.mode in ("softmax", "sum") and (longest := int(sizes.max(initial=0))) > MOST_ITEMS:
            problem = f"mode={self.mode!r} adds up all orders of a list, and one has {longest} items"
            raise LabelError(problem, f"lists of at most {MOST_ITEMS} items, or mode='max'.")
        if self.mode == "sum_interleavings":
            if codes.max(initial=0) > 1:
                problem = f"mode={self.mode!r} mixes two labels, and a list has more"
                raise LabelError(problem, "use mode='max'.")
            ones = segment_sum(codes.astype(np.float64), offsets)
            lists = zip(sizes.tolist(), ones.tolist(), strict=True)
            if any(log_choices(n, k) > LOG_MOST_ORDERS for n, k in lists):
                problem = f"mode={self.mode!r}: a list has more than {MOST_ORDERS} interleavings"
                raise LabelError(problem, f"at most {MOST_ORDERS} are added up; use mode='max'.")


def log_choices(n: float, k: float) -> float:
    """Logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
