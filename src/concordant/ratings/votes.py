"""Votes: who met whom and who won, by item number; the items are known by name to the caller only."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError, UnknownNameError
from concordant.supervision.columns import (
    check_ids,
    check_lengths,
    check_nonnegative,
    joined_ids,
    kind_of_ids,
)
from concordant.supervision.labels import Comparisons
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Items", "Votes", "check_side", "read_votes"]

LISTED = 30  # names in an error


@dataclass(frozen=True, eq=False)
class Items:
    """Items by number; `names` need not be sorted.

    >>> items = Items(np.array(["b", "a"]))
    >>> items.codes(["a", "b", "a"], "left").tolist()
    [1, 0, 1]
    """

    names: NDArray[Any]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def order(self) -> IntArray:
        """Items by name."""
        return np.argsort(self.names, kind="stable").astype(np.int64)

    def find(self, ids: NDArray[Any]) -> IntArray:
        """Give the number of each id, -1 where it is no item."""
        if not len(self) or kind_of_ids(ids) != kind_of_ids(self.names):
            return np.full(len(ids), -1, dtype=np.int64)
        names = self.names
        if ids.dtype.kind != names.dtype.kind:  # numpy would compare large numbers as doubles
            both = joined_ids(names, ids)
            names, ids = both[: len(names)], both[len(names) :]
        place = np.searchsorted(names, ids, sorter=self.order).clip(max=len(self) - 1)
        codes = self.order[place]
        return np.where(names[codes] == ids, codes, -1)

    def codes(self, ids: ArrayLike, name: str) -> IntArray:
        """Give the number of each id; an unknown one is refused."""
        given = check_ids(ids, name)
        codes = self.find(given)
        if (unknown := np.flatnonzero(codes < 0)).size:
            raise self.unknown(given[unknown[0]].item())
        return codes

    def unknown(self, name: object) -> UnknownNameError:
        """Say that this is no item; of many items only the nearest names are listed."""
        known = [str(item) for item in self.names.tolist()]
        if len(known) > LISTED:
            near = difflib.get_close_matches(str(name), known, n=5, cutoff=0.6)
            known = [*near, f"{len(known) - len(near)} others"]
        return UnknownNameError("item", name, known)

    def with_new(self, ids: NDArray[Any]) -> Items:
        """Give these items, followed by those of the ids (each once) that are new."""
        new = ids[self.find(ids) < 0]
        return Items(joined_ids(self.names, new)) if new.size else self


@dataclass(frozen=True, eq=False)
class Votes:
    """One row a vote, in the caller's order.

    Attributes
    ----------
    items
        Whom the numbers mean.
    left, right
        Numbers of the items of each vote.
    outcome
        -1 the left won, +1 the right won, 0 a tie.
    weights
        Weight >= 0 of each vote; None: all 1.
    """

    items: Items
    left: IntArray
    right: IntArray
    outcome: IntArray
    weights: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.left)


def is_single(value: object) -> bool:
    """Whether this is one id or number, and no column of them."""
    return isinstance(value, (str, bytes, Number, np.generic, date)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    )


def check_side(ids: ArrayLike, name: str) -> NDArray[Any]:
    """Give the ids of one side; a single id is a column of one."""
    if isinstance(ids, (set, frozenset, dict, Iterator)):
        kind = type(ids).__name__
        problem = f"{name} is a {kind}, and not a column with one id a vote"
        raise LabelError(
            problem, f"give a list or an array: list({name}), where its order is that of the votes."
        )
    return check_ids([ids.item() if isinstance(ids, np.ndarray) else ids] if is_single(ids) else ids, name)


def read_columns(left: ArrayLike, right: ArrayLike, outcome: ArrayLike) -> Comparisons:
    """Give checked columns; single ids with one outcome are one vote."""
    for name, column in (("right", right), ("outcome", outcome)):
        if column is None:
            hint = "give left, right and outcome, one of each a vote, or one Comparisons."
            raise LabelError(f"{name} is missing", hint)
    sides = check_side(left, "left"), check_side(right, "right")
    return Comparisons(*sides, [outcome] if is_single(outcome) else outcome)


def read_votes(
    left: ArrayLike,
    right: ArrayLike = None,
    outcome: ArrayLike = None,
    sample_weight: ArrayLike = None,
    known: Items | None = None,
) -> Votes:
    """Give checked votes; `left` may be a `Comparisons`, which has everything but the weights.

    Single ids are one vote. Items that `known` has keep their numbers, new ones follow. An item that meets
    itself is refused.

    >>> votes = read_votes(["a", "c"], ["b", "a"], [-1, 0])
    >>> votes.items.names.tolist(), votes.left.tolist(), votes.right.tolist()
    (['a', 'b', 'c'], [0, 2], [1, 0])
    """
    given = left if isinstance(left, Comparisons) else None
    if given is not None and (right is not None or outcome is not None):
        raise ParameterError("right", right, "left out, as outcome is, where left is a Comparisons")
    if given is None:
        given = read_columns(left, right, outcome)
    if is_single(sample_weight):
        sample_weight = [sample_weight]
    if not len(given):
        raise EmptyDataError("left")
    weights = None if sample_weight is None else check_nonnegative(sample_weight, "sample_weight", "vote")
    check_lengths("left", len(given), sample_weight=weights)
    with np.errstate(over="ignore"):
        if weights is not None and not np.isfinite(weights.sum()):
            raise ParameterError("sample_weight", "given", "smaller: their sum is no double")
    if (alone := np.flatnonzero(given.left_codes == given.right_codes)).size:
        name = given.left[alone[0]].item()
        raise LabelError(f"vote {alone[0]} is between {name!r} and itself", "drop votes of one item.")
    if known is None:
        return Votes(Items(given.items), given.left_codes, given.right_codes, given.outcome, weights)
    items = known.with_new(given.items)
    codes = items.find(given.items)
    return Votes(items, codes[given.left_codes], codes[given.right_codes], given.outcome, weights)
