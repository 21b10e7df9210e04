"""One part of the rows of a comparison machine, and the jobs that its solver runs on it.

A job receives the weights and computes scores and curvatures from them: it does not rely on results of
earlier jobs, so that a part may be reloaded elsewhere. Results for the last two points are cached beside the
rows. Rows are processed in blocks whose sums are added in order: the number of threads changes no bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from concordant._base.segments import n_threads, one_blas_thread
from concordant.comparisons.machines.machine_rows import FLAT, SERIAL, RowPoint, RowProblem, sweep_rows
from concordant.types import BoolArray, FloatArray, IntArray

FEWEST_ROWS = 64  # of a block: each has a gradient of its own


class ProblemSpec(Protocol):
    """Specification of the problem that a part builds its rows for."""

    @property
    def key(self) -> Hashable:
        """Key that is equal only for equal problems."""


@dataclass(frozen=True, eq=False)
class PointSpec:
    """Point at which a part evaluates its rows.

    Attributes
    ----------
    problem_spec, share
        The problem, as for `MarginPart.problem`, and the share of its cost.
    w, bias, delta
        The weights, and the rounding.
    """

    problem_spec: ProblemSpec
    share: float
    w: FloatArray
    bias: float
    delta: float

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Key that is equal only for equal points."""
        return self.problem_spec.key, self.share, self.bias, self.delta, self.w.tobytes()


class MarginPart(ABC):
    """Rows of one part.

    Parameters
    ----------
    number
        Number of the part.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.current_problem: tuple[Hashable, RowProblem] | None = None
        self.recent_points: tuple[tuple[Hashable, RowProblem, RowPoint], ...] = ()  # the newest first

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "current_problem": None, "recent_points": ()}  # recomputed, not sent

    @abstractmethod
    def make(self, problem_spec: Any) -> RowProblem:
        """Build the rows of nonzero cost of this problem."""

    def problem(self, problem_spec: ProblemSpec) -> RowProblem:
        """Rows of nonzero cost; rebuilt unless the problem is the last one."""
        current = self.current_problem
        if current is None or current[0] != problem_spec.key:
            self.current_problem, self.recent_points = None, ()  # one is in memory at a time
            current = problem_spec.key, self.make(problem_spec)
            self.current_problem = current
        return current[1]

    def at(self, point_spec: PointSpec) -> tuple[RowProblem, RowPoint]:
        """Evaluate the rows at a point; recomputed unless it is one of the last two."""
        whole = self.problem(point_spec.problem_spec)
        for key, problem, point in self.recent_points:
            if key == point_spec.key:
                return problem, point
        problem = whole if point_spec.share == 1.0 else whole.scale_cost(point_spec.share)
        cuts = _block_edges(problem.n_rows, _block_size(problem.n_features))
        point = sweep_rows(problem, cuts, as_aligned(point_spec.w), point_spec.bias, point_spec.delta)
        self.recent_points = ((point_spec.key, problem, point), *self.recent_points[:1])
        return problem, point


def as_aligned(values: FloatArray) -> FloatArray:
    """Copy an array whose memory is not aligned: it would be summed in another order."""
    return values if values.flags.aligned else values.copy()


def _block_size(n_features: int) -> int:
    return max(SERIAL // max(n_features, 1), FEWEST_ROWS)


def _block_edges(n: int, size: int) -> IntArray:
    """Cut n rows into blocks; at least one, which may be empty.

    >>> _block_edges(5, 2).tolist(), _block_edges(0, 2).tolist()
    ([0, 2, 4, 5], [0, 0])
    """
    return np.append(np.arange(0, max(n, 1), size), n)


def _sum_blocks(work: Callable[[slice], FloatArray], n: int, size: int) -> FloatArray:
    """Sum the results for blocks of `size` of n rows, in their order."""
    if n <= size:
        with one_blas_thread():
            return work(slice(0, n))
    blocks, threads = [slice(*edges) for edges in pairwise(_block_edges(n, size).tolist())], n_threads()
    with one_blas_thread():
        if threads == 1:
            return reduce(np.add, map(work, blocks))
        with ThreadPoolExecutor(threads) as pool:
            return reduce(np.add, pool.map(work, blocks))


# ---------------------------------------------------------------- jobs


@dataclass(frozen=True)
class MachinePartStats:
    """Size and total cost of a part's rows, before the first step."""

    n_rows: int
    total_cost: float
    n_features: int
    has_bias: bool
    kind: int


def measure_part(part: MarginPart, problem_spec: ProblemSpec) -> MachinePartStats:
    """Measure the rows of nonzero cost."""
    problem = part.problem(problem_spec)
    how = problem.n_features, problem.has_bias, problem.kind
    return MachinePartStats(problem.n_rows, problem.total_cost, *how)


def look_at_part(part: MarginPart, point_spec: PointSpec, with_gram: bool) -> FloatArray:
    """Gradients and sums at a point, and the numbers of bent rows and of rows with a curvature.

    With `with_gram`, the matrix of `bent_gram` follows.
    """
    _, point = part.at(point_spec)
    curve = point.curve[:, 0]
    counts = np.count_nonzero(curve > FLAT), np.count_nonzero(curve)
    gram = bent_gram(part, point_spec).ravel() if with_gram else ()
    return np.concatenate((point.grads.ravel(), point.sums, counts, gram))


def bent_gram(part: MarginPart, point_spec: PointSpec) -> FloatArray:
    """Curvature in the weights; its last column is the mixed curvature."""
    problem, point = part.at(point_spec)
    bent = np.flatnonzero(point.curve[:, 0] > FLAT)

    def joint(block: slice) -> FloatArray:
        rows, curve = problem.rows[bent[block]], point.curve[bent[block]]
        mixed = curve[:, 1] if problem.has_bias else np.zeros(len(curve))
        return np.column_stack(((rows * curve[:, :1]).T @ rows, mixed @ rows))

    return _sum_blocks(joint, len(bent), max(_block_size(problem.n_features), problem.n_features))


def bent_rows(part: MarginPart, point_spec: PointSpec) -> tuple[FloatArray, FloatArray]:
    """Rows with curvature, and their curvatures."""
    problem, point = part.at(point_spec)
    bent = np.flatnonzero(point.curve[:, 0] > FLAT)
    return problem.rows[bent], point.curve[bent]


def max_score(part: MarginPart, point_spec: PointSpec) -> float:
    """Size of the largest score; 0 where there is none."""
    return float(np.abs(part.at(point_spec)[1].g).max(initial=0.0))


def dual_sums(part: MarginPart, point_spec: PointSpec, factors: FloatArray) -> FloatArray:
    """Losses, and the dual terms of their slopes."""
    from concordant.comparisons.machines.machine_kernels import dual_terms, losses

    problem, point = part.at(point_spec)
    rows = point.g, problem.tie, problem.cost, point.bias, problem.kind
    return np.array([losses(*rows, 0.0), dual_terms(*rows, point.delta, *factors)])


def take_rows(
    part: MarginPart, problem_spec: ProblemSpec, rows_by_part: Mapping[int, IntArray]
) -> tuple[FloatArray, BoolArray, FloatArray] | None:
    """Rows of this part by number, which are ties, and their costs; None if none are requested."""
    if (rows := rows_by_part.get(part.number)) is None:
        return None
    problem = part.problem(problem_spec)
    return problem.rows[rows], problem.tie[rows], problem.cost[rows]
