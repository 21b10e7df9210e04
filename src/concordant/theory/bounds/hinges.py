"""Facts of a hinge loss on given labels: how fast it changes, how large it becomes, what it dominates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._segments import segment_reduce, segment_sum
from concordant.exceptions import ParameterError
from concordant.metrics.convention import Convention
from concordant.metrics.pairwise import PD, WPD
from concordant.supervision.queries import Queries
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate, hinge, margin
from concordant.surrogates.pairwise import level_codes, pair_counts
from concordant.surrogates.position import ShiftedHinge
from concordant.theory.bounds.bound import check_positive
from concordant.theory.bounds.lipschitz import kappa
from concordant.types import FloatArray, IntArray

__all__ = ["UNBOUNDED", "Facts", "facts", "is_known"]

UNBOUNDED = ("dcg", "eru", "pd", "wpd")  # metrics whose losses may be above 1
ROUNDING = 1e-9

PerList = Callable[[FloatArray], FloatArray]
"""One number per list, from the scores of its rows."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts of a hinge loss on the lists of a sample.

    Attributes
    ----------
    codes
        Number of each row's level within its list.
    slopes, pair_slopes
        Lipschitz constant of each list's loss, in its scores, and in the differences of the scores of its
        pairs of different levels.
    separable
        Whether it is a sum of functions of one difference each.
    values, cut
        The loss of each list; and cut off where it is still above what it dominates.
    worst
        What it dominates is at most this, on each list.
    rest
        Largest loss at scores 0 of any list, in the sample or not.
    height, ceiling
        Largest loss where no score is more than BM from some centre of its list, as a function of BM; and
        largest loss when cut off.
    bounds, error, largest
        The loss that it dominates, in words; of each list; and the largest value of that.
    multiplier
        Times which the hinge dominates it.
    assumes, assumes_height
        What is taken for granted of lists outside the sample; and for `height` besides.
    """

    codes: IntArray
    slopes: FloatArray
    pair_slopes: FloatArray
    separable: bool
    values: PerList
    cut: PerList
    worst: FloatArray
    rest: float
    height: Callable[[float], float]
    ceiling: float
    bounds: str
    error: PerList
    largest: float
    multiplier: float = 1.0
    assumes: tuple[str, ...] = ()
    assumes_height: tuple[str, ...] = ()


def is_known(loss: object) -> bool:
    """Tell whether a loss is a hinge whose facts are known."""
    if isinstance(loss, ListwiseHinge):
        return loss.mode in ("max", "softmax")
    if isinstance(loss, Preorder):
        return loss.weighting == "pairs" and margin(loss.margin) == hinge
    return isinstance(loss, PositionHinge)


def facts(loss: Surrogate, y: FloatArray, queries: Queries, largest: float, error: str) -> Facts:
    """Give the facts of a hinge on grades, rows of each query adjacent."""
    if is_known(loss) and isinstance(loss, ListwiseHinge):
        return of_orders(loss, y, queries, check_positive("largest", largest))
    if is_known(loss) and isinstance(loss, PositionHinge):
        return of_positions(loss, y, queries, plain=error == "plain")
    if is_known(loss) and isinstance(loss, Preorder):
        return of_pairs(loss, y, queries)
    known = "a ListwiseHinge (max, softmax), a PositionHinge, or Preorder('pairs', margin='hinge')"
    raise ParameterError("loss", loss, known)


def evaluated(loss: Surrogate, y: FloatArray, queries: Queries) -> PerList:
    """Give the loss of each list."""
    bound = loss.bind(y, queries.offsets)
    return lambda scores: bound.value_and_grad(scores)[0]


def reaches(codes: IntArray, offsets: IntArray) -> FloatArray:
    """`lipschitz.reach` of each list."""
    slots = codes + np.repeat(offsets[:-1], np.diff(offsets))
    cubes = np.bincount(slots, minlength=len(codes)).astype(np.float64) ** 3
    sizes = np.diff(offsets).astype(np.float64)
    reach: FloatArray = np.sqrt((sizes**3 - segment_sum(cubes, offsets)) / 3.0)
    return reach


def of_orders(loss: ListwiseHinge, y: FloatArray, queries: Queries, largest: float) -> Facts:
    """Facts of the listwise hinge: slopes 4 reach / (m (m - 1)), range largest + 2 kappa BM.

    Inverting a pair adds 4 / (m (m - 1)) times its difference of scores.
    """
    metric: Any = loss.metric
    sizes, gains = queries.sizes.astype(np.float64), metric.order_loss(y, queries.sizes).gains
    codes, n_pairs = level_codes(gains, queries.offsets), pair_counts(gains, queries.offsets)
    rates = 4.0 / np.maximum(sizes * (sizes - 1.0), 1.0)
    shortest = max(int(sizes[sizes > 1].min(initial=sizes.max(initial=2.0))), 2)
    longest = int(sizes.max(initial=1.0))
    soft = loss.temperature * math.lgamma(longest + 1.0) if loss.mode == "softmax" else 0.0
    values = evaluated(loss, y, queries)
    at_most = values if loss.mode == "max" else evaluated(ListwiseHinge(metric), y, queries)
    worst = at_most(np.zeros(len(y)))  # there it costs what it loses
    if (most := float(worst.max(initial=0.0))) > largest * (1.0 + ROUNDING):
        raise ParameterError("largest", largest, f"at least {most:.6g}, what an order of a list loses")

    def lost(scores: FloatArray) -> FloatArray:
        best, value = (metric.per_query(y, given, qid=queries) for given in (gains, scores))
        gap: FloatArray = np.nan_to_num(best - value if metric.greater_is_better else value - best)
        return gap

    return Facts(
        codes=codes,
        slopes=rates * reaches(codes, queries.offsets),
        pair_slopes=rates * np.sqrt(n_pairs),
        separable=False,
        values=values,
        cut=lambda scores: np.minimum(values(scores), worst),
        worst=worst,
        rest=largest + soft,
        height=lambda far: largest + soft + 2.0 * kappa(shortest) * far,
        ceiling=largest,
        bounds=f"loss by {metric}",
        error=lost,
        largest=largest,
        assumes=(
            *(f"no order of a list loses more than {largest:g}",) * (metric.name in UNBOUNDED),
            *(f"no list has more than {longest} items",) * (soft > 0.0),
        ),
        assumes_height=(f"no list is shorter than {shortest} items",),
    )


def of_positions(loss: PositionHinge, y: FloatArray, queries: Queries, *, plain: bool) -> Facts:
    """Facts of the position hinge: no margin of r levels is above r - 1."""
    offsets, codes = queries.offsets, level_codes(y, queries.offsets)
    own = segment_reduce(np.maximum, codes.astype(np.float64), offsets) + 1.0
    margins = np.repeat(own, queries.sizes) / (np.repeat(own, queries.sizes) - codes)
    levels = max(int(own.max(initial=2.0)), 2)
    shares, counts = loss.shares(y, offsets), pair_counts(y, offsets)
    weighted = violations(WPD(convention=Convention(gain="linear")), margins, queries, shares)
    values = evaluated(loss, y, queries)
    pairs = float(counts.max(initial=0.0)) if loss.reduction == "sum" else 1.0
    return Facts(
        codes=codes,
        slopes=shares * reaches(codes, offsets),
        pair_slopes=shares * np.sqrt(counts),
        separable=True,
        values=values,
        cut=ramps(values, codes, queries, shares, weighted),
        worst=shares * counts if plain else values(np.zeros(len(y))),
        rest=pairs * (levels - 1.0),
        height=lambda far: pairs * (levels - 1.0 + 2.0 * far),
        ceiling=pairs * (levels - 1.0),
        bounds=f"{'' if plain else 'margin-weighted '}0-1 error of pairs",
        error=violations(PD(), y, queries, shares) if plain else weighted,
        largest=pairs if plain else pairs * (levels - 1.0),
        multiplier=levels - 1.0 if plain else 1.0,
        assumes=(
            f"no list has more than {levels} levels",
            *(f"no list has more than {pairs:,.0f} pairs of different levels",) * (loss.reduction == "sum"),
        ),
    )


def of_pairs(loss: Preorder, y: FloatArray, queries: Queries) -> Facts:
    """Facts of the plain hinge, mean over pairs."""
    codes, counts = level_codes(y, queries.offsets), pair_counts(y, queries.offsets)
    shares = 1.0 / np.maximum(counts, 1.0)
    error, values = violations(PD(), y, queries, shares), evaluated(loss, y, queries)
    return Facts(
        codes=codes,
        slopes=shares * reaches(codes, queries.offsets),
        pair_slopes=shares * np.sqrt(counts),
        separable=True,
        values=values,
        cut=ramps(values, codes, queries, shares, error),
        worst=shares * counts,
        rest=1.0,
        height=lambda far: 1.0 + 2.0 * far,
        ceiling=1.0,
        bounds="0-1 error of pairs",
        error=error,
        largest=1.0,
    )


def ramps(values: PerList, codes: IntArray, queries: Queries, shares: FloatArray, error: PerList) -> PerList:
    """Cut each pair's hinge off at its margin: it is the hinge less the one of margin 0.

    Scores far apart leave little of that difference but rounding: it is never below what it dominates.
    """
    weights = np.repeat(shares, queries.sizes)
    below = ShiftedHinge(queries.offsets, weights, codes, np.zeros(len(codes)))
    return lambda scores: np.maximum(values(scores) - below.value_and_grad(scores)[0], error(scores))


def violations(metric: PD, labels: FloatArray, queries: Queries, shares: FloatArray) -> PerList:
    """Weight of the pairs in the wrong order, tied ones by half, times each list's share."""
    return lambda scores: shares * np.nan_to_num(metric.per_query(labels, scores, qid=queries))
