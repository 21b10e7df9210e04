"""Coordinates in which the objective is nearly round, so that few gradients are needed.

The Hessian of a linear ranker is close to a multiple of the covariance of the features within queries, plus
the penalty; a sample of queries is enough to estimate both. On LETOR's sets this turns a hundred gradients
into ten, at any penalty (`benchmarks training`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.solvers.objective import LinearObjective

__all__ = ["Preconditioner", "whitening"]

MOST_FEATURES = 1000  # above, only the variances are used
ROWS_PER_FEATURE, MOST_ROWS = 50, 20_000
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """w = P v, where P is a matrix, or a vector for a diagonal one."""

    matrix: FloatArray

    def forth(self, v: FloatArray) -> FloatArray:
        """P v: coordinates to weights."""
        product: FloatArray = self.matrix @ v if self.matrix.ndim == 2 else self.matrix * v
        return product

    def back(self, grad: FloatArray) -> FloatArray:
        """P' g: gradient in the weights to gradient in the coordinates."""
        product: FloatArray = self.matrix.T @ grad if self.matrix.ndim == 2 else self.matrix * grad
        return product

    def inverse(self, w: FloatArray) -> FloatArray:
        """Coordinates of these weights."""
        from scipy.linalg import solve_triangular

        if self.matrix.ndim == 1:
            return w / self.matrix
        coordinates: FloatArray = solve_triangular(self.matrix, w)
        return coordinates


def whitening(objective: LinearObjective, seed: int = 0) -> Preconditioner:
    """Give P with P P' close to the inverse of the Hessian."""
    from scipy.linalg import cholesky, solve_triangular

    rng = np.random.default_rng(seed)
    rows, owners = sampled_rows(objective.loss.offsets, objective.n_features, rng)
    spread = centred(objective.sample(rows), owners)
    bend = curvature(objective, rng) * objective.scorer.n_rows
    if objective.n_features > MOST_FEATURES:
        diagonal = bend * np.mean(spread**2, axis=0) + objective.alpha
        return Preconditioner(1.0 / np.sqrt(np.maximum(diagonal, ROUNDING * diagonal.max(initial=1.0))))
    hessian = bend * (spread.T @ spread) / max(len(rows), 1)
    # At alpha 0 constant features would make it singular.
    ridge = objective.alpha + ROUNDING * max(float(np.trace(hessian)), ROUNDING)
    factor = cholesky(hessian + ridge * np.eye(len(hessian)), lower=True)
    return Preconditioner(solve_triangular(factor, np.eye(len(hessian)), lower=True).T)


def sampled_rows(offsets: IntArray, n_features: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows of random whole queries, enough for a covariance, and the query of each."""
    enough = min(ROWS_PER_FEATURE * max(n_features, 20), MOST_ROWS)
    queries = rng.permutation(len(offsets) - 1)
    sizes = np.diff(offsets)[queries]
    queries = queries[: int(np.searchsorted(np.cumsum(sizes), enough)) + 1]
    pieces = [np.arange(offsets[q], min(offsets[q + 1], offsets[q] + enough)) for q in queries]
    owners = np.repeat(np.arange(len(queries)), [len(piece) for piece in pieces])
    return np.concatenate(pieces), owners


def centred(X: FloatArray, owners: IntArray) -> FloatArray:
    """Features less their query's mean: only differences within a query count."""
    sizes = np.bincount(owners)
    filled = sizes > 0
    starts = (np.cumsum(sizes) - sizes)[filled]
    means = np.add.reduceat(X, starts, axis=0) / sizes[filled][:, None]
    return X - np.repeat(means, sizes[filled], axis=0)


def curvature(objective: LinearObjective, rng: np.random.Generator) -> float:
    """Mean curvature of the loss in one score, at scores of spread 1: where pairs matter, and not at 0.

    At equal scores a margin may be straight.
    """
    scores, vector = rng.standard_normal((2, objective.scorer.n_rows))
    product = objective.loss.hessian_product(scores, vector)
    return max(float(vector @ product), 0.0) / max(len(scores), 1)
