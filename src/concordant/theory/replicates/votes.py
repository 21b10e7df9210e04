"""Replicated supervision: what several annotators say about the items of each query."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import LabelError
from concordant.supervision.columns import frozen
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["KINDS", "Votes", "check_size", "restrict", "to_votes"]

MOST, PAIR = 2**32, 16  # bytes of all comparisons, of which a vote needs one a pair; and of a pair itself

KINDS: Mapping[str, str] = {
    "grades": "a number for each item, NaN where it was not judged",
    "orders": "for each item the number of items below it, NaN where it was not ranked",
    "preferences": "for each two items the weight of the preference of the first",
}


@dataclass(frozen=True, eq=False)
class Votes:
    """What the annotators of one query say, equal votes counted together.

    A vote is all that one annotator says about the query: it is counted, and drawn again, as a whole, since
    conditions depend on which items are relevant, or preferred, together.

    Attributes
    ----------
    kind
        One of `KINDS`.
    values
        One row a vote, (n_votes, n_items); of preferences one matrix a vote.
    counts
        How many annotators gave each vote.
    items
        What the items are called.
    """

    kind: str
    values: FloatArray
    counts: IntArray
    items: tuple[Hashable, ...]

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return int(self.counts.sum())

    def judged(self) -> BoolArray:
        """Tell which items each vote speaks about; of preferences those that it prefers or puts below."""
        if self.kind == "preferences":
            said = self.values > 0
            return np.asarray((said | np.swapaxes(said, 1, 2)).any(axis=1))
        return ~np.isnan(self.values)

    def preferred(self) -> FloatArray:
        """Give a_ij of each vote: the weight of its preference of i to j; 0 where it did not judge both."""
        if self.kind == "preferences":
            return self.values
        return (self.values[:, :, None] > self.values[:, None, :]).astype(np.float64)

    def nets(self) -> Any:
        """Give a_ij - a_ji of each vote, in as little memory as its values need."""
        if self.kind == "preferences":
            return self.values - np.swapaxes(self.values, 1, 2)
        above = self.values[:, :, None] > self.values[:, None, :]
        return above.astype(np.int8) - np.swapaxes(above, 1, 2)

    def places(self, query: object) -> IntArray:
        """Give the place of each item in each order, 1 the best; refused unless orders are full."""
        if self.kind != "orders":
            problem = f"query {query!r} has votes of kind {self.kind!r}, and the condition is about orders"
            raise LabelError(problem, "give full orders: Replicates.from_orders.")
        if (wrong := ~(np.sort(self.values, axis=1) == np.arange(self.n_items)).all(axis=1)).any():
            seen = int(self.judged()[wrong][0].sum())
            problem = f"query {query!r} has an order of {seen} of its {self.n_items} items, or with ties"
            raise LabelError(problem, "the condition is about full orders; panels() keeps what all ranked.")
        return (self.n_items - self.values).astype(np.int64)

    def relevance(self, relevant_from: float, query: object) -> FloatArray:
        """Give y of each vote: 1 from a grade on, 0 below; refused where an item was not judged."""
        if self.kind != "grades":
            problem = f"query {query!r} has votes of kind {self.kind!r}, and the condition is about relevance"
            raise LabelError(problem, "give a grade for each item: Replicates.from_table or from_array.")
        if (missing := np.isnan(self.values)).any():
            row = int(np.argmax(missing.any(axis=1)))
            some = f"{self.n_items - int(missing[row].sum())} of the {self.n_items} items"
            problem = f"query {query!r} has an annotator who judged {some}, and sum(y) needs all of them"
            hint = "panels() makes a query of each set of items that the same annotators judged; "
            hint += "taking items for independent would not help: then the condition always holds."
            raise LabelError(problem, hint)
        return (self.values >= relevant_from).astype(np.float64)


def to_votes(kind: str, values: FloatArray, counts: IntArray, items: Iterable[Any], query: object) -> Votes:
    """Give the votes, equal ones counted together; those of nobody and about nothing are left out."""
    kept = counts > 0
    if kind != "preferences":
        kept &= ~np.isnan(values).all(axis=1)
    rows, numbers, names = values[kept], counts[kept], tuple(items)
    if not len(rows):
        raise LabelError(f"query {query!r} has no votes", "leave it out.")
    if kind == "orders":
        rows = below(rows)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    _, first, codes = np.unique(
        np.where(np.isnan(flat), -1.0, flat), axis=0, return_index=True, return_inverse=True
    )
    added = np.bincount(codes.ravel(), weights=numbers).astype(np.int64)
    return Votes(kind, frozen(rows[first]), frozen(added), names)


def check_size(n_votes: int, n_items: int, query: object) -> None:
    """Refuse votes whose comparisons of every two items do not fit into memory."""
    if (size := (n_votes + PAIR) * n_items**2) > MOST:
        problem = f"query {query!r} has {n_votes:,} different votes on {n_items:,} items"
        hint = (
            f"comparing all pairs takes {size / 2**30:,.0f} GiB or more: give fewer items, e.g. by among()."
        )
        raise LabelError(problem, hint)


def below(values: FloatArray) -> FloatArray:
    """Give how many ranked items each item is above: the same number for the same order.

    >>> below(np.array([[7.0, 2.0, np.nan], [5.0, 5.0, 1.0]])).tolist()
    [[1.0, 0.0, nan], [1.0, 1.0, 0.0]]
    """
    lower = (values[:, :, None] > values[:, None, :]).sum(axis=2).astype(np.float64)
    return np.where(np.isnan(values), np.nan, lower)


def restrict(votes: Votes, items: Sequence[int] | IntArray, query: object) -> Votes:
    """Give what the votes say about these items only."""
    chosen = np.asarray(items)
    values = votes.values[:, chosen]
    if votes.kind == "preferences":
        values = values[:, :, chosen]
    return to_votes(votes.kind, values, votes.counts, (votes.items[item] for item in chosen), query)
