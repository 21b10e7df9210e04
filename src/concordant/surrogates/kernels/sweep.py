"""Long lists: passes over sorted scores give each item its sum over all others that it meets, in linear time.

A *receiver* r meets the *sources* s with d = z[s] - z[r] + edge > 0, and collects sums of weights[s] * c and
weights[s] * c * (2 d - c), where c = min(d, width). Those with d > width lie beyond its window: of them, sums
of weights and of weights * d are enough. Both are sorted, highest first, so that from one receiver to the
next d only grows: sources are met, pass the window, and lie beyond it for good. So one merge counts how many
each receiver meets, another how many lie beyond, and running sums up to these two places are all that it
reads. No step waits for a comparison that the processor would have to guess.

Running sums are kept relative to the source at hand and carried to the next by adding non-negative terms:
prefix sums of the scores themselves would lose as many digits as the scores are large. What is subtracted, of
sources that have passed the window, is at most FAR times what these still add beyond it.

Every pass also runs from the other end (step -1, scores negated), where the lower items receive.
The exponential margin factorises instead: no order is needed.
"""

from __future__ import annotations

import math

from concordant._segments import kernel
from concordant.types import FloatArray, IntArray

__all__ = ["collect", "curve", "curve_exponential", "fold", "meet"]

FAR = 16.0  # widths past the window at which running sums begin anew: differences of them lose one digit
WIDEST = 1e100  # the same where the window has no width, so that nothing is ever lost: squares stay doubles


@kernel
def meet(high: FloatArray, low: FloatArray, edge: float, width: float, counts: IntArray) -> None:
    """Count for each of `high` how many of `low` it meets and how many lie beyond: rows 0 and 1 of counts.

    Rows 2 and 3 are the same for each of `low`, counted from the other end.
    """
    n, m = len(high), len(low)
    r, s, q, t = 0, 0, 0, 0
    while max(r, q) < n and max(s, t) < m:  # both merges at once: one alone would wait for its own results
        counts[0, r], counts[2, s], counts[1, q], counts[3, t] = s, n - r, t, n - q
        met, passed = low[s] - high[r] > -edge, low[t] - high[q] > width - edge
        s, r, t, q = s + met, r + 1 - met, t + passed, q + 1 - passed
    merge(high, low, -edge, r, s, counts[0], counts[2])
    merge(high, low, width - edge, q, t, counts[1], counts[3])


@kernel
def merge(
    high: FloatArray, low: FloatArray, gap: float, r: int, s: int, above: IntArray, below: IntArray
) -> None:
    """Count from r and s on: of each high one the low ones with low - high > gap, and the reverse."""
    n, m = len(high), len(low)
    while r < n and s < m:
        above[r], below[s] = s, n - r
        met = low[s] - high[r] > gap
        s, r = s + met, r + 1 - met
    above[r:n] = m
    below[s:m] = 0


@kernel
def collect(
    step: int,
    receivers: FloatArray,
    coefficients: FloatArray,
    met: IntArray,
    beyond: IntArray,
    sources: FloatArray,
    weights: FloatArray,
    edge: float,
    width: float,
    scale: float,
    sums: FloatArray,
    grad: FloatArray,
) -> float:
    """Add -step * coefficient * (sum of weights * |slope|) to grad; sum of coefficient * value.

    In blocks of receivers, at the start of which the sources beyond the window are taken out of the sums.
    """
    n, m, turn, value = len(receivers), len(sources), float(step), 0.0
    top, first = (0, 0) if step > 0 else (n - 1, m - 1)
    # Of the sources taken out: sums of weights and of weights * (z - level), and the last z, their level.
    gone, away, level = 0.0, 0.0, 0.0
    limit = FAR * width if width - edge > -edge else WIDEST
    start, base = 0, 0
    while start < n:
        for s in range(base, beyond[top + step * start]):
            z = turn * sources[first + step * s]
            away, gone, level = away + gone * (level - z), gone + weights[first + step * s], z
        base, stop = beyond[top + step * start], start + 1
        lead = turn * sources[first + step * base] if base < m else -math.inf
        while stop < n and not (lead - turn * receivers[top + step * stop]) + edge > limit:
            stop += 1
        run(step, sources, weights, base, met[top + step * (stop - 1)], sums)
        block, out = (start, stop), (gone, away, level)
        value += receive(
            step, block, receivers, coefficients, met, beyond, edge, width, scale, out, sums, grad
        )
        start = stop
    return scale * value


@kernel
def run(step: int, sources: FloatArray, weights: FloatArray, base: int, stop: int, sums: FloatArray) -> None:
    """Fill row k of the sums: z of source k - 1; over base <= s < k, sums of weights * (z[s] - z)^0, 1, 2."""
    turn, first = float(step), 0 if step > 0 else len(sources) - 1
    last = turn * sources[first + step * base] if base < len(sources) else 0.0
    weight, linear, square = 0.0, 0.0, 0.0
    sums[base, 0], sums[base, 1], sums[base, 2], sums[base, 3] = last, weight, linear, square
    for k in range(base, stop):
        z = turn * sources[first + step * k]
        gap = last - z
        square += gap * (2.0 * linear + weight * gap)
        linear += weight * gap
        weight += weights[first + step * k]
        sums[k + 1, 0], sums[k + 1, 1], sums[k + 1, 2], sums[k + 1, 3] = z, weight, linear, square
        last = z


@kernel
def receive(
    step: int,
    block: tuple[int, int],
    receivers: FloatArray,
    coefficients: FloatArray,
    met: IntArray,
    beyond: IntArray,
    edge: float,
    width: float,
    scale: float,
    out: tuple[float, float, float],
    sums: FloatArray,
    grad: FloatArray,
) -> float:
    """Do the last part of `collect` for a block of receivers."""
    (gone, away, level), turn, value = out, float(step), 0.0
    top = 0 if step > 0 else len(receivers) - 1
    reach = width if width < math.inf else 0.0  # beyond an infinite window there is nothing
    for r in range(block[0], block[1]):
        i = top + step * r
        here, h, t = turn * receivers[i], met[i], beyond[i]
        # Of the sources met, and of those beyond the window: d of the last; sums of weights * d and * d^2.
        near, far = (sums[h, 0] - here) + edge, (sums[t, 0] - here) + edge
        linear, far_linear = sums[h, 2] + near * sums[h, 1], sums[t, 2] + far * sums[t, 1]
        square = sums[h, 3] + near * (sums[h, 2] + linear)
        far_square = sums[t, 3] + far * (sums[t, 2] + far_linear)
        # Of all beyond: sums of weights, and of weights * d.
        weight, total = gone + sums[t, 1], far_linear + (away + gone * ((level - here) + edge))
        grad[i] -= turn * (2.0 * scale * coefficients[i] * ((linear - far_linear) + reach * weight))
        value += coefficients[i] * ((square - far_square) + reach * (2.0 * total - reach * weight))
    return value


@kernel
def curve(
    step: int,
    coefficients: FloatArray,
    moves: FloatArray,
    met: IntArray,
    beyond: IntArray,
    weights: FloatArray,
    pulls: FloatArray,
    scale: float,
    sums: FloatArray,
    products: FloatArray,
) -> None:
    """Add coefficient * (sum over the window of weight * curvature * (own move - the source's)) to products.

    `moves` and `pulls` are the vector's entries of receivers and sources.
    """
    first, inside, moved = 0 if step > 0 else len(weights) - 1, 0.0, 0.0
    sums[0, 0], sums[0, 1] = inside, moved
    for s in range(len(weights)):
        weight = weights[first + step * s]
        inside, moved = inside + weight, moved + weight * pulls[first + step * s]
        sums[s + 1, 0], sums[s + 1, 1] = inside, moved
    for r in range(len(coefficients)):
        h, t = met[r], beyond[r]
        pull = moves[r] * (sums[h, 0] - sums[t, 0]) - (sums[h, 1] - sums[t, 1])
        products[r] += 2.0 * scale * coefficients[r] * pull


@kernel
def log_sum(step: int, scores: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Highest z = step * score of positive weight, and the log of the sum of weights * exp(z - highest).

    Apart, since their sum would lose as many digits as the scores are large.
    """
    highest, total = -math.inf, 0.0
    for i in range(len(scores)):
        if weights[i] > 0.0:
            highest = max(highest, step * scores[i])
    for i in range(len(scores)):
        if weights[i] > 0.0:
            total += weights[i] * math.exp(step * scores[i] - highest)
    return (highest, math.log(total)) if total > 0.0 else (0.0, -math.inf)


@kernel
def fold(
    step: int,
    receivers: FloatArray,
    coefficients: FloatArray,
    sources: FloatArray,
    weights: FloatArray,
    grad: FloatArray,
) -> float:
    """Do as `collect` for phi(t) = exp(-t)."""
    highest, log_total = log_sum(step, sources, weights)
    value = 0.0
    for r in range(len(receivers)):
        if coefficients[r] > 0.0:  # 0 * infinity is not meant
            amount = coefficients[r] * math.exp((highest - step * receivers[r]) + log_total)
            grad[r] -= step * amount
            value += amount
    return value


@kernel
def curve_exponential(
    step: int,
    receivers: FloatArray,
    coefficients: FloatArray,
    moves: FloatArray,
    sources: FloatArray,
    weights: FloatArray,
    pulls: FloatArray,
    products: FloatArray,
) -> None:
    """Do as `curve` for phi(t) = exp(-t)."""
    highest, log_total = log_sum(step, sources, weights)
    mean = 0.0
    for i in range(len(sources)):
        if weights[i] > 0.0:
            mean += weights[i] * math.exp((step * sources[i] - highest) - log_total) * pulls[i]
    for r in range(len(receivers)):
        if coefficients[r] > 0.0:
            share = math.exp((highest - step * receivers[r]) + log_total)
            products[r] += coefficients[r] * share * (moves[r] - mean)
