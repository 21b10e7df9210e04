"""What the solver of the comparison family asks of its rows, wherever they are; and points it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.solvers.margin_corner import Hinges
    from concordant.solvers.margin_rows import RowProblem

__all__ = ["FLAT", "At", "Point", "Problem", "Solve"]

FLAT = 1e-100  # a curvature that has no say beside the identity

At = TypeVar("At", bound="Point")
Solve = Callable[[FloatArray], FloatArray]
"""Gives x -> matrix^-1 x."""


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, and what a step needs to know there, summed over the rows.

    `grads` are the slopes times the rows of differences and of ties; `sums` the loss, its slope and curvature
    in the bias, and the totals of the dual variables of differences and of ties.
    """

    w: FloatArray
    bias: float
    delta: float
    grads: FloatArray
    sums: FloatArray
    has_bias: bool

    @property
    def grad(self) -> FloatArray:
        """Gradient of the objective in the weights and the bias."""
        slope = self.sums[1] if self.has_bias else 0.0
        joint: FloatArray = np.append(self.w + self.grads.sum(axis=0), slope)
        return joint

    @property
    def value(self) -> float:
        """The objective, hinges rounded."""
        return 0.5 * float(self.w @ self.w) + float(self.sums[0])


class Problem(Protocol[At]):
    """Differences, which are ties, what each costs, and the loss: held in memory, or in parts.

    Points are those that `look` of the same problem gave.
    """

    @property
    def n_rows(self) -> int:
        """How many rows cost something."""

    @property
    def n_features(self) -> int:
        """Numbers in a row."""

    @property
    def has_bias(self) -> bool:
        """Whether there is one."""

    @property
    def kind(self) -> int:
        """Which loss."""

    @property
    def total_cost(self) -> float:
        """Of all rows."""

    def look(self, w: FloatArray, bias: float, delta: float) -> At:
        """Evaluate: one pass over the rows."""

    def system(self, point: At) -> tuple[Solve, FloatArray]:
        """Give the inverse of the curvature in the weights, and the mixed one; 0 without a bias."""

    def widest(self, point: At) -> float:
        """Size of the largest score."""

    def along(self, point: At, ahead: At, bias_step: float) -> Callable[[float], float]:
        """Give the slope of all losses on the way from one point to another, by the share that is gone.

        `bias_step` is the way of the bias, of which the points know only its ends.
        """

    def dual_sums(self, point: At, factors: FloatArray) -> tuple[float, float]:
        """Give the losses, not rounded, and what their slopes add to the dual, times a factor for each side.

        Factors are those of differences and of ties, at most 1.
        """

    def n_curved(self, point: At) -> int:
        """How many rows have a curvature."""

    def hinges(self, point: At) -> Hinges:
        """Give the losses one by one, at their corner where they are rounded."""

    def sample(self, chosen: IntArray) -> RowProblem:
        """Give the problem of some rows, by ascending number, in memory and at the same total cost."""

    def cheaper(self, share: float) -> Problem[At]:
        """Give the problem at a share of the cost."""
