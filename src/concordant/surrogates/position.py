"""The position hinge: pairs need a margin, the larger the nearer the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from concordant._segments import segment_reduce
from concordant.supervision.columns import frozen
from concordant.surrogates.margins import overtaken
from concordant.surrogates.pairwise import PairLoss, level_codes, pair_counts
from concordant.surrogates.surrogate import Loss, Surrogate, check_choice, repeat
from concordant.types import FloatArray, IntArray

__all__ = ["PositionHinge", "ShiftedHinge"]


class ShiftedHinge(PairLoss):
    """Sum over pairs of different levels of weight * (shift_i - shift_j - (score_i - score_j))_+."""

    def __init__(self, offsets: IntArray, weights: FloatArray, codes: IntArray, shift: FloatArray) -> None:
        super().__init__(overtaken, offsets, weights, codes.astype(np.float64), top=1.0)
        self.shift = frozen(shift)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """As pairs of shifted scores."""
        from concordant.surrogates.kernels.pairs import shifted_chunk

        moved = np.empty(len(scores))  # of which only the rows of these queries become memory
        shifted_chunk(scores, self.shift, self.offsets, first, last, moved)
        super().chunk(frozen(moved), first, last, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Straight between its corners."""
        del scores, vector
        product[self.offsets[first] : self.offsets[last]] = 0.0


@dataclass(frozen=True)
class PositionHinge(Surrogate):
    """Position-sensitive pairwise hinge: sum over y_i < y_j of (m/y_i - m/y_j - (s_i - s_j))_+.

    y are rank labels: the levels of a query, 1 the best, m in all. An exchange near the top needs the
    larger margin. Its targets are grades; each query's distinct grades are its levels. A full order is
    given as n + 1 - position; two grades are bipartite supervision, where every margin is 1.

    A max-margin baseline with risk bounds (`concordant.theory.bounds`); it is not consistent, and beyond two
    levels it does not even dominate the 0-1 loss of pairs, as the margin of the two lowest levels is
    1/(m - 1).

    Parameters
    ----------
    reduction
        "sum", as published; "pairs": divided by the query's number of pairs of different levels; or
        "all_pairs": divided by n(n - 1)/2.

    References
    ----------
    Riezler and De Bona (2009), Simple risk bounds for position-sensitive max-margin ranking algorithms,
    Definition 1.

    Examples
    --------
    >>> values, grad = PositionHinge()([0.0, 0.0, 0.0], [2, 1, 0])  # margins 1.5, 2 and 0.5
    >>> values.tolist(), grad.tolist()
    ([4.0], [-2.0, 0.0, 2.0])
    """

    reduction: str = "sum"
    name: ClassVar[str] = "position_hinge"
    reads: ClassVar[str] = "grades"

    def __post_init__(self) -> None:
        check_choice("reduction", self.reduction, ("sum", "pairs", "all_pairs"))

    @property
    def smooth(self) -> bool:
        """A hinge has corners."""
        return False

    @property
    def ordinal(self) -> bool:
        """Levels are numbered."""
        return True

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Number the levels of each query."""
        codes = level_codes(targets, offsets)
        levels = segment_reduce(np.maximum, codes.astype(np.float64), offsets) + 1.0
        shift = repeat(levels, offsets) / (repeat(levels, offsets) - codes)
        return ShiftedHinge(offsets, weights * repeat(self.shares(targets, offsets), offsets), codes, shift)

    def shares(self, targets: FloatArray, offsets: IntArray) -> FloatArray:
        """How much a pair counts in each query."""
        sizes = np.diff(offsets).astype(np.float64)
        if self.reduction == "sum":
            return np.ones(len(sizes))
        own = self.reduction == "pairs"
        counts = pair_counts(targets, offsets) if own else 0.5 * sizes * (sizes - 1.0)
        return 1.0 / np.maximum(counts, 1.0)
