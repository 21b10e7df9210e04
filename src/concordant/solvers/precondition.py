"""Coordinates in which the objective is nearly round, so that few gradients are needed.

The Hessian of a linear ranker is close to a multiple of the covariance of the features within queries, plus
the penalty; a sample of queries is enough to estimate both. Where features differ in scale and go together,
as in public ranking sets, this saves most of the gradients, at any penalty (`python -m benchmarks training`
counts them).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from concordant.solvers.linear_scores import ROUNDING, squares_within
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.solvers.objective import Objective

MOST_FEATURES = 1000  # above, only the variances are used
ROWS_PER_FEATURE, MOST_ROWS = 50, 20_000
MOST_CELLS = 2**24  # cells of a dense sample: 128 MB
# Per feature, added to the correlations: duplicate features would make them singular.
RIDGES = (1e-12, 1e-8, 1e-4)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """w = P v, where P is an upper triangular matrix, or a vector for a diagonal one."""

    matrix: FloatArray

    def forth(self, v: FloatArray) -> FloatArray:
        """P v: coordinates to weights."""
        return self.matrix @ v if self.matrix.ndim == 2 else self.matrix * v

    def back(self, grad: FloatArray) -> FloatArray:
        """P' g: gradient in the weights to gradient in the coordinates."""
        return self.matrix.T @ grad if self.matrix.ndim == 2 else self.matrix * grad

    def inverse(self, w: FloatArray) -> FloatArray:
        """Coordinates of these weights."""
        from scipy.linalg import solve_triangular

        if self.matrix.ndim == 1:
            return w / self.matrix
        return solve_triangular(self.matrix, w)


def whitening(objective: Objective, seed: int = 0) -> Preconditioner:
    """Return P with P P' close to the inverse of the Hessian."""
    from scipy.linalg import cholesky, solve_triangular

    rng, n_features = np.random.default_rng(seed), objective.n_features
    sample, offsets = objective.sample(rng)
    bend, level = (curve / max(int(offsets[-1]), 1) for curve in objective.curvatures(rng))
    widths = np.sqrt(_diagonal_curvature(objective, squares_within(sample, offsets), bend, level))
    if n_features > MOST_FEATURES:
        return Preconditioner(1.0 / widths)
    dense = (sample.toarray() if objective.sparse else sample) / objective.scale
    spread = _without_level(dense, offsets, math.sqrt(level / bend) if bend else 0.0) / widths
    correlations = bend * (spread.T @ spread)
    for ridge in RIDGES:
        np.fill_diagonal(correlations, 1.0 + ridge * n_features)
        try:
            factor = cholesky(correlations, lower=True)
        except np.linalg.LinAlgError:  # rounding, of features far from 0 whose differences are small
            continue
        return Preconditioner(solve_triangular(factor, np.eye(n_features), lower=True).T / widths[:, None])
    return Preconditioner(1.0 / widths)


def sampled_queries(
    offsets: IntArray, n_features: int, rng: np.random.Generator, *, sparse: bool = False
) -> tuple[IntArray, IntArray]:
    """Draw random queries that have enough rows for a covariance; return them and their numbers of rows."""
    most = MOST_ROWS if sparse else min(MOST_ROWS, MOST_CELLS // n_features + 1)
    enough = min(ROWS_PER_FEATURE * max(n_features, 20), most)
    sizes = np.diff(offsets)
    queries = rng.permutation(np.flatnonzero(sizes))
    queries = queries[: int(np.searchsorted(np.cumsum(sizes[queries]), enough)) + 1]
    return queries, np.minimum(sizes[queries], enough)


def rows_from(starts: IntArray, counts: IntArray) -> IntArray:
    """List the rows of consecutive pieces, given their starts and lengths.

    >>> rows_from(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + within


def _diagonal_curvature(
    objective: Objective, squares: tuple[FloatArray, FloatArray], bend: float, level: float
) -> FloatArray:
    """Compute the curvature of the objective in each weight, > 0."""
    inside, whole = (sums / objective.scale**2 for sums in squares)
    inside = np.where(inside > ROUNDING**2 * whole, inside, 0.0)
    curves = bend * inside + level * (whole - inside) + objective.alpha
    # Constant features at alpha 0 have no curvature: any unit will do.
    return np.where(curves > 0.0, curves, 1.0)


def _without_level(X: FloatArray, offsets: IntArray, share: float) -> FloatArray:
    """Subtract a share of each query's mean from its rows: mostly, only differences count."""
    if not len(X):
        return X
    means = np.add.reduceat(X, offsets[:-1], axis=0) / np.diff(offsets)[:, None]
    return X - (1.0 - share) * np.repeat(means, np.diff(offsets), axis=0)
