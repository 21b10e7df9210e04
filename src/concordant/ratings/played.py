"""Votes in the order in which they are learned, and what they leave: the state of a sequential model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.ratings.votes import Votes
from concordant.supervision.columns import frozen
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEVELS", "NO_NUMBERS", "Played", "State", "in_order", "joined"]

LEVELS = 2048  # of differences in the logarithm of the odds: each 1/128 wide, the last open
NO_WEIGHTS, NO_NUMBERS = frozen(np.empty(0)), frozen(np.empty(0, dtype=np.int64))


@dataclass(eq=False)
class State:
    """What the votes so far have left: arrays with an entry per item, and what the tie is fitted to.

    `levels` holds, by level of the foretold difference's size, the weight of the votes, that of the ties, and
    the sum of the sizes.
    """

    of_items: dict[str, NDArray[Any]]
    levels: FloatArray = field(default_factory=lambda: np.zeros((LEVELS, 3)))

    def followed_by(self, newcomers: State) -> State:
        """Give a copy, with further items."""
        joined = {
            name: np.concatenate((old, newcomers.of_items[name])) for name, old in self.of_items.items()
        }
        return State(joined, self.levels.copy())


@dataclass(frozen=True, eq=False)
class Played:
    """Votes in the order in which they are learned; empty weights are all 1, no periods are one a vote.

    All are read-only: so one compiled version of a kernel serves all callers.
    """

    left: IntArray
    right: IntArray
    outcome: IntArray
    weights: FloatArray
    periods: IntArray


def in_order(votes: Votes, times: FloatArray | None, periods: IntArray) -> Played:
    """Give the votes in order of time; rows of equal time as they stand."""
    weights = NO_WEIGHTS if votes.weights is None else votes.weights
    columns: tuple[NDArray[Any], ...] = votes.left, votes.right, votes.outcome, weights, periods
    if times is not None and (np.diff(times) < 0.0).any():
        order = np.argsort(times, kind="stable")
        columns = tuple(column[order] if len(column) else column for column in columns)
    return Played(*(frozen(np.ascontiguousarray(column)) for column in columns))


def joined(parts: list[Played]) -> Played:
    """Give the votes of `fit` and of all updates as one."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights if len(part.weights) else np.ones(len(part.left)) for part in parts]
    columns = zip(*((part.left, part.right, part.outcome, part.periods) for part in parts), strict=True)
    left, right, outcome, periods = (frozen(np.concatenate(column)) for column in columns)
    return Played(left, right, outcome, frozen(np.concatenate(weights)), periods)
