"""Losses and stochastic steps of the comparison family, pair by pair. Importing this imports numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from concordant._base.segments import kernel, vector_kernel

# Losses of the comparison family, pair by pair, with slopes and curvatures in score g and bias b.


@kernel
def loss_at(s: float, kind: int, delta: float) -> tuple[float, float, float]:
    """Value, slope and curvature at slack s: hinge (0; rounded over [0, delta]), square (1), logistic (2)."""
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
    """Add a multiple of x to out."""
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
            loss = loss_at(margin - bias - at, kind, delta)
            curve[i, 0] = curve[i, 1] = c * loss[2]
            sums[0] += c * loss[0]
            sums[1] -= c * loss[1]
            sums[2] += c * loss[2]
            sums[3] += c * loss[1]
            if loss[1] != 0.0:
                add(grads[0], -c * loss[1], rows[i])


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
def _conjugate(v: float, kind: int) -> float:
    """Dual term of a dual variable v, a share of the cost, for the loss without rounding."""
    if kind == 0:
        return v
    if kind == 1:
        return v - 0.25 * v * v
    if v <= 0.0 or v >= 1.0:
        return 0.0
    return -v * math.log(v) - (1.0 - v) * math.log1p(-v)


@kernel
def dual_terms(
    g: Any,
    tie: Any,
    cost: Any,
    bias: float,
    kind: int,
    delta: float,
    difference_factor: float,
    tie_factor: float,
) -> float:
    """Sum of the dual terms, the dual variables of differences and of ties scaled by a factor <= 1."""
    margin = 0.0 if kind == 2 else 1.0
    total = 0.0
    for i in range(len(g)):
        if tie[i]:
            up = tie_factor * loss_at(margin + bias - g[i], kind, delta)[1]
            down = tie_factor * loss_at(margin + bias + g[i], kind, delta)[1]
            total += cost[i] * (_conjugate(up, kind) + _conjugate(down, kind))
        else:
            difference = difference_factor * loss_at(margin - bias - g[i], kind, delta)[1]
            total += cost[i] * _conjugate(difference, kind)
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


# Steps of stochastic gradient on the comparison family, one pair at a time. Importing this imports numba.

BINS = 512  # of decisions
FINENESS = 32.0  # bins to a unit of their inverse hyperbolic sine
RATE = 3.0  # a compromise: 5 was better on correlated features and little noise, and worse on many features
FLAT = 1e-10  # a feature whose spread is this small a share of its size is constant
TINY = 1e-100  # sums of squared slopes below this count as 0: quotients by them would overflow
NARROW = 1e-280  # the same of variances
CURVATURES = (1.0, 2.0, 0.25)  # of hinge (the length of its slope), squared hinge and logistic, at most


@vector_kernel
def step(
    row: Any,
    inverse: Any,
    tie: bool,
    cost: float,
    decay: float,
    bias_cost: float,
    kind: int,
    time: int,
    current: Any,
    fisher: Any,
    rates: Any,
) -> None:
    """Move the current weights (the bias last) against the slope of one pair's loss.

    Per feature, the slope is multiplied by RATE * time^(1/3) over the sum of squared slopes so far, all taken
    in features divided by their spread (`inverse` is 1 / spread^2): of a likelihood, that is about
    RATE * time^(-2/3) over the curvature, as Polyak's averaging wants. Early on all steps are shortened alike
    where they would overshoot this pair. Decay, the regularisation, is taken at the end of the step, where it
    cannot overshoot.
    """
    p = len(row)
    g = dot(row, current[:p])
    margin, bias = 0.0 if kind == 2 else 1.0, current[p]
    if tie:
        up = loss_at(margin + bias - g, kind, 0.0)[1]
        down = loss_at(margin + bias + g, kind, 0.0)[1]
        slope, bias_slope = cost * (down - up), cost * bias_cost * (down + up)
    else:
        slope = -cost * loss_at(margin - bias - g, kind, 0.0)[1]
        bias_slope = bias_cost * slope
    growth, square = RATE * time ** (1.0 / 3.0), slope * slope
    fisher[p] += bias_slope * bias_slope
    rates[p] = growth / fisher[p] if fisher[p] > TINY else 0.0
    reach = rates[p]
    for j in range(p):
        size = row[j] * row[j] * inverse[j]
        fisher[j] += square * size
        rates[j] = growth / fisher[j] if fisher[j] > TINY else 0.0
        reach += rates[j] * size
    highest = (2.0 if tie else 1.0) * cost * CURVATURES[kind]
    share = 1.0 if reach * highest <= 1.0 else 1.0 / (reach * highest)
    for j in range(p):
        rate = share * rates[j]
        current[j] = (current[j] - rate * slope * row[j] * inverse[j]) / (1.0 + rate * decay)
    current[p] -= share * rates[p] * bias_slope


@vector_kernel
def _average_in(time: int, current: Any, average: Any) -> None:
    """Move the average towards the current weights; those of time t count about in proportion to t^2."""
    share = 3.0 / (time + 2.0)
    for j in range(len(average)):
        average[j] += share * (current[j] - average[j])


@vector_kernel
def _observe(pair: Any, time: int, mean: Any, square: Any, inverse: Any) -> None:
    """Update each feature's mean, sum of squares and inverse variance with both sides of a pair."""
    before, after = 1.0 / (2.0 * time - 1.0), 1.0 / (2.0 * time)
    for j in range(len(mean)):
        off = pair[0, j] - mean[j]
        mean[j] += off * before
        square[j] += off * (pair[0, j] - mean[j])
        off = pair[1, j] - mean[j]
        mean[j] += off * after
        square[j] += off * (pair[1, j] - mean[j])
        variance, level = square[j] * after, FLAT * mean[j]
        inverse[j] = 1.0 / variance if variance > max(level * level, NARROW) else 0.0


@vector_kernel
def follow(inverse: Any, widest: Any, current: Any, average: Any) -> None:
    """Shrink the weight of a feature whose variance reaches a new maximum, so that its share of scores stays.

    Otherwise a first pair whose sides happen to be close would leave a weight far too large for later pairs.
    """
    for j in range(len(inverse)):
        if inverse[j] > 0.0 and widest[j] * inverse[j] < 1.0:
            share = math.sqrt(widest[j] * inverse[j])
            current[j] *= share
            average[j] *= share
            widest[j] = 1.0 / inverse[j]


@vector_kernel
def record(row: Any, tie: bool, time: int, average: Any, history: Any) -> None:
    """Add a pair's score, by the average weights before the update, to the histogram of its kind."""
    score = dot(row, average[: len(row)])
    if tie:
        score = abs(score)
    bin_number = int(min(max(BINS / 2 + FINENESS * math.asinh(score), 0.0), BINS - 1.0))
    weight, kind = float(time) * float(time), 1 if tie else 0
    history[kind, 0, bin_number] += weight
    history[kind, 1, bin_number] += weight * score


@vector_kernel
def learn_pairs(
    pairs: Any,
    y: Any,
    C: float,
    kind: int,
    count: int,
    scaled: bool,
    mean: Any,
    square: Any,
    widest: Any,
    current: Any,
    fisher: Any,
    average: Any,
    history: Any,
) -> None:
    """Learn pairs one after the other, after `count` earlier ones; features are scaled only if `scaled`."""
    p = len(mean)
    row, inverse, rates = np.empty(p), np.empty(p), np.empty(p + 1)
    squares = inverse if scaled else np.ones(p)
    for i in range(len(y)):
        time, tie = count + i + 1, y[i] == 0
        sign = -1.0 if y[i] < 0 else 1.0
        for j in range(p):
            row[j] = sign * (pairs[i, 1, j] - pairs[i, 0, j])
        record(row, tie, time, average, history)
        _observe(pairs[i], time, mean, square, inverse)
        follow(inverse, widest, current, average)
        step(row, squares, tie, 1.0, 1.0 / (C * time), 1.0, kind, time, current, fisher, rates)
        _average_in(time, current, average)


@vector_kernel
def walk(
    rows: Any,
    tie: Any,
    cost: Any,
    order: Any,
    decay: float,
    bias_cost: float,
    kind: int,
    count: int,
    current: Any,
    fisher: Any,
    average: Any,
) -> None:
    """Take one step for each row in `order`, in unscaled coordinates, after `count` earlier steps."""
    inverse, rates = np.ones(rows.shape[1]), np.empty(rows.shape[1] + 1)
    for k in range(len(order)):
        i, time = order[k], count + k + 1
        step(rows[i], inverse, tie[i], cost[i], decay, bias_cost, kind, time, current, fisher, rates)
        _average_in(time, current, average)
