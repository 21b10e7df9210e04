"""Products of some rows of X with a vector, and of a vector with some rows of X.

X may be float32: products and sums are float64, and X is never copied. Importing this imports numba.
"""

from __future__ import annotations

import numpy as np

from concordant._base.segments import kernel, vector_kernel
from concordant.types import FloatArray, IntArray


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
    """Raise each entry to the largest absolute value of its feature."""
    for i in range(len(X)):
        for j in range(len(widest)):
            widest[j] = max(widest[j], abs(X[i, j]))


@kernel
def column_scores(columns: FloatArray, w: FloatArray, start: int, stop: int, scores: FloatArray) -> None:
    """Compute `dense_scores` on X.T; each score is a sum in the order of the features, wherever its row lies.

    Four at a time, so that scores are loaded and stored less often.
    """
    out, even = scores[start:stop], len(w) - len(w) % 4
    out[:] = 0.0
    for j in range(0, even, 4):
        first, second = columns[j, start:stop], columns[j + 1, start:stop]
        third, fourth = columns[j + 2, start:stop], columns[j + 3, start:stop]
        for i in range(len(out)):
            out[i] += w[j] * first[i] + w[j + 1] * second[i] + w[j + 2] * third[i] + w[j + 3] * fourth[i]
    for j in range(even, len(w)):
        column = columns[j, start:stop]
        for i in range(len(out)):
            out[i] += w[j] * column[i]


@vector_kernel
def column_pull(columns: FloatArray, grad: FloatArray, start: int, stop: int, total: FloatArray) -> None:
    """Compute `dense_pull` on X.T; four features at a time, so that slopes are loaded less often."""
    slopes, even = grad[start:stop], len(total) - len(total) % 4
    for j in range(0, even, 4):
        first, second = columns[j, start:stop], columns[j + 1, start:stop]
        third, fourth = columns[j + 2, start:stop], columns[j + 3, start:stop]
        sum_1, sum_2, sum_3, sum_4 = 0.0, 0.0, 0.0, 0.0
        for i in range(len(slopes)):
            sum_1 += slopes[i] * first[i]
            sum_2 += slopes[i] * second[i]
            sum_3 += slopes[i] * third[i]
            sum_4 += slopes[i] * fourth[i]
        total[j] += sum_1
        total[j + 1] += sum_2
        total[j + 2] += sum_3
        total[j + 3] += sum_4
    for j in range(even, len(total)):
        column = columns[j, start:stop]
        sum_1 = 0.0
        for i in range(len(slopes)):
            sum_1 += slopes[i] * column[i]
        total[j] += sum_1


@vector_kernel
def column_squares(
    columns: FloatArray, offsets: IntArray, counts: FloatArray, inside: FloatArray, whole: FloatArray
) -> None:
    """Compute `dense_squares` on X.T."""
    for j in range(len(inside)):
        for q in range(len(counts)):
            column = columns[j, offsets[q] : offsets[q + 1]]
            mean, off, square = 0.0, 0.0, 0.0
            for i in range(len(column)):
                mean += column[i]
            mean /= max(len(column), 1)
            for i in range(len(column)):
                value = np.float64(column[i])
                off += (value - mean) * (value - mean)
                square += value * value
            inside[j] += counts[q] * off
            whole[j] += counts[q] * square


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
    """Compute `dense_scores` on compressed rows."""
    for i in range(start, stop):
        total = 0.0
        for cell in range(starts[i], starts[i + 1]):
            total += data[cell] * w[indices[cell]]
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
    """Compute `dense_pull` on compressed rows."""
    for i in range(start, stop):
        slope = grad[i]
        for cell in range(starts[i], starts[i + 1]):
            total[indices[cell]] += slope * data[cell]
