"""Exact optimum of hinge losses: the set of losses at their corner determines a linear system.

Hinges that were ever free, at their corner, are collected from the parts; the others are summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.comparisons.machines.machine_part import MarginPart, PointSpec, as_aligned
from concordant.comparisons.machines.machine_rows import RowProblem, Terms, pull_direction
from concordant.scale.parts import Parts, tree_sum
from concordant.types import BoolArray, FloatArray, IntArray

ROUNDS = 30  # changes of the set of corners before the search is given up
CORNERS = 400  # whose linear system is small
EDGE = 1e-12  # share of a slack that may be rounding
TINY = 1e-300

CornerSolution = tuple[FloatArray, float, float, float]
"""Weights, bias, objective and gap."""


def exact_corner(hinges: Hinges, n_features: int) -> CornerSolution | None:
    """Find weights, bias, objective and gap with the hinges near their corner exactly at it.

    A dual variable outside its range leaves the corner, a loss on the wrong side of it joins. None if the set
    does not settle at a smaller gap.
    """
    best = None
    for _ in range(ROUNDS):
        if not 0 < hinges.n_free <= min(4 * (n_features + 1), CORNERS):
            break
        point = hinges.set_free_duals(*_corner_duals(*hinges.corner(), *hinges.fixed()))
        best = point if best is None or point[3] < best[3] else best
        if not hinges.regroup():
            break
    return best


def _corner_duals(
    signed: FloatArray, label: FloatArray, pull: FloatArray, balance: float
) -> tuple[FloatArray, float]:
    """Solve for the dual variables and the bias that put the free hinges at their corner."""
    right = 1.0 - signed @ pull
    system = np.block([[signed @ signed.T, label[:, None]], [label[None, :], np.zeros((1, 1))]])
    has_bias = bool(label.any())
    solved = np.linalg.lstsq(system, np.append(right, -balance if has_bias else 0.0))[0]
    return solved[:-1], float(solved[-1]) if has_bias else 0.0


def _out_of_range(dual: FloatArray, cost: FloatArray) -> BoolArray:
    return (dual < 0.0) | (dual > cost)


def _wrong_side(dual: FloatArray, cost: FloatArray, slack: FloatArray) -> BoolArray:
    """True for the fixed hinges that join the corner: their dual variable contradicts their slack."""
    edge = EDGE * (1.0 + np.abs(slack))
    return ((dual <= 0.0) & (slack > edge)) | ((dual >= cost) & (slack < -edge))


@dataclass(frozen=True, eq=False)
class CornerGroup:
    """A selection of hinges, with their rows.

    Attributes
    ----------
    part, term
        The part of each hinge, and its number among the `Terms` there.
    order
        Sort key that puts hinges of all parts in the order of `Terms` of all rows: kind of the hinge, number
        of the row.
    signed, label, cost
        The signed rows, and the rest of the terms.
    base
        Dual variables at the point where the search began; 0 for those that were free.
    """

    part: IntArray
    term: IntArray
    order: IntArray
    signed: FloatArray
    label: FloatArray
    cost: FloatArray
    base: FloatArray

    @classmethod
    def merge(cls, groups: Sequence[CornerGroup]) -> CornerGroup:
        """Concatenate groups."""
        field_names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(group, name) for group in groups]) for name in field_names))

    def take(self, rows: IntArray | BoolArray) -> CornerGroup:
        """Select some of them."""
        return CornerGroup(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(eq=False)
class Hinges:
    """Hinges, some of them free: at their corner, where the dual variable may take any value in its range.

    The others are fixed, at 0 or at their cost. Initially, the hinges with curvature at the rounding of a
    point are free.

    Attributes
    ----------
    parts, edges, point_spec
        Parts and row offsets of the problem, and the point where the search began.
    pulls, duals
        Direction and dual variables of the hinges that were not free there: sums by label, 1 and -1.
    tracked, dual, free, leaving
        Hinges that have been free; their current dual variables, which are free, and which of those leave.
    w, bias, joining
        The point evaluated last, and the untracked hinges on the wrong side of their corner there.
    """

    parts: Parts
    edges: IntArray
    point_spec: PointSpec
    has_bias: bool
    pulls: FloatArray
    duals: FloatArray
    tracked: CornerGroup
    dual: FloatArray
    free: BoolArray
    leaving: BoolArray
    w: FloatArray
    bias: float
    joining: CornerGroup

    @classmethod
    def at(cls, parts: Parts, edges: IntArray, point_spec: PointSpec, *, has_bias: bool) -> Hinges:
        """Start with the losses free that have curvature: one pass."""
        part_hinges = parts.each(free_part_hinges, point_spec)
        sums = tree_sum(part for part, _ in part_hinges)
        tracked = _merge_groups([group for _, group in part_hinges], edges)
        free = np.ones(len(tracked.term), dtype=np.bool_)
        search_state = (
            tracked,
            np.zeros(len(free)),
            free,
            ~free,
            point_spec.w,
            point_spec.bias,
            tracked.take(~free),
        )
        return cls(parts, edges, point_spec, has_bias, sums[:, :-1], sums[:, -1], *search_state)

    @property
    def n_free(self) -> int:
        """Number of free hinges."""
        return int(self.free.sum())

    def corner(self) -> tuple[FloatArray, FloatArray]:
        """Signed rows and labels of the free hinges."""
        label = self.tracked.label[self.free] if self.has_bias else np.zeros(self.n_free)
        return self.tracked.signed[self.free], label

    def fixed(self) -> tuple[FloatArray, float]:
        """Direction of the dual variables of the fixed hinges, and their sum by label."""
        pulls, duals = self.sums(np.where(self.free, 0.0, self.dual))
        return pulls.sum(axis=0), float(duals[0] - duals[1])

    def sums(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Directions and dual variables by label, with these dual variables of the tracked hinges."""
        change, up = dual - self.tracked.base, self.tracked.label > 0.0
        changes = np.stack((np.where(up, change, 0.0), np.where(up, 0.0, change)))
        return self.pulls + changes @ self.tracked.signed, self.duals + changes.sum(axis=1)

    def set_free_duals(self, duals: FloatArray, bias: float) -> CornerSolution:
        """Set the dual variables of the free hinges, clipped to their range; return the solution."""
        self.dual[self.free] = duals
        self.leaving = self.free & _out_of_range(self.dual, self.tracked.cost)
        self.dual = np.clip(self.dual, 0.0, self.tracked.cost)
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
        """Sum the losses at the current weights, and find the hinges on the wrong side: one pass."""
        tracked_terms = {
            int(part): self.tracked.term[self.tracked.part == part] for part in np.unique(self.tracked.part)
        }
        part_losses = self.parts.each(judge_part, self.point_spec, self.w, self.bias, tracked_terms)
        self.joining = _merge_groups([group for _, group in part_losses], self.edges)
        return float(tree_sum(np.array([value]) for value, _ in part_losses)[0])

    def regroup(self) -> bool:
        """Free hinges on the wrong side of their corner, fix those out of range; True if any changed."""
        tracked, added = self.tracked, len(self.joining.term)
        slack = 1.0 - tracked.label * self.bias - tracked.signed @ self.w
        joins = ~self.free & _wrong_side(self.dual, tracked.cost, slack)
        changed = bool(self.leaving.any() or joins.any() or added)
        free = np.append((self.free & ~self.leaving) | joins, np.ones(added, dtype=np.bool_))
        dual, tracked = np.append(self.dual, self.joining.base), CornerGroup.merge((tracked, self.joining))
        places = np.lexsort(tracked.order.T[::-1])
        self.tracked, self.dual, self.free = tracked.take(places), dual[places], free[places]
        return changed


def _merge_groups(groups: Sequence[CornerGroup], edges: IntArray) -> CornerGroup:
    """Merge the groups of the parts in order; rows are renumbered among those of all parts."""
    for number, group in enumerate(groups):
        group.order[:, 1] += edges[number]
    merged = CornerGroup.merge(groups)
    return merged.take(np.lexsort(merged.order.T[::-1]))


# ---------------------------------------------------------------- jobs


def free_part_hinges(part: MarginPart, point_spec: PointSpec) -> tuple[FloatArray, CornerGroup]:
    """Direction and dual variables of the hinges without curvature, by label; and the hinges with it."""
    problem, point = part.at(point_spec)
    terms = problem.terms()
    slack = terms.slack(point.g, point.bias)
    free = (slack > 0.0) & (slack < point.delta)
    dual = np.where(~free & (slack > 0.0), terms.cost, 0.0)
    with one_blas_thread():
        sums = [
            _sum_duals(problem.rows, terms, np.where(terms.label == side, dual, 0.0)) for side in (1.0, -1.0)
        ]
    return np.stack(sums), _take_group(part.number, problem, terms, dual, np.flatnonzero(free))


def _sum_duals(rows: FloatArray, terms: Terms, dual: FloatArray) -> FloatArray:
    return np.append(pull_direction(rows, terms, dual), dual.sum())


def judge_part(
    part: MarginPart, point_spec: PointSpec, w: FloatArray, bias: float, tracked_terms: Mapping[int, IntArray]
) -> tuple[float, CornerGroup]:
    """Losses at these weights, and the untracked hinges on the wrong side of their corner.

    No more of them than the solver could use.
    """
    problem, point = part.at(point_spec)
    terms = problem.terms()
    dual = np.where(terms.slack(point.g, point.bias) > 0.0, terms.cost, 0.0)
    with one_blas_thread():
        slack = terms.slack(problem.rows @ as_aligned(w), bias)
        value = float(terms.cost @ np.maximum(slack, 0.0))
    joins = _wrong_side(dual, terms.cost, slack)
    if part.number in tracked_terms:
        joins[tracked_terms[part.number]] = False
    return value, _take_group(part.number, problem, terms, dual, np.flatnonzero(joins)[: CORNERS + 1])


def _take_group(
    number: int, problem: RowProblem, terms: Terms, dual: FloatArray, selection: IntArray
) -> CornerGroup:
    """Select hinges of a part; rows are numbered within the part."""
    pair = terms.pair[selection]
    kind = np.where(terms.sign[selection] < 0.0, 2, np.where(problem.tie[pair], 1, 0))
    location = np.full(len(selection), number), selection, np.stack((kind, pair), axis=1)
    return CornerGroup(
        *location,
        terms.signed(problem.rows, selection),
        terms.label[selection],
        terms.cost[selection],
        dual[selection],
    )
