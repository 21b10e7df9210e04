"""Problem of a comparison machine: sums over parts of its rows, or rows collected from the parts if few."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from concordant.comparisons.machines.corner import Hinges
from concordant.comparisons.machines.machine_part import (
    MarginPart,
    PointSpec,
    ProblemSpec,
    as_aligned,
    bent_gram,
    bent_rows,
    dual_sums,
    look_at_part,
    max_score,
    measure_part,
    take_rows,
)
from concordant.comparisons.machines.machine_rows import (
    RowProblem,
    Solve,
    curvature_inverse,
    factorized_inverse,
)
from concordant.scale.parts import MemoryParts, Parts, tree_sum
from concordant.types import BoolArray, FloatArray, IntArray

NARROW = 200  # features up to which another pass costs more than a Gram matrix that may not be used


@dataclass(frozen=True, eq=False)
class MachinePoint:
    """A point, and the sums over all rows that a step from there needs; per-row numbers stay with the parts.

    Attributes
    ----------
    point_spec
        Weights, bias and rounding, as sent to the parts.
    grads, sums
        As in `RowPoint`, of all parts.
    has_bias
        As in `RowProblem`.
    n_bent, n_curved
        Number of rows whose curvature is not negligible, and of rows with any curvature.
    joint
        Curvature in the weights, the mixed one as last column; None if it was not summed.
    """

    point_spec: PointSpec
    grads: FloatArray
    sums: FloatArray
    has_bias: bool
    n_bent: int
    n_curved: int
    joint: FloatArray | None

    @property
    def w(self) -> FloatArray:
        """The weights."""
        return self.point_spec.w

    @property
    def bias(self) -> float:
        """The bias."""
        return self.point_spec.bias

    @property
    def delta(self) -> float:
        """Rounding of the hinge."""
        return self.point_spec.delta

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


@dataclass(frozen=True, eq=False)
class MachineProblem:
    """Rows of differences, ties, costs and the loss, in parts; rows in memory are a single part.

    Points must come from `look` of the same problem.

    Attributes
    ----------
    parts
        Parts, each a `MarginPart`.
    problem_spec
        Specification of the problem that is sent to the parts: the argument of `MarginPart.make`.
    edges
        The rows of nonzero cost of part `k` have numbers `edges[k]:edges[k + 1]`.
    n_features, has_bias, kind
        As in `RowProblem`.
    full_cost, share
        Total cost of all rows; and the share of it in this problem.
    saves_passes
        True if what a Newton step may need is summed along with the gradient, since another pass over the
        parts takes long; False where rows are in memory, or no such steps are taken.
    """

    parts: Parts
    problem_spec: ProblemSpec
    edges: IntArray
    n_features: int
    has_bias: bool
    kind: int
    full_cost: float
    share: float = 1.0
    saves_passes: bool = True

    @classmethod
    def from_parts(cls, parts: Parts, problem_spec: ProblemSpec) -> MachineProblem:
        """Measure the rows of the parts: one pass."""
        part_stats = parts.each(measure_part, problem_spec)
        edges = np.cumsum([0, *(stats.n_rows for stats in part_stats)])
        total = float(tree_sum(np.array([stats.total_cost]) for stats in part_stats)[0])
        first = part_stats[0]
        return cls(
            parts,
            problem_spec,
            edges,
            first.n_features,
            first.has_bias,
            first.kind,
            total,
            saves_passes=not isinstance(parts, MemoryParts),
        )

    @classmethod
    def from_rows(cls, rows: RowProblem) -> MachineProblem:
        """Build the problem of rows in memory."""
        return cls.from_parts(MemoryParts([RowPart(rows)]), FIXED_ROWS)

    @property
    def n_rows(self) -> int:
        """Number of rows of nonzero cost."""
        return int(self.edges[-1])

    @property
    def total_cost(self) -> float:
        """Total cost of the rows."""
        return self.share * self.full_cost

    def look(self, w: FloatArray, bias: float, delta: float) -> MachinePoint:
        """Evaluate the problem at weights and bias: one sum over the parts."""
        point_spec, p = PointSpec(self.problem_spec, self.share, w, bias, delta), self.n_features
        with_gram = self.saves_passes and p <= NARROW
        totals = as_aligned(self.parts.total(look_at_part, point_spec, with_gram))
        grads, sums, gram = totals[: 2 * p], totals[2 * p : 2 * p + 5], totals[2 * p + 7 :]
        joint = gram.reshape(p, p + 1) if with_gram else None
        numbers = int(totals[2 * p + 5]), int(totals[2 * p + 6])
        return MachinePoint(point_spec, grads.reshape(2, p), sums, self.has_bias, *numbers, joint)

    def system(self, point: MachinePoint) -> tuple[Solve, FloatArray]:
        """Inverse of the curvature in the weights, and the mixed curvature; 0 without a bias.

        Parts sum a matrix of features; if fewer rows are bent, those are collected.
        """
        if point.n_bent >= self.n_features:
            joint = self.parts.total(bent_gram, point.point_spec) if point.joint is None else point.joint
            return factorized_inverse(joint[:, :-1].copy(), 1.0), joint[:, -1].copy()
        bent_parts = self.parts.each(bent_rows, point.point_spec)
        rows, curve = (np.concatenate([part[k] for part in bent_parts]) for k in (0, 1))
        mixed = curve[:, 1] @ rows if self.has_bias else np.zeros(self.n_features)
        return curvature_inverse(rows, curve[:, 0]), mixed

    def max_score(self, point: MachinePoint) -> float:
        """Size of the largest score."""
        return float(max(self.parts.each(max_score, point.point_spec)))

    def along(self, point: MachinePoint, ahead: MachinePoint, bias_step: float) -> Callable[[float], float]:
        """Slope of all losses along the segment between two points, as a function of the share of the way.

        `bias_step` is the change of the bias along it. If few enough rows cross a kink of their loss, these
        are collected in one pass, and the slope of the others is linear. Otherwise, and for the logistic
        loss, each call is a pass. Of rows in memory all are collected: their scores are there.
        """
        points = point.point_spec, ahead.point_spec
        line_params = point.bias, bias_step, self.kind, point.delta
        if not self.saves_passes:
            rows = LineRows.merge(self.parts.each(_line_rows, *points))
            return lambda t: rows.slope(t, *line_params)
        crossings = []
        if self.kind != LOGISTIC:
            most = max(CROSSING // self.parts.n_parts, 1_000)
            crossings = self.parts.each(_crossing_rows, *points, bias_step, most)
        if not crossings or any(crossing is None for crossing in crossings):
            return lambda t: float(self.parts.total(_part_slope, *points, line_params, t)[0])
        low, high = tree_sum(ends for ends, _ in crossings)
        rest = LineRows.merge([rows for _, rows in crossings])
        return lambda t: float(low + t * (high - low)) + rest.slope(t, *line_params)

    def dual_sums(self, point: MachinePoint, factors: FloatArray) -> tuple[float, float]:
        """Losses without rounding, and the dual terms of their slopes, scaled by a factor for each side.

        Factors are those of differences and of ties, at most 1.
        """
        losses, dual = self.parts.total(dual_sums, point.point_spec, factors)
        return float(losses), float(dual)

    def hinges(self, point: MachinePoint) -> Hinges:
        """Individual hinges, free where they are rounded at this point."""
        return Hinges.at(self.parts, self.edges, point.point_spec, has_bias=self.has_bias)

    def sample(self, row_numbers: IntArray) -> MachineProblem:
        """Build the problem of some rows, by ascending number, in memory and at the same total cost."""
        cuts = np.searchsorted(row_numbers, self.edges)
        rows_by_part = {
            number: row_numbers[first:last] - self.edges[number]
            for number, (first, last) in enumerate(pairwise(cuts.tolist()))
            if last > first
        }
        samples = [
            sample
            for sample in self.parts.each(take_rows, self.problem_spec, rows_by_part)
            if sample is not None
        ]
        rows, tie, cost = (np.concatenate(column) for column in zip(*samples, strict=True))
        share = self.share * self.n_rows / len(row_numbers)
        return MachineProblem.from_rows(RowProblem(rows, tie, share * cost, self.has_bias, self.kind))

    def scale_cost(self, share: float) -> MachineProblem:
        """Build the problem with all costs scaled by a share."""
        return replace(self, share=share * self.share)


class RowPart(MarginPart):
    """A part whose rows do not depend on the specification."""

    def __init__(self, rows: RowProblem) -> None:
        super().__init__(0)
        self.rows = rows

    def make(self, problem_spec: ProblemSpec) -> RowProblem:
        """Return the rows."""
        del problem_spec
        return self.rows


@dataclass(frozen=True)
class FixedRows:
    """Specification of the only problem of a `RowPart`."""

    key: Hashable = None


FIXED_ROWS = FixedRows()


# Slopes of the comparison family's losses along the segment between two points, over rows in parts.

LOGISTIC = 2  # of the kinds of losses
CROSSING = 1_000_000  # rows that may cross a kink of their loss in a step and be sent: 25 bytes each


@dataclass(frozen=True, eq=False)
class LineRows:
    """Scores of rows, their change along the segment to another point, ties, and costs."""

    g: FloatArray
    change: FloatArray
    tie: BoolArray
    cost: FloatArray

    @classmethod
    def merge(cls, parts: Sequence[LineRows]) -> LineRows:
        """Concatenate the rows of parts."""
        columns = zip(*((part.g, part.change, part.tie, part.cost) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def take(self, rows: BoolArray) -> LineRows:
        """Select some of them."""
        return LineRows(self.g[rows], self.change[rows], self.tie[rows], self.cost[rows])

    def slope(self, t: float, bias: float, bias_step: float, kind: int, delta: float) -> float:
        """Slope of the losses at a share t of the segment."""
        from concordant.comparisons.machines.machine_kernels import line_slope

        return float(line_slope(self.g, self.change, self.tie, self.cost, bias, bias_step, t, kind, delta))


# ---------------------------------------------------------------- jobs


def _line_rows(part: MarginPart, point_spec: PointSpec, ahead: PointSpec) -> LineRows:
    problem, point = part.at(point_spec)
    return LineRows(point.g, part.at(ahead)[1].g - point.g, problem.tie, problem.cost)


def _part_slope(
    part: MarginPart,
    point_spec: PointSpec,
    ahead: PointSpec,
    line_params: tuple[float, float, int, float],
    t: float,
) -> FloatArray:
    return np.array([_line_rows(part, point_spec, ahead).slope(t, *line_params)])


def _crossing_rows(
    part: MarginPart, point_spec: PointSpec, ahead: PointSpec, bias_step: float, most: int
) -> tuple[FloatArray, LineRows] | None:
    """Slopes at both ends of the rows that cross no kink between them; and the rows that do.

    None if more rows cross than may be sent.
    """
    problem, point = part.at(point_spec)
    after, terms = part.at(ahead)[1], problem.terms()
    ends = terms.slack(point.g, point.bias), terms.slack(after.g, point.bias + bias_step)
    first, last = ((s > 0.0).astype(np.int8) + ((s >= point.delta) & (problem.kind == 0)) for s in ends)
    crosses = np.zeros(problem.n_rows, dtype=np.bool_)
    crosses[terms.pair[first != last]] = True
    if np.count_nonzero(crosses) > most:
        return None
    all_rows = _line_rows(part, point_spec, ahead)
    line_params = point.bias, bias_step, problem.kind, point.delta
    return np.array([all_rows.take(~crosses).slope(t, *line_params) for t in (0.0, 1.0)]), all_rows.take(
        crosses
    )
