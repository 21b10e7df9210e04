"""How far documents lie from the mean of their list, document by document. Importing this imports numba."""

from __future__ import annotations

import numpy as np

from concordant._segments import vector_kernel
from concordant.theory.bounds.kernels import distance, fill_means
from concordant.types import FloatArray, IntArray

__all__ = ["dense_rows", "sparse_rows"]


@vector_kernel
def dense_rows(
    X: FloatArray, offsets: IntArray, centred: bool, first: int, last: int, squares: FloatArray
) -> None:
    """Fill the squared distances of the rows of lists `first` to `last` from their mean, else from 0."""
    origin, mean = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if centred and start < stop:
            origin[:], mean[:] = X[start], 0.0  # counted from a row, what is large and constant cancels not
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
def sparse_rows(
    data: FloatArray,
    indices: IntArray,
    starts: IntArray,
    width: int,
    offsets: IntArray,
    centred: bool,
    first: int,
    last: int,
    squares: FloatArray,
) -> None:
    """Do as `dense_rows` on compressed rows."""
    means, rare, stored, whole = np.zeros(width), np.zeros(width), np.zeros(width), 0.0
    for q in range(first, last):
        entries = slice(starts[offsets[q]], starts[offsets[q + 1]])
        if centred:
            n_rows = offsets[q + 1] - offsets[q]
            whole = fill_means(data[entries], indices[entries], n_rows, means, rare, stored)
        for i in range(offsets[q], offsets[q + 1]):
            row = slice(starts[i], starts[i + 1])
            squares[i] = distance(data[row], indices[row], means, rare, whole)
        if centred:
            for j in indices[entries]:
                means[j] = rare[j] = stored[j] = 0.0
