"""Facts of a hinge loss on fixed labels: how fast it changes, how large it becomes, what it dominates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from concordant._base.segments import segment_reduce, segment_sum
from concordant._base.validate import check_number, check_whole
from concordant.data.queries import Queries
from concordant.exceptions import ParameterError
from concordant.metrics.convention import Convention
from concordant.metrics.pair_metrics import PD, WPD
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate, hinge, margin
from concordant.surrogates.pairwise import level_codes, pair_counts
from concordant.surrogates.position_hinge import ShiftedHinge
from concordant.types import FloatArray, IntArray

# The losses of a query: how fast they change with the scores, and how large they become.
#
# The functions read the sizes l_1, ..., l_r of the levels, best first: m levels of size 1 are a full ranking,
# (rel, nrel) is a bipartite one. F sums only the pairs of different levels, as the losses do. Proofs are in
# docs/theory.md, "Constants of the hinges".


def kappa(m: int) -> float:
    """Return 2 floor(m^2 / 2) / (m (m - 1)): the feature map of an order is at most that many times M long.

    The map is the mean over the m (m - 1) / 2 pairs of the difference of their features, signed by the order.
    Times w it is largest where one half of the items has score BM and the other half -BM.

    Parameters
    ----------
    m
        Items of the query, at least 2.

    Examples
    --------
    >>> kappa(2), round(kappa(40), 4)
    (2.0, 1.0256)
    """
    items = check_whole("m", m, 2)
    return 2 * (items**2 // 2) / (items * (items - 1))


def check_levels(levels: Sequence[int]) -> tuple[int, ...]:
    """Check that there are at least two levels and none is empty, and return their sizes."""
    if isinstance(levels, str) or not hasattr(levels, "__iter__") or len(tuple(levels)) < 2:
        raise ParameterError("levels", levels, "the sizes of at least two levels, best first")
    return tuple(check_whole("levels", size, 1) for size in levels)


def n_pairs(levels: Sequence[int]) -> int:
    """Return the number of pairs of items of different levels.

    >>> n_pairs((2, 3)), n_pairs((1, 1, 1, 1))
    (6, 6)
    """
    return int(sum(levels) ** 2 - sum(size**2 for size in levels)) // 2


def margin_sum(levels: Sequence[int]) -> float:
    """Sum r/y_i - r/y_j over pairs of different levels: the largest margin-weighted 0-1 error.

    An item of level a enters with r/a once for every worse item, and with -r/a once for every better one.

    >>> margin_sum((2, 3)), margin_sum((1, 1, 1))
    (6.0, 4.0)
    """
    m, r, upto = sum(levels), len(levels), accumulate(levels)
    return math.fsum(
        size * r / level * ((m - last) - (last - size))
        for level, (size, last) in enumerate(zip(levels, upto, strict=True), start=1)
    )


def reach(levels: Sequence[int]) -> float:
    """Return the Lipschitz constant of the summed position hinge: sqrt((m^3 - sum_a l_a^3) / 3), attained.

    Full rankings have sqrt(m (m^2 - 1) / 3), bipartite ones sqrt(rel * nrel * m).

    >>> reach((1, 1, 1)) ** 2, round(reach((2, 3)) ** 2, 10)
    (8.000000000000002, 30.0)
    """
    return math.sqrt((sum(levels) ** 3 - sum(size**3 for size in levels)) / 3)


def listwise_slope(levels: Sequence[int]) -> float:
    """Return the Lipschitz constant of the max and the soft-max listwise hinge: 4 reach / (m (m - 1)).

    Full rankings have 4 sqrt((m + 1) / (3 m (m - 1))), and no labels of m items have more.

    >>> round(listwise_slope((1, 1, 1)), 4), round(4 * math.sqrt(4 / 18), 4)
    (1.8856, 1.8856)
    """
    m = sum(levels)
    return 4 * reach(levels) / (m * (m - 1))


def spread(levels: Sequence[int]) -> float:
    """Return 4 max_k c_k (m - c_k) / (m (m - 1)), c_k the number of items in the best k levels.

    For scores within [-BM, BM], F(gold) - F(order) is between -2 BM spread and 2 BM spread. Full rankings
    have `kappa(m)`, and no labels more.

    >>> spread((1, 1, 1)) == kappa(3), spread((1, 3))
    (True, 1.0)
    """
    m = sum(levels)
    return 4 * max(last * (m - last) for last in accumulate(levels)) / (m * (m - 1))


def variety(levels: Sequence[int]) -> int:
    """Return the largest sum over pairs of squared lengths of differences, for items of length <= 1.

    >>> variety((1, 1, 1)), variety((1, 3)), 4 * n_pairs((1, 3))
    (9, 12, 12)
    """
    m = sum(levels)
    return int(m**2 - max(0, 2 * max(levels) - m) ** 2)


ROUNDING = 1e-9

PerList = Callable[[FloatArray], FloatArray]
"""One number per list, from the scores of its rows."""


@dataclass(frozen=True, eq=False)
class HingeFacts:
    """Facts of a hinge loss on the lists of a sample.

    Attributes
    ----------
    codes
        Number of each row's level within its list.
    slopes, pair_slopes
        Lipschitz constant of each list's loss, in its scores, and in the differences of the scores of its
        pairs of different levels.
    separable
        True if it is a sum of functions of one difference each.
    values, cut
        The loss of each list; and the loss cut off, where it still dominates the bounded loss.
    worst
        Largest value of the bounded loss on each list.
    rest
        Largest loss at scores 0 of any list, in the sample or not.
    height, ceiling
        Largest loss where no score is more than BM from some centre of its list, as a function of BM; and
        largest loss when cut off.
    bounds, error, largest
        The bounded loss, which the hinge dominates: in words, of each list, and its largest value.
    multiplier
        Factor by which the hinge has to be multiplied to dominate the bounded loss.
    assumes, assumes_height
        Assumptions about lists outside the sample; and further ones of `height`.
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


def has_hinge_facts(loss: object) -> bool:
    """True if a loss is a hinge whose facts are known."""
    if isinstance(loss, ListwiseHinge):
        return loss.mode in ("max", "softmax")
    if isinstance(loss, Preorder):
        return loss.weighting == "pairs" and margin(loss.margin) == hinge
    return isinstance(loss, PositionHinge)


def hinge_facts(loss: Surrogate, y: FloatArray, queries: Queries, largest: float, error: str) -> HingeFacts:
    """Compute the facts of a hinge on grades, rows of each query adjacent."""
    if not has_hinge_facts(loss):
        allowed = "a ListwiseHinge (max, softmax), a PositionHinge or Preorder('pairs', margin='hinge')"
        raise ParameterError("loss", loss, allowed)
    if isinstance(loss, ListwiseHinge):
        return _order_hinge_facts(loss, y, queries, check_number("largest", largest, above=0.0))
    if isinstance(loss, PositionHinge):
        return _position_hinge_facts(loss, y, queries, plain=error == "plain")
    return _pair_hinge_facts(loss, y, queries)


def _losses_per_list(loss: Surrogate, y: FloatArray, queries: Queries) -> PerList:
    """Bind the loss to the labels: a function from scores to the loss of each list."""
    bound = loss.bind(y, queries.offsets)
    return lambda scores: bound.value_and_grad(scores)[0]


def reaches(codes: IntArray, offsets: IntArray) -> FloatArray:
    """`hinges.reach` of each list."""
    slots = codes + np.repeat(offsets[:-1], np.diff(offsets))
    cubes = np.bincount(slots, minlength=len(codes)).astype(np.float64) ** 3
    sizes = np.diff(offsets).astype(np.float64)
    reach: FloatArray = np.sqrt((sizes**3 - segment_sum(cubes, offsets)) / 3.0)
    return reach


def _order_hinge_facts(loss: ListwiseHinge, y: FloatArray, queries: Queries, largest: float) -> HingeFacts:
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
    values = _losses_per_list(loss, y, queries)
    dominated_losses = values if loss.mode == "max" else _losses_per_list(ListwiseHinge(metric), y, queries)
    worst = dominated_losses(np.zeros(len(y)))  # at equal scores: the largest loss of an order
    if (largest_loss := float(worst.max(initial=0.0))) > largest * (1.0 + ROUNDING):
        raise ParameterError("largest", largest, f"at least {largest_loss:.6g}, the largest loss of an order")

    def metric_gap(scores: FloatArray) -> FloatArray:
        best, value = (metric.per_query(y, ranking, qid=queries) for ranking in (gains, scores))
        difference: FloatArray = np.nan_to_num(best - value if metric.greater_is_better else value - best)
        return difference

    return HingeFacts(
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
        error=metric_gap,
        largest=largest,
        assumes=(
            *(f"no order of a list loses more than {largest:g}",) * (not metric.bounded),
            *(f"no list has more than {longest} items",) * (soft > 0.0),
        ),
        assumes_height=(f"no list is shorter than {shortest} items",),
    )


def _position_hinge_facts(loss: PositionHinge, y: FloatArray, queries: Queries, *, plain: bool) -> HingeFacts:
    """Facts of the position hinge: no margin of r levels is above r - 1."""
    offsets, codes = queries.offsets, level_codes(y, queries.offsets)
    level_counts = segment_reduce(np.maximum, codes.astype(np.float64), offsets) + 1.0
    margins = np.repeat(level_counts, queries.sizes) / (np.repeat(level_counts, queries.sizes) - codes)
    levels = max(int(level_counts.max(initial=2.0)), 2)
    shares, counts = loss.shares(y, offsets), pair_counts(y, offsets)
    weighted = _violations(WPD(convention=Convention(gain="linear")), margins, queries, shares)
    values = _losses_per_list(loss, y, queries)
    pairs = float(counts.max(initial=0.0)) if loss.reduction == "sum" else 1.0
    return HingeFacts(
        codes=codes,
        slopes=shares * reaches(codes, offsets),
        pair_slopes=shares * np.sqrt(counts),
        separable=True,
        values=values,
        cut=_ramps(values, codes, queries, shares, weighted),
        worst=shares * counts if plain else values(np.zeros(len(y))),
        rest=pairs * (levels - 1.0),
        height=lambda far: pairs * (levels - 1.0 + 2.0 * far),
        ceiling=pairs * (levels - 1.0),
        bounds=f"{'' if plain else 'margin-weighted '}0-1 error of pairs",
        error=_violations(PD(), y, queries, shares) if plain else weighted,
        largest=pairs if plain else pairs * (levels - 1.0),
        multiplier=levels - 1.0 if plain else 1.0,
        assumes=(
            f"no list has more than {levels} levels",
            *(f"no list has more than {pairs:,.0f} pairs of different levels",) * (loss.reduction == "sum"),
        ),
    )


def _pair_hinge_facts(loss: Surrogate, y: FloatArray, queries: Queries) -> HingeFacts:
    """Facts of the plain hinge, mean over pairs."""
    codes, counts = level_codes(y, queries.offsets), pair_counts(y, queries.offsets)
    shares = 1.0 / np.maximum(counts, 1.0)
    error, values = _violations(PD(), y, queries, shares), _losses_per_list(loss, y, queries)
    return HingeFacts(
        codes=codes,
        slopes=shares * reaches(codes, queries.offsets),
        pair_slopes=shares * np.sqrt(counts),
        separable=True,
        values=values,
        cut=_ramps(values, codes, queries, shares, error),
        worst=shares * counts,
        rest=1.0,
        height=lambda far: 1.0 + 2.0 * far,
        ceiling=1.0,
        bounds="0-1 error of pairs",
        error=error,
        largest=1.0,
    )


def _ramps(values: PerList, codes: IntArray, queries: Queries, shares: FloatArray, error: PerList) -> PerList:
    """Cut off each pair's hinge at its margin: the hinge less the hinge of margin 0.

    For scores far apart that difference is little but rounding; it is kept above the loss it dominates.
    """
    weights = np.repeat(shares, queries.sizes)
    below = ShiftedHinge(queries.offsets, weights, codes, np.zeros(len(codes)))
    return lambda scores: np.maximum(values(scores) - below.value_and_grad(scores)[0], error(scores))


def _violations(metric: PD, labels: FloatArray, queries: Queries, shares: FloatArray) -> PerList:
    """Weight of the pairs in the wrong order (ties count half), times each list's share."""
    return lambda scores: shares * np.nan_to_num(metric.per_query(labels, scores, qid=queries))
