"""Ridge regression solved exactly, from sums over its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from concordant.solvers.moments import Moments, few_threads
from concordant.solvers.solution import Solution
from concordant.types import FloatArray

__all__ = ["joined", "ridge"]

TOLERANCE = 1e-9  # of the objective at weights 0: what lies nearer to the optimum is there
REFINEMENTS = 3
SAFE = 1e-8  # share of the curvature that is the penalty's: from here on a Cholesky factor is accurate
HIDDEN = 8.0 * float(np.finfo(np.float64).eps)  # share of the largest eigenvalue that is rounding, a feature


def ridge(moments: Moments, alpha: float) -> Solution:
    """Minimise the weighted sum of squared errors plus alpha/2 times w @ w; an intercept is not penalised.

    The solution is exact up to rounding. Without a penalty, or with one that rounding hides, it is the
    shortest of the best ones, if each feature is measured in units of its own size: that of the others does
    not matter, so that features of any unit are used.

    Parameters
    ----------
    moments
        Of the rows.
    alpha
        Penalty, >= 0.

    Examples
    --------
    >>> from concordant.solvers.moments import Block
    >>> rows = Block(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> solution = ridge(Moments.of([rows], 1, intercept=True), alpha=0.0)
    >>> solution.w, solution.converged
    (array([2.]), True)
    """
    cross, varies = moments.cross, moments.varies
    with few_threads(len(cross)):
        inverse = Inverse.of(moments.gram, alpha)
        w = np.where(varies, inverse(2.0 * cross), 0.0)
        for _ in range(REFINEMENTS):  # each takes away what rounding left
            w = np.where(varies, w - inverse(gradient(moments, alpha, w)), 0.0)
        return reached(moments, alpha, w, inverse)


def gradient(moments: Moments, alpha: float, w: FloatArray) -> FloatArray:
    """Of the objective, at these weights."""
    return np.asarray(2.0 * (moments.gram @ w - moments.cross) + alpha * w)


def reached(moments: Moments, alpha: float, w: FloatArray, inverse: Inverse) -> Solution:
    """Say how good these weights are."""
    grad = gradient(moments, alpha, w)
    errors = max(moments.square - 2.0 * float(w @ moments.cross) + float(w @ moments.gram @ w), 0.0)
    value = errors + 0.5 * alpha * float(w @ w)
    norm, excess = float(np.linalg.norm(grad)), inverse.excess(grad)
    gap = norm * norm / (2.0 * alpha) if alpha > 0.0 else math.inf
    converged = excess <= TOLERANCE * moments.square
    return Solution(w, value, norm, excess, gap, 1, 1, converged, "tolerance" if converged else "precision")


@dataclass(frozen=True, eq=False)
class Inverse:
    """Inverse of the Hessian 2 gram + alpha, found in coordinates in which its diagonal is 1.

    Attributes
    ----------
    units
        Roots of the diagonal of the Hessian.
    solve
        Product of a vector with the inverse in those coordinates; with the pseudo-inverse where it is
        singular.
    curved
        Half the squared length of a gradient, the Hessian being 1.
    """

    units: FloatArray
    solve: Callable[[FloatArray], FloatArray]
    curved: Callable[[FloatArray], float]

    @classmethod
    def of(cls, gram: FloatArray, alpha: float) -> Inverse:
        """Factorise: by Cholesky, where the penalty is large enough for that; else by eigenvalues."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        units = np.sqrt(2.0 * np.diag(gram) + alpha)
        units = np.where(units > 0.0, units, 1.0)
        if not len(units):
            return cls(units, np.copy, lambda _: 0.0)
        if alpha > SAFE * units.max() ** 2:
            try:
                factor = cho_factor(hessian_in(units, gram, alpha).T, overwrite_a=True, check_finite=False)
            except LinAlgError:  # rounding: sums of very many rows
                return cls.by_eigenvalues(units, gram, alpha)
            solve = partial(cho_solve, factor, check_finite=False)
            return cls(units, solve, lambda grad: 0.5 * float(grad @ solve(grad)))
        return cls.by_eigenvalues(units, gram, alpha)

    @classmethod
    def by_eigenvalues(cls, units: FloatArray, gram: FloatArray, alpha: float) -> Inverse:
        """Leave out directions whose curvature rounding hides.

        A gradient along one of them lowers the objective by at least what it would if the curvature were as
        large as rounding can hide.
        """
        from scipy.linalg import eigh

        values, vectors = eigh(hessian_in(units, gram, alpha).T, overwrite_a=True, check_finite=False)
        least = HIDDEN * len(units) * max(float(values.max()), 1.0)
        kept = values > least
        rates, curvature = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0), np.maximum(values, least)
        return cls(
            units,
            lambda vector: vectors @ (rates * (vectors.T @ vector)),
            lambda grad: 0.5 * float(((vectors.T @ grad) ** 2 / curvature).sum()),
        )

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Give the product with a vector."""
        return np.asarray(self.solve(vector / self.units) / self.units)

    def excess(self, grad: FloatArray) -> float:
        """How far the objective is above its optimum where its gradient is this: the Newton decrement."""
        return max(self.curved(grad / self.units), 0.0)


def hessian_in(units: FloatArray, gram: FloatArray, alpha: float) -> FloatArray:
    """Give 2 gram + alpha, rows and columns divided by the units."""
    hessian = gram * (2.0 / units)
    hessian /= units[:, None]
    hessian[np.diag_indices(len(units))] += alpha / units / units
    return np.asarray(hessian)


def joined(first: Solution, second: Solution) -> Solution:
    """Give the solution of two problems that share no weight, as one of their sum."""
    converged = first.converged and second.converged
    return Solution(
        w=np.concatenate((first.w, second.w)),
        value=first.value + second.value,
        gradient_norm=math.hypot(first.gradient_norm, second.gradient_norm),
        excess=first.excess + second.excess,
        gap=first.gap + second.gap,
        n_iter=max(first.n_iter, second.n_iter),
        n_gradients=max(first.n_gradients, second.n_gradients),
        converged=converged,
        stopped_by="tolerance" if converged else "precision",
    )
