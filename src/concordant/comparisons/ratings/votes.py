"""Votes: pairs of items with outcomes, by item number, and their counts by pair."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.validate import (
    check_ids,
    check_lengths,
    check_nonnegative,
    concatenate_ids,
    freeze,
    id_kind,
    refuse_misaligned,
    sum_overflow_error,
)
from concordant.data.labels import Comparisons
from concordant.exceptions import EmptyDataError, LabelError, OutcomeWarning, ParameterError, UnknownNameError
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


LISTED = 30  # names in an error


@dataclass(frozen=True, eq=False)
class Items:
    """Names of items, by item number; `names` need not be sorted.

    >>> items = Items(np.array(["b", "a"]))
    >>> items.codes(["a", "b", "a"], "left").tolist()
    [1, 0, 1]
    """

    names: NDArray[Any]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def order(self) -> IntArray:
        """Item numbers, sorted by name."""
        return np.argsort(self.names, kind="stable").astype(np.int64)

    def find(self, ids: NDArray[Any]) -> IntArray:
        """Look up the number of each id; -1 for unknown ids."""
        if not len(self) or id_kind(ids) != id_kind(self.names):
            return np.full(len(ids), -1, dtype=np.int64)
        names = self.names
        if ids.dtype.kind != names.dtype.kind:  # numpy would compare large numbers as doubles
            both = concatenate_ids(names, ids)
            names, ids = both[: len(names)], both[len(names) :]
        insertion = np.searchsorted(names, ids, sorter=self.order).clip(max=len(self) - 1)
        codes = self.order[insertion]
        return np.where(names[codes] == ids, codes, -1)

    def codes(self, ids: ArrayLike, name: str) -> IntArray:
        """Look up the number of each id; raise for unknown ids."""
        checked_ids = check_ids(ids, name)
        codes = self.find(checked_ids)
        if (unknown := np.flatnonzero(codes < 0)).size:
            raise self.unknown(checked_ids[unknown[0]].item())
        return codes

    def unknown(self, name: object) -> UnknownNameError:
        """Return the error for an unknown item; of many items, it lists only those of similar names."""
        listed = [str(item) for item in self.names.tolist()]
        if len(listed) > LISTED:
            near = difflib.get_close_matches(str(name), listed, n=5, cutoff=0.6)
            listed = [*near, f"{len(listed) - len(near)} others"]
        return UnknownNameError("item", name, listed)

    def with_new(self, ids: NDArray[Any]) -> Items:
        """Append the ids (all different) that are new."""
        new = ids[self.find(ids) < 0]
        return Items(concatenate_ids(self.names, new)) if new.size else self


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes, one per row, in the caller's order."""

    items: Items  # that the numbers refer to
    left: IntArray
    right: IntArray
    outcome: IntArray  # -1 the left won, +1 the right won, 0 a tie
    weights: FloatArray | None = None  # >= 0; None: all 1

    def __len__(self) -> int:
        return len(self.left)


def _is_single(value: object) -> bool:
    """True for a single id or number, False for a column."""
    return isinstance(value, (str, bytes, Number, np.generic, date)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    )


def check_side(ids: ArrayLike, name: str) -> NDArray[Any]:
    """Check the ids of one side; a single id is a column of length 1."""
    if isinstance(ids, (set, frozenset, dict, Iterator)):
        problem = f"{name} is a {type(ids).__name__}, not a column with one id per vote"
        hint = f"pass a list or an array, such as list({name}) if its order is that of the votes."
        raise LabelError(problem, hint)
    return check_ids([ids.item() if isinstance(ids, np.ndarray) else ids] if _is_single(ids) else ids, name)


def _read_columns(left: ArrayLike, right: ArrayLike, outcome: ArrayLike) -> Comparisons:
    """Check the columns of votes; single ids with one outcome are one vote."""
    for name, column in (("right", right), ("outcome", outcome)):
        if column is None:
            hint = "pass left, right and outcome with one entry per vote, or a Comparisons."
            raise LabelError(f"{name} is missing", hint)
    sides = check_side(left, "left"), check_side(right, "right")
    return Comparisons(*sides, [outcome] if _is_single(outcome) else outcome)


def read_votes(
    left: ArrayLike,
    right: ArrayLike = None,
    outcome: ArrayLike = None,
    sample_weight: ArrayLike = None,
    known_items: Items | None = None,
) -> Votes:
    """Check votes; `left` may be a `Comparisons`, which has everything but the weights.

    Single ids are one vote. Items of `known_items` keep their numbers, new ones follow. Raises for an item
    that meets itself.

    >>> votes = read_votes(["a", "c"], ["b", "a"], [-1, 0])
    >>> votes.items.names.tolist(), votes.left.tolist(), votes.right.tolist()
    (['a', 'b', 'c'], [0, 2], [1, 0])
    """
    comparisons = left if isinstance(left, Comparisons) else None
    if comparisons is not None and (right is not None or outcome is not None):
        raise ParameterError.because(
            "left is a Comparisons, which has its own right and outcome. Leave them out."
        )
    refuse_misaligned(left=left, right=right, outcome=outcome, sample_weight=sample_weight)
    if comparisons is None:
        with warnings.catch_warnings():
            if known_items is not None:  # a few more votes: one side may well have won all of them
                warnings.simplefilter("ignore", OutcomeWarning)
            comparisons = _read_columns(left, right, outcome)
    if _is_single(sample_weight):
        sample_weight = [sample_weight]
    if not len(comparisons):
        raise EmptyDataError("left")
    weights = None if sample_weight is None else check_nonnegative(sample_weight, "sample_weight", "vote")
    check_lengths("left", len(comparisons), sample_weight=weights)
    with np.errstate(over="ignore"):
        if weights is not None and not np.isfinite(weights.sum()):
            raise sum_overflow_error("sample_weight")
    if (alone := np.flatnonzero(comparisons.left_codes == comparisons.right_codes)).size:
        name = comparisons.left[alone[0]].item()
        raise LabelError(f"vote {alone[0]} is between {name!r} and itself", "drop votes of one item.")
    items, left, right = Items(comparisons.items), comparisons.left_codes, comparisons.right_codes
    if known_items is not None:
        items = known_items.with_new(comparisons.items)
        codes = items.find(comparisons.items)
        left, right = codes[left], codes[right]
    return Votes(items, left, right, comparisons.outcome, weights)


# Counts: votes summed by pair of items and outcome, which is all that a model of strengths needs.

CELLS_PER_VOTE = 8  # up to this many cells per vote, a full table of pairs is faster than sorting


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of votes by pair: row e is about items `first[e]` and `second[e]`.

    Attributes
    ----------
    n_items
        Number of items; some may have no votes.
    sided
        True if `first` is the left side; otherwise first < second, and the sides are not recorded.
    first, second
        Item numbers; all pairs are different.
    cells
        Weight of the votes that the first won, that are ties, that the second won: shape (n_pairs, 3).

    Examples
    --------
    >>> from concordant.comparisons.ratings.votes import read_votes
    >>> votes = read_votes(["a", "b", "b"], ["b", "a", "c"], [-1, -1, 0])
    >>> Counts.from_votes(votes).cells.tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    n_items: int
    sided: bool
    first: IntArray
    second: IntArray
    cells: FloatArray

    @classmethod
    def from_votes(cls, votes: Votes, *, sided: bool = False) -> Counts:
        """Sum votes by pair; `sided` counts the two orders of sides separately."""
        n_items, n_votes = len(votes.items), len(votes)
        if 3 * n_items**2 <= CELLS_PER_VOTE * n_votes + 1000:
            return cls(n_items, sided, *_by_table(votes, sided=sided))
        weights = np.ones(n_votes) if votes.weights is None else votes.weights
        swap = ~np.bool_(sided) & (votes.left > votes.right)
        first, second = np.where(swap, votes.right, votes.left), np.where(swap, votes.left, votes.right)
        result = np.where(swap, -votes.outcome, votes.outcome)
        return cls(n_items, sided, *_by_sorting(n_items, first, second, result + 1, weights))

    def plus(self, more: Counts) -> Counts:
        """Add other counts with the same item numbers; `more` may have further items."""
        first, second = (np.concatenate((getattr(self, s), getattr(more, s))) for s in ("first", "second"))
        cells = np.concatenate((self.cells, more.cells))
        n_items = max(self.n_items, more.n_items)
        result = np.tile(np.arange(3), len(first))
        rows = np.repeat(first, 3), np.repeat(second, 3)
        return Counts(n_items, self.sided, *_by_sorting(n_items, *rows, result, cells.ravel()))

    def with_cells(self, cells: FloatArray) -> Counts:
        """Replace the cells, for the same pairs."""
        return Counts(self.n_items, self.sided, self.first, self.second, cells)

    @property
    def n_votes(self) -> float:
        """Number of votes; a vote of weight 10 counts ten times, one of weight 0 not at all."""
        return float(self.totals.sum())

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
        for result in range(3):
            ahead = np.bincount(self.first, self.cells[:, result], self.n_items)
            columns.append(ahead + np.bincount(self.second, self.cells[:, 2 - result], self.n_items))
        return np.stack(columns, axis=1)

    @cached_property
    def connected(self) -> bool:
        """True if all items are one component; usually evident from pairs in which each side won."""
        return self.join_items(mutual=True)[0] == 1 or len(self.components()) == 1

    @cached_property
    def parts(self) -> IntArray:
        """Number of the part of each item, from 0; items that met, directly or indirectly, share a part."""
        n_parts, parent = self.join_items(mutual=False)
        if n_parts == 1:
            return np.zeros(self.n_items, dtype=np.int64)
        while (parent != parent[parent]).any():
            parent = parent[parent]
        return np.unique(parent, return_inverse=True)[1].astype(np.int64)

    def join_items(self, *, mutual: bool) -> tuple[int, IntArray]:
        """Join items by pairs; return the number of parts, and for each item a parent nearer to its root."""
        from concordant.comparisons.ratings.rating_kernels import join_pairs

        parent = np.arange(self.n_items)
        first, second, cells = freeze(self.first), freeze(self.second), freeze(self.cells)
        return int(join_pairs(first, second, cells, mutual, parent)), parent

    def components(self) -> list[IntArray]:
        """Item numbers by strongly connected component of "won against", largest first.

        Within a component every item won against every other, directly or through others; a tie is a win for
        both sides.
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


def _by_table(votes: Votes, *, sided: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Sum votes in a full table of pairs."""
    from concordant.comparisons.ratings.rating_kernels import copy_filled_pairs, count_votes

    n_items = len(votes.items)
    small = votes.weights is None and len(votes) < np.iinfo(np.int32).max
    table = np.zeros(3 * n_items**2, dtype=np.int32 if small else np.float64)
    weights = np.zeros(0) if votes.weights is None else np.ascontiguousarray(votes.weights)
    columns = (votes.left, votes.right, votes.outcome)
    left, right, outcome = (freeze(np.ascontiguousarray(column, dtype=np.int64)) for column in columns)
    # Read-only: one compiled version serves all callers.
    count_votes(left, right, outcome, freeze(weights), n_items, sided, table)
    nothing = np.empty(0, dtype=np.int64)
    n_pairs = copy_filled_pairs(table, n_items, nothing, nothing, np.empty((0, 3)))
    first, second, cells = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64), np.empty((n_pairs, 3))
    copy_filled_pairs(table, n_items, first, second, cells)
    return first, second, cells


def _by_sorting(
    n_items: int, first: IntArray, second: IntArray, result: IntArray, weights: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Sum by pair and result (0, 1 or 2), without a table of all pairs."""
    from scipy.sparse import coo_array

    shape = (n_items, n_items * 3)
    summed = coo_array((weights, (first, second * 3 + result)), shape=shape).tocsr()
    summed.sum_duplicates()
    row = np.repeat(np.arange(n_items), np.diff(summed.indptr))
    second_item, result = np.divmod(summed.indices.astype(np.int64), 3)
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (second_item[1:] != second_item[:-1])
    pair = np.cumsum(new) - 1
    cells = np.zeros((int(new.sum()), 3))
    cells[pair, result] = summed.data
    has_votes = cells.any(axis=1)
    return row[new][has_votes], second_item[new][has_votes], cells[has_votes]
