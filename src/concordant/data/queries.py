"""Queries: the grouping of rows, stored as an array of offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from concordant._base.validate import check_ids, freeze, is_whole, refuse_masked
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LengthMismatchError,
    ParameterError,
    RowError,
)
from concordant.types import ArrayLike, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)
MOST_ROWS = 2**53  # far beyond any memory: more is a mistake


@dataclass(frozen=True, eq=False)
class Queries:
    """Rows grouped by query: query `q` owns rows `offsets[q]:offsets[q + 1]` of the sorted data.

    Attributes
    ----------
    offsets
        Start of each query in the sorted data; one entry more than there are queries.
    ids
        The id of each query, ascending.
    moved
        Sorted row -> row in the caller's order; None if the caller's rows are sorted already, so that nothing
        moves (and no array is needed).
    """

    offsets: IntArray
    ids: NDArray[Any]
    moved: IntArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", freeze(self.offsets))
        object.__setattr__(self, "ids", freeze(self.ids))
        if self.moved is not None:
            object.__setattr__(self, "moved", freeze(self.moved))

    @classmethod
    def from_ids(cls, qid: ArrayLike) -> Queries:
        """Group rows with equal ids, wherever they stand.

        >>> queries = Queries.from_ids(["b", "a", "b"])
        >>> queries.offsets.tolist(), queries.order.tolist()
        ([0, 1, 3], [1, 0, 2])
        """
        keys = check_ids(qid)
        if not keys.size:
            raise EmptyDataError("qid")
        # Ids mostly come in runs: sort the runs, not the rows.
        starts = np.r_[0, np.flatnonzero(keys[1:] != keys[:-1]) + 1]
        return cls.from_runs(keys[starts], np.diff(np.r_[starts, len(keys)]))

    @classmethod
    def from_runs(cls, heads: NDArray[Any], lengths: IntArray) -> Queries:
        """Group rows given as runs of equal ids.

        >>> Queries.from_runs(np.array(["b", "a", "b"]), np.array([2, 1, 1])).order.tolist()
        [2, 0, 1, 3]
        """
        if (heads[1:] > heads[:-1]).all():
            return cls(np.r_[0, lengths.cumsum()].astype(np.int64), heads)
        ids, codes = np.unique(heads, return_inverse=True)
        sizes = np.bincount(codes, weights=lengths).astype(np.int64)
        order = np.argsort(np.repeat(codes, lengths), kind="stable")
        return cls(np.r_[0, sizes.cumsum()], ids, order)

    @classmethod
    def from_sizes(cls, sizes: ArrayLike) -> Queries:
        """Group consecutive rows by query size; a query may be empty.

        >>> Queries.from_sizes([2, 0, 1]).offsets.tolist()
        [0, 2, 2, 3]
        """
        refuse_masked(sizes, "sizes")
        counts = np.asarray(sizes)
        whole = counts.ndim == 1 and counts.dtype.kind in "iu"
        if not (whole and counts.min(initial=0) >= 0 and counts.sum(dtype=np.float64) <= MOST_ROWS):
            raise ParameterError("sizes", sizes, "a list of integers >= 0, one per query")
        offsets = np.r_[0, counts.cumsum()].astype(np.int64)
        return cls(offsets, np.arange(len(counts)))

    @classmethod
    def for_rows(cls, qid: ArrayLike, n_rows: int, reference: str = "y") -> Queries:
        """Build the queries of `n_rows` rows from ids or a `Queries`; a single query if `qid` is None."""
        if qid is None:
            return cls.from_sizes(np.array([n_rows]))
        queries = qid if isinstance(qid, cls) else cls.from_ids(qid)
        if queries.n_rows != n_rows:
            raise LengthMismatchError("qid", queries.n_rows, n_rows, reference)
        return queries

    @property
    def order(self) -> IntArray:
        """Sorted row -> row in the caller's order."""
        return np.arange(self.n_rows) if self.moved is None else self.moved

    @property
    def n_queries(self) -> int:
        """Number of queries, empty ones included."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows over all queries."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> IntArray:
        """Number of rows per query."""
        return np.diff(self.offsets)

    @property
    def codes(self) -> IntArray:
        """Query number of each sorted row."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def gather(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Reorder values from the caller's rows to sorted rows; no copy if they are sorted already."""
        return values if self.moved is None else values[self.moved]

    def scatter(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Reorder values from sorted rows to the caller's rows.

        >>> queries = Queries.from_ids(["b", "a", "b"])
        >>> queries.scatter(queries.gather(np.array([5, 6, 7]))).tolist()
        [5, 6, 7]
        """
        if self.moved is None:
            return values
        back = np.empty_like(values)
        back[self.moved] = values
        return back

    def rows(self, numbers: Sequence[int] | IntArray) -> IntArray:
        """Return the rows, in the caller's order, of the queries with these numbers (not ids).

        >>> Queries.from_ids(["b", "a", "b"]).rows([1]).tolist()
        [0, 2]
        """
        if len(numbers) and not 0 <= np.min(numbers) <= np.max(numbers) < self.n_queries:
            raise ParameterError("numbers", numbers, f"query numbers from 0 to {self.n_queries - 1}")
        pieces = [np.arange(self.offsets[query], self.offsets[query + 1]) for query in numbers]
        sorted_rows = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
        return sorted_rows if self.moved is None else self.moved[sorted_rows]

    def in_row_order(self) -> Queries:
        """Return the queries in the order of the rows, if those of each query are adjacent; else unchanged.

        Renamed queries then stay where they are, and nothing need be moved.

        >>> Queries.from_ids(["b", "b", "a"]).in_row_order().ids.tolist()
        ['b', 'a']
        >>> Queries.from_ids(["b", "a", "b"]).in_row_order().ids.tolist()
        ['a', 'b']
        """
        if self.moved is None:
            return self
        sizes, filled = self.sizes, self.sizes > 0
        starts = np.zeros(self.n_queries, dtype=np.int64)
        starts[filled] = self.moved[self.offsets[:-1][filled]]
        shifts = np.repeat(starts - self.offsets[:-1], sizes)
        if not np.array_equal(shifts, self.moved - np.arange(self.n_rows)):
            return self
        order = np.argsort(starts, kind="stable")
        return Queries(np.r_[0, sizes[order].cumsum()], self.ids[order])

    def split(self, *fractions: float, seed: int = 0) -> tuple[IntArray, ...]:
        """Split the queries at random into parts with about these shares, and return the rows of each part.

        >>> queries = Queries.from_ids([1, 1, 2, 2, 3, 3, 4, 4])
        >>> train, test = queries.split(0.75, 0.25, seed=1)
        >>> len(train), len(test)
        (6, 2)
        """
        shares = np.array(fractions)
        if not (shares.size and (shares > 0).all() and shares.sum() <= 1 + 1e-9):
            raise ParameterError("fractions", fractions, "positive, with a sum of at most 1")
        ends = np.rint(np.cumsum(shares) * self.n_queries).astype(np.int64)
        shuffled = np.random.default_rng(seed).permutation(self.n_queries)
        parts = np.split(shuffled, ends)[: len(shares)]
        return tuple(self.rows(np.sort(query_numbers)) for query_numbers in parts)

    def folds(self, n_folds: int = 5, *, seed: int | None = 0) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield cross-validation folds as (train rows, test rows); each query is tested once and never split.

        `seed=None` keeps the queries in order, as the LETOR folds do.

        >>> queries = Queries.from_ids([1, 1, 2, 3])
        >>> [(train.tolist(), test.tolist()) for train, test in queries.folds(3, seed=None)]
        [([2, 3], [0, 1]), ([0, 1, 3], [2]), ([0, 1, 2], [3])]
        """
        if not is_whole(n_folds, 2, self.n_queries):
            allowed = f"an integer from 2 to the number of queries, {self.n_queries}"
            raise ParameterError("n_folds", n_folds, allowed)
        numbers = np.arange(self.n_queries)
        if seed is not None:
            numbers = np.random.default_rng(seed).permutation(numbers)
        for test_queries in np.array_split(numbers, n_folds):
            train_queries = np.setdiff1d(np.arange(self.n_queries), test_queries)
            yield self.rows(train_queries), self.rows(np.sort(test_queries))

    def __repr__(self) -> str:
        return f"Queries({self.n_queries:,} queries, {self.n_rows:,} rows)"


@contextmanager
def naming_query(qid: ArrayLike) -> Iterator[None]:
    """Add the query of the row to errors about a row that are raised inside.

    >>> from concordant.exceptions import GradeError
    >>> with naming_query(["shoes", "hats"]):
    ...     raise GradeError(-1, "row 1", "is negative", "grades start at 0.").at(1)
    Traceback (most recent call last):
    concordant.exceptions.GradeError: grade -1 at row 1 (query 'hats') is negative.
    ...
    """
    try:
        yield
    except RowError as error:
        if error.row is not None and qid is not None:
            with suppress(ConcordantError, IndexError):  # an invalid qid must not hide this error
                queries = qid if isinstance(qid, Queries) else Queries.from_ids(qid)
                error.in_query(queries.ids[queries.scatter(queries.codes)[error.row]].item())
        raise
