"""Surrogates that compare items two at a time: the order-preserving one, and the preorder baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from concordant._segments import segment_sum
from concordant.exceptions import GradeError, ParameterError
from concordant.supervision.columns import frozen
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC, Margin, margin
from concordant.surrogates.spaces import Spaces
from concordant.surrogates.surrogate import MAJORISING, Loss, Surrogate, check_choice, repeat
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["LONG", "Pairwise", "Preorder"]

LONG = 256  # about where sweeping overtakes comparing every pair (`benchmarks surrogates`, `maxmargin`)
HIGHEST_EXP2 = 1000  # above, 2^grade leaves the doubles


class PairLoss(Loss):
    """Sum over pairs of weight * phi(score difference).

    `levels` None: every pair (i, j) at weights[i]. Else pairs with levels[i] > levels[j], at
    weights[i] * min(levels[i] - levels[j], top).
    """

    def __init__(
        self,
        shape: Margin,
        offsets: IntArray,
        weights: FloatArray,
        levels: FloatArray | None = None,
        top: float = np.inf,
    ) -> None:
        super().__init__(offsets)
        self.shape, self.weights, self.top = shape, frozen(weights), float(top)
        self.graded = levels is not None
        self.levels = self.weights if levels is None else frozen(levels)
        # The exponential needs neither order nor double loop; for the logistic nothing faster is known.
        self.limit = {CLIP: LONG, EXPONENTIAL: -1, LOGISTIC: np.iinfo(np.int64).max}[shape.kind]
        self.longest = int(np.diff(offsets).max(initial=-1))
        swept = self.graded and self.longest > self.limit
        self.codes = level_codes(self.levels, offsets) if swept else np.empty(0, np.int64)
        if shape.kind == CLIP:
            self.limit = sweep_from(int(self.codes.max(initial=0)).bit_length())
        self.spaces = Spaces(self.longest)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Short lists by double loops, long ones by sweeps."""
        pairs = self.weights, self.levels, self.top, self.graded, self.offsets
        if self.shape.kind == LOGISTIC:
            from concordant.surrogates.kernels.pairs import logistic_chunk

            logistic_chunk(scores, *pairs, first, last, values, grad)
        elif self.shape.kind == CLIP:
            from concordant.surrogates.kernels.pairs import clip_chunk

            clip_chunk(scores, *pairs, first, last, self.limit, *self.shape.parameters, values, grad)
        if self.longest > self.limit:
            from concordant.surrogates.kernels.graded import graded_chunk
            from concordant.surrogates.kernels.long import all_chunk

            with self.spaces.lent() as space:
                lists = self.offsets, first, last, self.limit, self.shape.code, space, values, grad
                if self.graded:
                    graded_chunk(scores, self.weights, self.levels, self.codes, self.top, *lists)
                else:
                    all_chunk(scores, self.weights, *lists)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """The margin's greatest curvature times the weights of all pairs of a row: the same at all scores."""
        del scores, grad
        if not np.isfinite(self.shape.smoothness):
            raise ParameterError("curvature", kind, f"one of a margin that has it: {self.shape} has none")
        check_choice("curvature", kind, MAJORISING)
        return self.shape.smoothness * self.pair_weights

    @cached_property
    def pair_weights(self) -> FloatArray:
        """Summed weights of the pairs of each row, those with itself left out."""
        if not self.graded:
            sizes = repeat(np.diff(self.offsets).astype(np.float64), self.offsets)
            whole = repeat(segment_sum(self.weights, self.offsets), self.offsets)
            own: FloatArray = (sizes - 2.0) * self.weights + whole
            return np.maximum(own, 0.0)
        return graded_pair_weights(self.weights, self.levels, self.top, self.offsets)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """As `chunk`."""
        pairs = self.weights, self.levels, self.top, self.graded, vector, self.offsets
        if self.shape.kind == LOGISTIC:
            from concordant.surrogates.kernels.pairs import logistic_product_chunk

            logistic_product_chunk(scores, *pairs, first, last, product)
        elif self.shape.kind == CLIP:
            from concordant.surrogates.kernels.pairs import clip_product_chunk

            clip_product_chunk(scores, *pairs, first, last, self.limit, *self.shape.parameters, product)
        if self.longest > self.limit:
            from concordant.surrogates.kernels.graded import graded_product_chunk
            from concordant.surrogates.kernels.long import all_product_chunk

            with self.spaces.lent() as space:
                lists = vector, self.offsets, first, last, self.limit, self.shape.code, space, product
                if self.graded:
                    graded_product_chunk(scores, self.weights, self.levels, self.codes, self.top, *lists)
                else:
                    all_product_chunk(scores, self.weights, *lists)


def sweep_from(halvings: int) -> int:
    """Items above which sweeping pays: the more, the more often the levels must be halved.

    >>> sweep_from(1), sweep_from(4), sweep_from(12)
    (256, 512, 4608)
    """
    return LONG * max(halvings**2, 8) // 8


def level_codes(levels: FloatArray, offsets: IntArray) -> IntArray:
    """Number of each row's level within its query, the lowest 0."""
    queries = repeat(np.arange(len(offsets) - 1), offsets)
    order = np.lexsort((levels, queries))
    rises = np.r_[False, np.diff(levels[order]) > 0]
    starts = np.r_[True, np.diff(queries[order]) > 0]
    numbers = np.cumsum(rises & ~starts)
    codes = np.empty(len(levels), dtype=np.int64)
    codes[order] = numbers - np.maximum.accumulate(np.where(starts, numbers, 0))
    return codes


def graded_pair_weights(weights: FloatArray, levels: FloatArray, top: float, offsets: IntArray) -> FloatArray:
    """Sum over the pairs of each row of weights[better] * min(difference of levels, top).

    `top` is 1, and levels are whole numbers; or infinite.
    """
    starts = repeat(offsets[:-1], offsets)
    slots = level_codes(levels, offsets) + starts

    def below(values: FloatArray) -> FloatArray:
        """Sum of the values of each row's query at lower levels."""
        sums = np.r_[0.0, np.cumsum(np.bincount(slots, values, minlength=len(levels)))]
        totals: FloatArray = sums[slots] - sums[starts]
        return totals

    def above(values: FloatArray) -> FloatArray:
        """The same at higher levels."""
        sums = np.r_[np.cumsum(np.bincount(slots, values, minlength=len(levels))[::-1])[::-1], 0.0]
        totals: FloatArray = sums[slots + 1] - sums[repeat(offsets[1:], offsets)]
        return totals

    if top == 1.0:
        return weights * below(np.ones_like(weights)) + above(weights)
    better = weights * (levels * below(np.ones_like(weights)) - below(levels))
    return np.maximum(better + above(weights * levels) - levels * above(weights), 0.0)


def pair_counts(levels: FloatArray, offsets: IntArray) -> FloatArray:
    """Pairs of different levels of each query."""
    # A query has at most as many levels as rows: each is counted in the slot of one of its rows.
    slots = level_codes(levels, offsets) + repeat(offsets[:-1], offsets)
    sizes = np.bincount(slots, minlength=len(levels)).astype(np.float64)
    counts: FloatArray = (np.diff(offsets).astype(np.float64) ** 2 - segment_sum(sizes**2, offsets)) / 2.0
    return counts


@dataclass(frozen=True)
class Pairwise(Surrogate):
    """Order-preserving pairwise loss: sum over all i, j of targets[i] * phi(s_i - s_j).

    Every pair is compared, also equal ones: so the expected loss keeps its form, and its minimiser follows
    the expected targets.

    Parameters
    ----------
    margin
        phi: a `Margin` or its name.
    normalize
        Divide by n(n - 1), so that long lists do not weigh more; consistency is not affected.

    References
    ----------
    Buffoni, Calauzènes, Gallinari and Usunier (2011), equation 6.

    Examples
    --------
    >>> values, grad = Pairwise(margin="squared_hinge")([0.0, 0.0], [1.0, 0.0])
    >>> values.tolist(), grad.tolist()
    ([2.0], [-2.0, 2.0])
    """

    margin: Margin | str = "huber_hinge"
    normalize: bool = False
    name: ClassVar[str] = "pairwise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", margin(self.margin))

    @property
    def shape(self) -> Margin:
        """The margin."""
        return margin(self.margin)

    @property
    def smooth(self) -> bool:
        """As the margin is."""
        return self.shape.differentiable

    @property
    def order_preserving(self) -> bool:
        """Theorem 1's conditions on the margin."""
        return self.shape.order_preserving

    @property
    def needs_positive(self) -> bool:
        """Margins that never become flat."""
        return self.shape.differentiable and not np.isfinite(self.shape.flat_from)

    @property
    def curvatures(self) -> tuple[str, ...]:
        """As the margin has any. The exact one is 0 where the margin is straight: steps would have no end."""
        return MAJORISING if np.isfinite(self.shape.smoothness) else ()

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weigh each pair by the target of its better item."""
        scaled = targets * weights
        if self.normalize:
            sizes = np.diff(offsets).astype(np.float64)
            scaled = scaled / repeat(np.maximum(sizes * (sizes - 1.0), 1.0), offsets)
        return PairLoss(self.shape, offsets, scaled)


@dataclass(frozen=True)
class Preorder(Surrogate):
    """Preorder loss on the grades y: sum over y_j < y_i of w_ij phi(s_i - s_j). A baseline: not consistent.

    Its targets are grades, not standardized labels; they need not be whole.

    Parameters
    ----------
    weighting
        w_ij: "unit" (1), "pairs" (1 over the number of pairs of the query), or "gain" ((2^y_i - 2^y_j)
        over that number).
    margin
        phi: a `Margin` or its name.

    References
    ----------
    Joachims (2002); Cao et al. (2006) for the weightings; Buffoni et al. (2011), equations 5 and 14.

    Examples
    --------
    >>> Preorder("pairs", margin="squared_hinge")([0.0, 0.0], [2, 1])[0].tolist()
    [1.0]
    """

    weighting: str = "unit"
    margin: Margin | str = field(default="huber_hinge")
    name: ClassVar[str] = "preorder"
    reads: ClassVar[str] = "grades"

    def __post_init__(self) -> None:
        check_choice("weighting", self.weighting, ("unit", "pairs", "gain"))
        object.__setattr__(self, "margin", margin(self.margin))

    @property
    def smooth(self) -> bool:
        """As the margin is."""
        return margin(self.margin).differentiable

    @property
    def ordinal(self) -> bool:
        """Unless gains weigh the pairs."""
        return self.weighting != "gain"

    @property
    def curvatures(self) -> tuple[str, ...]:
        """As the margin has any."""
        return MAJORISING if np.isfinite(margin(self.margin).smoothness) else ()

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Levels are the grades' numbers, or their gains."""
        if self.weighting == "unit":
            return self.compared(targets, offsets, weights)
        counts = pair_counts(targets, offsets)
        return self.compared(targets, offsets, weights * repeat(1.0 / np.maximum(counts, 1.0), offsets))

    def check_targets(self, targets: FloatArray) -> None:
        """Gains must stay finite, too."""
        super().check_targets(targets)
        if self.weighting == "gain" and (high := targets > HIGHEST_EXP2).any():
            row, problem = int(np.argmax(high)), "makes 2^grade overflow"
            raise GradeError(float(targets[row]), f"row {row}", problem, "grades are small.").at(row)

    def compared(self, grades: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Give the loss at these row weights."""
        shape = margin(self.margin)
        if self.weighting != "gain":
            levels = level_codes(grades, offsets).astype(np.float64)
            return PairLoss(shape, offsets, weights, levels, top=1.0)
        return PairLoss(shape, offsets, weights, np.exp2(grades))
