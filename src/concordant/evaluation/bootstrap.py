"""Intervals of means over queries by resampling the queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from concordant.types import FloatArray

__all__ = ["mean_intervals", "percentile_t"]

ROUNDING = 1e-12  # a spread below this share of the size is that of equal numbers
COUNTS_AT_ONCE = 1 << 20  # resampled queries held together
STATISTICS_AT_ONCE = 1 << 24  # resampled t held together


def mean_intervals(
    columns: FloatArray, confidence: float, n_boot: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Give the ends of an interval for the mean of each column, over the queries where it is not NaN.

    Columns defined on the same queries are resampled together; what a column gets does not depend on the
    others.
    """
    ends = np.full((2, columns.shape[1]), np.nan)
    known = ~np.isnan(columns)
    masks, group = np.unique(known, axis=1, return_inverse=True)
    width = max(1, STATISTICS_AT_ONCE // n_boot)
    for one in range(masks.shape[1]):
        members = np.flatnonzero(group.reshape(-1) == one)
        for first in range(0, len(members), width):
            chosen = members[first : first + width]
            ends[:, chosen] = percentile_t(columns[np.ix_(masks[:, one], chosen)], confidence, n_boot, seed)
    return ends[0], ends[1]


def percentile_t(columns: FloatArray, confidence: float, n_boot: int, seed: int) -> FloatArray:
    """Give symmetric percentile-t intervals for the means of columns without NaN, low ends above high ends.

    mean -/+ q std / sqrt(n), where q is the quantile of the size of the t-statistic of `n_boot` resamples of
    the queries around the mean of the sample. Where so many resamples consist of equal values that there is
    no such quantile (two or three queries, or as many that differ), q is that of Student's t. One query has
    no interval (NaN); that of equal values is the value.

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
    statistics = resampled_t(np.where(spread > 0.0, columns - means, 0.0), n_boot, seed)
    half = quantile(statistics, confidence, n - 1) * spread / np.sqrt(n)
    return np.asarray([means - half, means + half])


def spreads(columns: FloatArray) -> FloatArray:
    """Give the standard deviation of each column, 0 where it is rounding."""
    spread = columns.std(axis=0, ddof=1)
    return np.where(spread > ROUNDING * np.abs(columns).max(axis=0), spread, 0.0)


def quantile(statistics: FloatArray, confidence: float, freedom: int) -> FloatArray:
    """Give the quantile of each column of sizes, or Student's where it is infinite or beyond the largest."""
    from scipy import special

    students: Any = special.stdtrit
    usual = -float(students(freedom, (1.0 - confidence) / 2.0))
    place = int(np.ceil(confidence * (len(statistics) + 1) - ROUNDING)) - 1
    if place >= len(statistics):
        return np.full(statistics.shape[1], usual)
    reached = np.partition(statistics, place, axis=0)[place]
    return np.where(np.isfinite(reached), reached, usual)


def resampled_t(centred: FloatArray, n_boot: int, seed: int) -> FloatArray:
    """Give the size of the t-statistic of each resample, a row each, for columns of mean 0."""
    n, n_columns = centred.shape
    both, done = np.hstack([centred, centred**2]), 0
    sizes = np.empty((n_boot, n_columns))
    for counts in resamples(n, n_boot, seed):
        moments = counts @ both / n
        mean, square = moments[:, :n_columns], moments[:, n_columns:]
        variance = square - mean**2
        flat = variance <= ROUNDING * square  # all drawn values are equal
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = np.abs(mean) * np.sqrt((n - 1) / variance)
        sizes[done : done + len(counts)] = np.where(flat, np.where(square > 0.0, np.inf, 0.0), t)
        done += len(counts)
    return sizes


def resamples(n: int, n_boot: int, seed: int) -> Iterator[FloatArray]:
    """Rows that say how often each of n queries was drawn, some rows at a time."""
    rng, rows = np.random.default_rng(seed), max(1, COUNTS_AT_ONCE // n)
    for start in range(0, n_boot, rows):
        wanted = min(rows, n_boot - start)
        drawn = rng.integers(n, size=(wanted, n)) + n * np.arange(wanted)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=wanted * n).reshape(wanted, n).astype(np.float64)
