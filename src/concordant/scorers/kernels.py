"""Products of some rows of X with a vector, and of a vector with some rows of X.

X may be float32: products and sums are float64, and X is never copied. Importing this imports numba.
"""

from __future__ import annotations

from concordant._segments import vector_kernel
from concordant.types import FloatArray, IntArray

__all__ = ["dense_pull", "dense_scores", "sparse_pull", "sparse_scores"]


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
