"""Surrogates that compare pairs of items: the order-preserving one, and the preorder baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import check_choice, freeze
from concordant.exceptions import GradeError, ParameterError
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC, Margin, margin
from concordant.surrogates.surrogate import MAJORISING, Loss, Spaces, Surrogate, repeat
from concordant.types import ArrayLike, FloatArray, IntArray

LONG = 256  # about where sweeping overtakes comparing every pair (`benchmarks surrogates`, `maxmargin`)
HIGHEST_EXP2 = 1000  # above, 2^grade overflows


class PairLoss(Loss):
    """Sum over pairs of weight * phi(score difference).

    With `levels` None: every pair (i, j) with weight weights[i]. Otherwise pairs with levels[i] > levels[j],
    with weight weights[i] * min(levels[i] - levels[j], top).
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
        self.shape, self.weights, self.top = shape, freeze(weights), float(top)
        self.graded = levels is not None
        self.levels = self.weights if levels is None else freeze(levels)
        # The exponential needs neither sorting nor a double loop; for the logistic no faster way is known.
        self.limit = {CLIP: LONG, EXPONENTIAL: -1, LOGISTIC: np.iinfo(np.int64).max}[shape.kind]
        self.longest = int(np.diff(offsets).max(initial=-1))
        swept = self.graded and self.longest > self.limit
        self.codes = level_codes(self.levels, offsets) if swept else np.empty(0, np.int64)
        if shape.kind == CLIP:
            self.limit = sweep_from(int(self.codes.max(initial=0)).bit_length())
        self.spaces = Spaces(self.longest)

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Evaluate short lists by double loops, long ones by sweeps."""
        self._run_kernels(scores, scores, first, last, values, grad, second=False)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Compute like `chunk`."""
        self._run_kernels(scores, vector, first, last, product, product, second=True)

    def _run_kernels(
        self,
        scores: FloatArray,
        vector: FloatArray,
        first: int,
        last: int,
        values: FloatArray,
        result: FloatArray,
        *,
        second: bool,
    ) -> None:
        """Fill values and gradient; if `second`, fill the Hessian times the vector only."""
        chunk, results = (self.offsets, first, last), (second, values, result)
        pairs = self.weights, self.levels, self.top, self.graded
        if self.shape.kind == LOGISTIC:
            from concordant.surrogates.short_pair_kernels import logistic_chunk

            logistic_chunk(scores, vector, pairs, chunk, *results)
        elif self.shape.kind == CLIP:
            from concordant.surrogates.short_pair_kernels import clip_chunk

            clip_chunk(scores, vector, pairs, chunk, self.limit, self.shape.parameters, *results)
        if self.longest > self.limit:
            from concordant.surrogates.graded_pair_kernels import graded_chunk
            from concordant.surrogates.long_pair_kernels import all_chunk

            with self.spaces.lend() as space:
                lists = vector, chunk, self.limit, self.shape.code, second, space, values, result
                if self.graded:
                    graded_chunk(scores, (self.weights, self.levels, self.codes, self.top), *lists)
                else:
                    all_chunk(scores, self.weights, *lists)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Return the margin's greatest curvature times the weights of a row's pairs, whatever the scores."""
        del scores, grad
        if not np.isfinite(self.shape.smoothness):
            raise ParameterError.because(f"The margin {self.shape} has no curvature, got curvature={kind!r}.")
        check_choice("curvature", kind, MAJORISING)
        return self.shape.smoothness * self.pair_weights

    @cached_property
    def pair_weights(self) -> FloatArray:
        """Summed weights of the pairs of each row, without the pair with itself."""
        if not self.graded:
            sizes = repeat(np.diff(self.offsets).astype(np.float64), self.offsets)
            query_weights = repeat(segment_sum(self.weights, self.offsets), self.offsets)
            row_weights: FloatArray = (sizes - 2.0) * self.weights + query_weights
            return np.maximum(row_weights, 0.0)
        return _graded_pair_weights(self.weights, self.levels, self.top, self.offsets)


def sweep_from(halvings: int) -> int:
    """Return the list length above which sweeping pays: it grows with the number of halvings of the levels.

    >>> sweep_from(1), sweep_from(4), sweep_from(12)
    (256, 512, 4608)
    """
    return LONG * max(halvings**2, 8) // 8


def level_codes(levels: FloatArray, offsets: IntArray) -> IntArray:
    """Return the rank of each row's level within its query, the lowest 0."""
    queries = repeat(np.arange(len(offsets) - 1), offsets)
    order = np.lexsort((levels, queries))
    rises = np.r_[False, np.diff(levels[order]) > 0]
    starts = np.r_[True, np.diff(queries[order]) > 0]
    numbers = np.cumsum(rises & ~starts)
    codes = np.empty(len(levels), dtype=np.int64)
    codes[order] = numbers - np.maximum.accumulate(np.where(starts, numbers, 0))
    return codes


def _graded_pair_weights(
    weights: FloatArray, levels: FloatArray, top: float, offsets: IntArray
) -> FloatArray:
    """Return the sum over the pairs of each row of weights[better] * min(difference of levels, top).

    Either `top` is 1 and levels are whole numbers, or `top` is infinite.
    """
    codes, ones = level_codes(levels, offsets), np.ones_like(weights)
    if top == 1.0:
        return weights * sum_below(ones, codes, offsets) + sum_above(weights, codes, offsets)
    better = weights * (levels * sum_below(ones, codes, offsets) - sum_below(levels, codes, offsets))
    above = sum_above(weights * levels, codes, offsets) - levels * sum_above(weights, codes, offsets)
    return np.maximum(better + above, 0.0)


def sum_below(values: FloatArray, codes: IntArray, offsets: IntArray) -> FloatArray:
    """Sum, for each row, the values of its query's rows at lower levels."""
    starts = repeat(offsets[:-1], offsets)
    slots = codes + starts
    sums = np.r_[0.0, np.cumsum(np.bincount(slots, values, minlength=len(values)))]
    totals: FloatArray = sums[slots] - sums[starts]
    return totals


def sum_above(values: FloatArray, codes: IntArray, offsets: IntArray) -> FloatArray:
    """Sum, for each row, the values of its query's rows at higher levels."""
    slots = codes + repeat(offsets[:-1], offsets)
    sums = np.r_[np.cumsum(np.bincount(slots, values, minlength=len(values))[::-1])[::-1], 0.0]
    totals: FloatArray = sums[slots + 1] - sums[repeat(offsets[1:], offsets)]
    return totals


def pair_counts(levels: FloatArray, offsets: IntArray) -> FloatArray:
    """Count the pairs of different levels in each query."""
    # A query has at most as many levels as rows: each level is counted in the slot of one of its rows.
    slots = level_codes(levels, offsets) + repeat(offsets[:-1], offsets)
    sizes = np.bincount(slots, minlength=len(levels)).astype(np.float64)
    counts: FloatArray = (np.diff(offsets).astype(np.float64) ** 2 - segment_sum(sizes**2, offsets)) / 2.0
    return counts


@dataclass(frozen=True)
class Pairwise(Surrogate):
    """Order-preserving pairwise loss: sum over all i, j of targets[i] * phi(s_i - s_j).

    Every pair is compared, including equal ones, so that the expected loss keeps its form and its minimiser
    follows the expected targets.

    Parameters
    ----------
    margin
        phi: a `Margin` or its name.
    normalize
        Divide by n(n - 1), so that long lists do not weigh more; consistency is unaffected.

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
    weighs: ClassVar[str] = "targets"

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", margin(self.margin))

    @property
    def shape(self) -> Margin:
        """Return the margin, looked up by name."""
        return margin(self.margin)

    @property
    def smooth(self) -> bool:
        """True if the margin is differentiable."""
        return self.shape.differentiable

    @property
    def order_preserving(self) -> bool:
        """True if the margin meets the conditions of Theorem 1."""
        return self.shape.order_preserving

    @property
    def needs_positive(self) -> bool:
        """True for margins that never become flat."""
        return self.shape.differentiable and not np.isfinite(self.shape.flat_from)

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Majorising, if the margin has it; the exact one is 0 where the margin is straight."""
        return MAJORISING if np.isfinite(self.shape.smoothness) else ()

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weight each pair by the target of its better item."""
        scaled = targets * weights
        if self.normalize:
            sizes = np.diff(offsets).astype(np.float64)
            scaled = scaled / repeat(np.maximum(sizes * (sizes - 1.0), 1.0), offsets)
        return PairLoss(self.shape, offsets, scaled)


@dataclass(frozen=True)
class Preorder(Surrogate):
    """Preorder loss on the grades y: sum over y_j < y_i of w_ij phi(s_i - s_j). A baseline: not consistent.

    Its targets are grades, not standardized labels; they need not be whole numbers.

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
        """True if the margin is differentiable."""
        return margin(self.margin).differentiable

    @property
    def ordinal(self) -> bool:
        """True unless gains weight the pairs."""
        return self.weighting != "gain"

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Majorising, if the margin has it."""
        return MAJORISING if np.isfinite(margin(self.margin).smoothness) else ()

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weight the pairs: each by its query's share, and by the gain if gains are asked for."""
        if self.weighting != "unit":
            counts = pair_counts(targets, offsets)
            weights = weights * repeat(1.0 / np.maximum(counts, 1.0), offsets)
        if self.weighting == "gain":
            return PairLoss(margin(self.margin), offsets, weights, np.exp2(targets))
        levels = level_codes(targets, offsets).astype(np.float64)
        return PairLoss(margin(self.margin), offsets, weights, levels, top=1.0)

    def check_targets(self, targets: FloatArray) -> None:
        """Check targets; gains must be finite, too."""
        super().check_targets(targets)
        if self.weighting == "gain" and (high := targets > HIGHEST_EXP2).any():
            row, problem = int(np.argmax(high)), "makes 2^grade overflow"
            raise GradeError(float(targets[row]), f"row {row}", problem, "grades are small.").at(row)
