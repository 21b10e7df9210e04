"""Surrogates that read a list as a whole: softmax, and the Plackett-Luce likelihood of an observed order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import check_choice, freeze
from concordant.exceptions import LabelError
from concordant.surrogates.surrogate import EXACT_FIRST, MAJORISING, Loss, Surrogate, repeat
from concordant.types import ArrayLike, FloatArray, IntArray


class BoundSoftmax(Loss):
    """Cross entropy of the softmax of the scores, weighted by row."""

    def __init__(self, offsets: IntArray, weights: FloatArray) -> None:
        super().__init__(offsets)
        self.weights = freeze(weights)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Evaluate in linear time."""
        from concordant.surrogates.listwise_kernels import softmax_chunk

        softmax_chunk(scores, self.weights, (self.offsets, first, last), values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Multiply in linear time."""
        from concordant.surrogates.listwise_kernels import softmax_product_chunk

        softmax_product_chunk(scores, self.weights, vector, (self.offsets, first, last), product)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Return W p (1 - p) with W the sum of weights, or W/4, half of Böhning's bound, if majorising."""
        if kind == "majorising":
            return self.whole / 4.0
        check_choice("curvature", kind, EXACT_FIRST)
        gradient = self.value_and_grad(scores)[1] if grad is None else grad
        mass = np.maximum(gradient + self.weights, 0.0)  # W p, up to rounding
        diagonal: FloatArray = mass * np.maximum(1.0 - mass * self.inverse, 0.0)
        return diagonal

    @cached_property
    def whole(self) -> FloatArray:
        """Sum of the weights in each row's query."""
        return repeat(segment_sum(self.weights, self.offsets), self.offsets)

    @cached_property
    def inverse(self) -> FloatArray:
        """1 / `whole`, or 0 where `whole` is 0."""
        return np.divide(1.0, self.whole, out=np.zeros_like(self.whole), where=self.whole > 0.0)


@dataclass(frozen=True)
class Softmax(Surrogate):
    """Cross entropy: - sum of targets[i] * log softmax(s)_i.

    References
    ----------
    Cao et al. (2007), ListNet; here on standardized labels, which makes it consistent if every expected
    target is positive.

    Examples
    --------
    >>> Softmax()([0.0, 0.0], [1.0, 0.0])[1].tolist()
    [-0.5, 0.5]
    """

    name: ClassVar[str] = "softmax"
    weighs: ClassVar[str] = "targets"

    @property
    def needs_positive(self) -> bool:
        """True: the score of an item of expected target 0 goes to minus infinity."""
        return True

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Exact and majorising."""
        return EXACT_FIRST

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weight the term of each item by its target."""
        return BoundSoftmax(offsets, targets * weights)


class PlackettLuceLoss(Loss):
    """Negative log-likelihood of choosing the items in the observed order, weighted by row."""

    def __init__(self, offsets: IntArray, weights: FloatArray, order: IntArray) -> None:
        super().__init__(offsets)
        self.weights, self.order = freeze(weights), freeze(order)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Evaluate in linear time: the rows are sorted already."""
        from concordant.surrogates.listwise_kernels import plackett_luce_chunk

        chunk = self.offsets, first, last
        plackett_luce_chunk(scores, self.weights, self.order, chunk, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Multiply in linear time."""
        from concordant.surrogates.listwise_kernels import plackett_luce_product_chunk

        chunk = self.offsets, first, last
        plackett_luce_product_chunk(scores, self.weights, self.order, vector, chunk, product)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Return a quarter of the weights of the choices in which the item was still available."""
        del scores, grad
        check_choice("curvature", kind, MAJORISING)
        cumulative = np.cumsum(self.weights[self.order])
        before = np.r_[0.0, cumulative][self.offsets[:-1]]
        so_far = np.empty_like(cumulative)
        so_far[self.order] = np.maximum(cumulative - repeat(before, self.offsets), 0.0)
        return so_far / 4.0


@dataclass(frozen=True)
class PlackettLuce(Surrogate):
    """Negative log-likelihood of the observed order under the Plackett-Luce model (ListMLE).

    Its targets are positions, 1 the best, as in `Permutations`.

    References
    ----------
    Xia et al. (2008); Cheng, Dembczynski and Hüllermeier (2010).

    Examples
    --------
    >>> PlackettLuce()([0.0, 0.0, 0.0], [2, 1, 3])[0].round(6).tolist()
    [1.791759]
    """

    name: ClassVar[str] = "plackett_luce"
    reads: ClassVar[str] = "positions"

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Majorising only, which does not depend on the scores."""
        return MAJORISING

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Sort the rows by position, once, and build the loss."""
        queries = repeat(np.arange(len(offsets) - 1), offsets)
        order = np.lexsort((targets, queries))
        positions = np.arange(1, len(order) + 1) - repeat(offsets[:-1], offsets)
        if (wrong := targets[order] != positions).any():
            query = int(queries[np.argmax(wrong)])
            first_positions = targets[offsets[query] : offsets[query + 1]][:10].tolist()
            problem = (
                f"{self.name} reads positions, but query number {query} (ascending ids) has {first_positions}"
            )
            raise LabelError(problem, "each query's positions are 1 (best) to n, without ties.")
        return PlackettLuceLoss(offsets, weights, order)
