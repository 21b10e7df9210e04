"""Compiled passes over votes and over pairs of items. Importing this imports numba."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from concordant._base.segments import kernel
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def count_votes(
    left: IntArray,
    right: IntArray,
    outcome: IntArray,
    weights: FloatArray,
    n_items: int,
    sided: bool,
    table: NDArray[Any],
) -> None:
    """Add each vote to table[(i * n_items + j) * 3 + outcome + 1]; unless `sided`, i < j.

    If `weights` is empty, each vote has weight 1.
    """
    weighted = len(weights) > 0
    for k in range(len(left)):
        i, j = left[k], right[k]
        turn = (
            -1 if i > j and not sided else 1
        )  # selected without a branch: the side is as random as a coin toss
        first, second = (min(i, j), max(i, j)) if not sided else (i, j)
        cell = (first * n_items + second) * 3 + turn * outcome[k] + 1
        if weighted:
            table[cell] += weights[k]
        else:
            table[cell] += 1


@kernel
def copy_filled_pairs(
    table: NDArray[Any], n_items: int, first: IntArray, second: IntArray, cells: FloatArray
) -> int:
    """Copy the pairs with votes out of such a table; return their number. Empty arrays are not filled."""
    n_pairs, cell = 0, 0
    for i in range(n_items):
        for j in range(n_items):
            if table[cell] + table[cell + 1] + table[cell + 2] > 0:
                if len(first) > 0:
                    first[n_pairs], second[n_pairs] = i, j
                    for result in range(3):
                        cells[n_pairs, result] = table[cell + result]
                n_pairs += 1
            cell += 3
    return n_pairs


@kernel
def join_pairs(first: IntArray, second: IntArray, cells: FloatArray, mutual: bool, parent: IntArray) -> int:
    """Join items that met, or if `mutual` that both won or tied; return the number of parts.

    `parent` begins as 0, 1, 2, ... and ends as a forest, one root a part. It stops at one part.
    """
    parts = len(parent)
    for e in range(len(first)):
        won, lost = cells[e, 0] > 0.0, cells[e, 2] > 0.0
        if cells[e, 1] > 0.0 or (won and lost) or ((won or lost) and not mutual):
            i, j = first[e], second[e]
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            while parent[j] != j:
                parent[j] = parent[parent[j]]
                j = parent[j]
            if i != j:
                parent[i] = j
                parts -= 1
                if parts == 1:
                    break
    return parts


@kernel
def _add_first(
    i: int,
    slope: float,
    bend: float,
    cross: float,
    tie_slope: float,
    tie_bend: float,
    sums: FloatArray,
    nodes: FloatArray,
) -> None:
    """Add the derivatives of pairs with this first side to the sums, which `davidson` explains."""
    sums[1] += slope
    sums[2] += tie_slope
    sums[3] += bend
    sums[4] += cross
    sums[5] += tie_bend
    nodes[i, 0] += slope
    nodes[i, 1] += bend
    nodes[i, 2] += bend
    nodes[i, 3] += cross


@kernel
def _root_strengths(
    halves: FloatArray, i: int, j: int, advantage: float, far: bool
) -> tuple[float, float, float, float]:
    """Square roots of two strengths, up to a common factor, and their logarithms.

    `far`: strengths may overflow, and only their quotient is used.
    """
    a, b = halves[i, 0] + advantage, halves[j, 0]
    if far:
        a, b = min(a - b, 0.0), min(b - a, 0.0)
        return math.exp(a), math.exp(b), a, b
    return halves[i, 1], halves[j, 1], a, b


@kernel
def davidson(
    first: IntArray,
    second: IntArray,
    cells: FloatArray,
    halves: FloatArray,
    advantage: float,
    tie: float,
    far: bool,
    valued: bool,
    bordered: bool,
    sums: FloatArray,
    nodes: FloatArray,
    curvature: FloatArray,
) -> None:
    """Compute the log-likelihood of Davidson's model, and its derivatives.

    `tie` is log(nu); minus infinity gives Bradley and Terry's model. Row i of `halves` is half the
    log-strength of item i, and the exponential of that unless `far`; `advantage` is half of the first
    side's. `sums`: the value, its derivatives by advantage and tie, then minus the second ones: advantage
    twice, both, tie twice. `nodes`: for each item the derivative by its log-strength, then minus the second
    ones: twice, with advantage, with tie. `curvature`: for each pair minus the second derivative by the
    difference of the log-strengths. The value only if `valued` (logarithms take longest), the derivatives by
    advantage and tie only if `bordered`. No probability is computed as 1 minus another: none loses digits
    near 1.
    """
    nu, boost = math.exp(tie), 1.0 if far else math.exp(advantage)
    sums[:] = 0.0
    nodes[:] = 0.0
    value, slopes, bends, crosses, tie_slopes, tie_bends = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for e in range(len(first)):
        i, j = first[e], second[e]
        if e > 0 and i != first[e - 1]:
            _add_first(first[e - 1], slopes, bends, crosses, tie_slopes, tie_bends, sums, nodes)
            slopes, bends, crosses, tie_slopes, tie_bends = 0.0, 0.0, 0.0, 0.0, 0.0
        wins, ties, losses = cells[e, 0], cells[e, 1], cells[e, 2]
        x, y, log_x, log_y = halves[i, 1], halves[j, 1], 0.0, 0.0
        if far or valued:
            x, y, log_x, log_y = _root_strengths(halves, i, j, advantage, far)
        x, votes = x * boost, wins + ties + losses
        scale = 1.0 / (x * x + y * y + nu * x * y)
        p, q, level = x * x * scale, y * y * scale, nu * x * y * scale
        if valued:
            value += votes * math.log(scale)
            value += (wins + wins + ties) * log_x + (losses + losses + ties) * log_y
            if ties > 0.0:
                value += ties * tie
        slope = 0.5 * (wins * (q + q + level) - losses * (p + p + level) + ties * (q - p))
        bend = 0.25 * votes * (4.0 * p * q + level * (p + q))  # p + q - (p - q)^2 without cancelling
        curvature[e] = bend
        slopes, bends = slopes + slope, bends + bend
        nodes[j, 0] -= slope
        nodes[j, 1] += bend
        if bordered:
            cross = 0.5 * votes * level * (q - p)
            nodes[j, 2] -= bend
            nodes[j, 3] -= cross
            crosses += cross
            tie_slopes += ties * (p + q) - (wins + losses) * level
            tie_bends += votes * level * (p + q)
    sums[0] = value
    if len(first) > 0:
        _add_first(first[-1], slopes, bends, crosses, tie_slopes, tie_bends, sums, nodes)


@kernel
def rao_kupper(
    first: IntArray,
    second: IntArray,
    cells: FloatArray,
    halves: FloatArray,
    advantage: float,
    tie: float,
    far: bool,
    valued: bool,
    bordered: bool,
    sums: FloatArray,
    nodes: FloatArray,
    curvature: FloatArray,
) -> None:
    """Compute the same as `davidson` for the Rao-Kupper model, where `tie` is log(theta) >= 0."""
    theta, excess, boost = math.exp(tie), math.expm1(2.0 * tie), 1.0 if far else math.exp(advantage)
    sums[:] = 0.0
    nodes[:] = 0.0
    value, slopes, bends, crosses, tie_slopes, tie_bends = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for e in range(len(first)):
        i, j = first[e], second[e]
        if e > 0 and i != first[e - 1]:
            _add_first(first[e - 1], slopes, bends, crosses, tie_slopes, tie_bends, sums, nodes)
            slopes, bends, crosses, tie_slopes, tie_bends = 0.0, 0.0, 0.0, 0.0, 0.0
        wins, ties, losses = cells[e, 0], cells[e, 1], cells[e, 2]
        ahead, behind = wins + ties, losses + ties  # a tie is short of neither threshold
        x, y, log_x, log_y = _root_strengths(halves, i, j, advantage, far)
        x, y = x * boost * x * boost, y * y
        above, below = 1.0 / (x + theta * y), 1.0 / (y + theta * x)
        if valued:
            value += ahead * (2.0 * log_x + math.log(above)) + behind * (2.0 * log_y + math.log(below))
            if ties > 0.0:
                value += ties * math.log(excess)
        win, loss, not_win, not_loss = x * above, y * below, theta * y * above, theta * x * below
        win_bend, loss_bend = ahead * win * not_win, behind * loss * not_loss
        slope = wins * not_win - losses * not_loss + ties * (loss - win)
        curvature[e] = win_bend + loss_bend
        slopes, bends = slopes + slope, bends + win_bend + loss_bend
        nodes[j, 0] -= slope
        nodes[j, 1] += win_bend + loss_bend
        if bordered:
            nodes[j, 2] -= win_bend + loss_bend
            nodes[j, 3] -= loss_bend - win_bend
            crosses += loss_bend - win_bend
            tie_slopes += ties * (win + loss) - wins * not_win - losses * not_loss
            tie_bends += win_bend + loss_bend
            if ties > 0.0:
                tie_slopes += 2.0 * ties / excess
                tie_bends += 4.0 * ties * (1.0 + 1.0 / excess) / excess
    sums[0] = value
    if len(first) > 0:
        _add_first(first[-1], slopes, bends, crosses, tie_slopes, tie_bends, sums, nodes)


@kernel
def laplacian_times(
    first: IntArray, second: IntArray, curvature: FloatArray, vector: FloatArray, out: FloatArray
) -> None:
    """Compute, for each item, the sum over its pairs of curvature * (its entry - the other's)."""
    out[:] = 0.0
    total = 0.0
    for e in range(len(first)):
        i, j = first[e], second[e]
        if e > 0 and i != first[e - 1]:  # pairs with the same first side are adjacent: its sum is added once
            out[first[e - 1]] += total
            total = 0.0
        flow = curvature[e] * (vector[i] - vector[j])
        total += flow
        out[j] -= flow
    if len(first) > 0:
        out[first[-1]] += total
