"""Position hinge: pairs need a margin that grows towards the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from concordant._base.segments import segment_reduce
from concordant._base.validate import check_choice, freeze
from concordant.surrogates.margins import overtaken
from concordant.surrogates.pairwise import PairLoss, level_codes, pair_counts
from concordant.surrogates.surrogate import Loss, Surrogate, repeat
from concordant.types import FloatArray, IntArray


class ShiftedHinge(PairLoss):
    """Sum over pairs of different levels of weight * (shift_i - shift_j - (score_i - score_j))_+."""

    def __init__(self, offsets: IntArray, weights: FloatArray, codes: IntArray, shift: FloatArray) -> None:
        super().__init__(overtaken, offsets, weights, codes.astype(np.float64), top=1.0)
        self.shift = freeze(shift)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Evaluate as pairs of shifted scores."""
        from concordant.surrogates.short_pair_kernels import shifted_chunk

        shifted = np.empty(len(scores))  # only the rows of these queries become resident memory
        shifted_chunk(scores, self.shift, (self.offsets, first, last), shifted)
        super().chunk(freeze(shifted), first, last, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Fill with zeros: the loss is piecewise linear."""
        del scores, vector
        product[self.offsets[first] : self.offsets[last]] = 0.0


@dataclass(frozen=True)
class PositionHinge(Surrogate):
    """Position-sensitive pairwise hinge: sum over y_i < y_j of (m/y_i - m/y_j - (s_i - s_j))_+.

    y are rank labels: the levels of a query, 1 the best, m in all. An exchange near the top needs the larger
    margin. Its targets are grades; the distinct grades of each query are its levels. Pass a full order as n +
    1 - position; two grades are bipartite supervision, where every margin is 1.

    A max-margin baseline with risk bounds (`concordant.theory.bounds`); it is not consistent, and beyond two
    levels it does not even dominate the 0-1 loss of pairs, as the margin of the two lowest levels is 1/(m -
    1).

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
        """False: a hinge has corners."""
        return False

    @property
    def ordinal(self) -> bool:
        """True: only the ranks of the levels are used."""
        return True

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Rank the levels of each query and build the loss."""
        codes = level_codes(targets, offsets)
        levels = segment_reduce(np.maximum, codes.astype(np.float64), offsets) + 1.0
        shift = repeat(levels, offsets) / (repeat(levels, offsets) - codes)
        return ShiftedHinge(offsets, weights * repeat(self.shares(targets, offsets), offsets), codes, shift)

    def shares(self, targets: FloatArray, offsets: IntArray) -> FloatArray:
        """Return the weight of a pair in each query."""
        sizes = np.diff(offsets).astype(np.float64)
        if self.reduction == "sum":
            return np.ones(len(sizes))
        by_levels = self.reduction == "pairs"
        counts = pair_counts(targets, offsets) if by_levels else 0.5 * sizes * (sizes - 1.0)
        return 1.0 / np.maximum(counts, 1.0)
