"""Linear scores X @ w, gradients pulled back to w, and the spread of features within queries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from concordant._base.segments import cut_queries, run_chunks, segment_sum
from concordant._base.validate import freeze
from concordant.exceptions import ShapeError
from concordant.types import FloatArray, IntArray

# Linear scores X @ w, and gradients pulled back to w, a block of rows at a time.

# Of X: the rows read for the scores are still in the cache when the gradient is pulled back.
BLOCK_BYTES = 2**20


class LinearScorer:
    """Scores of rows of X, and the gradient in the weights for a gradient in the scores.

    Parameters
    ----------
    X
        Features: float32 or float64, or a scipy CSR matrix; not copied if its rows, or all its columns, are
        contiguous.
    """

    arrays: tuple[Any, ...]  # of X, as the two kernels read them
    fill_scores: Callable[..., None]
    add_pull: Callable[..., None]

    def __init__(self, X: Any) -> None:
        from concordant.solvers import product_kernels as kernels

        self.n_rows, self.n_features = X.shape
        self.sparse = hasattr(X, "indptr")
        self.by_columns = not self.sparse and _is_by_columns(X)
        self.X = X if self.sparse else freeze(X if self.by_columns else np.ascontiguousarray(X))
        if self.sparse:
            self.arrays = freeze(X.data), freeze(X.indices), freeze(X.indptr)
            self.fill_scores, self.add_pull = kernels.sparse_scores, kernels.sparse_pull
        elif self.by_columns:
            self.arrays = (self.X.T,)
            self.fill_scores, self.add_pull = kernels.column_scores, kernels.column_pull
        else:
            self.arrays = (self.X,)
            self.fill_scores, self.add_pull = kernels.dense_scores, kernels.dense_pull
        size = X.data.nbytes * 1.5 if self.sparse else self.X.nbytes
        self.block_rows = max(1, int(BLOCK_BYTES * self.n_rows / max(size, 1)))

    def all_scores(self, w: FloatArray) -> FloatArray:
        """X @ w; equal rows have equal scores wherever they stand, which no BLAS promises."""
        if np.shape(w) != (self.n_features,):  # kernels do not check
            raise ShapeError("w", np.shape(w), f"one weight for each of {self.n_features} features")
        scores = np.empty(self.n_rows)
        edges = np.append(np.arange(0, self.n_rows, self.block_rows), self.n_rows)
        run_chunks(edges, lambda first, last: self.scores(w, int(edges[first]), int(edges[last]), scores))
        return scores

    def scores(self, w: FloatArray, start: int, stop: int, scores: FloatArray) -> None:
        """Fill scores[start:stop]."""
        self.fill_scores(*self.arrays, freeze(w), start, stop, scores)

    def widest(self) -> FloatArray:
        """Return the largest absolute value of each feature."""
        sizes = np.zeros(self.n_features)
        if self.sparse and self.n_rows:
            high, low = (end.toarray().ravel() for end in (self.X.max(axis=0), self.X.min(axis=0)))
            sizes[:] = np.maximum(np.abs(high), np.abs(low))
        elif self.by_columns:
            sizes[:] = np.maximum(self.X.max(axis=0), -self.X.min(axis=0))
        elif not self.sparse:
            from concordant.solvers.product_kernels import dense_widest

            dense_widest(self.X, sizes)  # numpy's max and min take 15 times as long
        return sizes

    def pull(self, grad: FloatArray, start: int, stop: int, total: FloatArray) -> None:
        """Add the gradient in w of rows start to stop to the total."""
        self.add_pull(*self.arrays, freeze(grad), start, stop, total)


# How far features spread within queries.

PART_CELLS = 2**22  # of a sparse X, at a time: the arrays computed from them are several times as large
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
        Weight of each query; None: 1.
    """
    counts = np.ones(len(offsets) - 1) if weights is None else weights
    inside, whole = np.zeros((2, X.shape[1]))
    if hasattr(X, "tocsc"):
        for first, last in pairwise(cut_queries(offsets, 1 + X.nnz // PART_CELLS).tolist()):
            rows = slice(offsets[first], offsets[last])
            part = _sparse_squares(X[rows], offsets[first : last + 1] - offsets[first], counts[first:last])
            inside, whole = inside + part[0], whole + part[1]
        return inside, whole
    from concordant.solvers.product_kernels import column_squares, dense_squares

    if _is_by_columns(X):
        column_squares(freeze(X.T), freeze(offsets), freeze(counts), inside, whole)
    else:
        dense_squares(freeze(np.ascontiguousarray(X)), freeze(offsets), freeze(counts), inside, whole)
    return inside, whole


def _is_by_columns(X: Any) -> bool:
    """True if a dense matrix lies in memory column after column, and not row after row."""
    return isinstance(X, np.ndarray) and X.flags.f_contiguous and not X.flags.c_contiguous


def _sparse_squares(X: Any, offsets: IntArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute `squares_within` from the stored cells only; about the means, so that nothing cancels."""
    columns = X.tocsc()
    columns.sum_duplicates()
    data = columns.data.astype(np.float64)
    features = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    owners = np.searchsorted(offsets, columns.indices, side="right") - 1
    # Within a column rows ascend: a feature's cells in one query are adjacent.
    apart = (np.diff(features, prepend=-1) != 0) | (np.diff(owners, prepend=-1) != 0)
    starts = np.flatnonzero(apart)
    groups, stored = np.append(starts, len(data)), np.diff(np.append(starts, len(data)))
    query, feature = owners[starts], features[starts]
    means = segment_sum(data, groups) / np.diff(offsets)[query]
    inside = segment_sum((data - np.repeat(means, stored)) ** 2, groups)
    inside += (np.diff(offsets)[query] - stored) * means**2  # the zeros, too, lie off the mean
    whole = segment_sum(data * data, groups)

    def summed(squares: FloatArray) -> FloatArray:
        return np.bincount(feature, squares * counts[query], X.shape[1]).astype(np.float64)

    return summed(inside), summed(whole)
