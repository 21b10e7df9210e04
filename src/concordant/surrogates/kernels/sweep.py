"""Long lists: one sweep over sorted scores gives each item the sum over a window of others, in linear time.

A *receiver* r collects, from *sources* s of weight `weights[s]`, sums over d = z[s] - z[r] + edge > 0 of c
and c * (2 d - c), where c = min(d, width). Both are sorted, highest first, so that from one receiver to the
next d only grows: sources enter, pass the window of width `width`, and leave it for good. Sums are kept
relative to the receiver at hand and carried to the next by adding non-negative terms: prefix sums of the
scores themselves would lose as many digits as the scores are large.

The exponential margin factorises instead: no order is needed.
"""

from __future__ import annotations

import math

from concordant._segments import kernel
from concordant.types import FloatArray

__all__ = ["curve", "curve_exponential", "fold", "sweep"]


@kernel
def sweep(
    receivers: FloatArray,
    coefficients: FloatArray,
    sources: FloatArray,
    weights: FloatArray,
    edge: float,
    width: float,
    scale: float,
    slopes: FloatArray,
) -> float:
    """Add coefficient * (sum of weights * |slope|) to each receiver's slope; sum of coefficient * value."""
    beyond, excess = 0.0, 0.0  # of the sources past the window: sum of weights, and of weights * (d - width)
    inside, first, second = 0.0, 0.0, 0.0  # of those in it: sums of weights * d^0, d^1, d^2
    head, tail = 0, 0  # sources entered; sources that have left
    value, previous = 0.0, receivers[0] if len(receivers) else 0.0
    for r in range(len(receivers)):
        here = receivers[r]
        step = previous - here
        excess += beyond * step
        while tail < head and (sources[tail] - here) + edge > width:
            weight, d = weights[tail], (sources[tail] - here) + edge
            before = (sources[tail] - previous) + edge  # at most `width`: nothing large is subtracted
            inside, first = inside - weight, first - weight * before
            second -= weight * before * before
            beyond, excess, tail = beyond + weight, excess + weight * (d - width), tail + 1
        if tail == head:
            inside, first, second = 0.0, 0.0, 0.0
        second += step * (2.0 * first + inside * step)
        first += inside * step
        while head < len(sources) and (sources[head] - here) + edge > 0.0:
            weight, d, head = weights[head], (sources[head] - here) + edge, head + 1
            if d > width:
                beyond, excess, tail = beyond + weight, excess + weight * (d - width), head
            else:
                inside, first, second = inside + weight, first + weight * d, second + weight * d * d
        slope, amount = first, second
        if tail:  # width is finite then
            slope += width * beyond
            amount += width * (2.0 * excess + width * beyond)
        slopes[r] += 2.0 * scale * coefficients[r] * slope
        value += coefficients[r] * amount
        previous = here
    return scale * value


@kernel
def curve(
    receivers: FloatArray,
    coefficients: FloatArray,
    moves: FloatArray,
    sources: FloatArray,
    weights: FloatArray,
    pulls: FloatArray,
    edge: float,
    width: float,
    scale: float,
    products: FloatArray,
) -> None:
    """Add coefficient * (sum over the window of weight * curvature * (own move - the source's)) to products.

    `moves` and `pulls` are the vector's entries of receivers and sources; otherwise as `sweep`.
    """
    inside, moved = 0.0, 0.0
    head, tail = 0, 0
    for r in range(len(receivers)):
        here = receivers[r]
        while head < len(sources) and (sources[head] - here) + edge > 0.0:
            inside, moved, head = inside + weights[head], moved + weights[head] * pulls[head], head + 1
        while tail < head and (sources[tail] - here) + edge > width:
            inside, moved, tail = inside - weights[tail], moved - weights[tail] * pulls[tail], tail + 1
        if tail == head:
            inside, moved = 0.0, 0.0
        products[r] += 2.0 * scale * coefficients[r] * (moves[r] * inside - moved)


@kernel
def log_sum(scores: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Highest score of positive weight, and the log of the sum of weights * exp(score - highest).

    Apart, since their sum would lose as many digits as the scores are large.
    """
    highest, total = -math.inf, 0.0
    for i in range(len(scores)):
        if weights[i] > 0.0:
            highest = max(highest, scores[i])
    for i in range(len(scores)):
        if weights[i] > 0.0:
            total += weights[i] * math.exp(scores[i] - highest)
    return (highest, math.log(total)) if total > 0.0 else (0.0, -math.inf)


@kernel
def fold(
    receivers: FloatArray,
    coefficients: FloatArray,
    sources: FloatArray,
    weights: FloatArray,
    slopes: FloatArray,
) -> float:
    """Do as `sweep` for phi(t) = exp(-t)."""
    highest, log_total = log_sum(sources, weights)
    value = 0.0
    for r in range(len(receivers)):
        if coefficients[r] > 0.0:  # 0 * infinity is not meant
            amount = coefficients[r] * math.exp((highest - receivers[r]) + log_total)
            slopes[r] += amount
            value += amount
    return value


@kernel
def curve_exponential(
    receivers: FloatArray,
    coefficients: FloatArray,
    moves: FloatArray,
    sources: FloatArray,
    weights: FloatArray,
    pulls: FloatArray,
    products: FloatArray,
) -> None:
    """Do as `curve` for phi(t) = exp(-t)."""
    highest, log_total = log_sum(sources, weights)
    mean = 0.0
    for i in range(len(sources)):
        if weights[i] > 0.0:
            mean += weights[i] * math.exp((sources[i] - highest) - log_total) * pulls[i]
    for r in range(len(receivers)):
        if coefficients[r] > 0.0:
            products[r] += (
                coefficients[r] * math.exp((highest - receivers[r]) + log_total) * (moves[r] - mean)
            )
