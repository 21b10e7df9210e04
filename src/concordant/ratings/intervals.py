"""How far ratings may be off: covariance, resampling, and the ranks that the votes leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concordant.exceptions import ParameterError
from concordant.ratings.counts import Counts
from concordant.ratings.leaderboard import overlapping_ranks
from concordant.ratings.likelihood import Likelihood, Point, symmetric
from concordant.ratings.newton import maximise
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.ratings.strength import StrengthModel

__all__ = [
    "MOST_ITEMS",
    "bootstrap",
    "covariance",
    "drawn_interval",
    "normal_interval",
    "open_ranks",
    "separated_ranks",
]

MOST_ITEMS = 5000  # of a full covariance matrix: 200 MB
MOST_DRAWS = 2**53  # votes of a resample
WEAKEST = 1e-3  # alpha of a resample, which may not be connected


def covariance(likelihood: Likelihood, point: Point, raw: Counts | None = None) -> FloatArray:
    """Give the covariance of the errors: inverse information, of ratings with mean 0, then of the rest of x.

    With `raw`, the votes as they were cast, the sandwich: inverse information around the sum of the squared
    derivatives of each vote. It does not suppose that the model is right.
    """
    if len(point.x) > MOST_ITEMS + 2:
        raise ParameterError("method", "information", f'"bootstrap" for more than {MOST_ITEMS} items')
    inverse = point.inverse(means=raw is None)
    if raw is not None:
        inverse = inverse @ squares(likelihood, point, raw) @ inverse
    n = likelihood.counts.n_items
    inverse[:n] -= inverse[:n].mean(axis=0)
    inverse[:, :n] -= inverse[:, :n].mean(axis=1, keepdims=True)
    half: FloatArray = 0.5 * (inverse + inverse.T)
    return half


def squares(likelihood: Likelihood, point: Point, raw: Counts) -> FloatArray:
    """Sum over votes of the derivative of its log-probability, times its transpose."""
    d, tie = likelihood.differences(point.x)
    by_d, by_tie = likelihood.form.scores(d, tie)
    edge, cross = ((raw.cells * by_d * other).sum(axis=1) for other in (by_d, by_tie))
    corner = np.array([[edge.sum(), cross.sum()], [cross.sum(), (raw.cells * by_tie**2).sum()]])
    n, ends = raw.n_items, (raw.first, raw.second)
    out, into = (np.array([np.bincount(end, w, n) for w in (edge, cross)]) for end in ends)
    border = (out - into).T
    free = [k for k, chosen in enumerate((likelihood.advantage, likelihood.tie)) if chosen]
    meat = np.empty((len(point.x), len(point.x)))
    meat[:n, :n] = np.diag((out + into)[0]) - symmetric(raw, edge)
    meat[:n, n:], meat[n:, :n] = border[:, free], border[:, free].T
    meat[n:, n:] = corner[np.ix_(free, free)]
    return meat


def normal_interval(ratings: FloatArray, errors: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Give ratings less and plus the normal quantile times their standard errors."""
    from scipy.stats import norm

    width = norm.ppf(0.5 + level / 2.0) * np.sqrt(np.diagonal(errors).clip(min=0.0))
    return ratings - width, ratings + width


def bootstrap(model: StrengthModel, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Give ratings of votes drawn again, as many as there are, from those that there are.

    Without any weight there is nothing to draw, and each is the ratings themselves.
    """
    counts = model.counts_
    heaviest = float(counts.cells.max(initial=0.0))
    if heaviest == 0.0:
        return np.tile(model.ratings_, (n_resamples, 1))
    shares = counts.cells.ravel() / heaviest
    total, shares = float(counts.cells.sum()), shares / shares.sum()
    if total > MOST_DRAWS:
        allowed = f"of a sum up to {MOST_DRAWS:g} for a bootstrap, which draws as many votes"
        raise ParameterError("sample_weight", f"with sum {total:g}", allowed)
    draws = max(1, round(total))
    ratings = np.empty((n_resamples, counts.n_items))
    for k in range(n_resamples):
        drawn = rng.multinomial(draws, shares).reshape(-1, 3) * np.float64(total / draws)
        likelihood = model.likelihood(counts.with_cells(drawn), max(model.alpha, WEAKEST))
        found = maximise(likelihood, model.start(likelihood, fresh=False), 1e-6, model.max_iter)
        ratings[k] = likelihood.parts(found.x)[0]
    centred: FloatArray = ratings - ratings.mean(axis=1, keepdims=True)
    return centred


def drawn_interval(drawn: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Give quantiles of resampled ratings; where all are equal, minus and plus infinity.

    Resamples hold only outcomes that were seen: from a single vote, or from votes that all say the same of
    one pair, they say nothing.
    """
    low, high = np.quantile(drawn, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    flat = np.ptp(drawn, axis=0) == 0.0
    return np.where(flat, -np.inf, low), np.where(flat, np.inf, high)


def open_ranks(ratings: FloatArray, errors: FloatArray, level: float) -> tuple[IntArray, IntArray]:
    """Give the best and the worst rank of each item, right together at this level.

    `errors` are samples of the ratings, (n_samples, n_items), or one deviation an item, independent. Of up to
    5,000 items by differences, as `separated_ranks` does. Of more by normal intervals that do not overlap,
    each at so high a level that all of them hold together (Bonferroni): they leave more ranks open.
    """
    from scipy.stats import norm

    sampled, n = errors.ndim == 2, len(ratings)
    errors = errors - errors[0] if sampled else errors  # what never moves has variance 0, not nearly 0
    if n <= MOST_ITEMS:
        return separated_ranks(ratings, np.cov(errors.T) if sampled else np.diag(errors**2), level)
    spread = errors.std(axis=0, ddof=1) if sampled else errors
    width = np.where(spread > 0.0, norm.isf(0.5 * (1.0 - level) / n) * spread, np.inf)
    return overlapping_ranks(ratings - width, ratings + width)


def separated_ranks(ratings: FloatArray, errors: FloatArray, level: float) -> tuple[IntArray, IntArray]:
    """Give the best and the worst rank of each item: 1 + those shown to be better, n - those to be worse.

    Every ordered pair is tested for a positive difference of ratings, with the standard error of that
    difference, and Holm's method holds the probability of any false statement among all pairs to 1 - level.
    The ranks are therefore right together, at that level.
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
