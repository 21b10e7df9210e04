"""Counts: how many rows each query has, and whether they stand together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.supervision.scans.index import joined
from concordant.types import IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Counts", "counted", "run_starts"]

MERGED_AT_ONCE = 1 << 18  # entries, at least, that are kept before they are added to the others


@dataclass(frozen=True, eq=False)
class Counts:
    """The queries of a source.

    Attributes
    ----------
    ids, sizes
        Id, ascending, and number of rows of each query.
    together
        Whether the rows of each stand together.
    """

    ids: NDArray[Any]
    sizes: IntArray
    together: bool

    @property
    def n_rows(self) -> int:
        """Rows of all queries."""
        return int(self.sizes.sum())

    def within(self, first: int, last: int) -> Counts:
        """Give some of the queries, by number."""
        return Counts(self.ids[first:last], self.sizes[first:last], self.together)


def counted(columns: Iterable[NDArray[Any]]) -> Counts | None:
    """Count the rows of each id over columns that follow one another; None where there are no rows.

    >>> counts = counted([np.array([7, 7]), np.array([7, 3])])
    >>> counts.ids.tolist(), counts.sizes.tolist(), counts.together
    ([3, 7], [1, 3], True)
    >>> counted([np.array([7, 3, 7])]).together
    False
    """
    ids: NDArray[Any] | None = None
    sizes, n_runs, last = np.zeros(0, dtype=np.int64), 0, None
    waiting: list[tuple[NDArray[Any], IntArray]] = []
    for column in columns:
        if not len(column):
            continue
        starts = run_starts(column)
        waiting.append(added([column[starts]], [np.diff(starts, append=len(column))]))
        n_runs += len(starts) - int(last is not None and bool(last == column[0]))
        last = column[-1]
        if sum(len(own) for own, _ in waiting) > max(MERGED_AT_ONCE, len(sizes)):
            ids, sizes = merged(ids, sizes, waiting)
            waiting = []
    ids, sizes = merged(ids, sizes, waiting)
    return None if ids is None else Counts(ids, sizes, together=n_runs == len(ids))


def run_starts(column: NDArray[Any]) -> IntArray:
    """Give the rows at which another id begins.

    >>> run_starts(np.array([7, 7, 3])).tolist()
    [0, 2]
    """
    return np.concatenate(([0], np.flatnonzero(column[1:] != column[:-1]) + 1))[: len(column)]


def merged(
    ids: NDArray[Any] | None, sizes: IntArray, waiting: list[tuple[NDArray[Any], IntArray]]
) -> tuple[NDArray[Any] | None, IntArray]:
    """Add counts to those there are."""
    if ids is not None:
        waiting = [(ids, sizes), *waiting]
    if not waiting:
        return ids, sizes
    return added([own for own, _ in waiting], [own for _, own in waiting])


def added(columns: list[NDArray[Any]], counts: list[IntArray]) -> tuple[NDArray[Any], IntArray]:
    """Give different ids, ascending, and the sum of the counts of each."""
    ids, codes = np.unique(joined(columns), return_inverse=True)
    return ids, np.bincount(codes, weights=np.concatenate(counts)).astype(np.int64)
