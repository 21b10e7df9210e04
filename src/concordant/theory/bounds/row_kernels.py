"""Compiled kernels for distances of documents within their lists. Importing this imports numba."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from concordant._base.segments import vector_kernel
from concordant.surrogates.surrogate import Chunk
from concordant.types import FloatArray, IntArray

Rows: TypeAlias = tuple[FloatArray, IntArray, IntArray]
"""Entries of sparse rows, their columns, and the start of each row."""


class Columns(NamedTuple):
    """Numbers by feature, for the rows of one list."""

    means: FloatArray
    rare: FloatArray  # squares of the means of features that not all rows store
    sums: FloatArray  # over the rows of one level
    stored: FloatArray  # number of rows that store the feature


# Sums of squared distances, list by list.


@vector_kernel
def dense_shape(X: FloatArray, codes: IntArray, chunk: Chunk, shapes: FloatArray) -> None:
    """Fill rows `first` to `last` with (spread, apart, squared distance of the farthest), as in `Shape`."""
    (offsets, first, last), width = chunk, X.shape[1]
    origin, sums, counts = np.empty(width), np.empty((2, width)), np.empty(2)
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if start == stop:
            continue
        levels = 1 + codes[start:stop].max()
        if levels > len(counts):
            sums, counts = np.empty((levels, width)), np.empty(levels)
        for j in range(width):  # measured from a row, large constant features do not cancel
            origin[j] = X[start, j]
        _add_levels(X[start:stop], codes[start:stop], origin, sums, counts)
        for j in range(width):
            mean = sums[:levels, j].sum() / (stop - start)
            for level in range(levels):
                away = sums[level, j] - counts[level] * mean
                shapes[q, 1] += away * away
            origin[j] += mean
        _add_squares(X[start:stop], codes[start:stop], origin, counts, shapes[q])


@vector_kernel
def _add_levels(
    X: FloatArray, codes: IntArray, origin: FloatArray, sums: FloatArray, counts: FloatArray
) -> None:
    """Fill the sum and the number of the rows of each level."""
    sums[:], counts[:] = 0.0, 0.0
    for i in range(len(codes)):
        level = codes[i]
        counts[level] += 1.0
        for j in range(len(origin)):
            sums[level, j] += X[i, j] - origin[j]


@vector_kernel
def _add_squares(
    X: FloatArray, codes: IntArray, means: FloatArray, counts: FloatArray, shape: FloatArray
) -> None:
    """Add the squared distances from the means; the same times the rows of other levels; and the largest."""
    for i in range(len(codes)):
        squares = 0.0
        for j in range(len(means)):
            away = X[i, j] - means[j]
            squares += away * away
        shape[0] += squares
        shape[1] += squares * (len(codes) - counts[codes[i]])
        shape[2] = max(shape[2], squares)


@vector_kernel
def sparse_shape(
    rows: Rows, width: int, codes: IntArray, order: IntArray, chunk: Chunk, shapes: FloatArray
) -> None:
    """Like `dense_shape`, on sparse rows; `order` lists the rows of each list level by level.

    A feature that a row does not store is its mean away from it: the squares of all means are counted, less
    those of the features that the row stores. Features that all rows store are left out of that, so that
    large constant features do not cancel; any other feature spreads at least as much as its mean.
    """
    (data, indices, starts), (offsets, first, last) = rows, chunk
    columns = Columns(np.zeros(width), np.zeros(width), np.zeros(width), np.zeros(width))
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        entries = slice(starts[begin], starts[end])
        whole = _fill_means(data[entries], indices[entries], end - begin, columns)
        start = begin
        while start < end:
            stop = start
            while stop < end and codes[order[stop]] == codes[order[start]]:
                stop += 1
            for k in range(start, stop):
                row = slice(starts[order[k]], starts[order[k] + 1])
                squares = _distance(data[row], indices[row], columns, whole)
                shapes[q, 0] += squares
                shapes[q, 1] += squares * (end - begin - (stop - start))
                shapes[q, 2] = max(shapes[q, 2], squares)
                for entry in range(row.start, row.stop):
                    columns.sums[indices[entry]] += data[entry]
            shapes[q, 1] += _level_square(rows, order[start:stop], columns, whole)
            start = stop
        _clear_columns(indices[entries], columns)


@vector_kernel
def _fill_means(data: FloatArray, indices: IntArray, n_rows: int, columns: Columns) -> float:
    """Fill each feature's mean, its square where not all rows store it, and the number of rows that do.

    Returns the sum of these squares.
    """
    means, rare, _, stored = columns
    for entry in range(len(data)):
        means[indices[entry]] += data[entry] / n_rows
        stored[indices[entry]] += 1.0
    whole = 0.0
    for j in indices:
        if stored[j] < n_rows:
            rare[j] = means[j] * means[j]
            whole += rare[j] / stored[j]
    return whole


@vector_kernel
def _clear_columns(indices: IntArray, columns: Columns) -> None:
    """Set to 0 what `_fill_means` has filled."""
    means, rare, _, stored = columns
    for j in indices:
        means[j] = rare[j] = stored[j] = 0.0


@vector_kernel
def _distance(data: FloatArray, indices: IntArray, columns: Columns, whole: float) -> float:
    """Return the squared distance of a row from the means."""
    means, rare, _, _ = columns
    squares, stored_squares = 0.0, 0.0
    for entry in range(len(data)):
        away = data[entry] - means[indices[entry]]
        squares += away * away
        stored_squares += rare[indices[entry]]
    return squares + max(whole - stored_squares, 0.0)


@vector_kernel
def _level_square(rows: Rows, level: IntArray, columns: Columns, whole: float) -> float:
    """Return the squared length of a sum of centred rows; `sums` is cleared, `stored` restored."""
    (_, indices, starts), (means, rare, sums, stored) = rows, columns
    squares, stored_squares = 0.0, 0.0
    for row in level:
        for j in indices[starts[row] : starts[row + 1]]:
            if stored[j] > 0.0:  # the first of these rows that stores it
                away = sums[j] - len(level) * means[j]
                squares += away * away
                stored_squares += rare[j]
                stored[j] = -stored[j]
    for row in level:
        for j in indices[starts[row] : starts[row + 1]]:
            sums[j], stored[j] = 0.0, abs(stored[j])
    return squares + len(level) * len(level) * max(whole - stored_squares, 0.0)


# Squared distances from the mean of the list, document by document.


@vector_kernel
def dense_rows(X: FloatArray, centred: bool, chunk: Chunk, squares: FloatArray) -> None:
    """Fill the squared distances of rows from the mean of their list, or from 0; lists `first` to `last`."""
    (offsets, first, last), origin, mean = chunk, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if centred and start < stop:
            for j in range(len(mean)):  # measured from a row, large constant features do not cancel
                origin[j], mean[j] = X[start, j], 0.0
            for i in range(start, stop):
                for j in range(len(mean)):
                    mean[j] += X[i, j] - origin[j]
            for j in range(len(mean)):
                mean[j] = origin[j] + mean[j] / (stop - start)
        for i in range(start, stop):
            total = 0.0
            for j in range(len(mean)):
                away = X[i, j] - mean[j]
                total += away * away
            squares[i] = total


@vector_kernel
def sparse_rows(rows: Rows, width: int, centred: bool, chunk: Chunk, squares: FloatArray) -> None:
    """Like `dense_rows`, on sparse rows."""
    (data, indices, starts), (offsets, first, last), whole = rows, chunk, 0.0
    columns = Columns(np.zeros(width), np.zeros(width), np.zeros(0), np.zeros(width))
    for q in range(first, last):
        entries = slice(starts[offsets[q]], starts[offsets[q + 1]])
        if centred:
            whole = _fill_means(data[entries], indices[entries], offsets[q + 1] - offsets[q], columns)
        for i in range(offsets[q], offsets[q + 1]):
            row = slice(starts[i], starts[i + 1])
            squares[i] = _distance(data[row], indices[row], columns, whole)
        if centred:
            _clear_columns(indices[entries], columns)
