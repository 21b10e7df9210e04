"""Losses of the comparison family, pair by pair, with slopes and curvatures in score g and bias b."""

from __future__ import annotations

import math
from typing import Any

from concordant._segments import kernel, vector_kernel

__all__ = ["dual_terms", "line_slope", "losses", "sweep"]


@kernel
def loss_at(s: float, kind: int, delta: float) -> tuple[float, float, float]:
    """Value, slope, curvature at slack s: hinge (0; rounded over [0, delta]), square (1), logistic (2)."""
    if kind == 2:
        e = math.exp(-abs(s))
        q = (1.0 if s > 0.0 else e) / (1.0 + e)
        return max(s, 0.0) + math.log1p(e), q, e / ((1.0 + e) * (1.0 + e))
    if s <= 0.0:
        return 0.0, 0.0, 0.0
    if kind == 1:
        return s * s, 2.0 * s, 2.0
    if s < delta:
        return 0.5 * s * s / delta, s / delta, 1.0 / delta
    return s - 0.5 * delta, 1.0, 0.0


@vector_kernel
def dot(x: Any, w: Any) -> float:
    """Inner product."""
    total = 0.0
    for k in range(len(x)):
        total += x[k] * w[k]
    return total


@kernel
def add(out: Any, factor: float, x: Any) -> None:
    """Add a multiple of x."""
    for k in range(len(x)):
        out[k] += factor * x[k]


@kernel
def sweep(
    rows: Any, tie: Any, cost: Any, w: Any, bias: float, kind: int, delta: float,
    first: int, last: int, g: Any, curve: Any, grads: Any, sums: Any,
) -> None:  # fmt: skip
    """One pass over rows first to last.

    Fills g, and `curve` with the curvature in g and the mixed one; adds to `grads` the slopes times the rows
    of differences (0) and ties (1), and to `sums` the loss, the slope and curvature in the bias, and the
    total of the dual variables of differences and ties.
    """
    margin = 0.0 if kind == 2 else 1.0
    for i in range(first, last):
        at, c = dot(rows[i], w), cost[i]
        g[i] = at
        if tie[i]:
            up = loss_at(margin + bias - at, kind, delta)
            down = loss_at(margin + bias + at, kind, delta)
            curve[i, 0] = c * (down[2] + up[2])
            curve[i, 1] = c * (down[2] - up[2])
            sums[0] += c * (up[0] + down[0])
            sums[1] += c * (up[1] + down[1])
            sums[2] += curve[i, 0]
            sums[4] += c * (up[1] + down[1])
            if up[1] != down[1]:
                add(grads[1], c * (down[1] - up[1]), rows[i])
        else:
            one = loss_at(margin - bias - at, kind, delta)
            curve[i, 0] = curve[i, 1] = c * one[2]
            sums[0] += c * one[0]
            sums[1] -= c * one[1]
            sums[2] += c * one[2]
            sums[3] += c * one[1]
            if one[1] != 0.0:
                add(grads[0], -c * one[1], rows[i])


@kernel
def losses(g: Any, tie: Any, cost: Any, bias: float, kind: int, delta: float) -> float:
    """Sum of all losses."""
    margin = 0.0 if kind == 2 else 1.0
    total = 0.0
    for i in range(len(g)):
        if tie[i]:
            up = loss_at(margin + bias - g[i], kind, delta)[0]
            total += cost[i] * (up + loss_at(margin + bias + g[i], kind, delta)[0])
        else:
            total += cost[i] * loss_at(margin - bias - g[i], kind, delta)[0]
    return total


@kernel
def conjugate(v: float, kind: int) -> float:
    """What a dual variable v, as a share of the cost, adds to the dual of the loss itself (not rounded)."""
    if kind == 0:
        return v
    if kind == 1:
        return v - 0.25 * v * v
    if v <= 0.0 or v >= 1.0:
        return 0.0
    return -v * math.log(v) - (1.0 - v) * math.log1p(-v)


@kernel
def dual_terms(
    g: Any, tie: Any, cost: Any, bias: float, kind: int, delta: float, of_difference: float, of_tie: float
) -> float:
    """Sum over the dual variables, those of differences and of ties multiplied by a factor <= 1."""
    margin = 0.0 if kind == 2 else 1.0
    total = 0.0
    for i in range(len(g)):
        if tie[i]:
            up = of_tie * loss_at(margin + bias - g[i], kind, delta)[1]
            down = of_tie * loss_at(margin + bias + g[i], kind, delta)[1]
            total += cost[i] * (conjugate(up, kind) + conjugate(down, kind))
        else:
            one = of_difference * loss_at(margin - bias - g[i], kind, delta)[1]
            total += cost[i] * conjugate(one, kind)
    return total


@kernel
def line_slope(
    g: Any, step: Any, tie: Any, cost: Any, bias: float, bias_step: float, t: float, kind: int, delta: float
) -> float:
    """Slope of all losses along g + t step, bias + t bias_step."""
    margin = 0.0 if kind == 2 else 1.0
    b = bias + t * bias_step
    total = 0.0
    for i in range(len(g)):
        at = g[i] + t * step[i]
        if tie[i]:
            up = loss_at(margin + b - at, kind, delta)[1]
            down = loss_at(margin + b + at, kind, delta)[1]
            total += cost[i] * (up * (bias_step - step[i]) + down * (bias_step + step[i]))
        else:
            total -= cost[i] * loss_at(margin - b - at, kind, delta)[1] * (bias_step + step[i])
    return total
