"""The maximum of a likelihood, by Newton steps: full factors, conjugate gradients, or sparse factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.ratings.counts import Counts
from concordant.ratings.likelihood import Likelihood, Point, solved
from concordant.types import FloatArray

__all__ = ["Maximum", "maximise"]

DENSE_ITEMS = 300  # up to here a Newton step is solved by factors, beyond by conjugate gradients first
FEW_PRODUCTS, MOST_PRODUCTS = 200, 5000  # of a step by conjugate gradients: before factors, and without them
FACTORED_ITEMS, FACTORED_PAIRS = 3000, 3  # factors for so many items, or for so many pairs an item
SUFFICIENT = 1e-4  # share of the promised gain that a step must bring
ROUGH = 1e-2  # steps below it shrink at once, but for rounding
ROUNDING = 1e-11  # gains below this share of the value cannot be told from rounding


class Steps:
    """Newton steps: by factors for few items, otherwise by conjugate gradients for as long as these do."""

    def __init__(self, counts: Counts) -> None:
        n, self.dense = counts.n_items, counts.n_items <= FACTORED_ITEMS
        self.exact = n <= DENSE_ITEMS
        self.factored = self.dense or counts.n_pairs <= FACTORED_PAIRS * n

    def step(self, point: Point, accuracy: float) -> tuple[FloatArray, bool]:
        """Give the step, exact or to this relative residual, and whether it is that."""
        if not self.exact:
            step, reached = by_products(point, accuracy, FEW_PRODUCTS if self.factored else MOST_PRODUCTS)
            if reached or not self.factored:
                return step, reached
            self.exact = True  # on long chains products take ever longer, and factors are sparse
        return solved(point.grounded(), point.grad) if self.dense else by_sparse_factors(point), True


def by_products(point: Point, accuracy: float, most: int) -> tuple[FloatArray, bool]:
    """Newton's step by conjugate gradients.

    Curvature is added where all log-strengths of a part change alike: the gradient, and so the step, has no
    such share but by rounding.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    n, groups = point.counts.n_items, point.likelihood.groups
    ground = np.bincount(groups, point.degrees) / np.bincount(groups) ** 2

    def times(vector: FloatArray) -> FloatArray:
        out = point.times(vector)
        out[:n] += (ground * np.bincount(groups, vector[:n]))[groups]
        return out

    scale: Any = np.concatenate((point.degrees + point.alpha, np.diagonal(point.corner)))
    scale = np.where(scale > 0.0, scale, 1.0)
    shape = (len(point.x), len(point.x))
    hessian = LinearOperator(shape, matvec=times, dtype=np.float64)
    inverse = LinearOperator(shape, matvec=lambda r: r / scale, dtype=np.float64)
    step, failed = cg(hessian, point.grad, rtol=accuracy, maxiter=most, M=inverse)
    return np.asarray(step, dtype=np.float64), not failed


def by_sparse_factors(point: Point) -> FloatArray:
    """Newton's step by factors of the items' part, and of what it leaves of advantage and tie parameter."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    counts, n = point.counts, point.counts.n_items
    diagonal, items = point.degrees + point.alpha, np.arange(n)
    diagonal[point.held[0]] += point.held[1]
    ends = (
        np.concatenate((items, counts.first, counts.second)),
        np.concatenate((items, counts.second, counts.first)),
    )
    entries = np.concatenate((diagonal, -point.curvature, -point.curvature))
    matrix = coo_array((entries, ends), shape=(n, n)).tocsc()
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    answers = factors.solve(np.column_stack((point.grad[:n], point.border)))
    own, through = answers[:, 0], answers[:, 1:]
    rest = solved(point.corner - point.border.T @ through, point.grad[n:] - point.border.T @ own)
    return np.concatenate((own - through @ rest, rest))


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the steps ended, and the likelihood there."""

    x: FloatArray
    value: float
    n_iter: int
    converged: bool


def maximise(likelihood: Likelihood, x: FloatArray, tol: float, max_iter: int) -> Maximum:
    """Climb by Newton steps until a further one would change no parameter by more than about `tol`.

    The votes are solved as shares of all votes: no weight is too small or too large.
    """
    heaviest = float(likelihood.counts.totals.max())
    if heaviest <= 0.0:  # no votes: the prior's mean
        return Maximum(np.zeros_like(x), 0.0, 0, converged=True)
    unit = 1.0 / heaviest / float((likelihood.counts.totals / heaviest).sum())
    shares = likelihood.scaled(unit)
    found, n_iter, converged = climbed(shares, x, tol, max_iter)
    found = found if np.isfinite(found.value) else shares.at(found.x)
    return Maximum(found.x, found.value / unit, n_iter, converged)


def guessed(point: Point) -> FloatArray:
    """Give the log-strengths that equal opponents would mean, from the gradient at equal strengths."""
    n, scale = point.counts.n_items, point.degrees + point.alpha
    lead = 0.5 * point.grad[:n] / np.where(scale > 0.0, scale, 1.0)
    odds = 2.0 * np.arctanh(lead.clip(-0.95, 0.95))
    return point.likelihood.centred(np.concatenate((odds, point.x[n:])))


def climbed(likelihood: Likelihood, x: FloatArray, tol: float, max_iter: int) -> tuple[Point, int, bool]:
    """Give where the steps ended, their number, and whether at the maximum."""
    steps, point = Steps(likelihood.counts), likelihood.at(x, valued=False)
    if not steps.exact and not x[: likelihood.counts.n_items].any():
        point = likelihood.at(guessed(point), valued=False)
    accuracy, before = 0.0 if steps.exact else 0.1, np.inf
    for n_iter in range(1, max_iter + 1):
        step, reached = steps.step(point, accuracy)
        accuracy = 0.0 if steps.exact else accuracy
        following = advanced(likelihood, point, step, tol)
        if following is None:
            return point, n_iter, point.settled()
        moved = float(np.abs(following.x - point.x).max())
        point = following
        # A further step would be about this one's square, or its error.
        if moved * max(moved, 100.0 * accuracy) <= tol:
            return point, n_iter, reached and point.settled()
        if ROUGH > moved >= 0.5 * before and point.settled():  # short steps that do not shrink are rounding
            return point, n_iter, reached
        before = moved
        accuracy = 0.0 if steps.exact else min(0.1, max(0.01 * moved, 1e-8))
    return point, max_iter, False


def advanced(likelihood: Likelihood, point: Point, step: FloatArray, tol: float) -> Point | None:
    """Go the whole step, or a part of it that climbs enough; None where no part does.

    A short step needs no trial: along it the curvature c grows to at most c exp(reach), so that the gain is
    at least 1 - (exp(reach) - 1 - reach) / reach^2 > 1/4 of the promised one. Where the gain is too small to
    be told from rounding, the slope decides: at the end it may be down again, but half as steeply.
    """
    length, promise = 1.0, float(point.grad @ step)
    if not promise > 0.0:
        return None
    n, least = likelihood.counts.n_items, likelihood.form.least
    reach = float(np.ptp(step[:n]) + np.abs(step[n:]).sum())
    if likelihood.tie and np.isfinite(least):
        room = float(point.x[-1] - least)
        length = min(1.0, 0.9 * room / max(-step[-1], 1e-300))
        reach = max(reach, 4.0 * abs(step[-1]) / room)
    if reach <= 1.0:
        last = reach**2 <= tol
        return likelihood.at(likelihood.centred(point.x + step), valued=last)
    here = point if np.isfinite(point.value) else likelihood.at(point.x)
    for _ in range(50):
        there = likelihood.at(likelihood.centred(point.x + length * step))
        gain, aim = there.value - here.value, SUFFICIENT * length * promise
        unclear = max(aim, abs(gain)) <= ROUNDING * abs(here.value)
        if gain >= aim if not unclear else float(there.grad @ step) >= -0.5 * promise:
            return there
        length *= 0.5
    return None
