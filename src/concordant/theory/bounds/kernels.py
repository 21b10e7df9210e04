"""How the documents of lists lie, list by list. Importing this imports numba."""

from __future__ import annotations

import numpy as np

from concordant._segments import vector_kernel
from concordant.types import FloatArray, IntArray

__all__ = ["dense_shape", "sparse_shape"]


@vector_kernel
def dense_shape(
    X: FloatArray, offsets: IntArray, codes: IntArray, first: int, last: int, shapes: FloatArray
) -> None:
    """Fill rows `first` to `last` of (spread, apart, squared distance of the farthest), as `Shape` says."""
    width = X.shape[1]
    origin, sums, counts = np.empty(width), np.empty((2, width)), np.empty(2)
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if start == stop:
            continue
        levels = 1 + codes[start:stop].max()
        if levels > len(counts):
            sums, counts = np.empty((levels, width)), np.empty(levels)
        origin[:] = X[start]  # counted from a row, what is large and constant does not cancel
        add_levels(X, codes, start, stop, origin, sums, counts)
        for j in range(width):
            mean = sums[:levels, j].sum() / (stop - start)
            for level in range(levels):
                away = sums[level, j] - counts[level] * mean
                shapes[q, 1] += away * away
            origin[j] += mean
        add_squares(X, codes, start, stop, origin, counts, shapes[q])


@vector_kernel
def add_levels(
    X: FloatArray,
    codes: IntArray,
    start: int,
    stop: int,
    origin: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
) -> None:
    """Fill the sum and the number of the rows of each level."""
    sums[:], counts[:] = 0.0, 0.0
    for i in range(start, stop):
        level = codes[i]
        counts[level] += 1.0
        for j in range(len(origin)):
            sums[level, j] += X[i, j] - origin[j]


@vector_kernel
def add_squares(
    X: FloatArray,
    codes: IntArray,
    start: int,
    stop: int,
    means: FloatArray,
    counts: FloatArray,
    shape: FloatArray,
) -> None:
    """Add the squared distances from the means: once, once for each row of another level, and the largest."""
    for i in range(start, stop):
        squares = 0.0
        for j in range(len(means)):
            away = X[i, j] - means[j]
            squares += away * away
        shape[0] += squares
        shape[1] += squares * (stop - start - counts[codes[i]])
        shape[2] = max(shape[2], squares)


@vector_kernel
def sparse_shape(
    data: FloatArray,
    indices: IntArray,
    starts: IntArray,
    width: int,
    offsets: IntArray,
    codes: IntArray,
    order: IntArray,
    first: int,
    last: int,
    shapes: FloatArray,
) -> None:
    """Do as `dense_shape` on compressed rows; `order` lists the rows of each list level by level.

    Where a row stores nothing it lies a mean off: the squares of all means are counted, less those of the
    features that it stores. A feature that all rows store has no part in that, so that what is large and
    constant does not cancel; any other feature spreads at least as much as its mean.
    """
    means, rare = np.zeros(width), np.zeros(width)
    sums, stored = np.zeros(width), np.zeros(width)
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        entries = slice(starts[begin], starts[end])
        whole = fill_means(data[entries], indices[entries], end - begin, means, rare, stored)
        start = begin
        while start < end:
            stop = start
            while stop < end and codes[order[stop]] == codes[order[start]]:
                stop += 1
            for k in range(start, stop):
                row = slice(starts[order[k]], starts[order[k] + 1])
                squares = distance(data[row], indices[row], means, rare, whole)
                shapes[q, 0] += squares
                shapes[q, 1] += squares * (end - begin - (stop - start))
                shapes[q, 2] = max(shapes[q, 2], squares)
                for place in range(row.start, row.stop):
                    sums[indices[place]] += data[place]
            shapes[q, 1] += level_square(indices, starts, order[start:stop], means, rare, whole, sums, stored)
            start = stop
        for j in indices[entries]:
            means[j] = rare[j] = stored[j] = 0.0


@vector_kernel
def fill_means(
    data: FloatArray,
    indices: IntArray,
    n_rows: int,
    means: FloatArray,
    rare: FloatArray,
    stored: FloatArray,
) -> float:
    """Fill each feature's mean, its square where not all rows store it, and how many do; the squares' sum."""
    for place in range(len(data)):
        means[indices[place]] += data[place] / n_rows
        stored[indices[place]] += 1.0
    whole = 0.0
    for j in indices:
        if stored[j] < n_rows:
            rare[j] = means[j] * means[j]
            whole += rare[j] / stored[j]
    return whole


@vector_kernel
def distance(data: FloatArray, indices: IntArray, means: FloatArray, rare: FloatArray, whole: float) -> float:
    """Squared distance of a row from the means."""
    squares, own = 0.0, 0.0
    for place in range(len(data)):
        away = data[place] - means[indices[place]]
        squares += away * away
        own += rare[indices[place]]
    return squares + max(whole - own, 0.0)


@vector_kernel
def level_square(
    indices: IntArray,
    starts: IntArray,
    rows: IntArray,
    means: FloatArray,
    rare: FloatArray,
    whole: float,
    sums: FloatArray,
    stored: FloatArray,
) -> float:
    """Squared length of the sum of some rows about the means; `sums` is cleared, `stored` as it was."""
    squares, own = 0.0, 0.0
    for row in rows:
        for j in indices[starts[row] : starts[row + 1]]:
            if stored[j] > 0.0:  # not seen in these rows before
                away = sums[j] - len(rows) * means[j]
                squares += away * away
                own += rare[j]
                stored[j] = -stored[j]
    for row in rows:
        for j in indices[starts[row] : starts[row + 1]]:
            sums[j], stored[j] = 0.0, abs(stored[j])
    return squares + len(rows) * len(rows) * max(whole - own, 0.0)
