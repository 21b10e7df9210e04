"""Decode scores of pairs: in doubles, as a ranker does, and in exact arithmetic.

>>> import numpy as np
>>> from concordant.theory.combination import combination
>>> labels, half = (np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])), Fraction(1, 2)
>>> diagonal = combination("ap", "pairs", "diagonal")
>>> [str(score) for score in decoded_places(diagonal, labels, (half, half))]
['-1', '-2', '-3']
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from concordant import decoders
from concordant.data.synthetic.distribution import Label
from concordant.theory.combination import Combination
from concordant.theory.exact.enclosure import low
from concordant.theory.exact.exact_targets import expected_pair_targets
from concordant.theory.exact.exact_values import Order, best_value, regret
from concordant.theory.exact.linear_equations import Matrix
from concordant.types import ArrayLike, IntArray

NEAR = Fraction(1, 10**9)  # of the largest number: nearer numbers may be exchanged by rounding


def places_in_doubles(combination: Combination, u: ArrayLike) -> IntArray:
    """Return the rank of each item, 1 the best, that the combination's decoder finds."""
    decode = decoders.average_precision if combination.metric.name == "ap" else decoders.feedback_arc
    return decode(u, method=combination.decoder).positions


def decoded_places(
    combination: Combination, labels: Sequence[Label], probs: Sequence[Fraction]
) -> tuple[Fraction, ...] | None:
    """Return the negated ranks of the decoded order, from the exact expectations of the pair targets.

    "auto" is a best order. "diagonal", "borda" and "edge-deletion" are computed in exact arithmetic; ties are
    broken as the decoders document. The others are searches without an exact form: their result in doubles is
    returned if it is clearly worse than the best order and no two pair targets are nearly equal, else None.
    """
    u = expected_pair_targets(combination.metric, labels, probs)
    if combination.decoder == "auto":
        return _negated(best_value(combination.metric, labels, probs)[0][0])
    if combination.decoder in EXACTLY:
        return _negated(EXACTLY[combination.decoder](u))
    positions = places_in_doubles(combination, [[float(entry) for entry in row] for row in u])
    negated_places = tuple(Fraction(-int(rank)) for rank in positions)
    entries = sorted({entry for row in u for entry in row})
    least = NEAR * max(map(abs, entries))
    apart = all(above - below > least for below, above in itertools.pairwise(entries))
    return (
        negated_places
        if apart and low(regret(combination.metric, labels, probs, negated_places)) > least
        else None
    )


def _negated(order: Order) -> tuple[Fraction, ...]:
    """Return minus the rank of each item."""
    return tuple(Fraction(-1 - order.index(item)) for item in range(len(order)))


def by_diagonal(u: Matrix) -> Order:
    """Sort by u_ii; equal items keep their order."""
    return tuple(sorted(range(len(u)), key=lambda i: -u[i][i]))


def by_borda(u: Matrix) -> Order:
    """Sort by the sum over j of u_ij - u_ji; equal items keep their order."""
    net = [sum(u[i], Fraction()) - sum((row[i] for row in u), Fraction()) for i in range(len(u))]
    return tuple(sorted(range(len(u)), key=lambda i: -net[i]))


def by_edge_deletion(u: Matrix) -> Order:
    """Delete majority edges, the lightest first (of equal ones by i, then j), until no cycle is left."""
    items = range(len(u))
    majority = [(i, j) for i in items for j in items if u[i][j] > u[j][i]]
    edges = sorted(majority, key=lambda edge: (u[edge[0]][edge[1]] - u[edge[1]][edge[0]], edge))
    while (order := forward(edges, len(u))) is None:
        del edges[0]
    return order


def forward(edges: Sequence[tuple[int, int]], n_items: int) -> Order | None:
    """Return the order along which all edges point, the smallest free item first; None if there is a cycle.

    >>> forward([(2, 0)], 3), forward([(0, 1), (1, 0)], 2)
    ((1, 2, 0), None)
    """
    order: list[int] = []
    while len(order) < n_items:
        waiting = {j for i, j in edges if i not in order}
        free = [item for item in range(n_items) if item not in order and item not in waiting]
        if not free:
            return None
        order.append(free[0])
    return tuple(order)


EXACTLY: Mapping[str, Callable[[Matrix], Order]] = {
    "diagonal": by_diagonal,
    "borda": by_borda,
    "edge-deletion": by_edge_deletion,
}
