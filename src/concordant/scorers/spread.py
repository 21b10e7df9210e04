"""How far features spread within queries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from concordant._segments import cut_queries, segment_sum
from concordant.supervision.columns import frozen
from concordant.types import FloatArray, IntArray

__all__ = ["ROUNDING", "is_by_columns", "squares_within"]

PART_CELLS = 2**22  # of a sparse X, at a time: what is made of them is several times as large
ROUNDING = 1e-10  # a feature whose spread within queries is this small a share of its size is constant


def squares_within(
    X: Any, offsets: IntArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Sums of squares of each feature about the queries' means, and about 0.

    Parameters
    ----------
    X
        Features, dense or compressed rows; rows of each query adjacent.
    offsets
        Where each query starts.
    weights
        How often each query counts; None: once.
    """
    counts = np.ones(len(offsets) - 1) if weights is None else weights
    inside, whole = np.zeros((2, X.shape[1]))
    if hasattr(X, "tocsc"):
        for first, last in pairwise(cut_queries(offsets, 1 + X.nnz // PART_CELLS).tolist()):
            rows = slice(offsets[first], offsets[last])
            part = sparse_squares(X[rows], offsets[first : last + 1] - offsets[first], counts[first:last])
            inside, whole = inside + part[0], whole + part[1]
        return inside, whole
    from concordant.scorers.kernels import column_squares, dense_squares

    if is_by_columns(X):
        column_squares(frozen(X.T), frozen(offsets), frozen(counts), inside, whole)
    else:
        dense_squares(frozen(np.ascontiguousarray(X)), frozen(offsets), frozen(counts), inside, whole)
    return inside, whole


def is_by_columns(X: Any) -> bool:
    """Whether a dense matrix lies in memory column after column, and not row after row."""
    return isinstance(X, np.ndarray) and X.flags.f_contiguous and not X.flags.c_contiguous


def sparse_squares(X: Any, offsets: IntArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Do as `squares_within`, reading only what is stored; about the means, so that nothing cancels."""
    columns = X.tocsc()
    columns.sum_duplicates()
    data = columns.data.astype(np.float64)
    features = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    owners = np.searchsorted(offsets, columns.indices, side="right") - 1
    # Within a column rows ascend: what a feature has in one query stands together.
    apart = (np.diff(features, prepend=-1) != 0) | (np.diff(owners, prepend=-1) != 0)
    starts = np.flatnonzero(apart)
    groups, stored = np.append(starts, len(data)), np.diff(np.append(starts, len(data)))
    query, feature = owners[starts], features[starts]
    means = segment_sum(data, groups) / np.diff(offsets)[query]
    inside = segment_sum((data - np.repeat(means, stored)) ** 2, groups)
    inside += (np.diff(offsets)[query] - stored) * means**2  # the zeros, too, lie off the mean
    whole = segment_sum(data * data, groups)

    def summed(squares: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(feature, squares * counts[query], X.shape[1]).astype(np.float64)
        return sums

    return summed(inside), summed(whole)
