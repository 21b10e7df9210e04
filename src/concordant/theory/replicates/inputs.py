"""Votes from arrays, ballots and known distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, NonFiniteError, NotNumericError, ShapeError
from concordant.metrics.graphs import Pairs
from concordant.supervision.columns import as_numpy
from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.supervision.readers.preflib import Profile
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.theory.replicates.votes import Votes, to_votes
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_votes", "of_distribution", "of_profile", "of_table", "profile_of"]


def check_votes(grades: ArrayLike) -> FloatArray:
    """Give a table of numbers >= 0 and NaN, one row an annotator."""
    table = as_numpy(grades, "grades")
    if table.ndim != 2:
        raise ShapeError("grades", table.shape, "(n_annotators, n_rows)")
    if not table.size:
        raise EmptyDataError("grades")
    if table.dtype.kind not in "biuf":
        raise NotNumericError("grades", f"its entries are of type {table.dtype}")
    numbers: FloatArray = table.astype(np.float64)
    if (bad := (numbers < 0) | np.isinf(numbers)).any():
        who, row = np.argwhere(bad)[0]
        hint = "grades are finite and >= 0; NaN means not judged."
        raise NonFiniteError("grades", float(numbers[bad][0]), f"[{who}, {row}]", int(bad.sum()), hint)
    return numbers


def of_table(items: NDArray[Any], people: NDArray[Any], grades: FloatArray, query: object) -> Votes:
    """Give the judgements of one query as votes, NaN where an annotator did not judge an item."""
    names, column = np.unique(items, return_inverse=True)
    persons, row = np.unique(people, return_inverse=True)
    cell, times = np.unique(row * len(names) + column, return_counts=True)
    if len(cell) < len(items):
        person, item = divmod(int(cell[np.argmax(times)]), len(names))
        who = f"annotator {persons[person].item()!r} judged item {names[item].item()!r}"
        hint = "keep one of the judgements, or give each repetition an annotator of its own."
        raise LabelError(f"query {query!r}: {who} {times.max()} times", hint)
    table = np.full((len(persons), len(names)), np.nan)
    table[row, column] = grades
    return to_votes("grades", table, np.ones(len(persons), dtype=np.int64), names.tolist(), query)


def profile_of(orders: Any, n_items: int | None = None) -> Profile:
    """Give ballots of items that are numbers from 0.

    >>> profile_of([[1, {0, 2}], [1, 0]]).ballots
    [[[1], [0, 2]], [[1], [0]]]
    """
    if isinstance(orders, Profile):
        return orders
    if not isinstance(orders, Sequence | np.ndarray) or isinstance(orders, str):
        problem = f"orders are a {type(orders).__name__}"
        raise LabelError(problem, "give a list of orders, or what read_preflib gives of a file of orders.")
    if not len(orders):
        raise EmptyDataError("orders")
    ballots = [[*groups(order, number)] for number, order in enumerate(orders)]
    highest = max((item for ballot in ballots for group in ballot for item in group), default=-1)
    n = highest + 1 if n_items is None else n_items
    if highest >= n:
        raise LabelError(f"an order names item {highest}, and there are {n}", "count the items from 0.")
    return Profile([str(item) for item in range(n)], np.ones(len(ballots), dtype=np.int64), ballots)


def groups(order: Any, number: int) -> Iterator[list[int]]:
    """Give the groups of tied items of one order, best first."""
    seen = set[int]()
    if not isinstance(order, Sequence | np.ndarray) or isinstance(order, str):
        raise LabelError(f"order {number} is a {type(order).__name__}", "give each order as a list of items.")
    for entry in order:
        tied = entry if isinstance(entry, list | tuple | set | frozenset) else (entry,)
        group = [whole(item, number) for item in tied]
        if seen & set(group) or len(set(group)) < len(group):
            raise LabelError(f"order {number} names an item twice", "name each item at most once.")
        seen.update(group)
        yield sorted(group)


def whole(item: Any, number: int) -> int:
    """Give the number of an item."""
    if isinstance(item, bool) or not isinstance(item, int | np.integer) or item < 0:
        raise LabelError(f"order {number} has the item {item!r}", "items are numbers from 0, best first.")
    return int(item)


def of_profile(profile: Profile, query: object, *, last: bool) -> Votes:
    """Give ballots as votes: the number of groups below; nothing where an item is left out, or the least."""
    n = len(profile.names)
    values = np.full((len(profile.ballots), n), -1.0 if last else np.nan)
    for row, ballot in zip(values, profile.ballots, strict=True):
        for place, group in enumerate(ballot):
            row[group] = len(ballot) - place
    counts = np.asarray(profile.counts, dtype=np.int64)
    return to_votes("orders", values, counts, profile.names, query)


def of_distribution(distribution: LabelDistribution, counts: IntArray, ids: Sequence[Any]) -> Iterator[Votes]:
    """Give the votes of each query, of which `counts` has a row of how often each label was given."""
    first, queries = distribution.labels[0], distribution.queries
    kinds = {Preferences: "preferences", Permutations: "orders"}
    kind = kinds.get(type(first), "grades")
    owned = zip(*(of_label(label, queries) for label in distribution.labels), strict=True)
    for query, said, times in zip(ids, owned, counts, strict=True):
        yield to_votes(kind, np.stack(said), times, range(said[0].shape[0]), query)


def of_label(label: Label, queries: Queries) -> list[FloatArray]:
    """Give what a label says about each query: grades, or weights a_ij."""
    if isinstance(label, Preferences):
        better, worse, weights, offsets = Pairs.of(label, queries)
        found = []
        for q, (start, size) in enumerate(zip(queries.offsets[:-1], queries.sizes, strict=True)):
            own, a = slice(offsets[q], offsets[q + 1]), np.zeros((size, size))
            a[better[own] - start, worse[own] - start] = weights[own]
            found.append(a)
        return found
    values = label.grades(queries) if isinstance(label, Permutations) else queries.gather(np.asarray(label))
    return np.split(values, queries.offsets[1:-1])
