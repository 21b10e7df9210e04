"""Counts: votes summed by pair of items and outcome, which is all that a model of strengths asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concordant.ratings.votes import Votes
from concordant.supervision.columns import frozen
from concordant.types import FloatArray, IntArray

__all__ = ["Counts"]

CELLS_PER_VOTE = 8  # a full table of pairs of at most so many cells a vote is faster than sorting


@dataclass(frozen=True, eq=False)
class Counts:
    """Votes by pair: row e is about items `first[e]` and `second[e]`.

    Attributes
    ----------
    n_items
        Number of items; some may have no votes.
    sided
        Whether `first` is the left side: if not, first < second, and who stood left is forgotten.
    first, second
        Items by number; no pair stands here twice.
    cells
        Weight of the votes that the first won, that are ties, that the second won: shape (n_pairs, 3).
    n_votes
        How many votes were summed, whatever their weights.

    Examples
    --------
    >>> from concordant.ratings.votes import read_votes
    >>> votes = read_votes(["a", "b", "b"], ["b", "a", "c"], [-1, -1, 0])
    >>> Counts.of(votes).cells.tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    n_items: int
    sided: bool
    first: IntArray
    second: IntArray
    cells: FloatArray
    n_votes: int

    @classmethod
    def of(cls, votes: Votes, *, sided: bool = False) -> Counts:
        """Sum votes; `sided` keeps apart who stood left."""
        n_items, n_votes = len(votes.items), len(votes)
        if 3 * n_items**2 <= CELLS_PER_VOTE * n_votes + 1000:
            return cls(n_items, sided, *by_table(votes, sided=sided), n_votes)
        weights = np.ones(n_votes) if votes.weights is None else votes.weights
        swap = ~np.bool_(sided) & (votes.left > votes.right)
        first, second = np.where(swap, votes.right, votes.left), np.where(swap, votes.left, votes.right)
        result = np.where(swap, -votes.outcome, votes.outcome)
        return cls(n_items, sided, *by_sorting(n_items, first, second, result + 1, weights), n_votes)

    def plus(self, more: Counts) -> Counts:
        """Give the sums of both, as of the same items by the same numbers; `more` may know further ones."""
        first, second = (np.concatenate((getattr(self, s), getattr(more, s))) for s in ("first", "second"))
        cells = np.concatenate((self.cells, more.cells))
        n_items, n_votes = max(self.n_items, more.n_items), self.n_votes + more.n_votes
        result = np.tile(np.arange(3), len(first))
        rows = np.repeat(first, 3), np.repeat(second, 3)
        return Counts(n_items, self.sided, *by_sorting(n_items, *rows, result, cells.ravel()), n_votes)

    def with_cells(self, cells: FloatArray) -> Counts:
        """Give other numbers of votes for the same pairs."""
        return Counts(self.n_items, self.sided, self.first, self.second, cells, self.n_votes)

    @property
    def n_pairs(self) -> int:
        """Number of pairs that met."""
        return len(self.first)

    @cached_property
    def totals(self) -> FloatArray:
        """Weight of the votes that the first side won, that are ties, that the second won."""
        return np.array([self.cells[:, result].sum() for result in range(3)])  # faster than all at once

    @cached_property
    def records(self) -> FloatArray:
        """Weight of the votes that each item won, tied and lost: shape (n_items, 3)."""
        columns = []
        for own, other in ((0, 2), (1, 1), (2, 0)):
            sides = ((self.first, own), (self.second, other))
            columns.append(sum(np.bincount(i, self.cells[:, o], self.n_items) for i, o in sides))
        return np.stack(columns, axis=1)

    @cached_property
    def connected(self) -> bool:
        """Whether all items are one component; usually seen from pairs in which each side won."""
        return self.joined(mutual=True)[0] == 1 or len(self.components()) == 1

    @cached_property
    def parts(self) -> IntArray:
        """Number of the part that each item is in, from 0: items that met, if through others, share one."""
        n_parts, parent = self.joined(mutual=False)
        if n_parts == 1:
            return np.zeros(self.n_items, dtype=np.int64)
        while (parent != parent[parent]).any():
            parent = parent[parent]
        return np.unique(parent, return_inverse=True)[1].astype(np.int64)

    def joined(self, *, mutual: bool) -> tuple[int, IntArray]:
        """Give the number of parts that pairs leave, and for each item another one nearer to its root."""
        from concordant.ratings.kernels import join_pairs

        parent = np.arange(self.n_items)
        first, second, cells = frozen(self.first), frozen(self.second), frozen(self.cells)
        return int(join_pairs(first, second, cells, mutual, parent)), parent

    def components(self) -> list[IntArray]:
        """Items by strongly connected component of "won against", largest first.

        Within one, every item won against every other, if through others; a tie is a win each way.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        tied = self.cells[:, 1] > 0
        ahead, behind = (self.cells[:, 0] > 0) | tied, (self.cells[:, 2] > 0) | tied
        winner = np.concatenate((self.first[ahead], self.second[behind]))
        loser = np.concatenate((self.second[ahead], self.first[behind]))
        shape = (self.n_items, self.n_items)
        graph = coo_array((np.ones(len(winner)), (winner, loser)), shape=shape).tocsr()
        _, component = connected_components(graph, connection="strong")
        sizes = np.bincount(component)
        order = np.argsort(component, kind="stable")
        parts = np.split(order.astype(np.int64), np.cumsum(sizes)[:-1])
        return sorted(parts, key=lambda part: (-len(part), part[0]))


def by_table(votes: Votes, *, sided: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Count in a full table of pairs."""
    from concordant.ratings.kernels import count_votes, filled_pairs

    n_items = len(votes.items)
    small = votes.weights is None and len(votes) < np.iinfo(np.int32).max
    table = np.zeros(3 * n_items**2, dtype=np.int32 if small else np.float64)
    weights = np.zeros(0) if votes.weights is None else np.ascontiguousarray(votes.weights)
    columns = (votes.left, votes.right, votes.outcome)
    left, right, outcome = (frozen(np.ascontiguousarray(column, dtype=np.int64)) for column in columns)
    # Read-only: one compiled version serves all callers.
    count_votes(left, right, outcome, frozen(weights), n_items, sided, table)
    nothing = np.empty(0, dtype=np.int64)
    n_pairs = filled_pairs(table, n_items, nothing, nothing, np.empty((0, 3)))
    first, second, cells = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64), np.empty((n_pairs, 3))
    filled_pairs(table, n_items, first, second, cells)
    return first, second, cells


def by_sorting(
    n_items: int, first: IntArray, second: IntArray, result: IntArray, weights: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Sum by pair and result (0, 1 or 2), without a table of all pairs."""
    from scipy.sparse import coo_array

    shape = (n_items, n_items * 3)
    summed = coo_array((weights, (first, second * 3 + result)), shape=shape).tocsr()
    summed.sum_duplicates()
    row = np.repeat(np.arange(n_items), np.diff(summed.indptr))
    place, result = np.divmod(summed.indices.astype(np.int64), 3)
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (place[1:] != place[:-1])
    pair = np.cumsum(new) - 1
    cells = np.zeros((int(new.sum()), 3))
    cells[pair, result] = summed.data
    kept = cells.any(axis=1)
    return row[new][kept], place[new][kept], cells[kept]
