"""Calibration of comparers: outcome probabilities by a two-parameter curve, fitted to held-out pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concordant._base.validate import (
    all_zero_error,
    check_column,
    check_lengths,
    check_nonnegative,
    check_number,
    check_whole,
    refuse,
    refuse_misaligned,
)
from concordant.data.labels import check_outcome
from concordant.exceptions import EmptyDataError
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

PRIOR = 1.0  # pairs that are added, half won and half lost at the typical decision
MOST_STEPS = 500  # Newton steps; about 10 are taken unless decisions differ in size by many powers of ten
CLOSE = 1e-8  # squared Newton decrement below which a full step is right to rounding
NOTHING = 1e-100  # a pair of so small a share of the largest weight does not count
LARGEST = 1e100  # decisions this many times the typical one are as good as infinite
SUFFICIENT = 1e-4  # share of the promised decrease that a step must bring


@dataclass(frozen=True)
class OutcomeCurve:
    """Symmetric cumulative logit P(y | decision): swapping the sides of a pair swaps -1 and +1.

    With s(x) = 1 / (1 + exp(-x)), P(+1) = s(slope * decision - cut), P(-1) = s(-slope * decision - cut), and
    the rest is the tie: (1 - exp(-2 cut)) s(cut - slope * decision) s(cut + slope * decision).

    Attributes
    ----------
    slope, cut
        Finite and >= 0. A cut of 0 leaves no room for ties.

    Examples
    --------
    >>> OutcomeCurve(slope=2.0, cut=1.0)([-1.0, 0.0, 1.0]).round(3).tolist()
    [[0.731, 0.222, 0.047], [0.269, 0.462, 0.269], [0.047, 0.222, 0.731]]
    """

    slope: float
    cut: float

    def __post_init__(self) -> None:
        for name, value in (("slope", self.slope), ("cut", self.cut)):
            check_number(name, value, least=0.0)

    def __call__(self, decision: ArrayLike) -> FloatArray:
        """Probabilities of y = -1, 0, +1 for each decision, shape (n, 3)."""
        from scipy.special import expit

        with np.errstate(over="ignore"):  # infinite: the sigmoid is 0 or 1 there
            level = self.slope * _check_decision(decision)
        lost, won = expit(-level - self.cut), expit(level - self.cut)
        share = -math.expm1(-2.0 * self.cut)
        tie = share * (expit(self.cut - level) * expit(self.cut + level))  # in this order sides are symmetric
        return np.stack((lost, tie, won), axis=1)


def _check_decision(decision: ArrayLike) -> FloatArray:
    values = check_column(decision, "decision")
    if (bad := ~np.isfinite(values)).any():
        refuse(bad, values, "decision", "a decision is r(right) - r(left), a finite number.")
    return values


@dataclass(frozen=True, eq=False)
class CalibrationPairs:
    """Checked pairs, in the form that the likelihood takes."""

    decision: FloatArray  # with the sign that makes the right side better; of ties, either sign
    tie: BoolArray
    weight: FloatArray  # how often each pair counts

    def loss(self, slope: float, cut: float) -> float:
        """Negative log-likelihood; convex in (slope, cut)."""
        level, side = slope * self.decision, np.where(self.tie, 1.0, -1.0)
        value = self.weight @ np.logaddexp(0.0, side * (level - cut))
        if self.tie.any():
            room = math.log(-math.expm1(-2.0 * cut))  # what a cut near 0 leaves for ties
            value += self.weight[self.tie] @ (np.logaddexp(0.0, -level[self.tie] - cut) - room)
        return float(value)

    def derivatives(self, slope: float, cut: float) -> tuple[FloatArray, FloatArray]:
        """Gradient and Hessian of the loss in (slope, cut)."""
        from scipy.special import expit

        level, z, side = slope * self.decision, self.decision, np.where(self.tie, 1.0, -1.0)
        first, second = expit(side * (level - cut)), np.where(self.tie, expit(-level - cut), 0.0)
        bend, mirrored = first * expit(side * (cut - level)), second * expit(level + cut)
        pull, tilt, curve = self.weight, 0.0, 0.0
        if self.tie.any():
            gone, left = math.exp(-2.0 * cut), -math.expm1(-2.0 * cut)
            ties = float(pull[self.tie].sum())
            tilt, curve = 2.0 * ties * gone / left, 4.0 * (ties / left) * (gone / left)
        grad = np.array([pull @ (z * (side * first - second)), pull @ (-side * first - second) - tilt])
        mixed = pull @ (z * (mirrored - bend))
        diagonal = pull @ (z * z * (bend + mirrored)), pull @ (bend + mirrored) + curve
        return grad, np.array([[diagonal[0], mixed], [mixed, diagonal[1]]])


def fit_curve(decision: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> OutcomeCurve:
    """Fit the curve of maximum likelihood, with one pair added as a prior.

    The added pair counts half as won and half as lost, at the median size of the nonzero decisions. So the
    curve stays uncertain where the data are separable, and only a tie that never occurs gets probability 0.
    Without ties the cut is 0, a plain logistic curve. Where all pairs are ties, all decisions are 0, or the
    decisions go against the outcomes, the slope is 0, and the probabilities are the shares of ties and of
    other outcomes in the data.

    Parameters
    ----------
    decision
        Decisions on pairs that the ranking function was not fitted to, see `held_out_decisions`.
    y
        Outcomes: -1, 0 or 1.
    sample_weight
        How often each pair counts; None: once.

    References
    ----------
    McCullagh (1980), for the cumulative logit; Platt (1999), for a prior that keeps a calibration from being
    certain.

    Examples
    --------
    >>> curve = fit_curve([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0], [-1, 0, 0, 0, 1, 1])
    >>> curve([0.0, 2.0]).round(2).tolist()
    [[0.15, 0.71, 0.15], [0.0, 0.13, 0.86]]
    """
    rows, unit = prepare_pairs(decision, y, sample_weight)
    slope, cut = _maximise_likelihood(rows)
    return OutcomeCurve(min(slope / unit, float(np.finfo(np.float64).max)), cut)


def prepare_pairs(
    decision: ArrayLike, y: ArrayLike, sample_weight: ArrayLike
) -> tuple[CalibrationPairs, float]:
    """Return checked pairs, the prior included, and the unit of their decisions: their median size."""
    refuse_misaligned(decision=decision, y=y, sample_weight=sample_weight)
    values, outcome = _check_decision(decision), check_outcome(y, "y")
    weight = np.ones(len(values)) if sample_weight is None else sample_weight
    weight = check_nonnegative(weight, "sample_weight", "pair")
    check_lengths("decision", len(values), y=outcome, sample_weight=weight)
    if not len(values):
        raise EmptyDataError("decision")
    if not weight.any():
        raise all_zero_error("sample_weight", "pair")
    used = weight > NOTHING * weight.max()
    values, outcome, weight = values[used], outcome[used], weight[used]
    size, unit = np.abs(values), 1.0
    if (moved := size > 0.0).any():
        unit = float(np.quantile(size[moved], 0.5, method="inverted_cdf", weights=weight[moved]))
    turned = np.where(outcome == 0, size, outcome * values)
    with np.errstate(over="ignore"):
        turned = np.clip(turned / unit, -LARGEST, LARGEST)
    prior = np.array([1.0, -1.0]) if moved.any() else np.zeros(2)
    weight = np.append(weight, [0.5 * PRIOR] * 2)
    tie = np.append(outcome == 0, [False] * 2)
    return CalibrationPairs(np.append(turned, prior), tie, weight / weight.max()), unit


def _maximise_likelihood(rows: CalibrationPairs) -> tuple[float, float]:
    ties, others = (float(rows.weight[kind].sum()) for kind in (rows.tie, ~rows.tie))
    level = math.log1p(2.0 * ties / others)  # the best cut at slope 0
    if rows.derivatives(0.0, level)[0][0] >= 0.0:
        return 0.0, level
    point = _best_start(rows, level)
    value = rows.loss(*point)
    for _ in range(MOST_STEPS):
        grad, hessian = rows.derivatives(*point)
        step = _newton_step(grad, hessian, free=ties > 0.0)
        promised = float(-grad @ step)
        if promised <= CLOSE**3 * value:
            break
        length = _interior_step_length(point, step)
        while promised > CLOSE * value and length > 1e-12:
            if rows.loss(*(point + length * step)) <= value - SUFFICIENT * length * promised:
                break
            length *= 0.5
        point = point + length * step
        value = rows.loss(*point)
    return float(point[0]), float(point[1])


def _best_start(rows: CalibrationPairs, cut: float) -> FloatArray:
    """Return the best of a few slopes: from 0, Newton steps are slow where a few decisions are far larger."""
    size = np.abs(rows.decision)
    slopes = [0.0, *(1.0 / np.quantile(size[size > 0.0], [0.1, 0.5, 0.9, 1.0]))]
    return np.array([min(slopes, key=lambda slope: rows.loss(slope, cut)), cut])


def _newton_step(grad: FloatArray, hessian: FloatArray, *, free: bool) -> FloatArray:
    """Newton step in slope and cut; in one of them where the cut is fixed or the Hessian is singular."""
    determinant = hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2
    if not free:
        return np.array([-grad[0] / hessian[0, 0] if hessian[0, 0] > 0.0 else 0.0, 0.0])
    if not determinant > 1e-14 * hessian[0, 0] * hessian[1, 1]:
        return np.array([0.0, -grad[1] / hessian[1, 1]])
    adjugate = np.array([[hessian[1, 1], -hessian[0, 1]], [-hessian[0, 1], hessian[0, 0]]])
    step: FloatArray = -adjugate @ grad / determinant
    return step


def _interior_step_length(point: FloatArray, step: FloatArray) -> float:
    """Longest step, up to 1, that keeps a tenth of each parameter it lowers: neither reaches 0."""
    falling = (step < 0.0) & (point > 0.0)
    return float(min(1.0, *(-0.9 * point[falling] / step[falling]), 1.0))


def held_out_decisions(
    fit_decisions: Callable[[IntArray, IntArray], ArrayLike], y: ArrayLike, n_folds: int = 5, seed: int = 0
) -> FloatArray:
    """Cross-validated decisions: each pair is judged by a ranking function that was fitted without it.

    Folds hold about equal shares of ties (which side won does not matter: a pair may be swapped); where there
    are fewer ties, or fewer other pairs, than folds, they are drawn without regard to the outcome. There are
    never more folds than pairs; a single pair has no other pair to be judged by, and has decision 0.
    Decisions are not rescaled: those of different folds are in the units of the folds' thresholds.

    Parameters
    ----------
    fit_decisions
        Called with the rows to fit to and the rows to decide on; returns the decisions of the latter.
    y
        Outcomes: -1, 0 or 1.
    n_folds
        At least 2.
    seed
        Equal seeds give equal folds.

    Examples
    --------
    >>> share = lambda train, test: np.full(len(test), len(train) / 4)
    >>> held_out_decisions(share, [1, -1, 0, 0], n_folds=2).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    outcome = check_outcome(y, "y")
    check_whole("n_folds", n_folds, 2)
    decisions = np.zeros(len(outcome))
    for train, test in folds(outcome == 0, int(n_folds), seed):
        fold_decisions = _check_decision(fit_decisions(train, test))
        check_lengths("the fold", len(test), decisions=fold_decisions)
        decisions[test] = fold_decisions
    return decisions


def folds(tie: BoolArray, n_folds: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Split rows into folds; return the rows to fit to and the rows to decide on, fold by fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    n_folds = min(n_folds, len(tie))
    if n_folds < 2:
        return []
    counts = np.bincount(tie.astype(np.int64), minlength=2)
    split = StratifiedKFold if counts[counts > 0].min() >= n_folds else KFold
    return list(split(n_folds, shuffle=True, random_state=seed).split(tie, tie))
