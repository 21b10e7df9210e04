"""Steps of stochastic gradient on the comparison family, one pair at a time. Importing this imports numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from concordant._segments import vector_kernel
from concordant.solvers.margin_kernels import dot, loss_at

__all__ = ["BINS", "learn_pairs", "walk"]

BINS = 512  # of decisions
FINENESS = 32.0  # bins to a unit of their inverse hyperbolic sine
RATE = 3.0  # a compromise: 5 did better on correlated features and little noise, and worse on many features
FLAT = 1e-10  # a feature whose spread is this small a share of its size is constant
TINY = 1e-100  # sums of squared slopes below this are 0: what is divided by them would leave the doubles
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
def average_in(time: int, current: Any, average: Any) -> None:
    """Move the average towards the current weights: those of time t count in proportion to t^2, about."""
    share = 3.0 / (time + 2.0)
    for j in range(len(average)):
        average[j] += share * (current[j] - average[j])


@vector_kernel
def observe(pair: Any, time: int, mean: Any, square: Any, inverse: Any) -> None:
    """Take both sides into each feature's mean and sum of squares about it, and give 1 / variance."""
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
    """Shrink the weight of a feature that spreads wider than ever, so that its share of scores stays.

    Else a first pair whose sides happen to be close would leave a weight far too large for what comes.
    """
    for j in range(len(inverse)):
        if inverse[j] > 0.0 and widest[j] * inverse[j] < 1.0:
            share = math.sqrt(widest[j] * inverse[j])
            current[j] *= share
            average[j] *= share
            widest[j] = 1.0 / inverse[j]


@vector_kernel
def record(row: Any, tie: bool, time: int, average: Any, history: Any) -> None:
    """Enter a pair's score, by the average weights before they see it, in the histogram of its kind."""
    score = dot(row, average[: len(row)])
    if tie:
        score = abs(score)
    place = int(min(max(BINS / 2 + FINENESS * math.asinh(score), 0.0), BINS - 1.0))
    weight, kind = float(time) * float(time), 1 if tie else 0
    history[kind, 0, place] += weight
    history[kind, 1, place] += weight * score


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
    """Learn pairs one after the other; `count` were seen before. Unless scaled, features are as they are."""
    p = len(mean)
    row, inverse, rates = np.empty(p), np.empty(p), np.empty(p + 1)
    squares = inverse if scaled else np.ones(p)
    for i in range(len(y)):
        time, tie = count + i + 1, y[i] == 0
        sign = -1.0 if y[i] < 0 else 1.0
        for j in range(p):
            row[j] = sign * (pairs[i, 1, j] - pairs[i, 0, j])
        record(row, tie, time, average, history)
        observe(pairs[i], time, mean, square, inverse)
        follow(inverse, widest, current, average)
        step(row, squares, tie, 1.0, 1.0 / (C * time), 1.0, kind, time, current, fisher, rates)
        average_in(time, current, average)


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
    """Take one step for each row of the order, in coordinates as they are; `count` were taken before."""
    inverse, rates = np.ones(rows.shape[1]), np.empty(rows.shape[1] + 1)
    for k in range(len(order)):
        i, time = order[k], count + k + 1
        step(rows[i], inverse, tie[i], cost[i], decay, bias_cost, kind, time, current, fisher, rates)
        average_in(time, current, average)
