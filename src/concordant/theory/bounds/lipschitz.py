"""What the losses of a query can do: how fast they change with the scores, and how large they become.

All is said of the sizes l_1, ..., l_r of the levels, best first: m ones are a full ranking, (rel, nrel) is a
bipartite one. F sums only the pairs of different levels, as the losses do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from concordant.exceptions import ParameterError
from concordant.theory.bounds.bound import check_whole

__all__ = ["check_levels", "kappa", "listwise_slope", "margin_sum", "n_pairs", "reach", "spread", "variety"]


def kappa(m: int) -> float:
    """Give 2 floor(m^2 / 2) / (m (m - 1)): the feature map of an order is at most that many times M long.

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
    """Give the sizes of the levels, if there are at least two and no level is empty."""
    if isinstance(levels, str) or not hasattr(levels, "__iter__") or len(tuple(levels)) < 2:
        raise ParameterError("levels", levels, "the sizes of at least two levels, best first")
    return tuple(check_whole("levels", size, 1) for size in levels)


def n_pairs(levels: Sequence[int]) -> int:
    """Give the number of pairs of items of different levels.

    >>> n_pairs((2, 3)), n_pairs((1, 1, 1, 1))
    (6, 6)
    """
    return int(sum(levels) ** 2 - sum(size**2 for size in levels)) // 2


def margin_sum(levels: Sequence[int]) -> float:
    """Give the sum over pairs of different levels of r/y_i - r/y_j: the largest margin-weighted 0-1 error.

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
    """Give the Lipschitz constant of the summed position hinge: sqrt((m^3 - sum_a l_a^3) / 3), attained.

    Its gradients are points of the zonotope of sums over pairs of t * (e_worse - e_better), t in [0, 1],
    whose vertices belong to orders: (c(order) - c(gold)) / 2, with c_i the number of items of other levels
    after i, less those before i. Both are at most this long: with u_i = m + 1 - 2 pos(i) and v the
    same within the item's level, c = u - v, and <u - v, v> >= 0 since both fall along the order; so the
    square of the length of c is at most that of u, (m^3 - m)/3, less that of v, sum_a (l_a^3 - l_a)/3. Equal
    scores violate all pairs, and attain it.

    Full rankings have sqrt(m (m^2 - 1) / 3), bipartite ones sqrt(rel * nrel * m).

    >>> reach((1, 1, 1)) ** 2, round(reach((2, 3)) ** 2, 10)
    (8.000000000000002, 30.0)
    """
    return math.sqrt((sum(levels) ** 3 - sum(size**3 for size in levels)) / 3)


def listwise_slope(levels: Sequence[int]) -> float:
    """Give the Lipschitz constant of the max and the soft-max listwise hinge: 4 reach / (m (m - 1)).

    The gradient of a piece is 2 / (m (m - 1)) times c(order) - c(gold), each as in `reach`; the max has
    the gradient of a piece or 0, the soft-max a mean of those. The reversed order attains it. Full
    rankings have 4 sqrt((m + 1) / (3 m (m - 1))), and no labels of m items have more.

    >>> round(listwise_slope((1, 1, 1)), 4), round(4 * math.sqrt(4 / 18), 4)
    (1.8856, 1.8856)
    """
    m = sum(levels)
    return 4 * reach(levels) / (m * (m - 1))


def spread(levels: Sequence[int]) -> float:
    """Give 4 max_k c_k (m - c_k) / (m (m - 1)), c_k the number of items in the best k levels.

    F(gold) - F(order) is 4 / (m (m - 1)) times the sum over inverted pairs of s_better - s_worse. For scores
    within [-BM, BM] that is between -2 BM spread and 2 BM spread, since the sum of (s_worse - s_better)_+ is
    convex in the scores, so largest at scores +-BM, and there largest where the worst levels have +BM and
    the rest -BM: 2 BM max_k c_k (m - c_k). Full rankings have `kappa(m)`, and no labels more.

    >>> spread((1, 1, 1)) == kappa(3), spread((1, 3))
    (True, 1.0)
    """
    m = sum(levels)
    return 4 * max(last * (m - last) for last in accumulate(levels)) / (m * (m - 1))


def variety(levels: Sequence[int]) -> int:
    """Give the largest sum over pairs of the squared lengths of their differences, for items of length <= 1.

    With S_a the sum of the items of level a, it is at most 2 P plus the squared lengths of the S_a, less that
    of their sum. No S_a is longer than l_a, and longer ones are never worse. If they can close a polygon,
    the sum is 0, which gives m^2; if one level has more items than all others, the best is the others
    opposite to it, which gives m^2 - (2 max_a l_a - m)^2.

    >>> variety((1, 1, 1)), variety((1, 3)), 4 * n_pairs((1, 3))
    (9, 12, 12)
    """
    m = sum(levels)
    return int(m**2 - max(0, 2 * max(levels) - m) ** 2)
