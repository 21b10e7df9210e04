"""Probabilities of the outcomes given a decision: a curve of two parameters, fitted to held-out pairs."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import EmptyDataError, ParameterError
from concordant.supervision.columns import check_column, check_lengths, check_nonnegative, refuse
from concordant.supervision.labels import check_outcome
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

__all__ = ["OutcomeCurve", "fit_curve", "held_out_decisions"]

PRIOR = 1.0  # pairs that are added, half won and half lost at the typical decision
MOST_STEPS = 500  # Newton steps; about 10 are taken unless decisions differ in size by many powers of ten
CLOSE = 1e-8  # squared Newton decrement below which a full step is right to rounding
NOTHING = 1e-100  # a pair of so small a share of the largest weight does not count
LARGEST = 1e100  # decisions this many times the typical one are as good as infinite
SUFFICIENT = 1e-4  # share of the promised decrease that a step must bring


@dataclass(frozen=True)
class OutcomeCurve:
    """P(y | decision), a symmetric cumulative logit: swapping the sides of a pair swaps -1 and +1.

    With s(x) = 1 / (1 + exp(-x)), P(+1) = s(slope * decision - cut), P(-1) = s(-slope * decision - cut), and
    what is left is the tie: (1 - exp(-2 cut)) s(cut - slope * decision) s(cut + slope * decision).

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
            if not 0.0 <= as_double(value) < math.inf:
                raise ParameterError(name, value, "finite and >= 0")

    def __call__(self, decision: ArrayLike) -> FloatArray:
        """Probabilities of y = -1, 0, +1 for each decision, shape (n, 3)."""
        from scipy.special import expit

        with np.errstate(over="ignore"):  # infinite: the sigmoid is 0 or 1 there
            level = self.slope * check_decision(decision)
        lost, won = expit(-level - self.cut), expit(level - self.cut)
        tie = -math.expm1(-2.0 * self.cut) * expit(self.cut - level) * expit(self.cut + level)
        return np.stack((lost, tie, won), axis=1)


def check_decision(decision: ArrayLike) -> FloatArray:
    """Give one finite number per pair."""
    values = check_column(decision, "decision")
    if (bad := ~np.isfinite(values)).any():
        refuse(bad, values, "decision", "a decision is r(right) - r(left), a finite number.")
    return values


@dataclass(frozen=True, eq=False)
class Rows:
    """Pairs as the likelihood sees them.

    Attributes
    ----------
    decision
        Turned so that the right is better; of ties, either way round.
    tie
        Whether each is one.
    weight
        How often each counts.
    """

    decision: FloatArray
    tie: BoolArray
    weight: FloatArray

    def loss(self, slope: float, cut: float) -> float:
        """Minus the logarithm of the likelihood; convex in (slope, cut)."""
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
        own = pull @ (z * z * (bend + mirrored)), pull @ (bend + mirrored) + curve
        return grad, np.array([[own[0], mixed], [mixed, own[1]]])


def fit_curve(decision: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> OutcomeCurve:
    """Give the curve of greatest likelihood, with one pair added as a prior.

    The added pair counts half as won and half as lost, at the median size of the decisions that are not 0:
    so the curve is not certain where the data are separable, and no outcome but a tie that never occurs gets
    probability 0. No ties: the cut is 0, a plain logistic curve. Only ties, decisions that are all 0, or
    decisions that go against the outcomes: the slope is 0, and the probabilities are the shares of ties and
    of others in the data.

    Parameters
    ----------
    decision
        Of pairs that the ranking function was not fitted to, see `held_out_decisions`.
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
    rows, unit = prepared(decision, y, sample_weight)
    slope, cut = most_likely(rows)
    return OutcomeCurve(min(slope / unit, float(np.finfo(np.float64).max)), cut)


def prepared(decision: ArrayLike, y: ArrayLike, sample_weight: ArrayLike) -> tuple[Rows, float]:
    """Checked rows, prior included, and the unit of their decisions: the typical one."""
    values, outcome = check_decision(decision), check_outcome(y, "y")
    weight = np.ones(len(values)) if sample_weight is None else sample_weight
    weight = check_nonnegative(weight, "sample_weight", "pair")
    check_lengths("decision", len(values), y=outcome, sample_weight=weight)
    if not len(values):
        raise EmptyDataError("decision")
    if not weight.any():
        raise ParameterError("sample_weight", 0.0, "above 0 for at least one pair")
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
    return Rows(np.append(turned, prior), tie, weight / weight.max()), unit


def most_likely(rows: Rows) -> tuple[float, float]:
    """Slope and cut of the smallest loss, by Newton steps."""
    ties, others = (float(rows.weight[kind].sum()) for kind in (rows.tie, ~rows.tie))
    level = math.log1p(2.0 * ties / others)  # the best cut at slope 0
    if rows.derivatives(0.0, level)[0][0] >= 0.0:
        return 0.0, level
    point = start(rows, level)
    value = rows.loss(*point)
    for _ in range(MOST_STEPS):
        grad, hessian = rows.derivatives(*point)
        step = newton_step(grad, hessian, free=ties > 0.0)
        promised = float(-grad @ step)
        if promised <= CLOSE**3 * value:
            break
        length = inside(point, step)
        while promised > CLOSE * value and length > 1e-12:
            if rows.loss(*(point + length * step)) <= value - SUFFICIENT * length * promised:
                break
            length *= 0.5
        point = point + length * step
        value = rows.loss(*point)
    return float(point[0]), float(point[1])


def start(rows: Rows, cut: float) -> FloatArray:
    """Give the best of some slopes: from 0, Newton steps are slow where a few decisions are far larger."""
    size = np.abs(rows.decision)
    slopes = [0.0, *(1.0 / np.quantile(size[size > 0.0], [0.1, 0.5, 0.9, 1.0]))]
    return np.array([min(slopes, key=lambda slope: rows.loss(slope, cut)), cut])


def newton_step(grad: FloatArray, hessian: FloatArray, *, free: bool) -> FloatArray:
    """Give the step in slope and cut; where the cut is not free, or the two cannot be told apart, in one."""
    determinant = hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2
    if not free:
        return np.array([-grad[0] / hessian[0, 0] if hessian[0, 0] > 0.0 else 0.0, 0.0])
    if not determinant > 1e-14 * hessian[0, 0] * hessian[1, 1]:
        return np.array([0.0, -grad[1] / hessian[1, 1]])
    adjugate = np.array([[hessian[1, 1], -hessian[0, 1]], [-hessian[0, 1], hessian[0, 0]]])
    step: FloatArray = -adjugate @ grad / determinant
    return step


def inside(point: FloatArray, step: FloatArray) -> float:
    """Give the longest step, up to 1, that leaves a tenth of what it lowers: neither parameter reaches 0."""
    falling = (step < 0.0) & (point > 0.0)
    return float(min(1.0, *(-0.9 * point[falling] / step[falling]), 1.0))


def held_out_decisions(
    fit_decisions: Callable[[IntArray, IntArray], ArrayLike], y: ArrayLike, n_folds: int = 5, seed: int = 0
) -> FloatArray:
    """Decision of each pair by a ranking function that was fitted without it.

    Folds hold about equal shares of ties (which side won does not matter: a pair may be turned round); where
    there are fewer ties, or fewer others, than folds, they are drawn without regard to the outcome. There are
    never more folds than pairs; a single pair is not known to anyone else, and has decision 0.
    Decisions are given as they are: those of different folds are in the units of their own thresholds.

    Parameters
    ----------
    fit_decisions
        Called with the rows to fit to and the rows to decide on; gives the decisions of the latter.
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
    if not (isinstance(n_folds, numbers.Integral) and n_folds >= 2):
        raise ParameterError("n_folds", n_folds, "a whole number >= 2")
    decisions = np.zeros(len(outcome))
    for train, test in folds(outcome == 0, int(n_folds), seed):
        given = check_decision(fit_decisions(train, test))
        check_lengths("the fold", len(test), decisions=given)
        decisions[test] = given
    return decisions


def folds(tie: BoolArray, n_folds: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Rows to fit to and rows to decide on, fold by fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    n_folds = min(n_folds, len(tie))
    if n_folds < 2:
        return []
    counts = np.bincount(tie.astype(np.int64), minlength=2)
    split = StratifiedKFold if counts[counts > 0].min() >= n_folds else KFold
    return list(split(n_folds, shuffle=True, random_state=seed).split(tie, tie))
