"""Replicates: what several annotators say about the items of each query, and how it is read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.validate import (
    as_numpy,
    check_choice,
    check_column,
    check_counts,
    check_grades,
    check_ids,
    check_lengths,
    refuse_misaligned,
)
from concordant.data.io.preflib import Profile
from concordant.data.labels import Permutations, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label, LabelDistribution, as_label
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from concordant.theory.noise_conditions import preference_matrices, refuse_entries
from concordant.theory.replicates.annotator_votes import AnnotatorVotes, check_size, restrict, to_votes
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Votes from arrays, ballots and known distributions.


def _check_votes(grades: ArrayLike) -> FloatArray:
    """Return a table of numbers >= 0 and NaN, one row per annotator."""
    table = as_numpy(grades, "grades")
    if table.ndim != 2:
        raise ShapeError("grades", table.shape, "(n_annotators, n_rows)")
    if not table.size:
        raise EmptyDataError("grades")
    if table.dtype.kind not in "biuf":
        _refuse_none(table, "grades")
        raise NotNumericError("grades", f"its entries are of type {table.dtype}")
    numbers: FloatArray = table.astype(np.float64)
    hint = "grades are finite and >= 0; NaN means not judged."
    refuse_entries((numbers < 0) | np.isinf(numbers), numbers, "grades", hint)
    return numbers


def _refuse_none(values: NDArray[Any], name: str) -> None:
    if values.dtype == object and any(entry is None for entry in values.ravel().tolist()):
        raise LabelError(f"{name} has None among its entries", "use NaN for not judged.")


def _check_judgements(grade: ArrayLike) -> FloatArray:
    """Return one grade >= 0, or NaN, per row.

    >>> _check_judgements([1, np.nan]).tolist()
    [1.0, nan]
    """
    _refuse_none(as_numpy(grade, "grade"), "grade")
    grades = check_column(grade, "grade")
    check_grades(np.where(np.isnan(grades), 0.0, grades), "grade")
    return grades


def _votes_from_table(
    items: NDArray[Any], people: NDArray[Any], grades: FloatArray, query: object
) -> AnnotatorVotes:
    """Build the votes of a query from judgements, NaN where an annotator did not judge an item."""
    names, column = np.unique(items, return_inverse=True)
    persons, row = np.unique(people, return_inverse=True)
    is_judged = ~np.isnan(grades)
    row, column, grades = row[is_judged], column[is_judged], grades[is_judged]
    cell, times = np.unique(row * len(names) + column, return_counts=True)
    if len(cell) < len(grades):
        person, item = divmod(int(cell[np.argmax(times)]), len(names))
        who = f"annotator {persons[person].item()!r} judged item {names[item].item()!r}"
        hint = "keep one of the judgements, or give each repetition an annotator of its own."
        raise LabelError(f"query {query!r}: {who} {times.max()} times", hint)
    table = np.full((len(persons), len(names)), np.nan)
    table[row, column] = grades
    return to_votes("grades", table, np.ones(len(persons), dtype=np.int64), names.tolist(), query)


def _votes_from_orders(
    orders: Any, query: object, n_items: int | None = None, *, last: bool = False
) -> AnnotatorVotes:
    """Build votes from orders of items that are numbers from 0 or names, or from the orders of a file.

    >>> _votes_from_orders([["tea", {"milk", "juice"}], ["milk", "tea"]], "drinks").items
    ('juice', 'milk', 'tea')
    """
    if isinstance(orders, Profile):
        return _votes_from_ballots(orders.ballots, orders.counts, tuple(orders.names), query, last=last)
    if not isinstance(orders, Sequence | np.ndarray) or isinstance(orders, str):
        problem = f"orders are a {type(orders).__name__}"
        raise LabelError(problem, "give a list of orders, or what read_preflib gives of a file of orders.")
    if not len(orders):
        raise EmptyDataError("orders")
    ballots = [[*_groups(order, number)] for number, order in enumerate(orders)]
    items = _list_items({item for ballot in ballots for group in ballot for item in group}, n_items)
    check_size(len(ballots), len(items), query)
    item_numbers = {item: number for number, item in enumerate(items)}
    numbered = [[[item_numbers[item] for item in group] for group in ballot] for ballot in ballots]
    texts = tuple(str(item) if isinstance(item, int) else item for item in items)
    return _votes_from_ballots(numbered, np.ones(len(ballots), dtype=np.int64), texts, query, last=last)


def _list_items(named: set[Hashable], n_items: int | None) -> Sequence[Hashable]:
    """Return all items, sorted: numbers from 0 up to the highest or to n_items, or names.

    Numbers with gaps need n_items: a missing number may be an item that nobody ranked, or no item.
    """
    numbers = [item for item in named if isinstance(item, int)]
    if len(numbers) < len(named):
        if n_items is not None:
            raise ParameterError.because("n_items was given, but items have names. Leave n_items out.")
        return sorted(
            named, key=lambda item: (type(item).__name__, item if isinstance(item, str) else repr(item))
        )
    if min(numbers, default=0) < 0:
        raise LabelError(
            f"an order has the item {min(numbers)}", "items are numbers from 0, or names as text."
        )
    highest = max(numbers, default=-1)
    if n_items is None and highest >= len(numbers):
        problem = f"the orders name {len(numbers)} items, but the highest is {highest}"
        raise LabelError(problem, "give n_items if there are items that nobody ranks; ids are given as text.")
    if n_items is not None and highest >= n_items:
        problem = f"an order names item {highest}, but there are only {n_items}"
        raise LabelError(problem, "count the items from 0.")
    return range(highest + 1 if n_items is None else n_items)


def _groups(order: Any, number: int) -> Iterator[list[Hashable]]:
    """Yield the groups of tied items of an order, best first."""
    ranked_items = set[Hashable]()
    if not isinstance(order, Sequence | np.ndarray) or isinstance(order, str):
        raise LabelError(f"order {number} is a {type(order).__name__}", "give each order as a list of items.")
    for entry in order:
        tied = entry if isinstance(entry, list | tuple | set | frozenset) else (entry,)
        group = [_as_item(item, number) for item in tied]
        if ranked_items & set(group) or len(set(group)) < len(group):
            raise LabelError(f"order {number} names an item twice", "name each item at most once.")
        ranked_items.update(group)
        yield group


def _as_item(item: Any, number: int) -> Hashable:
    """Convert an item to a Python object; raise if it cannot name an item."""
    plain = item.item() if isinstance(item, np.generic) else item
    nothing = plain is None or isinstance(plain, bool) or plain != plain  # noqa: PLR0124
    if nothing or not isinstance(plain, Hashable):
        raise LabelError(f"order {number} has the item {item!r}", "items are numbers from 0, or names.")
    return plain


def _votes_from_ballots(
    ballots: Sequence[Any], counts: IntArray, items: Sequence[Hashable], query: object, *, last: bool
) -> AnnotatorVotes:
    """Build votes from ballots: the number of groups below an item; NaN, or least, if it is left out."""
    values = np.full((len(ballots), len(items)), -1.0 if last else np.nan)
    for row, ballot in zip(values, ballots, strict=True):
        for rank, group in enumerate(ballot):
            row[group] = len(ballot) - rank
    return to_votes("orders", values, np.asarray(counts, dtype=np.int64), items, query)


def _votes_from_distribution(
    distribution: LabelDistribution, counts: IntArray, ids: Sequence[Any]
) -> Iterator[AnnotatorVotes]:
    """Yield the votes of each query; `counts` has a row per query, with the count of each label."""
    first, queries = distribution.labels[0], distribution.queries
    kinds = {Preferences: "preferences", Permutations: "orders"}
    kind = kinds.get(type(first), "grades")
    owned = zip(*(_label_values(label, queries) for label in distribution.labels), strict=True)
    for query, said, times in zip(ids, owned, counts, strict=True):
        yield to_votes(kind, np.stack(said), times, range(said[0].shape[0]), query)


def _label_values(label: Label, queries: Queries) -> list[FloatArray]:
    """Return the votes of a label by query: grades, or matrices of weights a_ij."""
    if isinstance(label, Preferences):
        return preference_matrices(label, queries)
    values = label.grades(queries) if isinstance(label, Permutations) else queries.gather(np.asarray(label))
    return np.split(values, queries.offsets[1:-1])


MOST_SUBSETS = 100_000


@dataclass(frozen=True, eq=False)
class Replicates:
    """Votes of several annotators on the items of each query.

    Built by `from_array`, `from_table`, `from_orders`, `from_labels` or `sample`. The expectation of a query
    is over annotators: each annotator who judged any of its items counts once.

    Attributes
    ----------
    ids
        Query ids.
    votes
        Votes of each query.
    """

    ids: tuple[Hashable, ...]
    votes: tuple[AnnotatorVotes, ...]

    @classmethod
    def from_array(cls, grades: ArrayLike, qid: ArrayLike = None) -> Replicates:
        """Read one row of grades per annotator, one column per row of the data; NaN: not judged.

        >>> Replicates.from_array([[1, 0, 1, 0], [1, 1, np.nan, np.nan]], qid=["a", "a", "b", "b"])
        Replicates(2 queries of 2 items, 1 to 2 annotators)
        """
        table = _check_votes(grades)
        queries = Queries.for_rows(qid, table.shape[1], "grades")
        numbers, ones = queries.order, np.ones(len(table), dtype=np.int64)
        owned = np.split(numbers, queries.offsets[1:-1])
        ids = tuple(queries.ids.tolist())
        votes = [
            to_votes("grades", table[:, rows], ones, rows.tolist(), query)
            for query, rows in zip(ids, owned, strict=True)
        ]
        return cls(ids, tuple(votes))

    @classmethod
    def from_table(
        cls, qid: ArrayLike, item: ArrayLike, annotator: ArrayLike, grade: ArrayLike
    ) -> Replicates:
        """Read one judgement per row: query, item, annotator and grade.

        Not every annotator has to judge every item; NaN: not judged. `qid=None`: a single query.

        >>> Replicates.from_table(["q"] * 4, ["a", "b", "a", "b"], ["ann", "ann", "bob", "bob"], [1, 0, 1, 1])
        Replicates(1 query of 2 items, 2 annotators)
        """
        refuse_misaligned(qid=qid, item=item, annotator=annotator, grade=grade)
        grades, items = _check_judgements(grade), check_ids(item, "item")
        people, queries = check_ids(annotator, "annotator"), Queries.for_rows(qid, len(grades), "grade")
        check_lengths("grade", len(grades), item=items, annotator=people)
        ids = tuple(queries.ids.tolist())
        owned = zip(ids, np.split(queries.order, queries.offsets[1:-1]), strict=True)
        return cls(
            ids,
            tuple(_votes_from_table(items[rows], people[rows], grades[rows], query) for query, rows in owned),
        )

    @classmethod
    def from_labels(cls, labels: Iterable[ArrayLike], qid: ArrayLike = None) -> Replicates:
        """Read one label per annotator, on all rows of the data: grades, `Preferences` or `Permutations`.

        An annotator without a preference in a query still counts there, without a preference.

        >>> from concordant.data.labels import Preferences
        >>> pairs = (0, 1), (1, 0), (0, 1)
        >>> votes = [Preferences(better=[i], worse=[j], n_rows=2) for i, j in pairs]
        >>> Replicates.from_labels(votes).votes[0].counts.tolist()
        [1, 2]
        """
        columns = {f"labels[{number}]": label for number, label in enumerate(labels)}
        refuse_misaligned(**columns, qid=qid)
        annotator_labels = tuple(map(as_label, columns.values()))
        if not annotator_labels:
            raise EmptyDataError("labels")
        # A single distribution, so that labels are of one kind and describe the same rows.
        queries = Queries.for_rows(qid, len(annotator_labels[0]), "labels[0]")
        even = np.full((queries.n_queries, len(annotator_labels)), 1.0 / len(annotator_labels))
        return cls.from_label_counts(
            LabelDistribution(annotator_labels, even, queries), np.ones(even.shape, dtype=np.int64)
        )

    @classmethod
    def from_orders(cls, orders: Any, *, n_items: int | None = None, unranked: str = "ignore") -> Replicates:
        """Read orders of the items, best first, for one query or several.

        Parameters
        ----------
        orders
            For one query: orders of items that are numbers from 0 or names, one per voter (a list, tuple or
            set inside is a tie), or the orders that `read_preflib` returns. For several queries: a mapping
            from ids to either.
        n_items
            Number of items, if they are numbers; None: those that occur, without gaps.
        unranked
            Meaning of items left out: "ignore" no preference, "last" below all ranked items.

        Examples
        --------
        >>> Replicates.from_orders({"lunch": [[0, 1, 2], [1, {0, 2}]], "dinner": [[1, 0]]})
        Replicates(2 queries of 2 to 3 items, 1 to 2 annotators)
        """
        check_choice("unranked", unranked, ("ignore", "last"))
        orders_by_query = orders if isinstance(orders, Mapping) else {0: orders}
        if not orders_by_query:
            raise EmptyDataError("orders")
        if n_items is not None:
            check_counts(n_items=n_items)
        votes_by_query = {
            query: _votes_from_orders(query_orders, query, n_items, last=unranked == "last")
            for query, query_orders in orders_by_query.items()
        }
        return cls(tuple(votes_by_query), tuple(votes_by_query.values()))

    @classmethod
    def sample(cls, distribution: LabelDistribution, n_annotators: int, seed: int = 0) -> Replicates:
        """Draw the labels of annotators from a distribution, independently for each query.

        >>> intents = LabelDistribution(([1, 1, 0], [0, 0, 1]), [[0.5, 0.5]], queries=["q"] * 3)
        >>> Replicates.sample(intents, 10).votes[0].counts.tolist()
        [4, 6]
        """
        check_counts(n_annotators=n_annotators)
        return cls.from_label_counts(
            distribution, np.random.default_rng(seed).multinomial(n_annotators, distribution.probs)
        )

    @classmethod
    def from_label_counts(cls, distribution: LabelDistribution, counts: IntArray) -> Replicates:
        """Repeat each label of a distribution as often as `counts` has it, one row per query."""
        ids = tuple(distribution.queries.ids.tolist())
        return cls(ids, tuple(_votes_from_distribution(distribution, counts, ids)))

    def panels(self, least: int = 2) -> Replicates:
        """Split each query into sets of items that the same annotators judged, so that nothing is missing.

        Sets of fewer than `least` items are left out. Preferences do not show who judged what.

        >>> Replicates.from_array([[1, 0, 1, 1], [1, 1, np.nan, np.nan]]).panels()
        Replicates(2 queries of 2 items, 1 to 2 annotators)
        """
        return self.parted(_judged_sets, least, "judged by the same annotators")

    def among(self, size: int) -> Replicates:
        """Build a query, with its votes, for every `size` items of each query.

        >>> Replicates.from_orders([[0, 1, 2, 3]]).among(3)
        Replicates(4 queries of 3 items, 1 annotator)
        """
        check_counts(size=size)
        if sum(math.comb(votes.n_items, size) for votes in self.votes) > MOST_SUBSETS:
            raise ParameterError("size", size, f"small enough for at most {MOST_SUBSETS:,} subsets")
        return self.parted(
            lambda votes: itertools.combinations(range(votes.n_items), size), size, "to choose"
        )

    def parted(self, sets: Callable[[AnnotatorVotes], Any], least: int, what: str) -> Replicates:
        """Build a query for each set of items: `id/1`, `id/2`, ..."""
        check_counts(least=least)
        votes_by_id: dict[Hashable, AnnotatorVotes] = {}
        for query, query_votes in zip(self.ids, self.votes, strict=True):
            for number, items in enumerate(
                (item_set for item_set in sets(query_votes) if len(item_set) >= least), 1
            ):
                votes_by_id[f"{query}/{number}"] = restrict(query_votes, items, query)
        if not votes_by_id:
            raise LabelError(f"no query has {least} items {what}", "ask for fewer.")
        return Replicates(tuple(votes_by_id), tuple(votes_by_id.values()))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        sizes = _format_range([votes.n_items for votes in self.votes], "item")
        people = _format_range([votes.n_annotators for votes in self.votes], "annotator")
        queries = "1 query" if len(self) == 1 else f"{len(self):,} queries"
        return f"Replicates({queries} of {sizes}, {people})"


def _format_range(numbers: list[int], unit: str) -> str:
    low, high = min(numbers), max(numbers)
    count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{count} {unit}{'' if high == 1 else 's'}"


def _judged_sets(votes: AnnotatorVotes) -> Iterator[IntArray]:
    if votes.kind == "preferences":
        problem = "preferences do not record which items an annotator judged"
        raise LabelError(problem, "give grades or orders, or choose items by among().")
    _, codes = np.unique(votes.judged(), axis=1, return_inverse=True)
    for code in np.unique(codes):
        yield np.flatnonzero(codes.ravel() == code).astype(np.int64)
