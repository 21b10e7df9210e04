"""The widest margin of pairs that a linear ranking function separates: a linear and a quadratic program.

The ties are t, the other pairs d, turned so that the second item is better. Of a direction v let a be the
least v @ d, and c the largest size of v @ t. It separates the pairs where a > c; scaled by 2 / (a + c) it
does so with threshold 1 and the margin (a - c) / (a + c). The linear program (LP) maximises this. The
quadratic one (QP) maximises (a - c) / sqrt(v @ v): so its margin cannot be larger, which is Lemma 1 of the
reference. An invertible linear map of the features leaves the LP's margin as it is, but not the QP's.

Venuto, Hocking, Sphanurattana and Sugiyama, "Support vector comparison machines", section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant.exceptions import LabelError, NotSeparableError
from concordant.solvers.highs import solved
from concordant.supervision.check import check_features
from concordant.supervision.columns import check_lengths
from concordant.supervision.labels import check_outcome
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["HardMargin", "hard_margin_lp", "hard_margin_qp"]

TOUCHING = 1e-9  # a margin below it is rounding: the two kinds of pairs touch
POWERS = (0.0, 1.0, 0.5)  # of features' sizes, tried as their units: HiGHS may stop too early in any of them
IN_CONFLICT = 1e-9  # a multiplier below it is rounding: the contradiction stands without the pair


@dataclass(frozen=True, eq=False)
class HardMargin:
    """A linear ranking function that separates the pairs: r(x) = w @ x, threshold 1.

    Attributes
    ----------
    w
        Weights. The size of w @ t is at most 1 - mu for ties t, y times w @ d at least 1 + mu for the others.
    mu
        The margin, above 0 and at most 1: computed from w, so that the above holds up to rounding.
    gap
        How far from optimal, by the multipliers of the program: of the LP, how much larger mu could be; of
        the QP, by which share u could be shorter.
    n_iter
        Iterations.
    """

    w: FloatArray
    mu: float
    gap: float
    n_iter: int

    @property
    def u(self) -> FloatArray:
        """Weights of the binary machine: bias + u @ d is 0 on a boundary, and 1 or -1 on its margins."""
        return np.asarray(self.w / self.mu)

    @property
    def bias(self) -> float:
        """Bias of the binary machine: at most -1."""
        return -1.0 / self.mu


@dataclass(frozen=True, eq=False)
class Turned:
    """Pairs as the programs see them, each feature in units of its largest size.

    Attributes
    ----------
    better, ties
        Rows of the differences: those turned so that the second item is better, and the ties; sparse.
    numbers
        Which pair a row of better, ties, ties is about.
    units
        Largest size of each feature; 1 where there is none.
    """

    better: Any
    ties: Any
    numbers: IntArray
    units: FloatArray

    @classmethod
    def of(cls, differences: Any, y: IntArray) -> Turned:
        """Turn checked pairs."""
        from scipy import sparse

        rows = sparse.csr_array(differences, dtype=np.float64)
        units = abs(rows).max(axis=0).toarray().ravel() if rows.shape[1] else np.ones(0)
        units = np.where(units > 0.0, units, 1.0)
        rows = rows @ sparse.diags_array(1.0 / units) if len(units) else rows
        better, ties = np.flatnonzero(y), np.flatnonzero(y == 0)
        turned = sparse.diags_array(y[better].astype(np.float64)) @ rows[better] if len(better) else rows[:0]
        numbers = np.concatenate((better, ties, ties))
        return cls(sparse.csr_array(turned), rows[ties], numbers, units)

    def extremes(self, v: FloatArray) -> tuple[float, float]:
        """Give the least v @ d and the largest size of v @ t, here as everywhere d being turned."""
        return float((self.better @ v).min()), float(np.abs(self.ties @ v).max())

    def margin(self, v: FloatArray) -> float:
        """Margin of a direction after the best scaling; -1 where it serves no pair that is no tie."""
        a, c = self.extremes(v)
        return (a - c) / (a + c) if a > 0.0 else -1.0

    def scaled(self, v: FloatArray, gap: float, n_iter: int) -> HardMargin:
        """Give the ranking function in a direction that separates the pairs."""
        w = v * (2.0 / sum(self.extremes(v)))
        return HardMargin(w / self.units, self.margin(v), max(gap, 0.0), n_iter)

    def rows(self) -> Any:
        """Give better, -ties, ties below one another."""
        from scipy import sparse

        return sparse.vstack((self.better, -self.ties, self.ties), format="csr")

    def closeness(self, multipliers: FloatArray) -> tuple[FloatArray, float, float]:
        """Give the combination of rows by these multipliers, and their sums over better and over ties."""
        n = self.better.shape[0]
        return self.rows().T @ multipliers, float(multipliers[:n].sum()), float(multipliers[n:].sum())


def hard_margin_lp(differences: ArrayLike, y: ArrayLike) -> HardMargin:
    """Maximise the margin in terms of the ranking function's values: the LP, by HiGHS.

    Pairs are separable where the largest margin is above 0 (1e-9, for rounding): at 0 the two kinds of pairs
    touch, and a threshold of 1 still takes some difference for a tie. What is below 1e-12 of the largest size
    of its feature counts as 0. If all pairs are ties, w is 0 and the margin 1. The margin is unique, w need
    not be.

    Parameters
    ----------
    differences
        Features of the right item less those of the left, (n, p); dense or sparse.
    y
        -1 the left is better, 1 the right is better, 0 a tie.

    Raises
    ------
    NotSeparableError
        If no linear ranking function separates the pairs; it names pairs that contradict one another.
    LabelError
        If there is no tie: the margin would have no bound. Or if HiGHS gives up.

    Examples
    --------
    >>> found = hard_margin_lp([[3.0], [-4.0], [1.0]], [1, -1, 0])
    >>> found.w, found.mu
    (array([0.5]), 0.5)
    """
    rows, outcome = check_differences(differences, y)
    if not outcome.any():
        return HardMargin(np.zeros(rows.shape[1]), 1.0, 0.0, 0)
    return widest(Turned.of(rows, outcome), len(outcome))


def hard_margin_qp(differences: ArrayLike, y: ArrayLike) -> HardMargin:
    """Maximise the margin in terms of the features' distances: the QP of a binary machine, by HiGHS.

    `u` and `bias` of the result minimise u @ u where bias + u @ d >= 1 for turned differences d, and
    bias + u @ t <= -1 for ties t both ways round. The result is unique.

    Parameters
    ----------
    differences, y
        As for `hard_margin_lp`, and the same pairs are separable.

    Raises
    ------
    NotSeparableError, LabelError
        As there.

    Examples
    --------
    >>> found = hard_margin_qp([[3.0, 0.0], [-4.0, 2.0], [1.0, 1.0]], [1, -1, 0])
    >>> found.w.round(3), round(found.mu, 3), round(found.bias, 3)
    (array([ 0.571, -0.286]), 0.714, -1.4)
    >>> round(hard_margin_lp([[3.0, 0.0], [-4.0, 2.0], [1.0, 1.0]], [1, -1, 0]).mu, 3)
    1.0
    """
    rows, outcome = check_differences(differences, y)
    if not outcome.any():
        return HardMargin(np.zeros(rows.shape[1]), 1.0, 0.0, 0)
    turned = Turned.of(rows, outcome)
    best = replace(widest(turned, len(outcome)), gap=np.inf)
    for power in POWERS:
        direction, multipliers, n_iter = shortest(turned, power)
        gap = excess(turned, direction, multipliers) if turned.margin(direction) > 0.0 else np.inf
        if gap < best.gap:
            best = turned.scaled(direction, gap, n_iter)
        if best.gap <= TOUCHING:
            break
    return best


def check_differences(differences: ArrayLike, y: ArrayLike) -> tuple[Any, IntArray]:
    """Give checked differences and outcomes, a tie among them."""
    rows, outcome = check_features(differences, "differences"), check_outcome(y, "y")
    check_lengths("differences", rows.shape[0], y=outcome)
    if outcome.all():
        problem = f"none of the {len(outcome)} pairs is a tie, so that the margin has no bound"
        raise LabelError(problem, 'learn to rank (method "rank") and fit the threshold afterwards.')
    return rows, outcome


def widest(turned: Turned, n_pairs: int) -> HardMargin:
    """Maximise mu where d @ w - mu >= 1 and -mu - t @ w >= -1 both ways; mu = -1 at w = 0 will do."""
    limits = np.where(np.arange(len(turned.numbers)) < turned.better.shape[0], 1.0, -1.0)
    w, multipliers, n_iter = solved(turned.rows(), -np.ones(len(limits)), limits, cost=-1.0)
    rest, of_better, of_ties = turned.closeness(multipliers)
    total = of_better + of_ties
    if not total > 0.0:
        problem = f"HiGHS did not solve the linear program of these {n_pairs} pairs"
        raise LabelError(problem, "bring features to similar sizes, or use a soft margin.")
    if not turned.margin(w) > TOUCHING:
        conflict = np.unique(turned.numbers[multipliers > IN_CONFLICT * total])
        raise NotSeparableError(n_pairs, turned.margin(w), conflict.tolist())
    found = turned.scaled(w, 0.0, n_iter)
    bound = (of_ties - of_better + float(np.abs(rest) @ np.abs(found.w * turned.units))) / total
    return turned.scaled(w, bound - found.mu, n_iter)


def shortest(turned: Turned, power: float) -> tuple[FloatArray, FloatArray, int]:
    """Minimise the length of u where d @ u + bias >= 1 and -bias - t @ u >= 1 both ways.

    HiGHS sees features in units that are this power of their largest sizes.
    """
    from scipy import sparse

    signs = np.where(np.arange(len(turned.numbers)) < turned.better.shape[0], 1.0, -1.0)
    units = turned.units**power * turned.units.max() ** (1.0 - power)
    middle = np.sqrt(units.min() * units.max())
    rows = turned.rows() @ sparse.diags_array(turned.units / units)
    limits, curvature = np.ones(len(signs)), (middle / units) ** 2
    v, multipliers, n_iter = solved(rows, signs, limits, cost=0.0, curvature=curvature)
    return v / units * turned.units, multipliers, n_iter


def excess(turned: Turned, direction: FloatArray, multipliers: FloatArray) -> float:
    """Share by which u could be shorter: no u is shorter than 2 over the distance of points of both hulls."""
    n, rows = turned.better.shape[0], turned.rows()
    _, of_better, of_ties = turned.closeness(multipliers)
    if not min(of_better, of_ties) > 0.0:
        return float("inf")
    shares = multipliers / np.where(np.arange(len(multipliers)) < n, of_better, of_ties)
    between = (rows.T @ shares) * turned.units
    a, c = turned.extremes(direction)
    length = float(np.linalg.norm(direction / turned.units)) * 2.0 / (a - c)
    return 1.0 - 2.0 / (float(np.linalg.norm(between)) * length)
