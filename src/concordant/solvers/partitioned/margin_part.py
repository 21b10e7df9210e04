"""One part of the rows of a comparison machine, and the jobs that its solver has done on it.

A job is told the weights, and finds scores and curvatures by itself: nothing is relied on that an earlier one
left, so that a part may be loaded anew elsewhere. What was found for the last two points is kept beside them.
Rows are worked on in blocks whose sums are added in order: the number of threads changes no bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from concordant._segments import n_threads, one_blas_thread
from concordant.solvers.margin_problem import FLAT
from concordant.solvers.margin_rows import SERIAL, RowPoint, RowProblem, swept
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = [
    "MarginPart",
    "Measure",
    "Spot",
    "Which",
    "aligned",
    "bent_gram",
    "bent_rows",
    "dual_sums",
    "looked",
    "measured",
    "taken",
    "widest",
]


class Which(Protocol):
    """What tells a part which problem it is to be of."""

    @property
    def key(self) -> Hashable:
        """Equal only where the problem is the same."""


@dataclass(frozen=True, eq=False)
class Spot:
    """Where a part is to look.

    Attributes
    ----------
    which, share
        The problem, as `MarginPart.problem` is told, and the share of its cost.
    w, bias, delta
        The weights, and the rounding.
    """

    which: Which
    share: float
    w: FloatArray
    bias: float
    delta: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells spots apart."""
        return self.which.key, self.share, self.bias, self.delta, self.w.tobytes()


class MarginPart(ABC):
    """Rows of one part.

    Parameters
    ----------
    number
        Its place among the parts.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.made: tuple[Hashable, RowProblem] | None = None
        self.seen: tuple[tuple[Hashable, RowProblem, RowPoint], ...] = ()  # the newest first

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "made": None, "seen": ()}  # what is found again is not sent

    @abstractmethod
    def make(self, which: Any) -> RowProblem:
        """Give the rows that cost something, of the problem that this tells."""

    def problem(self, which: Which) -> RowProblem:
        """Give the rows that cost something; made anew unless it is the last problem."""
        made = self.made
        if made is None or made[0] != which.key:
            self.made, self.seen = None, ()  # one is in memory at a time
            made = which.key, self.make(which)
            self.made = made
        return made[1]

    def at(self, spot: Spot) -> tuple[RowProblem, RowPoint]:
        """Give the rows and what is known of them at a point; found anew unless it is one of the last two."""
        whole = self.problem(spot.which)
        for key, problem, point in self.seen:
            if key == spot.key:
                return problem, point
        problem = whole if spot.share == 1.0 else whole.cheaper(spot.share)
        cuts = block_edges(problem.n_rows, block_size(problem.n_features))
        point = swept(problem, cuts, n_threads(), aligned(spot.w), spot.bias, spot.delta)
        self.seen = ((spot.key, problem, point), *self.seen[:1])
        return problem, point


def aligned(values: FloatArray) -> FloatArray:
    """Give an array that begins where numbers may: others, as they may come here, are added up otherwise."""
    return values if values.flags.aligned else values.copy()


def block_size(n_features: int) -> int:
    """Rows that are worked on together."""
    return max(SERIAL // max(n_features, 1), 1)


def block_edges(n: int, size: int) -> IntArray:
    """Cut n rows into blocks; at least one, which may be empty.

    >>> block_edges(5, 2).tolist(), block_edges(0, 2).tolist()
    ([0, 2, 4, 5], [0, 0])
    """
    return np.append(np.arange(0, max(n, 1), size), n)


def summed(work: Callable[[slice], FloatArray], n: int, size: int) -> FloatArray:
    """Add up what blocks of so many of n rows give, in their order."""
    blocks, threads = [slice(*edges) for edges in pairwise(block_edges(n, size).tolist())], n_threads()
    with one_blas_thread():
        if threads == 1 or len(blocks) == 1:
            return reduce(np.add, map(work, blocks))
        with ThreadPoolExecutor(threads) as pool:
            return reduce(np.add, pool.map(work, blocks))


# ---------------------------------------------------------------- jobs


@dataclass(frozen=True)
class Measure:
    """What is known of a part's rows before the first step."""

    n_rows: int
    total_cost: float
    n_features: int
    has_bias: bool
    kind: int


def measured(part: MarginPart, which: Which) -> Measure:
    """Measure the rows that cost something."""
    problem = part.problem(which)
    how = problem.n_features, problem.has_bias, problem.kind
    return Measure(problem.n_rows, problem.total_cost, *how)


def looked(part: MarginPart, spot: Spot, with_gram: bool) -> FloatArray:
    """Give gradients and sums of a point, how many rows are bent, and how many have a curvature.

    Then, if asked for, what `bent_gram` gives.
    """
    _, point = part.at(spot)
    curve = point.curve[:, 0]
    counts = np.count_nonzero(curve > FLAT), np.count_nonzero(curve)
    gram = bent_gram(part, spot).ravel() if with_gram else ()
    return np.concatenate((point.grads.ravel(), point.sums, counts, gram))


def bent_gram(part: MarginPart, spot: Spot) -> FloatArray:
    """Give the curvature in the weights, and as the last column the mixed one."""
    problem, point = part.at(spot)
    bent = np.flatnonzero(point.curve[:, 0] > FLAT)

    def joint(block: slice) -> FloatArray:
        rows, curve = problem.rows[bent[block]], point.curve[bent[block]]
        mixed = curve[:, 1] if problem.has_bias else np.zeros(len(curve))
        return np.column_stack(((rows * curve[:, :1]).T @ rows, mixed @ rows))

    return summed(joint, len(bent), max(block_size(problem.n_features), problem.n_features))


def bent_rows(part: MarginPart, spot: Spot) -> tuple[FloatArray, FloatArray]:
    """Give the rows that are bent, and their curvatures."""
    problem, point = part.at(spot)
    bent = np.flatnonzero(point.curve[:, 0] > FLAT)
    return problem.rows[bent], point.curve[bent]


def widest(part: MarginPart, spot: Spot) -> float:
    """Size of the largest score; 0 where there is none."""
    return float(np.abs(part.at(spot)[1].g).max(initial=0.0))


def dual_sums(part: MarginPart, spot: Spot, factors: FloatArray) -> FloatArray:
    """Losses, and what their slopes add to the dual."""
    problem, point = part.at(spot)
    return np.array(problem.dual_sums(point, factors))


def taken(
    part: MarginPart, which: Which, chosen: Mapping[int, IntArray]
) -> tuple[FloatArray, BoolArray, FloatArray] | None:
    """Give the rows that are wanted of this part, which are ties, and their costs; None where none are."""
    if (own := chosen.get(part.number)) is None:
        return None
    problem = part.problem(which)
    return problem.rows[own], problem.tie[own], problem.cost[own]
