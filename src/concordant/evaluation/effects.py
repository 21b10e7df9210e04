"""Intervals of means over queries by resampling; effect sizes, and how many queries would detect them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from concordant.types import FloatArray

# Intervals of means over queries by resampling the queries.

N_BOOT = 10_000  # default number of resamples: equal intervals wherever a pair is compared
ROUNDING = 1e-12  # a smaller spread, relative to the size, counts as 0
COUNTS_AT_ONCE = 1 << 20  # resampled queries in memory at a time
STATISTICS_AT_ONCE = 1 << 24  # resampled t in memory at a time


def mean_intervals(
    columns: FloatArray, confidence: float, n_boot: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Compute an interval for the mean of each column, over the queries where it is not NaN.

    Columns defined on the same queries are resampled together; the interval of a column does not depend on
    the others.
    """
    ends = np.full((2, columns.shape[1]), np.nan)
    is_defined = ~np.isnan(columns)
    masks, group = np.unique(is_defined, axis=1, return_inverse=True)
    width = max(1, STATISTICS_AT_ONCE // n_boot)
    for pattern in range(masks.shape[1]):
        members = np.flatnonzero(group.reshape(-1) == pattern)
        for first in range(0, len(members), width):
            block = members[first : first + width]
            ends[:, block] = percentile_t(columns[np.ix_(masks[:, pattern], block)], confidence, n_boot, seed)
    return ends[0], ends[1]


def percentile_t(columns: FloatArray, confidence: float, n_boot: int, seed: int) -> FloatArray:
    """Symmetric percentile-t intervals for the means of columns without NaN, low ends above high ends.

    mean -/+ q std / sqrt(n), where q is the quantile of the size of the t-statistic of `n_boot` resamples of
    the queries around the mean of the sample. If so many resamples consist of equal values that there is no
    such quantile (two or three queries, or only so many that differ), q is that of Student's t. One query
    has no interval (NaN); the interval of equal values is the value.

    References
    ----------
    Hall (1988), On symmetric bootstrap confidence intervals.

    Examples
    --------
    >>> percentile_t(np.array([[0.1], [0.3], [0.2], [0.6], [0.5]]), 0.95, 1999, 0).round(2).tolist()
    [[-0.04], [0.72]]
    """
    n, n_columns = columns.shape
    if n < 2:
        return np.full((2, n_columns), np.nan)
    means, spread = columns.mean(axis=0), spreads(columns)
    statistics = _resampled_t(np.where(spread > 0.0, columns - means, 0.0), n_boot, seed)
    half = quantile(statistics, confidence, n - 1) * spread / np.sqrt(n)
    return np.asarray([means - half, means + half])


def spreads(columns: FloatArray) -> FloatArray:
    """Standard deviation of each column, 0 if it is rounding."""
    spread = columns.std(axis=0, ddof=1)
    return np.where(spread > ROUNDING * np.abs(columns).max(axis=0), spread, 0.0)


def quantile(statistics: FloatArray, confidence: float, freedom: int) -> FloatArray:
    """Quantile of each column of sizes, or Student's if it is infinite or beyond the largest."""
    from scipy import special

    students: Any = special.stdtrit
    usual = -float(students(freedom, (1.0 - confidence) / 2.0))
    position = int(np.ceil(confidence * (len(statistics) + 1) - ROUNDING)) - 1
    if position >= len(statistics):
        return np.full(statistics.shape[1], usual)
    at_position = np.partition(statistics, position, axis=0)[position]
    return np.where(np.isfinite(at_position), at_position, usual)


def _resampled_t(centred: FloatArray, n_boot: int, seed: int) -> FloatArray:
    """Absolute t-statistic of each resample, one row each, for columns of mean 0."""
    n, n_columns = centred.shape
    powers, done = np.hstack([centred, centred**2]), 0
    sizes = np.empty((n_boot, n_columns))
    for counts in resamples(n, n_boot, seed):
        moments = counts @ powers / n
        mean, square = moments[:, :n_columns], moments[:, n_columns:]
        variance = square - mean**2
        is_constant = variance <= ROUNDING * square  # all drawn values are equal
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = np.abs(mean) * np.sqrt((n - 1) / variance)
        sizes[done : done + len(counts)] = np.where(is_constant, np.where(square > 0.0, np.inf, 0.0), t)
        done += len(counts)
    return sizes


def resamples(n: int, n_boot: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks of rows with the number of times that each of n queries was drawn."""
    rng, rows = np.random.default_rng(seed), max(1, COUNTS_AT_ONCE // n)
    for start in range(0, n_boot, rows):
        n_rows = min(rows, n_boot - start)
        drawn = rng.integers(n, size=(n_rows, n)) + n * np.arange(n_rows)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)


MANY = 1e6  # queries from which Student's t is the normal distribution to all digits that matter
NOT_A_NUMBER = float("nan")


def effect_size(mean: float, spread: float, n: int) -> float:
    """Hedges' g of paired differences: mean / standard deviation, corrected for its bias under normality.

    0 if all n differences are 0; infinite if they are equal and not 0; NaN for one query, or for two that
    differ: their ratio has no mean.

    >>> round(effect_size(0.125, 0.25, 4), 4)
    0.3618
    """
    if n < 2:
        return NOT_A_NUMBER
    if spread == 0.0:
        return math.copysign(math.inf, mean) if mean else 0.0
    if n < 3:
        return NOT_A_NUMBER
    half = (n - 1) / 2.0
    bias = math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
    return bias * mean / spread


def effect_interval(t: float, n: int, confidence: float) -> tuple[float, float]:
    """Interval for mean / standard deviation: the noncentralities under which t is not extreme.

    Exact for normal differences. `t` is the paired statistic of n queries; NaN where it, or an end of the
    interval, is not finite.

    References
    ----------
    Steiger and Fouladi (1997), Noncentrality interval estimation.
    """
    if n < 2 or not math.isfinite(t):
        return NOT_A_NUMBER, NOT_A_NUMBER
    tail = (1.0 - confidence) / 2.0
    low, high = (_noncentrality(n - 1, t, share) for share in (1.0 - tail, tail))
    return low / math.sqrt(n), high / math.sqrt(n)


def _noncentrality(freedom: int, t: float, share: float) -> float:
    """Find the noncentrality under which a statistic is below t with probability `share`."""
    step = 1.0 + abs(t) / math.sqrt(freedom)
    while step < math.inf and (below(freedom, t - step, t) < share or below(freedom, t + step, t) > share):
        step *= 2.0
    if step == math.inf:
        return NOT_A_NUMBER
    return root(lambda shift: below(freedom, shift, t) - share, t - step, t + step)


def below(freedom: float, shift: float, t: float) -> float:
    """Probability that noncentral t is below t."""
    from scipy import special

    distribution: Any = special.nctdtr
    share = float(distribution(freedom, shift, t))
    return float(t > shift) if math.isnan(share) else share  # scipy returns NaN for some tails below 1e-13


def _critical(freedom: float, level: float) -> float:
    """Absolute t that is exceeded with probability `level` if there is no difference.

    By the lower tail: 1 - level / 2 is 1 for the smallest levels. Infinite where scipy has no number.
    """
    from scipy import special

    students: Any = special.stdtrit
    return abs(float(students(freedom, level / 2.0)))


def t_power(effect: float, n: float, level: float) -> float:
    """Probability that the two-sided paired t-test of n queries detects a difference of this effect.

    >>> round(t_power(0.5, 34, 0.05), 3)  # mean is half a standard deviation
    0.808
    """
    size, shift = _critical(n - 1, level), effect * math.sqrt(n)
    return 1.0 - below(n - 1, shift, size) + below(n - 1, shift, -size)


def detectable_effect(n: int, level: float, power: float) -> float:
    """Effect (mean / standard deviation) that n queries detect with probability `power`.

    NaN for fewer than two queries, or if no double is large enough; 0 if the level is at least the power.
    """
    if n < 2:
        return NOT_A_NUMBER
    if power <= level:
        return 0.0
    most = 4.0 / math.sqrt(n)
    while most < math.inf and t_power(most, n, level) < power:
        most *= 2.0
    if most == math.inf:
        return NOT_A_NUMBER
    return root(lambda effect: t_power(effect, n, level) - power, 0.0, most)


def queries_needed(effect: float, level: float, power: float) -> int | None:
    """Smallest number of queries that detects a difference of this effect with probability `power`.

    None if the effect is 0 or NaN, or so small that the number of queries overflows.

    >>> queries_needed(0.5, 0.05, 0.8)
    34
    """
    if not effect or math.isnan(effect):
        return None
    from scipy import special

    normal: Any = special.ndtri
    usual = -float(normal(level / 2.0))
    ratio = (usual + float(normal(power))) / effect
    guess = ratio * ratio + usual * usual / 2.0  # `**` would raise on overflow
    if guess > MANY:
        return math.ceil(guess) if guess < math.inf else None
    few, many = 1, 2
    while many < 4.0 * MANY and t_power(abs(effect), many, level) < power:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if t_power(abs(effect), middle, level) >= power else (middle, many)
    return many


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the zero of a function that changes its sign between two numbers."""
    from scipy import optimize

    solve: Any = optimize.brentq
    return float(solve(function, low, high, xtol=1e-13, rtol=1e-13))
