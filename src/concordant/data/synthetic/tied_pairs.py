"""The simulated comparisons of "Support vector comparison machines", with exact outcome probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from concordant._base.validate import check_counts, check_number
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import ArrayLike, FloatArray, IntArray

ORDERS: dict[str, float] = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
STEPS = {"l1": (-0.5, 0.5), "l2": (-1.0, 0.5), "linf": (-1.0, 1.0)}
SIDE = 2.0  # the print says 3; the published simulations used 2
ROUND = 4096  # pairs drawn at a time while filling the strata
PATIENCE = 2_000  # rounds (8 million pairs) before an outcome counts as too rare


@dataclass(frozen=True, eq=False)
class SyntheticComparisons:
    """Pairs, outcomes, and their true gaps and probabilities.

    Attributes
    ----------
    pairs
        Features of both sides, shape (n, 2, 2).
    y
        Outcomes: -1 the left is better, +1 the right is better, 0 no difference.
    gap
        True difference r(right) - r(left).
    probabilities
        P(y = -1, 0, +1 | pair), shape (n, 3), in the population the pairs were drawn from.
    norm
        Norm whose square is r.
    threshold
        Differences up to this size are ties.
    """

    pairs: FloatArray
    y: IntArray
    gap: FloatArray
    probabilities: FloatArray
    norm: str
    threshold: float

    def ranking(self, items: ArrayLike) -> FloatArray:
        """Evaluate the true ranking function r(x), the squared norm, for each row of `items`."""
        return squared_norm(np.asarray(items, dtype=np.float64), self.norm)

    @property
    def bayes_predictions(self) -> IntArray:
        """Most probable outcome of each pair."""
        best: IntArray = self.probabilities.argmax(axis=1) - 1
        return best

    @property
    def bayes_error(self) -> float:
        """Error of the best predictor, averaged over these pairs."""
        return float(1 - self.probabilities.max(axis=1).mean())


def comparisons(
    n: int = 400,
    norm: str = "l2",
    *,
    tie_share: float | None = None,
    noise: float = 0.25,
    threshold: float = 1.0,
    seed: int = 0,
) -> SyntheticComparisons:
    """Pairs in the plane, compared by a squared norm with noise and a threshold.

    `x` is uniform on [-2, 2]^2 and `x' = x + step`, the step uniform per coordinate on [-1/2, 1/2] (l1),
    [-1, 1/2] (l2) or [-1, 1] (linf); `y` is the sign of `r(x') - r(x) + e`, `e ~ N(0, noise^2)`, where that
    is larger than the threshold, else 0. These are the ranges of the published simulations; the paper's
    print differs.

    Parameters
    ----------
    n
        Number of pairs.
    norm
        "l1", "l2" or "linf".
    tie_share
        Draw until exactly `round(tie_share * n)` pairs are ties; `None` accepts all pairs. Selection by
        outcome changes P(y | pair): `probabilities` are those of the selected population (Bayes' rule with
        the share of ties of the plain population, integrated to about 1e-4).
    noise, threshold
        As above; `noise=0` makes outcomes deterministic.
    seed
        Equal seeds give equal data.

    References
    ----------
    Venuto, Hocking, Sphanurattana, Sugiyama, "Support vector comparison machines", section 4.1.

    Examples
    --------
    >>> toy = comparisons(n=100, norm="l1", tie_share=0.5)
    >>> toy.pairs.shape, int((toy.y == 0).sum()), toy.probabilities.shape
    ((100, 2, 2), 50, (100, 3))
    """
    _check_parameters(n, norm, tie_share, noise, threshold)
    rng = np.random.default_rng(seed)
    draw = partial(_draw_pairs, rng, norm=norm, noise=noise, threshold=threshold)
    if tie_share is None:
        pairs, y = draw(n)
    else:
        pairs, y = _draw_stratified(rng, draw, n, round(tie_share * n))
    gap = difference(pairs, norm)
    probabilities = outcome_probabilities(gap, noise, threshold)
    if tie_share is not None:
        probabilities = _reweight(probabilities, tie_share, plain_tie_share(norm, noise, threshold))
    return SyntheticComparisons(pairs, y, gap, probabilities, norm, threshold)


def _draw_pairs(
    rng: np.random.Generator, n: int, norm: str, noise: float, threshold: float
) -> tuple[FloatArray, IntArray]:
    """Draw pairs and their outcomes from the plain population."""
    pairs = _pairs_from_uniform(rng.random((n, 4)), norm)
    noisy_gap = difference(pairs, norm) + noise * rng.standard_normal(n)
    return pairs, np.where(np.abs(noisy_gap) > threshold, np.sign(noisy_gap), 0).astype(np.int64)


def _draw_stratified(
    rng: np.random.Generator, draw: Callable[[int], tuple[FloatArray, IntArray]], n: int, n_ties: int
) -> tuple[FloatArray, IntArray]:
    """Draw until there are `n_ties` ties and `n - n_ties` others; the order is shuffled."""
    drawn: dict[bool, list[Any]] = {True: [], False: []}
    n_drawn = {True: 0, False: 0}
    n_wanted = {True: n_ties, False: n - n_ties}
    for _ in range(PATIENCE):
        if all(n_drawn[tie] >= n_wanted[tie] for tie in n_wanted):
            break
        pairs, y = draw(ROUND)
        for tie in n_wanted:
            rows = np.flatnonzero((y == 0) == tie)[: n_wanted[tie] - n_drawn[tie]]
            drawn[tie].append((pairs[rows], y[rows]))
            n_drawn[tie] += len(rows)
    else:
        raise ParameterError.because(
            f"tie_share={n_ties / n:g} cannot be reached with this noise and threshold. Change one of them."
        )
    batches = drawn[True] + drawn[False]
    order = rng.permutation(n)
    return np.concatenate([p for p, _ in batches])[order], np.concatenate([y for _, y in batches])[order]


def _pairs_from_uniform(uniform: FloatArray, norm: str) -> FloatArray:
    low, high = STEPS[norm]
    x = SIDE * (2 * uniform[:, :2] - 1)
    return np.stack((x, x + low + (high - low) * uniform[:, 2:]), axis=1)


def squared_norm(items: FloatArray, norm: str) -> FloatArray:
    """Squared norm of each row."""
    lengths: FloatArray = np.linalg.norm(items, ord=ORDERS[norm], axis=-1)
    return lengths**2


def difference(pairs: FloatArray, norm: str) -> FloatArray:
    """True difference r(right) - r(left)."""
    return squared_norm(pairs[:, 1], norm) - squared_norm(pairs[:, 0], norm)


def outcome_probabilities(gap: FloatArray, noise: float, threshold: float) -> FloatArray:
    """P(y = -1, 0, +1) for each true difference.

    >>> outcome_probabilities(np.array([0.0, 1.0, 3.0]), 0.25, 1.0).round(3).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """
    from scipy.special import ndtr

    if noise == 0:
        return np.stack((gap < -threshold, np.abs(gap) <= threshold, gap > threshold), axis=1).astype(float)
    left, right = ndtr((-threshold - gap) / noise), ndtr((gap - threshold) / noise)
    return np.stack((left, np.maximum(1 - left - right, 0.0), right), axis=1)


def _reweight(probabilities: FloatArray, tie_share: float, plain: float) -> FloatArray:
    """P(y | pair) after selection by outcome that changed the share of ties from `plain` to `tie_share`."""
    tie = tie_share / plain if tie_share else 0.0  # a share that was not asked for may not exist either
    other = (1 - tie_share) / (1 - plain) if tie_share < 1 else 0.0
    weighted = probabilities * np.array([other, tie, other])
    share: FloatArray = weighted / weighted.sum(axis=1, keepdims=True)
    return share


def plain_tie_share(norm: str, noise: float, threshold: float) -> float:
    """P(y = 0) in the plain population, by quasi-random integration over the four uniforms."""
    from scipy.stats import qmc

    points = qmc.Sobol(4, scramble=True, rng=np.random.default_rng(0)).random_base2(17)
    gap = difference(_pairs_from_uniform(points, norm), norm)
    return float(outcome_probabilities(gap, noise, threshold)[:, 1].mean())


def _check_parameters(n: int, norm: str, tie_share: float | None, noise: float, threshold: float) -> None:
    if norm not in ORDERS:
        raise UnknownNameError("norm", norm, ORDERS)
    check_counts(n=n)
    if tie_share is not None:
        check_number("tie_share", tie_share, least=0.0, most=1.0, also="None")
    check_number("noise", noise, least=0.0)
    check_number("threshold", threshold, least=0.0)
