"""Pairs of rows of a query, numbered through, and their scores, a block of pairs at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from concordant.exceptions import NonFiniteError, ParameterError
from concordant.scorers.linear import LinearScorer
from concordant.scorers.pair_features import TABLES, PairFunction, asked, check_exchange, two_of
from concordant.types import FloatArray, IntArray

__all__ = ["Affine", "Numbering", "PairScorer"]

BLOCK_BYTES = 2**20  # of pair features at a time: they stay in the cache
MOST_FEATURES = 20_000  # a matrix of their products takes 3.2 GB at this number; a fit has up to five
CHECKED_PAIRS = 1000  # on which a user's features are asked both ways round
RUN_PAIRS = 2**20  # scored at a time, if that is not one query
LARGEST = 1e250  # of a score


class Numbering:
    """All pairs of rows of one query, left after right, numbered through over the queries.

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
        """Left and right rows of the pairs from start to stop, and their queries."""
        numbers = np.arange(start, stop)
        query = np.searchsorted(self.starts, numbers, side="right") - 1
        inside = numbers - self.starts[query]
        left = (0.5 + np.sqrt(2.0 * inside + 0.25)).astype(np.int64)  # right up to 10^8 items of a query
        right = inside - left * (left - 1) // 2
        return left + self.first[query], right + self.first[query], query

    def number(self, one: IntArray, other: IntArray, query: IntArray) -> IntArray:
        """Numbers of the pairs of these rows, whichever is left."""
        left, right = np.maximum(one, other), np.minimum(one, other)
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
        Whether a pair has the same features both ways round, or their negatives.
    """

    def __init__(
        self, X: Any, offsets: IntArray, groups: tuple[str, ...] | PairFunction, *, symmetric: bool
    ) -> None:
        self.X, self.offsets, self.symmetric = X, offsets, symmetric
        self.pairs = Numbering(offsets)
        self.own = groups if callable(groups) else None
        self.groups = {} if callable(groups) else {name: TABLES[symmetric][name] for name in groups}
        context = "context" in self.groups
        self.means: FloatArray = query_means(X, offsets) if context else np.zeros((len(offsets) - 1, 0))
        widths = (group.width(X.shape[1]) for group in self.groups.values())
        self.width = self.own_width(self.own) if self.own else sum(widths)
        if (most := max(self.width, self.item_width * symmetric)) > MOST_FEATURES:
            allowed = f"such that a pair, or an item, has at most {MOST_FEATURES} features, not {most}"
            raise ParameterError("features", groups, f"{allowed}: leave out a group, or columns of X")

    @property
    def n_blocks(self) -> int:
        """Number of blocks of pairs."""
        return -(-self.pairs.n_pairs // block_length(self.width))

    @property
    def n_item_blocks(self) -> int:
        """Number of blocks of items."""
        return -(-int(self.X.shape[0]) // block_length(self.item_width))

    def blocks(self) -> Iterator[tuple[int, int]]:
        """First and last numbers of blocks of pairs; a long query is cut."""
        return in_blocks(self.pairs.n_pairs, self.width)

    def item_blocks(self) -> Iterator[tuple[int, int]]:
        """First and last rows of blocks of items."""
        return in_blocks(self.X.shape[0], self.item_width)

    @property
    def item_width(self) -> int:
        """Number of features of one item."""
        p, two = self.X.shape[1], self.groups.get("cross")
        mixed = two.width(p) if two else 0
        return int(2 * p + mixed + self.means.shape[1] + (self.width if self.own else 0))

    def features(self, left: IntArray, right: IntArray, query: IntArray) -> FloatArray:
        """One row of features per pair of rows."""
        one, other = self.items(left, right)
        if self.own:
            return asked(self.own, one, other, self.width)
        values, done = np.empty((len(left), self.width)), 0
        with np.errstate(over="ignore", invalid="ignore"):  # who uses them looks
            for group in self.groups.values():
                end = done + group.width(self.X.shape[1])
                values[:, done:end] = group.values(one, other, self.means[query])
                done = end
        return values

    def item_features(self, start: int, stop: int) -> FloatArray:
        """Features of single rows, their squares, and what the features of pairs bring beyond these.

        That is what a pair would have whose items are the same: products of two features ("cross"), means of
        the query ("context"), or what a user's function gives.
        """
        rows = dense(self.X[start:stop])
        query = np.searchsorted(self.offsets, np.arange(start, stop), side="right") - 1
        with np.errstate(over="ignore"):
            parts = [rows, rows * rows, self.means[query]]
            if "cross" in self.groups:
                parts.append(two_of(rows))
        if self.own:
            parts.append(asked(self.own, rows, rows, self.width))
        return np.hstack(parts)

    def items(self, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Features of the two items of each pair; of compressed rows, each is unpacked once."""
        if not hasattr(self.X, "indptr"):
            return dense(self.X[left]), dense(self.X[right])
        rows, places = np.unique(np.concatenate((left, right)), return_inverse=True)
        unpacked = dense(self.X[rows])
        return unpacked[places[: len(left)]], unpacked[places[len(left) :]]

    def own_width(self, function: PairFunction) -> int:
        """Ask a user's function for the first pairs, both ways round."""
        left, right, _ = self.pairs.rows(0, min(CHECKED_PAIRS, self.pairs.n_pairs))
        if not left.size:
            left = right = np.zeros(1, dtype=np.int64)  # no pair at all: its width is still needed
        return check_exchange(function, *self.items(left, right), symmetric=self.symmetric)

    def matrices(self, pairs: Affine, items: Affine) -> Iterator[FloatArray]:
        """Scores of the pairs of query after query, as matrices; a run of short queries is scored at once.

        Parameters
        ----------
        pairs, items
            Weights of the pair features, and of the features of the diagonal, which symmetric scores have.
        """
        starts, first = self.pairs.starts, 0
        while first < len(self.offsets) - 1:
            full = int(np.searchsorted(starts, starts[first] + RUN_PAIRS, side="right")) - 1
            last = max(full, first + 1)
            scores = self.scores(pairs, int(starts[first]), int(starts[last]))
            for q in range(first, last):
                own = slice(starts[q] - starts[first], starts[q + 1] - starts[first])
                yield self.matrix(q, scores[own], items)
            first = last

    def matrix(self, query: int, scores: FloatArray, items: Affine) -> FloatArray:
        """Scores of the pairs of one query, both ways round."""
        start, stop = int(self.offsets[query]), int(self.offsets[query + 1])
        u = np.zeros((stop - start, stop - start))
        u[np.tril_indices(len(u), -1)] = scores
        u += u.T if self.symmetric else -u.T
        if self.symmetric and len(u):
            np.fill_diagonal(u, refused_overflow(items(self.item_features(start, stop))))
        return u

    def scores(self, pairs: Affine, start: int, stop: int) -> FloatArray:
        """Scores of the pairs numbered from start to stop."""
        scores = np.empty(stop - start)
        for low, high in in_blocks(stop - start, self.width):
            rows = self.pairs.rows(start + low, start + high)
            scores[low:high] = pairs(self.features(*rows))
        return refused_overflow(scores)


class Affine(NamedTuple):
    """A linear function of features, and a constant."""

    coef: FloatArray
    intercept: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """One value per row; equal rows have equal ones."""
        return LinearScorer(features).all_scores(self.coef) + self.intercept


def block_length(width: int) -> int:
    """Rows of a block of this width: it is small, or a quarter of the size of its products."""
    return max(BLOCK_BYTES // (8 * max(width, 1)), width // 4, 1)


def in_blocks(n_rows: int, width: int) -> Iterator[tuple[int, int]]:
    """First and last rows of blocks."""
    length = block_length(width)
    return ((start, min(start + length, n_rows)) for start in range(0, n_rows, length))


def refused_overflow(scores: FloatArray) -> FloatArray:
    """Give the scores, if they are in the range of doubles, and sums of them would be."""
    if (bad := ~(np.abs(scores) < LARGEST)).any():
        value, hint = float(scores[int(np.argmax(bad))]), "rescale X: products of such features overflow."
        raise NonFiniteError("the score", value, "a pair of items", int(bad.sum()), hint)
    return scores


def dense(rows: Any) -> FloatArray:
    """Rows as doubles."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def query_means(X: Any, offsets: IntArray) -> FloatArray:
    """Mean of each feature over each query; 0 where it is empty."""
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
