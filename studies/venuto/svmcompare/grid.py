"""A grid of kernel machines on one training set, as in "Support vector comparison machines".

Inputs are scaled by the mean and the standard deviation of all training points, the kernel is
exp(-gamma d^2); decisions are r(right) - r(left) with r = u, and a machine predicts a difference where their
size exceeds its threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from concordant._internals import best_threshold, error_steps, fit_gram
from concordant.types import ArrayLike, FloatArray, IntArray
from studies.venuto.svmcompare.data import LabelledPairs

METHODS = ("compare", "rank", "rank2")
COSTS: FloatArray = 10.0 ** np.linspace(-3, 3, 10)
WIDTHS: FloatArray = 2.0 ** np.linspace(-7, 4, 10)
PUBLISHED = ", published"  # marks a baseline whose threshold was learned as in the published code
CANDIDATES = 100  # thresholds that the published code adds to the differences themselves


@dataclass(frozen=True)
class Setting:
    """A method and its parameters."""

    method: str
    gamma: float
    C: float


@dataclass(frozen=True, eq=False)
class Scale:
    """Centre and spread of the training points; that of a constant feature is infinite, which drops it."""

    centre: FloatArray
    spread: FloatArray

    @classmethod
    def from_points(cls, points: FloatArray) -> Scale:
        """Measure both sides of pairs."""
        rows = points.reshape(-1, points.shape[-1])
        spread = rows.std(axis=0, ddof=1)
        return cls(rows.mean(axis=0), np.where(spread > 0.0, spread, np.inf))

    def __call__(self, points: FloatArray) -> FloatArray:
        """Scale points."""
        return (points - self.centre) / self.spread


@dataclass(frozen=True, eq=False)
class Machine:
    """A machine that can be asked.

    Attributes
    ----------
    setting
        What was trained.
    scale, left, right
        Of the training points: their scale, and both sides, scaled, turned so that right is better.
    coef, bias
        Of the solution.
    """

    setting: Setting
    scale: Scale
    left: FloatArray
    right: FloatArray
    coef: FloatArray
    bias: float

    def rank_score(self, items: ArrayLike) -> FloatArray:
        """Compute r of each row."""
        z = self.scale(np.asarray(items, dtype=np.float64))
        gamma = self.setting.gamma
        scores: FloatArray = self.coef @ (_kernel(self.right, z, gamma) - _kernel(self.left, z, gamma))
        return scores

    def decision(self, points: FloatArray) -> FloatArray:
        """Compute r(right) - r(left) of each pair."""
        return self.rank_score(points[:, 1]) - self.rank_score(points[:, 0])


@dataclass(frozen=True, eq=False)
class Fit:
    """A machine, and its decisions on the training pairs and on the other pairs that were asked for."""

    machine: Machine
    train: FloatArray
    others: tuple[FloatArray, ...]


def fits(
    train: LabelledPairs,
    others: Iterable[FloatArray] = (),
    *,
    methods: Iterable[str] = METHODS,
    widths: FloatArray | None = None,
    costs: FloatArray | None = None,
) -> Iterator[Fit]:
    """Train every method at every width and cost, widths in the outer loop.

    Distances are taken once, kernels once a width: those between the 2 n points serve all costs and methods.

    Parameters
    ----------
    train
        The training pairs.
    others
        Pairs, shape (m, 2, p), on which decisions are wanted too.
    methods, widths, costs
        The grid; None: that of the paper.
    """
    names, scale = tuple(methods), Scale.from_points(train.points)
    tie, sign = train.y == 0, np.where(train.y < 0, -1.0, 1.0)
    left, right = _turn_pairs(scale(train.points), train.y)
    both = np.concatenate((left, right))
    distances = _squared_distances(both, both)
    away = [tuple(_squared_distances(both, scale(pairs[:, side])) for side in (0, 1)) for pairs in others]
    for gamma in WIDTHS if widths is None else widths:
        gram = _right_less_left(_right_less_left(np.exp(-gamma * distances)).T)
        cross = [_right_less_left(np.exp(-gamma * second) - np.exp(-gamma * first)) for first, second in away]
        for C in COSTS if costs is None else costs:
            for method in names:
                solution = fit_gram(gram, tie, C=float(C), method=method)
                setting = Setting(method, float(gamma), float(C))
                machine = Machine(setting, scale, left, right, solution.coef, solution.bias)
                yield Fit(
                    machine,
                    sign * (gram @ solution.coef),
                    tuple(solution.coef @ other_gram for other_gram in cross),
                )


def _turn_pairs(points: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Both sides of the pairs, turned so that right is better; ties as they are."""
    flip = (y < 0)[:, None]
    return np.where(flip, points[:, 1], points[:, 0]), np.where(flip, points[:, 0], points[:, 1])


def _squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    distances: FloatArray = cdist(a, b, "sqeuclidean")
    return distances


def _kernel(a: FloatArray, b: FloatArray, gamma: float) -> FloatArray:
    """exp(-gamma d^2) between rows."""
    values: FloatArray = np.exp(-gamma * _squared_distances(a, b))
    return values


def _right_less_left(rows: FloatArray) -> FloatArray:
    """Lower half of the rows less the upper half: values at right points less those at left ones."""
    n = len(rows) // 2
    return rows[n:] - rows[:n]


# --- thresholds


def own_threshold(fit: Fit, y: IntArray) -> float:
    """Return -bias where it is negative (Lemma 1, in units of u), else a threshold of least training error.

    The baselines have no bias.
    """
    return -fit.machine.bias if fit.machine.bias < 0.0 else best_threshold(fit.train, y)


def thresholds(fit: Fit, y: IntArray) -> dict[str, float]:
    """Threshold of each variant: of a baseline, as it should be and as it was published.

    The published one is of least error for decisions on training inputs that were scaled twice, which must be
    the last of the fit's others.
    """
    method, threshold = fit.machine.setting.method, own_threshold(fit, y)
    if method == "compare":
        return {method: threshold}
    return {method: threshold, method + PUBLISHED: published_threshold(fit.others[-1], y)}


def published_threshold(decision: FloatArray, y: IntArray) -> float:
    """Threshold that the published code would choose.

    Its candidates are the sizes of the decisions and 100 values between the smallest and the largest, evenly
    on a logarithmic scale. Of several best ones it takes the largest where the first candidate is among them,
    the smallest where the last is, else the middle one.
    """
    sizes = np.abs(decision)
    if not sizes.any():
        return 0.0
    ends = sizes[sizes > 0.0].min(), sizes.max()
    candidates = np.sort(np.r_[sizes, np.geomspace(*ends, CANDIDATES)])
    edges, errors = error_steps(decision, y, np.ones(len(y)))
    candidate_errors = errors[np.searchsorted(edges, candidates, side="right") - 1]
    best = np.flatnonzero(candidate_errors == candidate_errors.min())
    if best[0] == 0:
        return float(candidates[best[-1]])
    if best[-1] == len(candidates) - 1:
        return float(candidates[best[0]])
    return float(candidates[best[len(best) // 2]])
