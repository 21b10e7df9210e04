"""Votes from arrays, ballots and known distributions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from concordant.metrics.graphs import Pairs
from concordant.supervision.columns import as_numpy, check_column, check_grades
from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.supervision.readers.preflib import Profile
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.theory.replicates.votes import Votes, check_size, to_votes
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_judgements", "check_votes", "of_distribution", "of_orders", "of_table"]


def check_votes(grades: ArrayLike) -> FloatArray:
    """Give a table of numbers >= 0 and NaN, one row an annotator."""
    table = as_numpy(grades, "grades")
    if table.ndim != 2:
        raise ShapeError("grades", table.shape, "(n_annotators, n_rows)")
    if not table.size:
        raise EmptyDataError("grades")
    if table.dtype.kind not in "biuf":
        refuse_none(table, "grades")
        raise NotNumericError("grades", f"its entries are of type {table.dtype}")
    numbers: FloatArray = table.astype(np.float64)
    if (bad := (numbers < 0) | np.isinf(numbers)).any():
        who, row = np.argwhere(bad)[0]
        hint = "grades are finite and >= 0; NaN means not judged."
        raise NonFiniteError("grades", float(numbers[bad][0]), f"[{who}, {row}]", int(bad.sum()), hint)
    return numbers


def refuse_none(values: NDArray[Any], name: str) -> None:
    """Refuse None among objects."""
    if values.dtype == object and any(entry is None for entry in values.ravel().tolist()):
        raise LabelError(f"{name} has None among its entries", "use NaN for not judged.")


def check_judgements(grade: ArrayLike) -> FloatArray:
    """Give one grade >= 0 or NaN a row.

    >>> check_judgements([1, np.nan]).tolist()
    [1.0, nan]
    """
    refuse_none(as_numpy(grade, "grade"), "grade")
    grades = check_column(grade, "grade")
    check_grades(np.where(np.isnan(grades), 0.0, grades), "grade")
    return grades


def of_table(items: NDArray[Any], people: NDArray[Any], grades: FloatArray, query: object) -> Votes:
    """Give the judgements of one query as votes, NaN where an annotator did not judge an item."""
    names, column = np.unique(items, return_inverse=True)
    persons, row = np.unique(people, return_inverse=True)
    given = ~np.isnan(grades)
    row, column, grades = row[given], column[given], grades[given]
    cell, times = np.unique(row * len(names) + column, return_counts=True)
    if len(cell) < len(grades):
        person, item = divmod(int(cell[np.argmax(times)]), len(names))
        who = f"annotator {persons[person].item()!r} judged item {names[item].item()!r}"
        hint = "keep one of the judgements, or give each repetition an annotator of its own."
        raise LabelError(f"query {query!r}: {who} {times.max()} times", hint)
    table = np.full((len(persons), len(names)), np.nan)
    table[row, column] = grades
    return to_votes("grades", table, np.ones(len(persons), dtype=np.int64), names.tolist(), query)


def of_orders(orders: Any, query: object, n_items: int | None = None, *, last: bool = False) -> Votes:
    """Give orders as votes: of items that are numbers from 0, or have names, or of a file.

    >>> of_orders([["tea", {"milk", "juice"}], ["milk", "tea"]], "drinks").items
    ('juice', 'milk', 'tea')
    """
    if isinstance(orders, Profile):
        return of_ballots(orders.ballots, orders.counts, tuple(orders.names), query, last=last)
    if not isinstance(orders, Sequence | np.ndarray) or isinstance(orders, str):
        problem = f"orders are a {type(orders).__name__}"
        raise LabelError(problem, "give a list of orders, or what read_preflib gives of a file of orders.")
    if not len(orders):
        raise EmptyDataError("orders")
    ballots = [[*groups(order, number)] for number, order in enumerate(orders)]
    items = items_of({item for ballot in ballots for group in ballot for item in group}, n_items)
    check_size(len(ballots), len(items), query)
    place = {item: number for number, item in enumerate(items)}
    numbered = [[[place[item] for item in group] for group in ballot] for ballot in ballots]
    texts = tuple(str(item) if isinstance(item, int) else item for item in items)
    return of_ballots(numbered, np.ones(len(ballots), dtype=np.int64), texts, query, last=last)


def items_of(named: set[Hashable], n_items: int | None) -> Sequence[Hashable]:
    """Give all items, sorted: numbers from 0 up to the highest or to n_items, or names.

    Numbers that leave one out are refused without n_items: it may be an item that nobody ranked, or no item.
    """
    numbers = [item for item in named if isinstance(item, int)]
    if len(numbers) < len(named):
        if n_items is not None:
            raise ParameterError("n_items", n_items, "left out where items have names")
        return sorted(
            named, key=lambda item: (type(item).__name__, item if isinstance(item, str) else repr(item))
        )
    if min(numbers, default=0) < 0:
        raise LabelError(
            f"an order has the item {min(numbers)}", "items are numbers from 0, or names as text."
        )
    highest = max(numbers, default=-1)
    if n_items is None and highest >= len(numbers):
        problem = f"the orders name {len(numbers)} items, and the highest is {highest}"
        raise LabelError(problem, "give n_items if there are items that nobody ranks; ids are given as text.")
    if n_items is not None and highest >= n_items:
        problem = f"an order names item {highest}, and there are {n_items}"
        raise LabelError(problem, "count the items from 0.")
    return range(highest + 1 if n_items is None else n_items)


def groups(order: Any, number: int) -> Iterator[list[Hashable]]:
    """Give the groups of tied items of one order, best first."""
    seen = set[Hashable]()
    if not isinstance(order, Sequence | np.ndarray) or isinstance(order, str):
        raise LabelError(f"order {number} is a {type(order).__name__}", "give each order as a list of items.")
    for entry in order:
        tied = entry if isinstance(entry, list | tuple | set | frozenset) else (entry,)
        group = [as_item(item, number) for item in tied]
        if seen & set(group) or len(set(group)) < len(group):
            raise LabelError(f"order {number} names an item twice", "name each item at most once.")
        seen.update(group)
        yield group


def as_item(item: Any, number: int) -> Hashable:
    """Give an item as Python has it; refuse what is no name."""
    plain = item.item() if isinstance(item, np.generic) else item
    nothing = plain is None or isinstance(plain, bool) or plain != plain  # noqa: PLR0124
    if nothing or not isinstance(plain, Hashable):
        raise LabelError(f"order {number} has the item {item!r}", "items are numbers from 0, or names.")
    return plain


def of_ballots(
    ballots: Sequence[Any], counts: IntArray, items: Sequence[Hashable], query: object, *, last: bool
) -> Votes:
    """Give ballots as votes: the number of groups below; nothing where an item is left out, or the least."""
    values = np.full((len(ballots), len(items)), -1.0 if last else np.nan)
    for row, ballot in zip(values, ballots, strict=True):
        for place, group in enumerate(ballot):
            row[group] = len(ballot) - place
    return to_votes("orders", values, np.asarray(counts, dtype=np.int64), items, query)


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
