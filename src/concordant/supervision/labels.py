"""The four kinds of supervision, checked once and frozen: Grades, Preferences, Permutations, Comparisons."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError, ShapeError
from concordant.supervision.check import check_features
from concordant.supervision.columns import (
    check_column,
    check_ids,
    check_lengths,
    check_nonnegative,
    frozen,
    graded,
    joined_ids,
)
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Comparisons", "Grades", "Permutations", "Preferences"]


def check_whole(values: ArrayLike, name: str, least: int, most: int, hint: str) -> IntArray:
    """Whole numbers between two bounds."""
    numbers = check_column(values, name)
    whole = numbers.astype(np.int64) if np.isfinite(numbers).all() else np.full(len(numbers), least - 1)
    bad = np.flatnonzero((whole != numbers) | (whole < least) | (whole > most))
    if bad.size:
        problem = f"{name}[{bad[0]}] = {numbers[bad[0]]:g} is no whole number from {least} to {most}"
        raise LabelError(problem, hint)
    return whole


def check_outcome(values: ArrayLike, name: str = "outcome") -> IntArray:
    """One of -1 (the left is better), 0 (no difference), 1 (the right is better) per pair."""
    if getattr(values, "dtype", None) == np.bool_:
        hint = "-1: the left is better, 1: the right is better, 0: no difference."
        raise LabelError(f"{name} is true or false, which says nothing of ties", hint)
    outcome = check_column(values, name)
    known = (outcome == -1) | (outcome == 0) | (outcome == 1)
    if (bad := np.flatnonzero(~known)).size:
        problem = f"{name}[{bad[0]}] = {outcome[bad[0]]:g} is not -1, 0 or 1"
        raise LabelError(problem, "-1: the left is better, 1: the right is better, 0: no difference.")
    return outcome.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Grades:
    """One number >= 0 per row; binary relevance is the case {0, 1}.

    >>> len(Grades([0, 2, 1]))
    3
    """

    values: ArrayLike
    highest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values, highest = graded(self.values)
        object.__setattr__(self, "values", frozen(values.copy()))
        object.__setattr__(self, "highest", highest)

    @classmethod
    def passing(cls, values: ArrayLike) -> Grades:
        """Checked but not copied: for a call that ends before the caller can change them."""
        grades = cls.__new__(cls)
        checked, highest = graded(values)
        object.__setattr__(grades, "values", frozen(checked))
        object.__setattr__(grades, "highest", highest)
        return grades

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> Grades:
        """Labels of these rows, in this order."""
        return Grades(self.values[rows])


@dataclass(frozen=True, eq=False)
class Preferences:
    """Weighted preferences: row `better[e]` should stand above row `worse[e]`, at weight `weights[e]`.

    Cycles and contradicting preferences are allowed, since annotators produce them; `cyclic` flags them.

    Parameters
    ----------
    better, worse
        Rows of the data, counted from 0 in the caller's order; both rows of a preference lie in one query.
    n_rows
        Number of rows of the data.
    weights
        Weights >= 0, one per preference; default 1.

    Examples
    --------
    >>> labels = Preferences(better=[0, 1], worse=[1, 2], n_rows=3)
    >>> labels.cyclic(Queries.from_sizes([3])).tolist()
    [False]
    """

    better: ArrayLike
    worse: ArrayLike
    n_rows: int
    weights: ArrayLike = None

    def __post_init__(self) -> None:
        if not (isinstance(self.n_rows, numbers.Integral) and self.n_rows >= 1):
            raise ParameterError("n_rows", self.n_rows, "the number of rows of the data, >= 1")
        hint = f"give rows of the data, which has {self.n_rows}, counted from 0."
        better = check_whole(self.better, "better", 0, self.n_rows - 1, hint)
        worse = check_whole(self.worse, "worse", 0, self.n_rows - 1, hint)
        given = np.ones(len(better)) if self.weights is None else self.weights
        weights = check_nonnegative(given, "weights", "preference").copy()
        check_lengths("better", len(better), worse=worse, weights=weights)
        if (same := np.flatnonzero(better == worse)).size:
            raise LabelError(f"preference {same[0]} compares row {better[same[0]]} with itself", "drop it.")
        for name, array in (("better", better), ("worse", worse), ("weights", weights)):
            object.__setattr__(self, name, frozen(array))

    @classmethod
    def from_matrices(cls, matrices: Sequence[ArrayLike]) -> Preferences:
        """One matrix per query, `a[i, j]` = weight of "i preferred to j"; rows are numbered through.

        >>> Preferences.from_matrices([[[0, 2], [1, 0]]]).weights.tolist()
        [2.0, 1.0]
        """
        better, worse, weights, start = [], [], [], 0
        for number, given in enumerate(matrices):
            matrix = check_features(given, f"matrices[{number}]")
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ShapeError(f"matrices[{number}]", matrix.shape, "a square matrix")
            i, j = np.nonzero(matrix)
            better.append(i + start)
            worse.append(j + start)
            weights.append(matrix[i, j])
            start += len(matrix)
        if not better:
            raise ParameterError("matrices", matrices, "a list of at least one square matrix")
        return cls(np.concatenate(better), np.concatenate(worse), start, np.concatenate(weights))

    def __len__(self) -> int:
        return self.n_rows

    @property
    def shape(self) -> tuple[int]:
        """One label per row: what has a shape is cut by its rows in scikit-learn's searches."""
        return (self.n_rows,)

    def __getitem__(self, rows: Any) -> Preferences:
        """Give `take(rows)`, for scikit-learn."""
        return self.take(rows)

    def take(self, rows: IntArray) -> Preferences:
        """Preferences among these rows, which are numbered anew in this order; the others are dropped.

        >>> Preferences(better=[0, 2], worse=[1, 3], n_rows=4).take([3, 2]).better.tolist()
        [1]
        """
        chosen, number = np.arange(self.n_rows)[rows], np.full(self.n_rows, -1)
        number[chosen] = np.arange(len(chosen))
        better, worse = number[self.better], number[self.worse]
        kept = (better >= 0) & (worse >= 0)
        return Preferences(better[kept], worse[kept], len(chosen), self.weights[kept])

    def grouped(self, queries: Queries) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Give (better, worse, weights, offsets): sorted rows, the preferences of each query adjacent."""
        queries = Queries.of(queries, self.n_rows, "the preferences")
        position = queries.scatter(np.arange(queries.n_rows))
        better, worse, codes = position[self.better], position[self.worse], queries.codes
        if (apart := np.flatnonzero(codes[better] != codes[worse])).size:
            e = apart[0]
            rows = f"rows {self.better[e]} and {self.worse[e]}"
            raise LabelError(f"preference {e} joins {rows} of different queries", "prefer within a query.")
        order = np.argsort(codes[better], kind="stable")
        counts = np.bincount(codes[better], minlength=queries.n_queries)
        return better[order], worse[order], self.weights[order], np.r_[0, counts.cumsum()].astype(np.int64)

    def cyclic(self, queries: Queries) -> BoolArray:
        """Tell, per query, whether the majority preferences (net weight > 0) form a cycle."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        queries = Queries.of(queries, self.n_rows, "the preferences")
        better, worse, weights, _ = self.grouped(queries)
        shape = (queries.n_rows, queries.n_rows)
        graph = coo_array((weights, (better, worse)), shape=shape).tocsr()
        net = graph - graph.T
        _, component = connected_components(net.multiply(net > 0), connection="strong")
        in_cycle = np.bincount(component)[component] > 1
        flags = np.zeros(queries.n_queries, dtype=bool)
        flags[queries.codes[in_cycle]] = True
        return flags


@dataclass(frozen=True, eq=False)
class Permutations:
    """A full order per query, given as the position of each row: 1 is best.

    >>> Permutations.from_orders([[2, 0, 1]]).positions.tolist()
    [2, 3, 1]
    """

    positions: ArrayLike

    def __post_init__(self) -> None:
        numbers = check_column(self.positions, "positions")
        if not numbers.size:
            raise EmptyDataError("positions")
        hint = "give the position of each row in its query, counted from 1 (best)."
        positions = check_whole(numbers, "positions", 1, len(numbers), hint)
        object.__setattr__(self, "positions", frozen(positions))

    @classmethod
    def from_orders(cls, orders: Iterable[Sequence[int]]) -> Permutations:
        """One order per query, best item first, items counted from 0 within the query."""
        pieces = []
        for number, order in enumerate(orders):
            items = np.asarray(order)
            if items.ndim != 1 or sorted(items.tolist()) != list(range(len(items))):
                problem = f"orders[{number}] = {items.tolist()} is no permutation of 0..n-1"
                raise LabelError(problem, "name every item of the query once, best first.")
            pieces.append(np.argsort(items) + 1)
        if not pieces:
            raise ParameterError("orders", orders, "a list of at least one order")
        return cls(np.concatenate(pieces))

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, rows: IntArray) -> Permutations:
        """Positions of these rows, which must be whole queries."""
        return Permutations(self.positions[rows])

    def grades(self, queries: Queries) -> FloatArray:
        """Give n + 1 - position by sorted row: grades of the same order."""
        highest: FloatArray = np.repeat(queries.sizes + 1.0, queries.sizes)
        return highest - self.grouped(queries)

    def grouped(self, queries: Queries) -> IntArray:
        """Positions by sorted row; refused unless every query's are exactly 1..n."""
        queries = Queries.of(queries, len(self), "the permutation")
        positions: IntArray = queries.gather(self.positions)
        by_query = positions[np.lexsort((positions, queries.codes))]
        expected = np.arange(queries.n_rows) - np.repeat(queries.offsets[:-1], queries.sizes) + 1
        if (wrong := np.flatnonzero(by_query != expected)).size:
            query = queries.codes[wrong[0]]
            seen = positions[queries.offsets[query] : queries.offsets[query + 1]]
            problem = (
                f"query {queries.ids[query].item()!r} has positions {seen[:10].tolist()}, not 1..{len(seen)}"
            )
            raise LabelError(problem, "rank all items of a query without ties; with ties, use Grades.")
        return positions


def numbered(ids: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Distinct ids in ascending order, and the place of each id among them; without sorting small numbers.

    >>> items, places = numbered(np.array([7, 3, 7]))
    >>> items.tolist(), places.tolist()
    ([3, 7], [1, 0, 1])
    """
    small = ids.dtype.kind in "iu" and ids.size and ids.min() >= 0 and ids.max() < 4 * ids.size
    if not small:
        items, places = np.unique(ids, return_inverse=True)
        return items, places
    seen = np.zeros(int(ids.max()) + 1, dtype=bool)
    seen[ids] = True
    return np.flatnonzero(seen).astype(ids.dtype), (np.cumsum(seen) - 1)[ids]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Outcomes of pairs: -1 the left is better, +1 the right is better, 0 no difference.

    Examples
    --------
    >>> votes = Comparisons(["a", "b"], ["b", "c"], [-1, 0])
    >>> votes.items.tolist(), votes.left_codes.tolist(), votes.right_codes.tolist()
    (['a', 'b', 'c'], [0, 1], [1, 2])
    >>> votes.pairs([[1.0], [2.0], [3.0]]).shape
    (2, 2, 1)
    """

    left: ArrayLike
    right: ArrayLike
    outcome: ArrayLike
    items: NDArray[Any] = field(init=False)
    left_codes: IntArray = field(init=False)
    right_codes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        left, right = check_ids(self.left, "left"), check_ids(self.right, "right")
        outcome = check_outcome(self.outcome)
        check_lengths("left", len(left), right=right, outcome=outcome)
        items, codes = numbered(joined_ids(left, right))
        columns = {"left": left.copy(), "right": right.copy(), "outcome": outcome, "items": items}
        codes_of = {"left_codes": codes[: len(left)], "right_codes": codes[len(left) :]}
        for name, array in (columns | codes_of).items():
            object.__setattr__(self, name, frozen(array))

    def __len__(self) -> int:
        return len(self.left)

    def pairs(self, features: ArrayLike) -> FloatArray:
        """Both sides' features, shape (n_pairs, 2, n_features); row k of `features` describes `items[k]`."""
        table = check_features(features, "features").astype(np.float64, copy=False)
        if len(table) != len(self.items):
            raise ShapeError("features", table.shape, f"one row for each of the {len(self.items)} items")
        return np.stack((table[self.left_codes], table[self.right_codes]), axis=1)
