"""Hinges of rows in parts, near their corner: those that ever were free are collected, the others summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from concordant._segments import one_blas_thread
from concordant.solvers.margin_corner import CORNERS, Found, Terms, out_of_range, pulled, wrong_side
from concordant.solvers.margin_rows import RowProblem
from concordant.solvers.partitioned.margin_part import MarginPart, Spot, aligned
from concordant.solvers.partitioned.parts import Parts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["Group", "PartedHinges"]

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Group:
    """Some hinges, with the rows they are of.

    Attributes
    ----------
    part, term
        The part each is in, and its number among the `Terms` there.
    order
        By which hinges of all parts come as `Terms` of all rows would: kind of the hinge, number of the row.
    signed, label, cost
        The rows, turned as they pull, and the rest of the terms.
    base
        Dual variables at the point that the search began from; 0 of those that were free.
    """

    part: IntArray
    term: IntArray
    order: IntArray
    signed: FloatArray
    label: FloatArray
    cost: FloatArray
    base: FloatArray

    @classmethod
    def joined(cls, groups: Sequence[Group]) -> Group:
        """Put groups together."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(group, name) for group in groups]) for name in names))

    def take(self, rows: IntArray | BoolArray) -> Group:
        """Give some of them."""
        return Group(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(eq=False)
class PartedHinges:
    """What `RowHinges` is, over parts.

    Attributes
    ----------
    parts, edges, spot
        Of the problem, and the point that the search began from.
    pulls, duals
        What the hinges that were not free then add to the direction, and their dual variables: sums by label,
        1 and -1.
    known
        Hinges that have been free; their present dual variables, which are free, and which of those leave.
    w, bias, joining
        Where was looked last, and hinges that were not known on the wrong side of their corner there.
    """

    parts: Parts
    edges: IntArray
    spot: Spot
    has_bias: bool
    pulls: FloatArray
    duals: FloatArray
    known: Group
    dual: FloatArray
    free: BoolArray
    leaving: BoolArray
    w: FloatArray
    bias: float
    joining: Group

    @classmethod
    def at(cls, parts: Parts, edges: IntArray, spot: Spot, *, has_bias: bool) -> PartedHinges:
        """Free the losses that are bent: one pass."""
        found = parts.each(begun, spot)
        sums = tree_sum(part for part, _ in found)
        known = in_order([group for _, group in found], edges)
        free = np.ones(len(known.term), dtype=np.bool_)
        state = known, np.zeros(len(free)), free, ~free, spot.w, spot.bias, known.take(~free)
        return cls(parts, edges, spot, has_bias, sums[:, :-1], sums[:, -1], *state)

    @property
    def n_free(self) -> int:
        """How many are free."""
        return int(self.free.sum())

    def corner(self) -> tuple[FloatArray, FloatArray]:
        """Give rows and labels of the free ones."""
        label = self.known.label[self.free] if self.has_bias else np.zeros(self.n_free)
        return self.known.signed[self.free], label

    def fixed(self) -> tuple[FloatArray, float]:
        """Give the direction that the dual variables of the others add up to, and their sum by label."""
        pulls, duals = self.sums(np.where(self.free, 0.0, self.dual))
        return pulls.sum(axis=0), float(duals[0] - duals[1])

    def sums(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give directions and dual variables by label, where known hinges have these."""
        change, up = dual - self.known.base, self.known.label > 0.0
        changes = np.stack((np.where(up, change, 0.0), np.where(up, 0.0, change)))
        return self.pulls + changes @ self.known.signed, self.duals + changes.sum(axis=1)

    def moved(self, duals: FloatArray, bias: float) -> Found:
        """Give the free ones these dual variables, as far as they may; what the weights are then worth."""
        self.dual[self.free] = duals
        self.leaving = self.free & out_of_range(self.dual, self.known.cost)
        self.dual = np.clip(self.dual, 0.0, self.known.cost)
        pulls, sums = self.sums(self.dual)
        self.w, self.bias = pulls.sum(axis=0), bias
        value = 0.5 * float(self.w @ self.w) + self.judge()
        factors = np.ones(2)
        if self.has_bias:
            factors = sums.min() / np.maximum(sums, TINY)
        direction = factors @ pulls
        bound = float(factors @ sums) - 0.5 * float(direction @ direction)
        return self.w, bias, value, max(value - bound, 0.0)

    def judge(self) -> float:
        """Give the losses here, and find the hinges on the wrong side: one pass."""
        known = {int(part): self.known.term[self.known.part == part] for part in np.unique(self.known.part)}
        found = self.parts.each(judged, self.spot, self.w, self.bias, known)
        self.joining = in_order([group for _, group in found], self.edges)
        return float(tree_sum(np.array([value]) for value, _ in found)[0])

    def regrouped(self) -> bool:
        """Free those on the wrong side of their corner, and fix those out of range; whether any changed."""
        known, added = self.known, len(self.joining.term)
        slack = 1.0 - known.label * self.bias - known.signed @ self.w
        joins = ~self.free & wrong_side(self.dual, known.cost, slack)
        changed = bool(self.leaving.any() or joins.any() or added)
        free = np.append((self.free & ~self.leaving) | joins, np.ones(added, dtype=np.bool_))
        dual, known = np.append(self.dual, self.joining.base), Group.joined((known, self.joining))
        places = np.lexsort(known.order.T[::-1])
        self.known, self.dual, self.free = known.take(places), dual[places], free[places]
        return changed


def in_order(groups: Sequence[Group], edges: IntArray) -> Group:
    """Put what parts gave together; rows are counted among those of all parts."""
    for number, group in enumerate(groups):
        group.order[:, 1] += edges[number]
    joined = Group.joined(groups)
    return joined.take(np.lexsort(joined.order.T[::-1]))


# ---------------------------------------------------------------- jobs


def begun(part: MarginPart, spot: Spot) -> tuple[FloatArray, Group]:
    """Give direction and dual variables of the hinges that are not bent, by label; and those that are."""
    problem, point = part.at(spot)
    terms = problem.terms()
    slack = terms.slack(point.g, point.bias)
    free = (slack > 0.0) & (slack < point.delta)
    dual = np.where(~free & (slack > 0.0), terms.cost, 0.0)
    with one_blas_thread():
        sums = [summed(problem.rows, terms, np.where(terms.label == side, dual, 0.0)) for side in (1.0, -1.0)]
    return np.stack(sums), group_of(part.number, problem, terms, dual, np.flatnonzero(free))


def summed(rows: FloatArray, terms: Terms, dual: FloatArray) -> FloatArray:
    """Give the direction that dual variables add up to, and their sum."""
    return np.append(pulled(rows, terms, dual), dual.sum())


def judged(
    part: MarginPart, spot: Spot, w: FloatArray, bias: float, known: Mapping[int, IntArray]
) -> tuple[float, Group]:
    """Give the losses at these weights, and hinges on the wrong side of their corner that are not known.

    No more of them than could be used.
    """
    problem, point = part.at(spot)
    terms = problem.terms()
    dual = np.where(terms.slack(point.g, point.bias) > 0.0, terms.cost, 0.0)
    with one_blas_thread():
        slack = terms.slack(problem.rows @ aligned(w), bias)
        value = float(terms.cost @ np.maximum(slack, 0.0))
    joins = wrong_side(dual, terms.cost, slack)
    if part.number in known:
        joins[known[part.number]] = False
    return value, group_of(part.number, problem, terms, dual, np.flatnonzero(joins)[: CORNERS + 1])


def group_of(number: int, problem: RowProblem, terms: Terms, dual: FloatArray, chosen: IntArray) -> Group:
    """Give some hinges of a part; rows are still counted within it."""
    pair = terms.pair[chosen]
    kind = np.where(terms.sign[chosen] < 0.0, 2, np.where(problem.tie[pair], 1, 0))
    place = np.full(len(chosen), number), chosen, np.stack((kind, pair), axis=1)
    return Group(
        *place, terms.signed(problem.rows, chosen), terms.label[chosen], terms.cost[chosen], dual[chosen]
    )
