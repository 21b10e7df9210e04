"""Listwise hinge: orders need a margin that grows with their loss by a metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import check_choice, check_number, freeze
from concordant.exceptions import LabelError, ParameterError
from concordant.surrogates.pairwise import level_codes, sum_above, sum_below
from concordant.surrogates.position_hinge import ShiftedHinge
from concordant.surrogates.surrogate import Loss, Spaces, Surrogate, repeat
from concordant.types import FloatArray, IntArray, OrderLoss, OrderMetric

if TYPE_CHECKING:
    from concordant.surrogates.order_kernels import Labels

MOST_ITEMS = 8
MOST_ORDERS = math.factorial(MOST_ITEMS)  # most orders that are enumerated
LOG_MOST_ORDERS = math.log(MOST_ORDERS + 0.5)


class ListwiseLoss(Loss):
    """Listwise hinge with labels, aggregated over orders according to the mode."""

    def __init__(self, offsets: IntArray, labels: Labels, mode: str, temperature: float) -> None:
        super().__init__(offsets)
        self.labels, self.mode = labels, mode
        self.spaces = Spaces(int(np.diff(offsets).max(initial=1)))
        self.temperature = float(temperature) if mode == "softmax" else 0.0
        self.harmonic = freeze(np.r_[0.0, np.cumsum(1.0 / np.arange(1, self.spaces.longest + 2))])

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Find the worst order, or enumerate all."""
        if self.mode != "max":
            self._enumerate(scores, scores, first, last, values, grad, np.empty(len(scores)))
            return
        from concordant.surrogates.order_kernels import worst_chunk

        chunk = self.offsets, first, last
        with self.spaces.lend() as space:
            worst_chunk(scores, self.labels, self.harmonic, chunk, space, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Only for the soft-max; the other modes are piecewise linear."""
        if self.mode != "softmax":
            product[self.offsets[first] : self.offsets[last]] = 0.0
            return
        values, grad = np.empty(len(self.offsets) - 1), np.empty(len(scores))
        self._enumerate(scores, vector, first, last, values, grad, product)

    def _enumerate(
        self,
        scores: FloatArray,
        vector: FloatArray,
        first: int,
        last: int,
        values: FloatArray,
        grad: FloatArray,
        product: FloatArray,
    ) -> None:
        from concordant.surrogates.order_kernels import enumerated_chunk

        how = self.temperature, self.mode == "sum_interleavings", (self.offsets, first, last)
        enumerated_chunk(scores, vector, self.labels, *how, values, grad, product)


def _build_labels(form: OrderLoss, codes: IntArray, offsets: IntArray, weights: FloatArray) -> Labels:
    """Build the kernel inputs; arrays are frozen, since writeable ones would trigger another compilation."""
    from concordant.surrogates.order_kernels import ADDITIVE, PAIRS, PRECISION, Labels

    kind = {"additive": ADDITIVE, "precision": PRECISION, "pairs": PAIRS}[form.kind]
    best = _best_sums(form, offsets) if kind == ADDITIVE else np.zeros(len(weights))
    gold = _gold_coefficients(codes, offsets)
    per_query, per_row = (freeze(weights), freeze(best)), (freeze(form.gains), freeze(codes), freeze(gold))
    return Labels(per_query[0], *per_row, per_query[1], kind, freeze(form.discounts))


def _best_sums(form: OrderLoss, offsets: IntArray) -> FloatArray:
    queries = repeat(np.arange(len(offsets) - 1), offsets)
    ideal = form.gains[np.lexsort((-form.gains, queries))]
    return segment_sum(ideal * form.discounts[np.arange(len(ideal)) - repeat(offsets[:-1], offsets)], offsets)


def _gold_coefficients(codes: IntArray, offsets: IntArray) -> FloatArray:
    """Number of items with lower labels minus items with higher labels, in each row's query."""
    ones = np.ones(len(codes))
    return sum_below(ones, codes, offsets) - sum_above(ones, codes, offsets)


@dataclass(frozen=True)
class ListwiseHinge(Surrogate):
    """Listwise hinge: loss of orders by a metric, unless their score falls behind that of the labels.

    Let L(order) be the loss of an order relative to the best order, F(order) = 2/(n(n - 1)) times the sum,
    over the pairs of different labels, of the score of the upper item minus that of the lower one, and dF =
    F(an order consistent with the labels) - F(order):

    - `mode="max"`: the largest L - dF over all orders (a structural SVM; SVMmap for AP). The order is found
      by insertion for AP, O(n log n); by sorting for AUC and PD; by linear assignment for additive metrics.
    - `mode="sum"`: the sum of (L - dF)_+ over the orders inconsistent with the labels, as published. Lists of
      at most 8 items.
    - `mode="softmax"`: T log(1 + sum of exp((L - dF)/T) over the same orders). Lists of at most 8 items.
    - `mode="sum_interleavings"`: the sum over the ways to interleave two labels, each sorted by score. At
      most 40,320 interleavings per query.

    Its targets are grades, which the metric reads. A list is weighted by the mean weight of its rows. Each
    mode dominates the metric's loss of sorting by score. No mode is consistent.

    Parameters
    ----------
    metric
        A `Metric`: ap, ndcg, dcg, eru, p@k, auc, wpd, or pd on two grades. `concordant.listwise_hinge` also
        accepts its name.
    mode
        Aggregation over orders.
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
            raise ParameterError(
                "metric", self.metric, "a Metric", hint="concordant.listwise_hinge takes names."
            )
        check_number("temperature", self.temperature, above=0.0)

    @property
    def smooth(self) -> bool:
        """True for the soft-max."""
        return self.mode == "softmax"

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Read the labels through the metric and build the loss."""
        form = self.form(targets, offsets)
        codes = level_codes(form.gains, offsets)
        self.check_lists(codes, offsets)
        sizes = np.maximum(np.diff(offsets), 1).astype(np.float64)
        shares = segment_sum(weights, offsets) / sizes
        if form.kind == "pairs" and self.mode == "max":
            # Inverting a pair adds the difference of its gains minus rate * that of its scores, independently
            # of the other pairs; the worst order inverts all pairs for which that is positive.
            rate = repeat(4.0 / np.maximum(sizes * (sizes - 1.0), 1.0), offsets)
            return ShiftedHinge(offsets, rate * repeat(shares, offsets), codes, form.gains / rate)
        return ListwiseLoss(offsets, _build_labels(form, codes, offsets, shares), self.mode, self.temperature)

    def form(self, targets: FloatArray, offsets: IntArray) -> OrderLoss:
        """Return the metric's order loss for these grades."""
        metric: Any = self.metric
        nothing = OrderLoss("precision", np.empty(0), np.empty(0))
        form: OrderLoss = metric.order_loss(targets, np.diff(offsets)) if len(targets) else nothing
        return form

    def levels(self, targets: FloatArray, offsets: IntArray) -> FloatArray:
        """Return the gains that the metric assigns to the grades."""
        return self.form(targets, offsets).gains

    def check_lists(self, codes: IntArray, offsets: IntArray) -> None:
        """Raise if a list has too many orders to enumerate."""
        sizes = np.diff(offsets)
        if self.mode in ("softmax", "sum") and (longest := int(sizes.max(initial=0))) > MOST_ITEMS:
            problem = f"mode={self.mode!r} sums over all orders of a list, but a list has {longest} items"
            raise LabelError(problem, f"use lists of at most {MOST_ITEMS} items, or mode='max'.")
        if self.mode == "sum_interleavings":
            if codes.max(initial=0) > 1:
                problem = f"mode={self.mode!r} needs at most two labels per list, but a list has more"
                raise LabelError(problem, "use mode='max'.")
            n_upper = segment_sum(codes.astype(np.float64), offsets)
            lists = zip(sizes.tolist(), n_upper.tolist(), strict=True)
            if any(_log_choices(n, k) > LOG_MOST_ORDERS for n, k in lists):
                problem = f"mode={self.mode!r}: a list has more than {MOST_ORDERS} interleavings"
                raise LabelError(problem, "use shorter lists, or mode='max'.")


def _log_choices(n: float, k: float) -> float:
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
