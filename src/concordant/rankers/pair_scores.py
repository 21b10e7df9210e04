"""Pairs of rows of a query, numbered consecutively, and their scores, a block of pairs at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from concordant.exceptions import NonFiniteError, ParameterError
from concordant.rankers.pair_features import (
    TABLES,
    PairFunction,
    call_pair_function,
    check_exchange,
    item_products,
)
from concordant.solvers.linear_scores import LinearScorer
from concordant.types import FloatArray, IntArray

BLOCK_BYTES = 2**20  # of pair features at a time: they stay in the cache
MOST_FEATURES = 20_000  # a matrix of their products takes 3.2 GB at this number; a fit has up to five
CHECKED_PAIRS = 1000  # on which a user's function is called in both orders
RUN_PAIRS = 2**20  # scored at a time; a longer query is scored as a whole
LARGEST = 1e250  # largest absolute value of a score


class Numbering:
    """Numbers of all pairs of rows of each query, left after right, consecutive over the queries.

    >>> pairs = Numbering(np.array([0, 3, 4, 6]))
    >>> left, right, query = pairs.rows(0, pairs.n_pairs)
    >>> left.tolist(), right.tolist(), query.tolist()
    ([1, 2, 2, 5], [0, 0, 1, 4], [0, 0, 0, 2])
    """

    def __init__(self, offsets: IntArray) -> None:
        sizes = np.diff(offsets)
        self.first = offsets[:-1]
        self.sizes = sizes * (sizes - 1) // 2
        self.starts = np.concatenate(([0], np.cumsum(self.sizes)))
        self.n_pairs = int(self.starts[-1])

    def rows(self, start: int, stop: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return left and right rows of the pairs from start to stop, and their queries."""
        numbers = np.arange(start, stop)
        query = np.searchsorted(self.starts, numbers, side="right") - 1
        inside = numbers - self.starts[query]
        left = (0.5 + np.sqrt(2.0 * inside + 0.25)).astype(np.int64)  # right up to 10^8 items of a query
        right = inside - left * (left - 1) // 2
        return left + self.first[query], right + self.first[query], query

    def number(self, row: IntArray, other_row: IntArray, query: IntArray) -> IntArray:
        """Return the numbers of the pairs of these rows, in either order."""
        left, right = np.maximum(row, other_row), np.minimum(row, other_row)
        left, right = left - self.first[query], right - self.first[query]
        numbers: IntArray = self.starts[query] + left * (left - 1) // 2 + right
        return numbers


class PairScorer:
    """Features of pairs of rows, a block of pairs at a time.

    Parameters
    ----------
    X
        Features of items, dense or compressed rows, the rows of each query adjacent; not copied.
    offsets
        Where each query starts.
    groups
        Groups of the table for the symmetry; or a function of the two items' features.
    symmetric
        True if a pair has the same features in both orders, else their negatives.
    """

    def __init__(
        self, X: Any, offsets: IntArray, groups: tuple[str, ...] | PairFunction, *, symmetric: bool
    ) -> None:
        self.X, self.offsets, self.symmetric = X, offsets, symmetric
        self.pairs = Numbering(offsets)
        self.function = groups if callable(groups) else None
        self.groups = {} if callable(groups) else {name: TABLES[symmetric][name] for name in groups}
        context = "context" in self.groups
        self.means: FloatArray = _query_means(X, offsets) if context else np.zeros((len(offsets) - 1, 0))
        widths = (group.width(X.shape[1]) for group in self.groups.values())
        self.width = self.function_width(self.function) if self.function else sum(widths)
        if (most := max(self.width, self.item_width * symmetric)) > MOST_FEATURES:
            raise ParameterError.because(
                f"features gives {most} features per pair or item, but at most {MOST_FEATURES} are possible. "
                "Leave out a group, or columns of X."
            )

    @property
    def n_blocks(self) -> int:
        """Number of blocks of pairs."""
        return -(-self.pairs.n_pairs // _block_length(self.width))

    @property
    def n_item_blocks(self) -> int:
        """Number of blocks of items."""
        return -(-int(self.X.shape[0]) // _block_length(self.item_width))

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Iterate over first and last numbers of blocks of pairs; a long query is cut."""
        return _in_blocks(self.pairs.n_pairs, self.width)

    def item_blocks(self) -> Iterator[tuple[int, int]]:
        """Iterate over first and last rows of blocks of items."""
        return _in_blocks(self.X.shape[0], self.item_width)

    @property
    def item_width(self) -> int:
        """Number of features of an item."""
        p, cross = self.X.shape[1], self.groups.get("cross")
        cross_width = cross.width(p) if cross else 0
        return int(2 * p + cross_width + self.means.shape[1] + (self.width if self.function else 0))

    def features(self, left: IntArray, right: IntArray, query: IntArray) -> FloatArray:
        """Compute a row of features per pair of rows."""
        left_features, right_features = self.items(left, right)
        if self.function:
            return call_pair_function(self.function, left_features, right_features, self.width)
        values, done = np.empty((len(left), self.width)), 0
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the result
            for group in self.groups.values():
                end = done + group.width(self.X.shape[1])
                values[:, done:end] = group.values(left_features, right_features, self.means[query])
                done = end
        return values

    def item_features(self, start: int, stop: int) -> FloatArray:
        """Compute features of single rows, their squares, and the diagonal of the pair features.

        The diagonal has the features of a pair of an item with itself: products of two features ("cross"),
        means of the query ("context"), or the values of a user's function.
        """
        rows = _to_doubles(self.X[start:stop])
        query = np.searchsorted(self.offsets, np.arange(start, stop), side="right") - 1
        with np.errstate(over="ignore"):
            parts = [rows, rows * rows, self.means[query]]
            if "cross" in self.groups:
                parts.append(item_products(rows))
        if self.function:
            parts.append(call_pair_function(self.function, rows, rows, self.width))
        return np.hstack(parts)

    def items(self, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the features of the two items of each pair; compressed rows are unpacked once each."""
        if not hasattr(self.X, "indptr"):
            return _to_doubles(self.X[left]), _to_doubles(self.X[right])
        rows, positions = np.unique(np.concatenate((left, right)), return_inverse=True)
        unpacked = _to_doubles(self.X[rows])
        return unpacked[positions[: len(left)]], unpacked[positions[len(left) :]]

    def function_width(self, function: PairFunction) -> int:
        """Call a user's function on the first pairs, in both orders, and return its number of features."""
        left, right, _ = self.pairs.rows(0, min(CHECKED_PAIRS, self.pairs.n_pairs))
        if not left.size:
            left = right = np.zeros(1, dtype=np.int64)  # no pairs at all: the width is still needed
        return check_exchange(function, *self.items(left, right), symmetric=self.symmetric)

    def matrices(self, pairs: AffineScore, items: AffineScore) -> Iterator[FloatArray]:
        """Generate the pair scores of each query, as matrices; a run of short queries is scored at once.

        Parameters
        ----------
        pairs, items
            Weights of the pair features, and of the features of the diagonal, for symmetric scores.
        """
        starts, first = self.pairs.starts, 0
        while first < len(self.offsets) - 1:
            full = int(np.searchsorted(starts, starts[first] + RUN_PAIRS, side="right")) - 1
            last = max(full, first + 1)
            scores = self.scores(pairs, int(starts[first]), int(starts[last]))
            for q in range(first, last):
                pairs_of_query = slice(starts[q] - starts[first], starts[q + 1] - starts[first])
                yield self.matrix(q, scores[pairs_of_query], items)
            first = last

    def matrix(self, query: int, scores: FloatArray, items: AffineScore) -> FloatArray:
        """Arrange the scores of a query's pairs as a matrix, in both orders."""
        start, stop = int(self.offsets[query]), int(self.offsets[query + 1])
        u = np.zeros((stop - start, stop - start))
        u[np.tril_indices(len(u), -1)] = scores
        u += u.T if self.symmetric else -u.T
        if self.symmetric and len(u):
            np.fill_diagonal(u, _check_overflow(items(self.item_features(start, stop))))
        return u

    def scores(self, pairs: AffineScore, start: int, stop: int) -> FloatArray:
        """Compute the scores of the pairs numbered from start to stop."""
        scores = np.empty(stop - start)
        for low, high in _in_blocks(stop - start, self.width):
            rows = self.pairs.rows(start + low, start + high)
            scores[low:high] = pairs(self.features(*rows))
        return _check_overflow(scores)


class AffineScore(NamedTuple):
    """A linear function of features, plus a constant."""

    coef: FloatArray
    intercept: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return a value per row; equal rows have equal values."""
        return LinearScorer(features).all_scores(self.coef) + self.intercept


def _block_length(width: int) -> int:
    """Rows of a block of this width: it is small, or a quarter of the size of its products."""
    return max(BLOCK_BYTES // (8 * max(width, 1)), width // 4, 1)


def _in_blocks(n_rows: int, width: int) -> Iterator[tuple[int, int]]:
    length = _block_length(width)
    return ((start, min(start + length, n_rows)) for start in range(0, n_rows, length))


def _check_overflow(scores: FloatArray) -> FloatArray:
    """Return the scores; raise if they, or sums of them, leave the range of doubles."""
    if (bad := ~(np.abs(scores) < LARGEST)).any():
        value, hint = float(scores[int(np.argmax(bad))]), "rescale X: products of such features overflow."
        raise NonFiniteError("the score", value, "a pair of items", int(bad.sum()), hint)
    return scores


def _to_doubles(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def _query_means(X: Any, offsets: IntArray) -> FloatArray:
    """Mean of each feature over each query; 0 if the query is empty."""
    sizes = np.diff(offsets)
    means = np.zeros((len(sizes), X.shape[1]))
    if hasattr(X, "indptr"):
        from scipy.sparse import csr_array

        shares = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
        by_query = csr_array((shares, np.arange(len(shares)), offsets), shape=(len(sizes), len(shares)))
        return np.asarray((by_query @ csr_array(X)).toarray())
    filled = sizes > 0
    sums = np.add.reduceat(X, offsets[:-1][filled], axis=0, dtype=np.float64)
    means[filled] = sums / sizes[filled, None]
    return means
