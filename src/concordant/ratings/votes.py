"""Votes: who met whom and who won, by item number; the items are known by name to the caller only."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError, UnknownNameError
from concordant.supervision.columns import check_ids, check_lengths, check_nonnegative
from concordant.supervision.labels import Comparisons
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Items", "Votes", "read_votes"]

LISTED = 30  # names in an error


def kind_of(ids: NDArray[Any]) -> str:
    """Text, numbers and times are never equal to one another."""
    return "text" if ids.dtype.kind in "US" else "time" if ids.dtype.kind in "mM" else "number"


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
        if not len(self) or kind_of(ids) != kind_of(self.names):
            return np.full(len(ids), -1, dtype=np.int64)
        place = np.searchsorted(self.names, ids, sorter=self.order).clip(max=len(self) - 1)
        codes = self.order[place]
        return np.where(self.names[codes] == ids, codes, -1)

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
            near = difflib.get_close_matches(str(name), known, n=5, cutoff=0.0)
            known = [*near, f"{len(known) - len(near)} others"]
        return UnknownNameError("item", name, known)

    def with_new(self, ids: NDArray[Any]) -> Items:
        """Give these items, followed by those of the ids (each once) that are new."""
        if len(self) and kind_of(ids) != kind_of(self.names):
            problem = f"{ids[0].item()!r} is {kind_of(ids)}, the items so far are {kind_of(self.names)}"
            raise LabelError(problem, "give every item's id as the same type.")
        new = ids[self.find(ids) < 0]
        return Items(np.concatenate((self.names, new))) if new.size else self


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


def read_votes(
    left: ArrayLike,
    right: ArrayLike = None,
    outcome: ArrayLike = None,
    sample_weight: ArrayLike = None,
    known: Items | None = None,
) -> Votes:
    """Give checked votes; `left` may be a `Comparisons`, which has everything but the weights.

    Items that `known` has keep their numbers, new ones follow. An item that meets itself is refused.

    >>> votes = read_votes(["a", "c"], ["b", "a"], [-1, 0])
    >>> votes.items.names.tolist(), votes.left.tolist(), votes.right.tolist()
    (['a', 'b', 'c'], [0, 2], [1, 0])
    """
    if isinstance(left, Comparisons) and (right is not None or outcome is not None):
        raise ParameterError("right", right, "left out, as outcome is, where left is a Comparisons")
    given = left if isinstance(left, Comparisons) else Comparisons(left, right, outcome)
    if not len(given):
        raise EmptyDataError("left")
    weights = None if sample_weight is None else check_nonnegative(sample_weight, "sample_weight", "vote")
    check_lengths("left", len(given), sample_weight=weights)
    if (alone := np.flatnonzero(given.left_codes == given.right_codes)).size:
        name = given.left[alone[0]].item()
        raise LabelError(f"vote {alone[0]} is between {name!r} and itself", "drop votes of one item.")
    if known is None:
        return Votes(Items(given.items), given.left_codes, given.right_codes, given.outcome, weights)
    items = known.with_new(given.items)
    codes = items.find(given.items)
    return Votes(items, codes[given.left_codes], codes[given.right_codes], given.outcome, weights)
