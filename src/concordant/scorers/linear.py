"""Linear scores X @ w, and gradients pulled back to w, a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant._segments import run_chunks
from concordant.exceptions import ShapeError
from concordant.scorers.spread import is_by_columns
from concordant.supervision.columns import frozen
from concordant.types import FloatArray

__all__ = ["LinearScorer"]

# Of X: what was read for the scores is still in the cache when the gradient is pulled back.
BLOCK_BYTES = 2**20


class LinearScorer:
    """Scores of some rows, and what a gradient in those scores means for the weights.

    Parameters
    ----------
    X
        Features: float32 or float64, or a scipy CSR matrix; not copied if its rows, or all its columns, are
        contiguous.
    """

    def __init__(self, X: Any) -> None:
        self.n_rows, self.n_features = X.shape
        self.sparse = hasattr(X, "indptr")
        self.by_columns = not self.sparse and is_by_columns(X)
        self.X = X if self.sparse else frozen(X if self.by_columns else np.ascontiguousarray(X))
        if self.sparse:
            self.arrays = frozen(X.data), frozen(X.indices), frozen(X.indptr)
        size = X.data.nbytes * 1.5 if self.sparse else self.X.nbytes
        self.block_rows = max(1, int(BLOCK_BYTES * self.n_rows / max(size, 1)))

    def all_scores(self, w: FloatArray) -> FloatArray:
        """X @ w; equal rows have equal scores wherever they stand, which no BLAS promises."""
        if np.shape(w) != (self.n_features,):  # kernels do not look
            raise ShapeError("w", np.shape(w), f"one weight for each of {self.n_features} features")
        scores = np.empty(self.n_rows)
        edges = np.append(np.arange(0, self.n_rows, self.block_rows), self.n_rows)
        run_chunks(edges, lambda first, last: self.scores(w, int(edges[first]), int(edges[last]), scores))
        return scores

    def scores(self, w: FloatArray, start: int, stop: int, scores: FloatArray) -> None:
        """Fill scores[start:stop]."""
        from concordant.scorers.kernels import column_scores, dense_scores, sparse_scores

        if self.sparse:
            sparse_scores(*self.arrays, frozen(w), start, stop, scores)
        elif self.by_columns:
            column_scores(self.X.T, frozen(w), start, stop, scores)
        else:
            dense_scores(self.X, frozen(w), start, stop, scores)

    def widest(self) -> FloatArray:
        """Give the largest size of each feature."""
        sizes = np.zeros(self.n_features)
        if self.sparse and self.n_rows:
            high, low = (end.toarray().ravel() for end in (self.X.max(axis=0), self.X.min(axis=0)))
            sizes[:] = np.maximum(np.abs(high), np.abs(low))
        elif self.by_columns:
            sizes[:] = np.maximum(self.X.max(axis=0), -self.X.min(axis=0))
        elif not self.sparse:
            from concordant.scorers.kernels import dense_widest

            dense_widest(self.X, sizes)  # numpy's max and min take 15 times as long
        return sizes

    def pull(self, grad: FloatArray, start: int, stop: int, total: FloatArray) -> None:
        """Add the gradient in w of rows start to stop to the total."""
        from concordant.scorers.kernels import column_pull, dense_pull, sparse_pull

        if self.sparse:
            sparse_pull(*self.arrays, frozen(grad), start, stop, total)
        elif self.by_columns:
            column_pull(self.X.T, frozen(grad), start, stop, total)
        else:
            dense_pull(self.X, frozen(grad), start, stop, total)
