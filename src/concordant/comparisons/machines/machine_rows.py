"""Rows of a comparison machine in memory: hinges, losses at a point, and inverses of the curvature."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from concordant._base.segments import n_threads
from concordant.types import BoolArray, FloatArray, IntArray

FLAT = 1e-100  # a curvature that is negligible beside the identity
SERIAL = 200_000  # numbers that are processed together: for fewer a second thread costs more than it saves
ROUNDOFF = 1e-10

Solve = Callable[[FloatArray], FloatArray]
"""Gives x -> matrix^-1 x."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Individual hinges h(1 - label (b + sign g)) of pairs, with their costs.

    Differences come first (label and sign 1), then ties, each once with either sign (label -1; without a
    bias, where they do not differ from differences, 1).
    """

    pair: IntArray
    sign: FloatArray
    label: FloatArray
    cost: FloatArray

    @classmethod
    def from_pairs(cls, tie: BoolArray, cost: FloatArray, *, has_bias: bool) -> Terms:
        """List the hinges of all pairs."""
        differences, ties = np.flatnonzero(~tie), np.flatnonzero(tie)
        pair = np.concatenate((differences, ties, ties))
        sign = np.repeat([1.0, 1.0, -1.0], (len(differences), len(ties), len(ties)))
        label = np.where(tie[pair] & has_bias, -1.0, 1.0)
        return cls(pair, sign, label, cost[pair])

    def slack(self, g: FloatArray, bias: float) -> FloatArray:
        """Slack of each hinge: 1 minus its margin."""
        short: FloatArray = 1.0 - self.label * (bias + self.sign * g[self.pair])
        return short

    def signed(self, rows: FloatArray, selection: BoolArray | IntArray) -> FloatArray:
        """Rows of some hinges, each times label and sign: the direction in which its dual variable pulls."""
        turned: FloatArray = (self.label * self.sign)[selection, None] * rows[self.pair[selection]]
        return turned


def pull_direction(rows: FloatArray, terms: Terms, dual: FloatArray) -> FloatArray:
    """Direction of the dual variables: the sum of the signed rows times them."""
    weights = np.bincount(terms.pair, weights=dual * terms.label * terms.sign, minlength=len(rows))
    direction: FloatArray = weights @ rows
    return direction


@dataclass(frozen=True, eq=False)
class RowPoint:
    """Rows evaluated at weights and bias.

    Attributes
    ----------
    bias, delta
        Bias, and the rounding of the hinge.
    grads
        Slopes times the rows of differences and of ties.
    sums
        The loss, its slope and curvature in the bias, and the totals of the dual variables of differences and
        of ties.
    g, curve
        Score of each row, and its curvatures: in the score, and in score and bias.
    """

    bias: float
    delta: float
    grads: FloatArray
    sums: FloatArray
    g: FloatArray
    curve: FloatArray


@dataclass(frozen=True, eq=False)
class RowProblem:
    """Rows of differences, ties, costs and the loss (its number, as in `margin.LOSSES`)."""

    rows: FloatArray
    tie: BoolArray
    cost: FloatArray
    has_bias: bool
    kind: int

    @property
    def n_rows(self) -> int:
        """Number of rows of nonzero cost."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.rows.shape[1])

    @property
    def total_cost(self) -> float:
        """Total cost of the rows."""
        return float(self.cost.sum())

    def terms(self) -> Terms:
        """List the hinges of all rows."""
        return Terms.from_pairs(self.tie, self.cost, has_bias=self.has_bias)

    def scale_cost(self, share: float) -> RowProblem:
        """Build the problem with all costs scaled by a share."""
        return replace(self, cost=share * self.cost)


def sweep_rows(problem: RowProblem, cuts: IntArray, w: FloatArray, bias: float, delta: float) -> RowPoint:
    """Evaluate rows block by block, on all threads; sums are added in the order of the blocks."""
    from concordant.comparisons.machines.machine_kernels import sweep

    n, p = problem.rows.shape
    grads, sums = np.zeros((len(cuts) - 1, 2, p)), np.zeros((len(cuts) - 1, 5))
    g, curve = np.empty(n), np.empty((n, 2))

    def part(k: int) -> None:
        sweep(
            problem.rows, problem.tie, problem.cost, w, bias, problem.kind, delta,
            cuts[k], cuts[k + 1], g, curve, grads[k], sums[k],
        )  # fmt: skip

    if len(cuts) == 2 or (threads := n_threads()) == 1:
        list(map(part, range(len(cuts) - 1)))
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, range(len(cuts) - 1)))
    return RowPoint(bias, delta, grads.sum(axis=0), sums.sum(axis=0), g, curve)


def curvature_inverse(rows: FloatArray, curve: FloatArray) -> Solve:
    """Return x -> (I + rows' diag(curve) rows)^-1 x, by a matrix as small as rows or features allow."""
    if len(rows) >= rows.shape[1]:
        return factorized_inverse((rows * curve[:, None]).T @ rows, 1.0)
    small = factorized_inverse(rows @ rows.T, 1.0 / curve)
    return lambda x: x - small(rows @ x) @ rows


def factorized_inverse(matrix: FloatArray, diagonal: FloatArray | float) -> Solve:
    """Return x -> (matrix + diagonal)^-1 x; the matrix is overwritten."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    matrix_diagonal = np.einsum("ii->i", matrix)
    matrix_diagonal += diagonal
    try:
        factor = cho_factor(matrix)
    except LinAlgError:  # rows that are copies of each other, at the finest rounding
        matrix_diagonal += ROUNDOFF * matrix_diagonal.max()
        factor = cho_factor(matrix)
    return lambda x: np.asarray(cho_solve(factor, x), dtype=np.float64)
