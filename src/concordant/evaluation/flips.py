"""Sums of differences under random signs: what chance does to rankers that are equally good."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from concordant.types import FloatArray

__all__ = ["ROUNDING", "flipped_sums", "sign_flips"]

ROUNDING = 1e-12  # sums of the same numbers in another order are equal to this share of their size
BITS_AT_ONCE = 1 << 22  # signs, or sums by them, held together


def sign_flips(columns: FloatArray, n_flips: int, seed: int) -> FloatArray:
    """Give the two-sided p-value of the sign-flip test of each column of differences.

    Columns of few differences other than 0 are flipped in all ways, the others together by the same random
    signs of rows: what a column gets does not depend on its neighbours.
    """
    few = np.count_nonzero(columns, axis=0) <= math.log2(n_flips)
    p_values = np.empty(len(few))
    if not few.all():
        p_values[~few] = share_as_far(columns[:, ~few], n_flips, seed)
    for place in np.flatnonzero(few):
        p_values[place] = share_as_far(columns[:, [place]], n_flips, seed)[0]
    return p_values


def share_as_far(columns: FloatArray, n_flips: int, seed: int) -> FloatArray:
    """Give the share of ways to sign the rows by which a column's sum is at least as far from 0."""
    least = np.abs(columns.sum(axis=0)) - ROUNDING * np.abs(columns).sum(axis=0)
    hits, tried = np.zeros(len(least), dtype=np.int64), 0
    exact, ways = flipped_sums(columns, n_flips, seed)
    for sums in ways:
        hits, tried = hits + (np.abs(sums) >= least).sum(axis=0), tried + len(sums)
    return hits / tried if exact else (1 + hits) / (1 + tried)


def flipped_sums(columns: FloatArray, n_flips: int, seed: int) -> tuple[bool, Iterator[FloatArray]]:
    """Whether all ways to sign the rows are few enough to try, and the sums of the columns, a row a way.

    Rows of zeros need no sign. Where there are too many ways, they are `n_flips` random ones. The sums come
    in blocks.
    """
    moving = columns[columns.any(axis=1)]
    exact = len(moving) < 63 and 2 ** len(moving) <= n_flips
    rows, totals = moving if exact else columns, columns.sum(axis=0)
    at_once = max(1, BITS_AT_ONCE // max(rows.shape))
    ways = every_sign(len(rows), at_once) if exact else random_signs(len(rows), n_flips, at_once, seed)
    # A bit is 1 where the sign is kept: the sum is then twice what is kept, less all.
    return exact, (2.0 * (bits @ rows) - totals for bits in ways)


def every_sign(n: int, at_once: int) -> Iterator[FloatArray]:
    """All 2^n rows of n bits, some at a time."""
    for start in range(0, 2**n, at_once):
        numbers = np.arange(start, min(start + at_once, 2**n))[:, None]
        yield ((numbers >> np.arange(n)) & 1).astype(np.float64)


def random_signs(n: int, n_flips: int, at_once: int, seed: int) -> Iterator[FloatArray]:
    """Rows of n random bits, some at a time; how many does not change them."""
    rng, words = np.random.default_rng(seed), -(-n // 64)  # whole words a row
    for start in range(0, n_flips, at_once):
        size = min(at_once, n_flips - start), words
        drawn = rng.integers(2**64, size=size, dtype=np.uint64)
        yield np.unpackbits(drawn.view(np.uint8), axis=1, count=n).astype(np.float64)
