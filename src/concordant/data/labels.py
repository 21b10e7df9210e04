"""The four kinds of supervision, checked once and frozen: Grades, Preferences, Permutations, Comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant._base.validate import (
    as_numpy,
    check_column,
    check_counts,
    check_grades_and_highest,
    check_ids,
    check_lengths,
    check_nonnegative,
    concatenate_ids,
    freeze,
    has_rows,
    missing_id_error,
    refuse_misaligned,
    refuse_unlike_axes,
)
from concordant.data.check import check_features
from concordant.data.queries import Queries
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    OutcomeWarning,
    ParameterError,
    ShapeError,
    SimilarNamesWarning,
)
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

NAMES_SHOWN = 5


def check_whole_column(values: ArrayLike, name: str, least: int, most: int, hint: str) -> IntArray:
    """Return whole numbers; raise unless all are from `least` to `most`."""
    numbers = check_column(values, name)
    whole = numbers.astype(np.int64) if np.isfinite(numbers).all() else np.full(len(numbers), least - 1)
    bad = np.flatnonzero((whole != numbers) | (whole < least) | (whole > most))
    if bad.size:
        problem = f"{name}[{bad[0]}] = {numbers[bad[0]]:g} is not an integer from {least} to {most}"
        raise LabelError(problem, hint)
    return whole


def check_outcome(values: ArrayLike, name: str = "outcome") -> IntArray:
    """Return -1 (the left is better), 0 (no difference) or 1 (the right is better) per pair."""
    if isinstance(values, (list, tuple)) and {bool, np.bool_} & {*map(type, values)}:
        values = np.array(values, dtype=object)  # numpy would convert booleans among numbers to numbers
    values = as_numpy(values, name)
    hint = "-1: the left is better, 1: the right is better, 0: no difference."
    if values.dtype == np.bool_ or (values.dtype == object and {bool, np.bool_} & {*map(type, values.flat)}):
        raise LabelError(f"{name} is boolean, which cannot express ties", hint)
    outcome = check_column(values, name)
    is_outcome = (outcome == -1) | (outcome == 0) | (outcome == 1)
    if (bad := np.flatnonzero(~is_outcome)).size:
        problem = f"{name}[{bad[0]}] = {outcome[bad[0]]:g} is not -1, 0 or 1"
        raise LabelError(problem, hint)
    return outcome.astype(np.int64)


def warn_about_outcomes(outcome: IntArray, stacklevel: int) -> None:
    """Warn if no left ever won but there are ties: 0 may have been meant as a loss."""
    if outcome.size and outcome.min() == 0 and outcome.max() == 1:
        text = (
            "No outcome is -1, so 0 was read as a tie and 1 as a win of the right. If there are no ties, "
            "pass 2 * y - 1 if 1 is a win of the right, or 1 - 2 * y if 1 is a win of the left."
        )
        warnings.warn(text, OutcomeWarning, stacklevel=stacklevel + 1)


def warn_about_similar_names(names: Iterable[Any], stacklevel: int) -> None:
    """Warn about names that differ only by case or blanks."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        if isinstance(name, str):
            spellings.setdefault(" ".join(name.casefold().split()), []).append(name)
    if similar := [group for group in spellings.values() if len(group) > 1]:
        listed = [" and ".join(map(repr, group)) for group in similar[:NAMES_SHOWN]]
        listed += [f"{len(similar) - NAMES_SHOWN} more"] * (len(similar) > NAMES_SHOWN)
        text = f"Some names differ only by case or blanks and count as different items: {'; '.join(listed)}."
        warnings.warn(text, SimilarNamesWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True, eq=False)
class Grades:
    """One grade >= 0 per row; binary relevance is the case {0, 1}.

    >>> len(Grades([0, 2, 1]))
    3
    """

    values: ArrayLike
    highest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values, highest = check_grades_and_highest(self.values)
        object.__setattr__(self, "values", freeze(values.copy()))
        object.__setattr__(self, "highest", highest)

    @classmethod
    def passing(cls, values: ArrayLike) -> Grades:
        """Check grades without copying them, for a call that ends before the caller can change them."""
        grades = cls.__new__(cls)
        checked, highest = check_grades_and_highest(values)
        object.__setattr__(grades, "values", freeze(checked))
        object.__setattr__(grades, "highest", highest)
        return grades

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> Grades:
        """Return the labels of these rows, in this order."""
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
        check_counts(n_rows=self.n_rows)
        refuse_misaligned(better=self.better, worse=self.worse, weights=self.weights)
        hint = f"give rows of the data, which has {self.n_rows}, counted from 0."
        better = check_whole_column(self.better, "better", 0, self.n_rows - 1, hint)
        worse = check_whole_column(self.worse, "worse", 0, self.n_rows - 1, hint)
        raw_weights = np.ones(len(better)) if self.weights is None else self.weights
        weights = check_nonnegative(raw_weights, "weights", "preference").copy()
        check_lengths("better", len(better), worse=worse, weights=weights)
        if (same := np.flatnonzero(better == worse)).size:
            raise LabelError(f"preference {same[0]} compares row {better[same[0]]} with itself", "drop it.")
        for name, array in (("better", better), ("worse", worse), ("weights", weights)):
            object.__setattr__(self, name, freeze(array))

    @classmethod
    def from_matrices(cls, matrices: Sequence[ArrayLike]) -> Preferences:
        """Build preferences from one matrix per query, `a[i, j]` = weight of "i preferred to j".

        Rows are numbered consecutively across queries.

        >>> Preferences.from_matrices([[[0, 2], [1, 0]]]).weights.tolist()
        [2.0, 1.0]
        """
        better, worse, weights, start = [], [], [], 0
        for number, raw in enumerate(matrices):
            refuse_unlike_axes(raw, f"matrices[{number}]")
            matrix = check_features(raw, f"matrices[{number}]")
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
        """Number of labels, one per row; scikit-learn's searches slice what has a shape by rows."""
        return (self.n_rows,)

    def __getitem__(self, rows: Any) -> Preferences:
        """Return `take(rows)`, for scikit-learn."""
        return self.take(rows)

    def take(self, rows: IntArray) -> Preferences:
        """Return the preferences among these rows, renumbered in this order; others are dropped.

        >>> Preferences(better=[0, 2], worse=[1, 3], n_rows=4).take([3, 2]).better.tolist()
        [1]
        """
        taken, number = np.arange(self.n_rows)[rows], np.full(self.n_rows, -1)
        number[taken] = np.arange(len(taken))
        if (lost := np.flatnonzero(number[taken] != np.arange(len(taken)))).size:
            problem = f"row {taken[lost[0]]} is selected more than once"
            raise LabelError(problem, "select each row once.")
        better, worse = number[self.better], number[self.worse]
        is_inside = (better >= 0) & (worse >= 0)
        return Preferences(better[is_inside], worse[is_inside], len(taken), self.weights[is_inside])

    def grouped(self, queries: Queries) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Return (better, worse, weights, offsets) as sorted rows, the preferences of each query adjacent."""
        queries = Queries.for_rows(queries, self.n_rows, "the preferences")
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
        """Return, per query, if the majority preferences (net weight > 0) form a cycle."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        queries = Queries.for_rows(queries, self.n_rows, "the preferences")
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
        positions = check_whole_column(numbers, "positions", 1, len(numbers), hint)
        object.__setattr__(self, "positions", freeze(positions))

    @classmethod
    def from_orders(cls, orders: Iterable[Sequence[int]]) -> Permutations:
        """Build positions from one order per query, best first, items counted from 0 within the query."""
        pieces = []
        for number, order in enumerate(orders):
            items = np.asarray(order)
            if items.ndim != 1 or sorted(items.tolist()) != list(range(len(items))):
                problem = f"orders[{number}] = {items.tolist()} is not a permutation of 0..n-1"
                raise LabelError(problem, "name every item of the query once, best first.")
            pieces.append(np.argsort(items) + 1)
        if not pieces:
            raise ParameterError("orders", orders, "a list of at least one order")
        return cls(np.concatenate(pieces))

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, rows: IntArray) -> Permutations:
        """Return the positions of these rows, which must be whole queries."""
        return Permutations(self.positions[rows])

    def grades(self, queries: Queries) -> FloatArray:
        """Return n + 1 - position by sorted row: grades of the same order."""
        highest: FloatArray = np.repeat(queries.sizes + 1.0, queries.sizes)
        return highest - self.grouped(queries)

    def grouped(self, queries: Queries) -> IntArray:
        """Return the positions by sorted row; raise unless each query has exactly 1..n."""
        queries = Queries.for_rows(queries, len(self), "the permutation")
        positions: IntArray = queries.gather(self.positions)
        by_query = positions[np.lexsort((positions, queries.codes))]
        expected = np.arange(queries.n_rows) - np.repeat(queries.offsets[:-1], queries.sizes) + 1
        if (wrong := np.flatnonzero(by_query != expected)).size:
            q = queries.codes[wrong[0]]
            ranks = positions[queries.offsets[q] : queries.offsets[q + 1]]
            problem = f"query {queries.ids[q].item()!r} has positions {ranks[:10].tolist()}"
            problem += f", not 1..{len(ranks)}"
            raise LabelError(problem, "rank all items of a query without ties; with ties, use Grades.")
        return positions


def _encode_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct ids, ascending, and the index of each id among them; small integers need no sort.

    >>> items, codes = _encode_ids(np.array([7, 3, 7]))
    >>> items.tolist(), codes.tolist()
    ([3, 7], [1, 0, 1])
    """
    small = ids.dtype.kind in "iu" and ids.size and ids.min() >= 0 and ids.max() < 4 * ids.size
    if not small:
        items, codes = np.unique(ids, return_inverse=True)
        return items, codes
    is_used = np.zeros(int(ids.max()) + 1, dtype=bool)
    is_used[ids] = True
    return np.flatnonzero(is_used).astype(ids.dtype), (np.cumsum(is_used) - 1)[ids]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Outcomes of pairs: -1 the left is better, +1 the right is better, 0 no difference.

    Outcomes of only 0 and 1 raise an `OutcomeWarning`, since they may mean losses and wins; item names that
    differ only by case or blanks raise a `SimilarNamesWarning`.

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
        refuse_misaligned(left=self.left, right=self.right, outcome=self.outcome)
        left, right = check_ids(self.left, "left"), check_ids(self.right, "right")
        outcome = check_outcome(self.outcome)
        check_lengths("left", len(left), right=right, outcome=outcome)
        items, codes = _encode_ids(concatenate_ids(left, right))
        if items.dtype.kind == "U":
            for name, ids in (("left", left), ("right", right)):
                if (empty := np.flatnonzero(ids == "")).size:
                    raise missing_id_error(name, int(empty[0]))
            warn_about_similar_names(items.tolist(), stacklevel=3)
        warn_about_outcomes(outcome, stacklevel=3)
        columns = {"left": left.copy(), "right": right.copy(), "outcome": outcome, "items": items}
        side_codes = {"left_codes": codes[: len(left)], "right_codes": codes[len(left) :]}
        for name, array in (columns | side_codes).items():
            object.__setattr__(self, name, freeze(array))

    def __len__(self) -> int:
        return len(self.left)

    def pairs(self, features: ArrayLike) -> FloatArray:
        """Return the features of both sides, (n_pairs, 2, n_features); row k of `features` is `items[k]`."""
        index = features.index if has_rows(features) else self.items
        if len(index) == len(self.items) and set(index) == set(self.items) and (index != self.items).any():
            hint = "pass features.loc[comparisons.items], or .to_numpy() where the rows match."
            raise LabelError("features have the items as index, but not in the order of `items`", hint)
        table = check_features(features, "features").astype(np.float64, copy=False)
        if len(table) != len(self.items):
            raise ShapeError("features", table.shape, f"one row for each of the {len(self.items)} items")
        return np.stack((table[self.left_codes], table[self.right_codes]), axis=1)


# RankingData is what every reader, dataset and generator of graded queries returns.


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows of a learning-to-rank set, in file order.

    Attributes
    ----------
    X
        Features, one row per document; dense unless sparse was requested.
    y
        Grade of each row.
    qid
        Query id of each row, in any order.
    docid
        Document id (or comment) of each row; `None` if the source has none.

    Examples
    --------
    >>> data = RankingData(X=np.ones((2, 3)), y=np.array([1.0, 0.0]), qid=np.array([7, 7]))
    >>> data
    RankingData(n_rows=2, n_features=3, n_queries=1)
    """

    X: Any
    y: np.ndarray
    qid: np.ndarray
    docid: np.ndarray | None = None

    @classmethod
    def like(cls, data: Any) -> RankingData | None:
        """Wrap an object with X, y and qid (a dataset, synthetic data); None if it lacks them."""
        if isinstance(data, cls):
            return data
        if hasattr(type(data), "columns") or not all(hasattr(data, name) for name in ("X", "y", "qid")):
            return None  # a frame may have columns with these names
        return cls(data.X, data.y, data.qid, getattr(data, "docid", None))

    @property
    def n_queries(self) -> int:
        """Number of distinct query ids."""
        return len(np.unique(self.qid))

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"RankingData(n_rows={rows:,}, n_features={features:,}, n_queries={self.n_queries:,})"
