"""The comparison family on rows in parts: what its solver asks is summed over them, or collected if few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from concordant.solvers.margin_problem import Point, Solve
from concordant.solvers.margin_rows import RowProblem, factorised, inverse
from concordant.solvers.partitioned.margin_corner import PartedHinges
from concordant.solvers.partitioned.margin_line import slope_between
from concordant.solvers.partitioned.margin_part import (
    Spot,
    Which,
    aligned,
    bent_gram,
    bent_rows,
    dual_sums,
    looked,
    measured,
    taken,
    widest,
)
from concordant.solvers.partitioned.parts import Parts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.types import FloatArray, IntArray

__all__ = ["PartedPoint", "PartedProblem"]

NARROW = 200  # features up to which another pass costs more than a matrix of them that may not be used


@dataclass(frozen=True, eq=False)
class PartedPoint(Point):
    """A point, of which parts know the rest.

    Attributes
    ----------
    spot
        What a part is told, to know it.
    n_bent, n_curved
        Rows whose curvature has a say, and those that have any.
    joint
        Curvature in the weights, the mixed one as last column; None: it was not summed.
    """

    spot: Spot
    n_bent: int
    n_curved: int
    joint: FloatArray | None


@dataclass(frozen=True, eq=False)
class PartedProblem:
    """What `RowProblem` is, over parts; the solver does not see the difference.

    Attributes
    ----------
    parts
        Of which each is a `MarginPart`.
    which
        What parts are told of the problem: `MarginPart.make` is called with it.
    edges
        The rows of part `k` that cost something have numbers `edges[k]:edges[k + 1]`.
    n_features, has_bias, kind
        As of `Problem`.
    full_cost, share
        Of all rows; and how much of it they cost here.
    stepped_from
        Whether Newton steps are taken from points; else nobody asks for their matrices.
    """

    parts: Parts
    which: Which
    edges: IntArray
    n_features: int
    has_bias: bool
    kind: int
    full_cost: float
    share: float = 1.0
    stepped_from: bool = True

    @classmethod
    def of(cls, parts: Parts, which: Which) -> PartedProblem:
        """Measure the parts: one pass."""
        found = parts.each(measured, which)
        edges = np.cumsum([0, *(one.n_rows for one in found)])
        total = float(tree_sum(np.array([one.total_cost]) for one in found)[0])
        return cls(parts, which, edges, found[0].n_features, found[0].has_bias, found[0].kind, total)

    @property
    def n_rows(self) -> int:
        """How many rows cost something."""
        return int(self.edges[-1])

    @property
    def total_cost(self) -> float:
        """Of all rows."""
        return self.share * self.full_cost

    def look(self, w: FloatArray, bias: float, delta: float) -> PartedPoint:
        """Evaluate: one sum over the parts."""
        spot, p, with_gram = Spot(self.which, self.share, w, bias, delta), self.n_features, self.is_narrow
        found = aligned(self.parts.total(looked, spot, with_gram))
        grads, sums, counts, gram = np.split(found, np.cumsum([2 * p, 5, 2]))
        joint = gram.reshape(p, p + 1) if with_gram else None
        own = grads.reshape(2, p), sums, self.has_bias
        return PartedPoint(w, bias, delta, *own, spot, int(counts[0]), int(counts[1]), joint)

    @property
    def is_narrow(self) -> bool:
        """Whether the matrix of a step is summed along with the gradient, though not every point needs it."""
        return self.stepped_from and self.n_features <= NARROW

    def system(self, point: PartedPoint) -> tuple[Solve, FloatArray]:
        """Give the inverse of the curvature in the weights, and the mixed one; 0 without a bias.

        Parts add up a matrix of features; where fewer rows are bent, those are collected.
        """
        if point.n_bent >= self.n_features:
            joint = self.parts.total(bent_gram, point.spot) if point.joint is None else point.joint
            return factorised(joint[:, :-1].copy(), 1.0), joint[:, -1].copy()
        found = self.parts.each(bent_rows, point.spot)
        rows, curve = (np.concatenate([part[k] for part in found]) for k in (0, 1))
        mixed = curve[:, 1] @ rows if self.has_bias else np.zeros(self.n_features)
        return inverse(rows, curve[:, 0]), mixed

    def widest(self, point: PartedPoint) -> float:
        """Size of the largest score."""
        return float(max(self.parts.each(widest, point.spot)))

    def along(self, point: PartedPoint, ahead: PartedPoint, bias_step: float) -> Callable[[float], float]:
        """Give the slope of all losses between two points."""
        return slope_between(self.parts, point.spot, ahead.spot, bias_step, self.kind)

    def dual_sums(self, point: PartedPoint, factors: FloatArray) -> tuple[float, float]:
        """Give the losses, not rounded, and what their slopes add to the dual."""
        losses, dual = self.parts.total(dual_sums, point.spot, factors)
        return float(losses), float(dual)

    def n_curved(self, point: PartedPoint) -> int:
        """How many rows have a curvature."""
        return point.n_curved

    def hinges(self, point: PartedPoint) -> PartedHinges:
        """Give the losses one by one, at their corner where they are rounded."""
        return PartedHinges.at(self.parts, self.edges, point.spot, has_bias=self.has_bias)

    def sample(self, chosen: IntArray) -> RowProblem:
        """Give the problem of some rows, in memory and at the same total cost."""
        cuts = np.searchsorted(chosen, self.edges)
        wanted = {
            number: chosen[first:last] - self.edges[number]
            for number, (first, last) in enumerate(pairwise(cuts.tolist()))
            if last > first
        }
        found = [one for one in self.parts.each(taken, self.which, wanted) if one is not None]
        rows, tie, cost = (np.concatenate(column) for column in zip(*found, strict=True))
        share = self.share * self.n_rows / len(chosen)
        return RowProblem(rows, tie, share * cost, self.has_bias, self.kind)

    def cheaper(self, share: float) -> PartedProblem:
        """Give the problem at a share of the cost."""
        return replace(self, share=share * self.share)
