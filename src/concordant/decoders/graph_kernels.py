"""Kernels of the decoders: graphs and swaps. Importing this imports numba."""

from __future__ import annotations

import numpy as np

from concordant._base.segments import kernel, vector_kernel
from concordant.types import BoolArray, FloatArray, IntArray


@kernel
def topological(ranks: IntArray, least: int, order: IntArray) -> int:
    """Fill `order` so that edges of rank >= `least` point forward, the smallest free item first.

    Returns the number of items placed: fewer than all if those edges form a cycle. Rank -1 means no edge.
    """
    n = len(order)
    waits = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(n):
            waits[j] += ranks[i, j] >= least
    for position in range(n):
        free = 0
        while free < n and waits[free] != 0:
            free += 1
        if free == n:
            return position
        order[position], waits[free] = free, -1
        for j in range(n):
            waits[j] -= ranks[free, j] >= least
    return n


@kernel
def pack_triangles(weights: FloatArray) -> float:
    """Lower bound of the weight that any order violates, by greedily packing cycles of three edges.

    An order violates an edge of each cycle; no edge is charged more than its weight. `weights` is
    overwritten.
    """
    n, total = len(weights), 0.0
    for i in range(n):
        for j in range(n):
            k = 0
            while k < n and weights[i, j] > 0.0:
                taken = min(weights[i, j], weights[j, k], weights[k, i])
                if taken > 0.0:
                    weights[i, j] -= taken
                    weights[j, k] -= taken
                    weights[k, i] -= taken
                    total += taken
                k += 1
    return total


@kernel
def dominates(u: FloatArray, above: BoolArray) -> None:
    """Set above[i, j] to u_ii - u_jj >= sum over the other g of (u_jg - u_ig)_+."""
    n = len(u)
    for start in range(0, n, 16):  # rows of a few i stay in the cache while those of j pass
        for j in range(n):
            for i in range(start, min(start + 16, n)):
                lead, first, second = u[i, i] - u[j, j], min(i, j), max(i, j)
                lead = _subtract_missed(lead, u[i, :first], u[j, :first])
                lead = _subtract_missed(lead, u[i, first + 1 : second], u[j, first + 1 : second])
                lead = _subtract_missed(lead, u[i, second + 1 :], u[j, second + 1 :])
                above[i, j] = i != j and lead >= 0.0


@vector_kernel
def _subtract_missed(lead: float, ours: FloatArray, theirs: FloatArray) -> float:
    """Subtract the sum of (theirs - ours)_+ from the lead; stops once the lead is negative."""
    start = 0
    while start < len(ours) and lead >= 0.0:
        missed = 0.0
        for g in range(start, min(start + 128, len(ours))):
            missed += max(theirs[g] - ours[g], 0.0)
        lead -= missed
        start += 128
    return lead


@kernel
def by_swaps(u: FloatArray, rates: FloatArray, order: IntArray) -> bool:
    """Exchange pairs of items of a symmetric `u` as long as that helps; True if anything changed."""
    n, changed, since, first = len(order), False, 0, 0
    while since < n:
        i, has_swapped = order[first], False
        for other in range(first + 1, n):
            j = order[other]
            gain = (rates[first] - rates[other]) * (u[j, j] - u[i, i])
            for k in range(other):
                if k != first:
                    rate = rates[max(k, first)] - rates[other]
                    gain += rate * (u[j, order[k]] - u[i, order[k]])
            if gain > 1e-12 * n:
                order[first], order[other] = j, i
                i, has_swapped = j, True
        since = 0 if has_swapped else since + 1
        changed |= has_swapped
        first = (first + 1) % n
    return changed
