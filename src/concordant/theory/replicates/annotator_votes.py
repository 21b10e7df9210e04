"""Replicated supervision: what several annotators say about the items of each query."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import freeze
from concordant.exceptions import LabelError
from concordant.types import BoolArray, FloatArray, IntArray

MOST, PAIR = 2**32, 16  # bytes of all comparisons (a vote takes one byte per pair), and of the pair itself

KINDS: Mapping[str, str] = {
    "grades": "a number for each item, NaN where it was not judged",
    "orders": "for each item the number of items below it, NaN where it was not ranked",
    "preferences": "for each two items the weight of the preference of the first",
}


@dataclass(frozen=True, eq=False)
class AnnotatorVotes:
    """Votes of the annotators of one query; equal votes are counted together.

    A vote is everything that an annotator says about the query. It is counted, and resampled, as a whole,
    since conditions depend on which items are relevant, or preferred, together.

    Attributes
    ----------
    kind
        One of `KINDS`.
    values
        One row per vote, (n_votes, n_items); of preferences one matrix per vote.
    counts
        Number of annotators who cast each vote.
    items
        Names of the items.
    """

    kind: str
    values: FloatArray
    counts: IntArray
    items: tuple[Hashable, ...]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        return int(self.counts.sum())

    def judged(self) -> BoolArray:
        """Mask of the items that each vote judges; of preferences the items of any preferred pair."""
        if self.kind == "preferences":
            said = self.values > 0
            return np.asarray((said | np.swapaxes(said, 1, 2)).any(axis=1))
        return ~np.isnan(self.values)

    def preferred(self) -> FloatArray:
        """Return a_ij per vote: the weight of its preference of i to j, 0 where it did not judge both."""
        if self.kind == "preferences":
            return self.values
        return (self.values[:, :, None] > self.values[:, None, :]).astype(np.float64)

    def nets(self) -> Any:
        """Return a_ij - a_ji per vote, in as little memory as its values need."""
        if self.kind == "preferences":
            return self.values - np.swapaxes(self.values, 1, 2)
        above = self.values[:, :, None] > self.values[:, None, :]
        return above.astype(np.int8) - np.swapaxes(above, 1, 2)

    def places(self, query: object) -> IntArray:
        """Return the rank of each item in each order, 1 the best; raise unless the orders are full."""
        if self.kind != "orders":
            problem = f"query {query!r} has votes of kind {self.kind!r}, but the condition needs orders"
            raise LabelError(problem, "give full orders: Replicates.from_orders.")
        if (wrong := ~(np.sort(self.values, axis=1) == np.arange(self.n_items)).all(axis=1)).any():
            n_ranked = int(self.judged()[wrong][0].sum())
            problem = f"query {query!r} has an order of {n_ranked} of its {self.n_items} items, or with ties"
            raise LabelError(problem, "the condition is about full orders; panels() keeps what all ranked.")
        return (self.n_items - self.values).astype(np.int64)

    def relevance(self, relevant_from: float, query: object) -> FloatArray:
        """Return y per vote: 1 from a grade on, 0 below; raise if an item was not judged."""
        if self.kind != "grades":
            problem = (
                f"query {query!r} has votes of kind {self.kind!r}, but the condition needs relevance grades"
            )
            raise LabelError(problem, "give a grade for each item: Replicates.from_table or from_array.")
        if (missing := np.isnan(self.values)).any():
            row = int(np.argmax(missing.any(axis=1)))
            some = f"{self.n_items - int(missing[row].sum())} of the {self.n_items} items"
            problem = f"query {query!r} has an annotator who judged {some}, and sum(y) needs all of them"
            hint = "panels() makes a query of each set of items that the same annotators judged; "
            hint += "taking items for independent would not help: then the condition always holds."
            raise LabelError(problem, hint)
        return (self.values >= relevant_from).astype(np.float64)


def to_votes(
    kind: str, values: FloatArray, counts: IntArray, items: Iterable[Any], query: object
) -> AnnotatorVotes:
    """Build the votes of a query: equal ones are counted together, empty and uncounted ones left out."""
    is_counted = counts > 0
    if kind != "preferences":
        is_counted &= ~np.isnan(values).all(axis=1)
    rows, numbers, names = values[is_counted], counts[is_counted], tuple(items)
    if not len(rows):
        raise LabelError(f"query {query!r} has no votes", "leave it out.")
    if kind == "orders":
        rows = below(rows)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    _, first, codes = np.unique(
        np.where(np.isnan(flat), -1.0, flat), axis=0, return_index=True, return_inverse=True
    )
    added = np.bincount(codes.ravel(), weights=numbers).astype(np.int64)
    return AnnotatorVotes(kind, freeze(rows[first]), freeze(added), names)


def check_size(n_votes: int, n_items: int, query: object) -> None:
    """Raise if the comparisons of every two items do not fit into memory."""
    if (size := (n_votes + PAIR) * n_items**2) > MOST:
        problem = f"query {query!r} has {n_votes:,} different votes on {n_items:,} items"
        hint = (
            f"comparing all pairs takes {size / 2**30:,.0f} GiB or more: give fewer items, e.g. by among()."
        )
        raise LabelError(problem, hint)


def below(values: FloatArray) -> FloatArray:
    """Count for each item the ranked items below it, so that equal orders have equal rows.

    >>> below(np.array([[7.0, 2.0, np.nan], [5.0, 5.0, 1.0]])).tolist()
    [[1.0, 0.0, nan], [1.0, 1.0, 0.0]]
    """
    lower = (values[:, :, None] > values[:, None, :]).sum(axis=2).astype(np.float64)
    return np.where(np.isnan(values), np.nan, lower)


def restrict(votes: AnnotatorVotes, items: Sequence[int] | IntArray, query: object) -> AnnotatorVotes:
    """Restrict the votes to some of the items."""
    item_indices = np.asarray(items)
    values = votes.values[:, item_indices]
    if votes.kind == "preferences":
        values = values[:, :, item_indices]
    return to_votes(votes.kind, values, votes.counts, (votes.items[item] for item in item_indices), query)
