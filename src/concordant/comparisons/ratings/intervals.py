"""Uncertainty of ratings: covariance, resampling, and the ranks that the votes leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concordant.comparisons.ratings.leaderboard import overlapping_ranks
from concordant.comparisons.ratings.likelihood import Likelihood, LikelihoodPoint, maximise, symmetric_matrix
from concordant.comparisons.ratings.votes import Counts
from concordant.exceptions import ParameterError
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.comparisons.ratings.strength import StrengthModel

MOST_ITEMS = 5000  # of a full covariance matrix: 200 MB
MOST_DRAWS = 2**53  # votes of a resample
WEAKEST = 1e-3  # alpha of a resample, which may not be connected


def covariance(likelihood: Likelihood, point: LikelihoodPoint, raw: Counts | None = None) -> FloatArray:
    """Covariance of the errors: inverse information, of ratings with mean 0, then of the rest of x.

    With `raw`, the original votes, the sandwich estimator: inverse information around the sum of the squared
    derivatives of each vote. It does not assume that the model is right.
    """
    if len(point.x) > MOST_ITEMS + 2:
        raise ParameterError("method", "information", f"'bootstrap' for more than {MOST_ITEMS} items")
    inverse = point.inverse(means=raw is None)
    if raw is not None:
        inverse = inverse @ _score_outer_products(likelihood, point, raw) @ inverse
    n = likelihood.counts.n_items
    inverse[:n] -= inverse[:n].mean(axis=0)
    inverse[:, :n] -= inverse[:, :n].mean(axis=1, keepdims=True)
    return 0.5 * (inverse + inverse.T)


def _score_outer_products(likelihood: Likelihood, point: LikelihoodPoint, raw: Counts) -> FloatArray:
    """Sum over votes of the derivative of its log-probability, times its transpose."""
    d, tie = likelihood.differences(point.x)
    by_d, by_tie = likelihood.form.scores(d, tie)
    edge, cross = ((raw.cells * by_d * other).sum(axis=1) for other in (by_d, by_tie))
    corner = np.array([[edge.sum(), cross.sum()], [cross.sum(), (raw.cells * by_tie**2).sum()]])
    n, ends = raw.n_items, (raw.first, raw.second)
    out, into = (np.array([np.bincount(end, w, n) for w in (edge, cross)]) for end in ends)
    border = (out - into).T
    free = [k for k, is_free in enumerate((likelihood.advantage, likelihood.tie)) if is_free]
    meat = np.empty((len(point.x), len(point.x)))
    meat[:n, :n] = np.diag((out + into)[0]) - symmetric_matrix(raw, edge)
    meat[:n, n:], meat[n:, :n] = border[:, free], border[:, free].T
    meat[n:, n:] = corner[np.ix_(free, free)]
    return meat


def normal_interval(ratings: FloatArray, errors: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Normal intervals: ratings minus and plus the normal quantile times their standard errors."""
    from scipy.stats import norm

    width = norm.ppf(0.5 + level / 2.0) * np.sqrt(np.diagonal(errors).clip(min=0.0))
    return ratings - width, ratings + width


def bootstrap(model: StrengthModel, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Bootstrap: ratings of votes resampled with replacement, as many as there are.

    If all weights are 0 there is nothing to draw, and each sample equals the ratings.
    """
    counts = model.counts_
    heaviest = float(counts.cells.max(initial=0.0))
    if heaviest == 0.0:
        return np.tile(model.ratings_, (n_resamples, 1))
    shares = counts.cells.ravel() / heaviest
    total, shares = float(counts.cells.sum()), shares / shares.sum()
    if total > MOST_DRAWS:
        raise ParameterError.because(
            f"sample_weight sums to {total:g}, but a bootstrap draws that many votes and can draw at most "
            f"{MOST_DRAWS:g}. Divide the weights, or use another method."
        )
    draws = max(1, round(total))
    ratings = np.empty((n_resamples, counts.n_items))
    for k in range(n_resamples):
        drawn = rng.multinomial(draws, shares).reshape(-1, 3) * np.float64(total / draws)
        likelihood = model.likelihood(counts.with_cells(drawn), max(model.alpha, WEAKEST))
        maximum = maximise(likelihood, model.start(likelihood, fresh=False), 1e-6, model.max_iter)
        ratings[k] = likelihood.parts(maximum.x)[0]
    centred: FloatArray = ratings - ratings.mean(axis=1, keepdims=True)
    return centred


def drawn_interval(drawn: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Quantiles of resampled ratings; minus and plus infinity where all samples are equal.

    Resamples hold only observed outcomes: from a single vote, or from identical votes on one pair, they carry
    no information.
    """
    low, high = np.quantile(drawn, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    flat = np.ptp(drawn, axis=0) == 0.0
    return np.where(flat, -np.inf, low), np.where(flat, np.inf, high)


def open_ranks(ratings: FloatArray, errors: FloatArray, level: float) -> tuple[IntArray, IntArray]:
    """Best and worst rank of each item, simultaneously valid at this level.

    `errors` are samples of the ratings, (n_samples, n_items), or one deviation per item, independent. Up to
    5,000 items are compared by differences, as in `separated_ranks`; more items by normal intervals that do
    not overlap, each at a level so high that all of them hold together (Bonferroni): they leave more ranks
    open.
    """
    from scipy.stats import norm

    sampled, n = errors.ndim == 2, len(ratings)
    errors = errors - errors[0] if sampled else errors  # constant columns get variance 0, not nearly 0
    if n <= MOST_ITEMS:
        return separated_ranks(ratings, np.cov(errors.T) if sampled else np.diag(errors**2), level)
    spread = errors.std(axis=0, ddof=1) if sampled else errors
    width = np.where(spread > 0.0, norm.isf(0.5 * (1.0 - level) / n) * spread, np.inf)
    return overlapping_ranks(ratings - width, ratings + width)


def separated_ranks(ratings: FloatArray, errors: FloatArray, level: float) -> tuple[IntArray, IntArray]:
    """Best and worst rank of each item: 1 + those shown to be better, n - those shown to be worse.

    Every ordered pair is tested for a positive difference of ratings, with the standard error of the
    difference, and Holm's method bounds the probability of any false statement among all pairs by 1 - level.
    The ranks are therefore simultaneously valid at this level.
    """
    from scipy.stats import norm

    n = len(ratings)
    spread = np.diagonal(errors)
    variance = spread[:, None] + spread - 2.0 * errors
    above, below = np.nonzero((ratings[:, None] > ratings) & (variance > 0.0))
    p = norm.sf((ratings[above] - ratings[below]) / np.sqrt(variance[above, below]))
    order = np.argsort(p, kind="stable")
    passed = p[order] <= (1.0 - level) / (n * (n - 1) - np.arange(len(p)))
    shown = order[: len(p) if passed.all() else int(np.argmin(passed))]
    better = np.bincount(below[shown], minlength=n)
    worse = np.bincount(above[shown], minlength=n)
    return better + 1, n - worse
