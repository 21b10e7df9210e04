"""Products of some rows of X with a vector, and of a vector with some rows of X.

X may be float32: products and sums are float64, and X is never copied. Importing this imports numba.
"""

from __future__ import annotations

import numpy as np

from concordant._segments import vector_kernel
from concordant.types import FloatArray, IntArray

__all__ = ["dense_pull", "dense_scores", "dense_squares", "dense_widest", "sparse_pull", "sparse_scores"]


@vector_kernel
def dense_scores(X: FloatArray, w: FloatArray, start: int, stop: int, scores: FloatArray) -> None:
    """Fill scores[start:stop] with X[start:stop] @ w."""
    for i in range(start, stop):
        total = 0.0
        for j in range(len(w)):
            total += X[i, j] * w[j]
        scores[i] = total


@vector_kernel
def dense_pull(X: FloatArray, grad: FloatArray, start: int, stop: int, total: FloatArray) -> None:
    """Add X[start:stop].T @ grad[start:stop] to the total."""
    for i in range(start, stop):
        slope = grad[i]
        for j in range(len(total)):
            total[j] += slope * X[i, j]


@vector_kernel
def dense_squares(
    X: FloatArray, offsets: IntArray, counts: FloatArray, inside: FloatArray, whole: FloatArray
) -> None:
    """Add each feature's squares about its query's mean, and about 0; a query counts `counts` times."""
    means = np.empty(len(inside))
    for q in range(len(counts)):
        means[:] = 0.0
        share = 1.0 / max(offsets[q + 1] - offsets[q], 1)
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(len(means)):
                means[j] += share * X[i, j]
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(len(means)):
                value = np.float64(X[i, j])
                off = value - means[j]
                inside[j] += counts[q] * off * off
                whole[j] += counts[q] * value * value


@vector_kernel
def dense_widest(X: FloatArray, widest: FloatArray) -> None:
    """Raise each entry to the largest size of its feature."""
    for i in range(len(X)):
        for j in range(len(widest)):
            widest[j] = max(widest[j], abs(X[i, j]))


@vector_kernel
def sparse_scores(
    data: FloatArray,
    indices: IntArray,
    starts: IntArray,
    w: FloatArray,
    start: int,
    stop: int,
    scores: FloatArray,
) -> None:
    """Do as `dense_scores` on compressed rows."""
    for i in range(start, stop):
        total = 0.0
        for place in range(starts[i], starts[i + 1]):
            total += data[place] * w[indices[place]]
        scores[i] = total


@vector_kernel
def sparse_pull(
    data: FloatArray,
    indices: IntArray,
    starts: IntArray,
    grad: FloatArray,
    start: int,
    stop: int,
    total: FloatArray,
) -> None:
    """Do as `dense_pull` on compressed rows."""
    for i in range(start, stop):
        slope = grad[i]
        for place in range(starts[i], starts[i + 1]):
            total[indices[place]] += slope * data[place]
