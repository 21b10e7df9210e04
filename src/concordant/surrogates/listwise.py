"""Surrogates that read a list as a whole: softmax, and the Plackett-Luce likelihood of an observed order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from concordant._segments import segment_sum
from concordant.exceptions import LabelError
from concordant.supervision.columns import frozen
from concordant.surrogates.surrogate import EXACT_FIRST, MAJORISING, Loss, Surrogate, check_choice, repeat
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["PlackettLuce", "Softmax"]


class SoftmaxLoss(Loss):
    """Cross entropy to the softmax of the scores, weighted by row."""

    def __init__(self, offsets: IntArray, weights: FloatArray) -> None:
        super().__init__(offsets)
        self.weights = frozen(weights)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Linear time."""
        from concordant.surrogates.kernels.listwise import softmax_chunk

        softmax_chunk(scores, self.weights, self.offsets, first, last, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Linear time."""
        from concordant.surrogates.kernels.listwise import softmax_product_chunk

        softmax_product_chunk(scores, self.weights, vector, self.offsets, first, last, product)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Of W * softmax, W the sum of the weights: W p (1 - p); and W/4, half of Böhning's bound."""
        if kind == "majorising":
            return self.whole / 4.0
        check_choice("curvature", kind, EXACT_FIRST)
        given = self.value_and_grad(scores)[1] if grad is None else grad
        mass = np.maximum(given + self.weights, 0.0)  # W p, up to rounding
        diagonal: FloatArray = mass * np.maximum(1.0 - mass * self.inverse, 0.0)
        return diagonal

    @cached_property
    def whole(self) -> FloatArray:
        """Sum of the weights of each row's query."""
        return repeat(segment_sum(self.weights, self.offsets), self.offsets)

    @cached_property
    def inverse(self) -> FloatArray:
        """1 over it; 0 where it is 0."""
        return np.divide(1.0, self.whole, out=np.zeros_like(self.whole), where=self.whole > 0.0)


@dataclass(frozen=True)
class Softmax(Surrogate):
    """Cross entropy: - sum of targets[i] * log softmax(s)_i.

    References
    ----------
    Cao et al. (2007), ListNet; here on standardized labels, which makes it consistent where every expected
    target is positive.

    Examples
    --------
    >>> Softmax()([0.0, 0.0], [1.0, 0.0])[1].tolist()
    [-0.5, 0.5]
    """

    name: ClassVar[str] = "softmax"

    @property
    def needs_positive(self) -> bool:
        """An item of expected target 0 would go to minus infinity."""
        return True

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Both."""
        return EXACT_FIRST

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weigh each item's term by its target."""
        return SoftmaxLoss(offsets, targets * weights)


class PlackettLuceLoss(Loss):
    """Negative log-likelihood of choosing the items in the observed order, weighted by row."""

    def __init__(self, offsets: IntArray, weights: FloatArray, order: IntArray) -> None:
        super().__init__(offsets)
        self.weights, self.order = frozen(weights), frozen(order)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Linear time: the order was found before."""
        from concordant.surrogates.kernels.listwise import plackett_luce_chunk

        plackett_luce_chunk(scores, self.weights, self.order, self.offsets, first, last, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Linear time."""
        from concordant.surrogates.kernels.listwise import plackett_luce_product_chunk

        known = self.weights, self.order, vector, self.offsets
        plackett_luce_product_chunk(scores, *known, first, last, product)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """A quarter of the weights of the choices in which the item was still there."""
        del scores, grad
        check_choice("curvature", kind, MAJORISING)
        chosen = np.cumsum(self.weights[self.order])
        before = np.r_[0.0, chosen][self.offsets[:-1]]
        so_far = np.empty_like(chosen)
        so_far[self.order] = np.maximum(chosen - repeat(before, self.offsets), 0.0)
        return so_far / 4.0


@dataclass(frozen=True)
class PlackettLuce(Surrogate):
    """Negative log-likelihood of the observed order under the Plackett-Luce model (ListMLE).

    Its targets are positions, 1 the best, as `Permutations` holds them.

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
        """The one that does not depend on the scores."""
        return MAJORISING

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Sort the rows by position, once."""
        queries = repeat(np.arange(len(offsets) - 1), offsets)
        order = np.lexsort((targets, queries))
        places = np.arange(1, len(order) + 1) - repeat(offsets[:-1], offsets)
        if (wrong := targets[order] != places).any():
            query = int(queries[np.argmax(wrong)])
            seen = targets[offsets[query] : offsets[query + 1]][:10].tolist()
            problem = f"{self.name} reads positions, but query number {query} (ascending ids) has {seen}"
            raise LabelError(problem, "each query's positions are 1 (best) to n, without ties.")
        return PlackettLuceLoss(offsets, weights, order)
