"""The comparison family on rows in memory: passes on all threads, and copies of the rows that are bent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from concordant._segments import n_threads
from concordant.solvers.margin_corner import RowHinges, Terms
from concordant.solvers.margin_problem import FLAT, Point, Solve
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["RowPoint", "RowProblem", "factorised", "inverse", "swept"]

SERIAL = 200_000  # numbers up to which a second thread costs more than it saves
ROUNDOFF = 1e-10


@dataclass(frozen=True, eq=False)
class RowPoint(Point):
    """A point, with the score of each pair, and its curvatures: in the score, and in score and bias."""

    g: FloatArray
    curve: FloatArray


@dataclass(frozen=True, eq=False)
class RowProblem:
    """Differences, which are ties, what each costs, and the loss."""

    rows: FloatArray
    tie: BoolArray
    cost: FloatArray
    has_bias: bool
    kind: int

    @property
    def n_rows(self) -> int:
        """How many rows cost something."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """Numbers in a row."""
        return int(self.rows.shape[1])

    @property
    def total_cost(self) -> float:
        """Of all rows."""
        return float(self.cost.sum())

    def look(self, w: FloatArray, bias: float, delta: float) -> RowPoint:
        """Evaluate: one pass over the rows, on all threads."""
        n, p = self.rows.shape
        threads = n_threads() if n * p > SERIAL else 1
        return swept(self, np.linspace(0, n, threads + 1).astype(np.int64), threads, w, bias, delta)

    def system(self, point: RowPoint) -> tuple[Solve, FloatArray]:
        """Give the inverse of the curvature in the weights, and the mixed one; 0 without a bias."""
        bent = np.flatnonzero(point.curve[:, 0] > FLAT)
        rows, curve = self.rows[bent], point.curve[bent]
        mixed = curve[:, 1] @ rows if self.has_bias else np.zeros(self.n_features)
        return inverse(rows, curve[:, 0]), mixed

    def widest(self, point: RowPoint) -> float:
        """Size of the largest score."""
        return float(np.abs(point.g).max())

    def along(self, point: RowPoint, ahead: RowPoint, bias_step: float) -> Callable[[float], float]:
        """Give the slope of all losses between two points: scores are linear, so no row is read."""
        from concordant.solvers.margin_kernels import line_slope

        fixed = point.g, ahead.g - point.g, self.tie, self.cost, point.bias, bias_step

        def slope(t: float) -> float:
            return float(line_slope(*fixed, t, self.kind, point.delta))

        return slope

    def dual_sums(self, point: RowPoint, factors: FloatArray) -> tuple[float, float]:
        """Give the losses, not rounded, and what their slopes add to the dual."""
        from concordant.solvers.margin_kernels import dual_terms, losses

        where = point.g, self.tie, self.cost, point.bias, self.kind
        return float(losses(*where, 0.0)), float(dual_terms(*where, point.delta, *factors))

    def n_curved(self, point: RowPoint) -> int:
        """How many rows have a curvature."""
        return int(np.count_nonzero(point.curve[:, 0]))

    def terms(self) -> Terms:
        """Write the hinges of all rows out."""
        return Terms.of(self.tie, self.cost, has_bias=self.has_bias)

    def hinges(self, point: RowPoint) -> RowHinges:
        """Give the losses one by one, at their corner where they are rounded."""
        terms = self.terms()
        slack = terms.slack(point.g, point.bias)
        return RowHinges.at(self.rows, terms, slack, point.delta, has_bias=self.has_bias)

    def sample(self, chosen: IntArray) -> RowProblem:
        """Give the problem of some of the rows, at the same total cost."""
        cost = (len(self.cost) / len(chosen)) * self.cost[chosen]
        return replace(self, rows=self.rows[chosen], tie=self.tie[chosen], cost=cost)

    def cheaper(self, share: float) -> RowProblem:
        """Give the problem at a share of the cost."""
        return replace(self, cost=share * self.cost)


def swept(
    problem: RowProblem, cuts: IntArray, threads: int, w: FloatArray, bias: float, delta: float
) -> RowPoint:
    """Pass over the rows between cuts, on so many threads; sums are added in their order."""
    from concordant.solvers.margin_kernels import sweep

    n, p = problem.rows.shape
    grads, sums = np.zeros((len(cuts) - 1, 2, p)), np.zeros((len(cuts) - 1, 5))
    g, curve = np.empty(n), np.empty((n, 2))

    def part(k: int) -> None:
        sweep(
            problem.rows, problem.tie, problem.cost, w, bias, problem.kind, delta,
            cuts[k], cuts[k + 1], g, curve, grads[k], sums[k],
        )  # fmt: skip

    if threads == 1 or len(cuts) == 2:
        list(map(part, range(len(cuts) - 1)))
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, range(len(cuts) - 1)))
    found = grads.sum(axis=0), sums.sum(axis=0)
    return RowPoint(w, bias, delta, *found, problem.has_bias, g, curve)


def inverse(rows: FloatArray, curve: FloatArray) -> Solve:
    """Give x -> (I + rows' diag(curve) rows)^-1 x, by a matrix as small as rows or features allow."""
    if len(rows) >= rows.shape[1]:
        return factorised((rows * curve[:, None]).T @ rows, 1.0)
    small = factorised(rows @ rows.T, 1.0 / curve)
    return lambda x: x - small(rows @ x) @ rows


def factorised(matrix: FloatArray, diagonal: FloatArray | float) -> Solve:
    """Give x -> (matrix + diagonal)^-1 x; the matrix is changed."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    own = np.einsum("ii->i", matrix)
    own += diagonal
    try:
        factor = cho_factor(matrix)
    except LinAlgError:  # rows that are copies of one another, at the finest rounding
        own += ROUNDOFF * own.max()
        factor = cho_factor(matrix)
    return lambda x: np.asarray(cho_solve(factor, x), dtype=np.float64)
