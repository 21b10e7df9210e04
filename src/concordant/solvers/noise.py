"""Random numbers of rows: they depend on the query and the place in it, not on where a row is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["row_noise"]

STEP, FIRST, SECOND = (np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
LONGEST = np.uint64(32)  # bits of a place in a query


def row_noise(ranks: IntArray, offsets: IntArray) -> FloatArray:
    """Two independent standard normal numbers for each row, (2, n_rows).

    Parameters
    ----------
    ranks
        Number of each query among all there are: parts have the numbers that they have in the whole.
    offsets
        Where each query starts.

    Examples
    --------
    >>> whole = row_noise(np.array([0, 1]), np.array([0, 2, 5]))
    >>> bool((whole[:, 2:] == row_noise(np.array([1]), np.array([0, 3]))).all())
    True
    """
    sizes = np.diff(offsets)
    places = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    keys = (np.repeat(ranks, sizes).astype(np.uint64) << LONGEST) + places.astype(np.uint64)
    first, second = (uniform(np.uint64(2) * keys + np.uint64(turn)) for turn in (0, 1))
    length, angle = np.sqrt(-2.0 * np.log(first)), 2.0 * np.pi * second  # Box and Muller
    return np.stack((length * np.cos(angle), length * np.sin(angle)))


def uniform(keys: NDArray[np.uint64]) -> FloatArray:
    """Numbers in (0, 1) from whole ones, by splitmix64."""
    mixed = (keys + np.uint64(1)) * STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
