"""Replicates: what several annotators say about the items of each query, and where it comes from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.columns import check_ids, check_lengths
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import LabelDistribution, as_label
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.replicates.inputs import (
    check_judgements,
    check_votes,
    of_distribution,
    of_orders,
    of_table,
)
from concordant.theory.replicates.votes import Votes, restrict, to_votes
from concordant.types import ArrayLike, IntArray

__all__ = ["Replicates"]

MOST_SUBSETS = 100_000


@dataclass(frozen=True, eq=False)
class Replicates:
    """What several annotators say about the items of each query.

    Made by `from_array`, `from_table`, `from_orders`, `from_labels` or `sample`. The expectation of a query
    is over annotators: each of those who judged any of its items counts once.

    Attributes
    ----------
    ids
        Of the queries.
    votes
        Of each query.
    """

    ids: tuple[Hashable, ...]
    votes: tuple[Votes, ...]

    @classmethod
    def from_array(cls, grades: ArrayLike, qid: ArrayLike = None) -> Replicates:
        """Read one row of grades an annotator, one column a row of the data; NaN: not judged.

        >>> Replicates.from_array([[1, 0, 1, 0], [1, 1, np.nan, np.nan]], qid=["a", "a", "b", "b"])
        Replicates(2 queries of 2 items, 1 to 2 annotators)
        """
        table = check_votes(grades)
        queries = Queries.of(qid, table.shape[1], "grades")
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
        """Read one judgement a row: this annotator gave this item of this query this grade.

        Not every annotator has to judge every item; NaN: not judged. None for `qid`: all are of one query.

        >>> Replicates.from_table(["q"] * 4, ["a", "b", "a", "b"], ["ann", "ann", "bob", "bob"], [1, 0, 1, 1])
        Replicates(1 query of 2 items, 2 annotators)
        """
        grades, items = check_judgements(grade), check_ids(item, "item")
        people, queries = check_ids(annotator, "annotator"), Queries.of(qid, len(grades), "grade")
        check_lengths("grade", len(grades), item=items, annotator=people)
        ids = tuple(queries.ids.tolist())
        owned = zip(ids, np.split(queries.order, queries.offsets[1:-1]), strict=True)
        return cls(
            ids, tuple(of_table(items[rows], people[rows], grades[rows], query) for query, rows in owned)
        )

    @classmethod
    def from_labels(cls, labels: Iterable[ArrayLike], qid: ArrayLike = None) -> Replicates:
        """Read one label an annotator, about all rows of the data: grades, `Preferences` or `Permutations`.

        An annotator without a preference in a query counts there: as one who prefers nothing.

        >>> from concordant.supervision.labels import Preferences
        >>> pairs = (0, 1), (1, 0), (0, 1)
        >>> votes = [Preferences(better=[i], worse=[j], n_rows=2) for i, j in pairs]
        >>> Replicates.from_labels(votes).votes[0].counts.tolist()
        [1, 2]
        """
        given = tuple(as_label(label) for label in labels)
        if not given:
            raise EmptyDataError("labels")
        # One distribution, so that labels are of one kind and speak about the same rows.
        queries = Queries.of(qid, len(given[0]), "labels[0]")
        even = np.full((queries.n_queries, len(given)), 1.0 / len(given))
        return cls.counted(LabelDistribution(given, even, queries), np.ones(even.shape, dtype=np.int64))

    @classmethod
    def from_orders(cls, orders: Any, *, n_items: int | None = None, unranked: str = "ignore") -> Replicates:
        """Read orders of the items, best first, one query or several.

        Parameters
        ----------
        orders
            Orders of items that are numbers from 0 or names, one a voter (a list, tuple or set inside is a
            tie), or what `read_preflib` gives of orders, for one query; a mapping from ids to either for
            several.
        n_items
            Number of items, where they are numbers; None: those that occur, which must leave none out.
        unranked
            What is meant by items left out: "ignore" no preference, "last" below all that are ranked.

        Examples
        --------
        >>> Replicates.from_orders({"lunch": [[0, 1, 2], [1, {0, 2}]], "dinner": [[1, 0]]})
        Replicates(2 queries of 2 to 3 items, 1 to 2 annotators)
        """
        if unranked not in ("ignore", "last"):
            raise ParameterError("unranked", unranked, "'ignore' or 'last'")
        given = orders if isinstance(orders, Mapping) else {0: orders}
        if not given:
            raise EmptyDataError("orders")
        if n_items is not None:
            check_counts(n_items=n_items)
        found = {
            query: of_orders(one, query, n_items, last=unranked == "last") for query, one in given.items()
        }
        return cls(tuple(found), tuple(found.values()))

    @classmethod
    def sample(cls, distribution: LabelDistribution, n_annotators: int, seed: int = 0) -> Replicates:
        """Draw the labels of annotators from a distribution; each query has its own.

        >>> intents = LabelDistribution(([1, 1, 0], [0, 0, 1]), [[0.5, 0.5]], queries=["q"] * 3)
        >>> Replicates.sample(intents, 10).votes[0].counts.tolist()
        [4, 6]
        """
        check_counts(n_annotators=n_annotators)
        return cls.counted(
            distribution, np.random.default_rng(seed).multinomial(n_annotators, distribution.probs)
        )

    @classmethod
    def counted(cls, distribution: LabelDistribution, counts: IntArray) -> Replicates:
        """Give each label of a distribution as often as a row of counts says, one row a query."""
        ids = tuple(distribution.queries.ids.tolist())
        return cls(ids, tuple(of_distribution(distribution, counts, ids)))

    def panels(self, least: int = 2) -> Replicates:
        """Give a query for each set of items that the same annotators judged: there nothing is missing.

        Sets of fewer than `least` items are left out. Preferences do not tell who judged what.

        >>> Replicates.from_array([[1, 0, 1, 1], [1, 1, np.nan, np.nan]]).panels()
        Replicates(2 queries of 2 items, 1 to 2 annotators)
        """
        return self.parted(sets_judged, least, "judged by the same annotators")

    def among(self, size: int) -> Replicates:
        """Give a query for every `size` items of each query, and what the votes say about them.

        >>> Replicates.from_orders([[0, 1, 2, 3]]).among(3)
        Replicates(4 queries of 3 items, 1 annotator)
        """
        check_counts(size=size)
        if sum(math.comb(own.n_items, size) for own in self.votes) > MOST_SUBSETS:
            raise ParameterError("size", size, f"such that there are at most {MOST_SUBSETS:,} subsets")
        return self.parted(lambda own: itertools.combinations(range(own.n_items), size), size, "to choose")

    def parted(self, sets: Callable[[Votes], Any], least: int, what: str) -> Replicates:
        """Give a query for each set of items; `id/1`, `id/2`, ..."""
        check_counts(least=least)
        found: dict[Hashable, Votes] = {}
        for query, own in zip(self.ids, self.votes, strict=True):
            for number, items in enumerate((one for one in sets(own) if len(one) >= least), 1):
                found[f"{query}/{number}"] = restrict(own, items, query)
        if not found:
            raise LabelError(f"no query has {least} items {what}", "ask for fewer.")
        return Replicates(tuple(found), tuple(found.values()))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        sizes = told([own.n_items for own in self.votes], "item")
        people = told([own.n_annotators for own in self.votes], "annotator")
        queries = "1 query" if len(self) == 1 else f"{len(self):,} queries"
        return f"Replicates({queries} of {sizes}, {people})"


def told(numbers: list[int], unit: str) -> str:
    """Give the least and the most."""
    low, high = min(numbers), max(numbers)
    count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{count} {unit}{'' if high == 1 else 's'}"


def sets_judged(votes: Votes) -> Iterator[IntArray]:
    """Give the sets of items that the same annotators judged."""
    if votes.kind == "preferences":
        problem = "preferences do not tell which items an annotator judged"
        raise LabelError(problem, "give grades or orders, or choose items by among().")
    _, codes = np.unique(votes.judged(), axis=1, return_inverse=True)
    for code in np.unique(codes):
        yield np.flatnonzero(codes.ravel() == code).astype(np.int64)
