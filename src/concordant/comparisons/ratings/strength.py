"""StrengthModel: ratings as log-strengths of maximum likelihood, the base of these models."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import numpy as np

from concordant._base.light_sklearn import ConvergenceWarning, check_is_fitted
from concordant._base.segments import one_blas_thread
from concordant._base.validate import (
    INT32_MAX,
    all_zero_error,
    check_choice,
    check_flag,
    check_number,
    check_share,
    check_whole,
)
from concordant.comparisons.ratings.intervals import (
    bootstrap,
    covariance,
    drawn_interval,
    normal_interval,
    open_ranks,
    separated_ranks,
)
from concordant.comparisons.ratings.leaderboard import Leaderboard, leaderboard
from concordant.comparisons.ratings.likelihood import (
    DAVIDSON,
    FARTHEST,
    Likelihood,
    Maximum,
    TieForm,
    maximise,
)
from concordant.comparisons.ratings.rating_model import RatingModel, Seed, generator
from concordant.comparisons.ratings.votes import Counts, Items, Votes
from concordant.exceptions import NoFiniteRatingsError, NotConnectedError, ParameterError
from concordant.types import BoolArray, FloatArray, IntArray

# Conditions for finite ratings of maximum likelihood.


def _refuse_infinite(counts: Counts, items: Items, *, advantage: bool, tie: bool) -> None:
    """Raise if the likelihood has no finite maximum, or more than one.

    It has one exactly if no direction (v, c, e) but a constant v lowers no vote's probability in the long
    run. With u = v[first] - v[second] + c, a win of the first side needs u >= e, of the second u <= -e, and
    a tie -e <= u <= e; c is 0 without a free advantage, e without a free tie parameter. Directions with
    c = e = 0 are excluded exactly where the votes are strongly connected. The others: a cycle of votes
    must hold more wins than ties (then e = 0), and cycles won mostly from the left and mostly from the right
    (then c = 0).
    """
    if not counts.connected:
        raise NotConnectedError([items.names[part].tolist() for part in counts.components()])
    if tie and not _has_contested_pair(counts) and _is_unbounded(counts, "tie", advantage=advantage):
        circle = "no circle of wins and ties has more wins than ties"
        raise NoFiniteRatingsError(f"the votes do not bound the tie parameter: {circle}")
    if advantage and not _both_sides(counts):
        for aim in ("left", "right"):
            if _is_unbounded(counts, aim, advantage=True):
                problem = f"the votes do not determine the advantage: they allow any that favours the {aim}"
                raise NoFiniteRatingsError(problem)


def _has_contested_pair(counts: Counts) -> bool:
    """True if both sides of some pair won: then the tie parameter is bounded."""
    return bool(((counts.cells[:, 0] > 0) & (counts.cells[:, 2] > 0)).any())


def _both_sides(counts: Counts) -> bool:
    """True if in some pair both won or tied from the left, and in some pair both did from the right."""
    forth, back = counts.first * counts.n_items + counts.second, counts.second * counts.n_items + counts.first
    good = counts.cells[:, :2].any(axis=1), counts.cells[:, 1:].any(axis=1)
    return all(bool(np.isin(forth[rows], back[rows]).any()) for rows in good)


def _is_unbounded(counts: Counts, aim: str, *, advantage: bool) -> bool:
    """True if a direction exists that raises the tie parameter, or the advantage of a side.

    By a linear program: the directions form a cone, so that the largest component is 0 or its bound 1.
    """
    from scipy.optimize import linprog

    n = counts.n_items
    side = (-1.0, 1.0) if aim != "tie" else (None, None) if advantage else (0.0, 0.0)
    bounds = [(0.0, 0.0), *[(None, None)] * (n - 1), side, (0.0, 1.0 * (aim == "tie"))]
    cost = np.zeros(n + 2)
    cost[n + 1 if aim == "tie" else n] = 1.0 if aim == "right" else -1.0
    matrix = _direction_constraints(counts)
    solution = linprog(cost, A_ub=matrix, b_ub=np.zeros(matrix.shape[0]), bounds=bounds, method="highs")
    return bool(solution.status == 0 and abs(solution.fun or 0.0) > 0.5)


def _direction_constraints(counts: Counts) -> Any:
    """Build the sparse rows a with a . (v, c, e) <= 0 that a direction must satisfy."""
    from scipy.sparse import coo_array, vstack

    n = counts.n_items

    def inequalities(pairs: BoolArray, side: float, width: float) -> Any:
        first, second = counts.first[pairs], counts.second[pairs]
        m = len(first)
        at = np.tile(np.arange(m), 4)
        where = np.concatenate((first, second, np.full(m, n), np.full(m, n + 1)))
        what = np.repeat([-side, side, -side, width], m)
        return coo_array((what, (at, where)), shape=(m, n + 2))

    wins, ties, losses = counts.cells.T > 0
    blocks = ((wins, 1.0, 1.0), (losses, -1.0, 1.0), (ties, 1.0, -1.0), (ties, -1.0, -1.0))
    return vstack([inequalities(*block) for block in blocks]).tocsr()


ELO = 400.0 / math.log(10.0)  # points of one unit of log-strength
METHODS = ("information", "robust", "bootstrap")


class StrengthModel(RatingModel):
    """Base of models in which each item has a strength; ratings are their logarithms, of mean 0.

    Attributes
    ----------
    ratings_
        Log-strength of each item, of mean 0.
    elo_
        Ratings on the scale of chess: 1500 + 400 / log(10) times the rating.
    advantage_
        Log of the factor on the left side's strength; 0 unless `advantage`.
    log_tie_
        Log of the tie parameter (`nu_` of `Davidson`, `theta_` of `RaoKupper`).
    value_
        Log-likelihood of the votes, minus the penalty: alpha / 2 times the sum of the squares of ratings and
        advantage.
    n_iter_
        Newton steps of the last `fit` or `update`.
    """

    may_change: ClassVar[tuple[str, ...]] = ("tol", "max_iter")

    form: ClassVar[TieForm] = DAVIDSON

    @property
    def sided(self) -> bool:
        """True if the sides of a vote matter."""
        return isinstance(self.advantage, (bool, np.bool_)) and bool(self.advantage)

    def __init__(
        self, *, alpha: float = 0.0, advantage: bool = False, tol: float = 1e-10, max_iter: int = 200
    ) -> None:
        self.alpha = alpha
        self.advantage = advantage
        self.tol = tol
        self.max_iter = max_iter

    def check_parameters(self) -> None:
        """Raise for parameters outside their range."""
        check_number("alpha", self.alpha, least=0.0)
        check_flag("advantage", self.advantage)
        check_number("tol", self.tol, above=0.0)
        check_whole("max_iter", self.max_iter, 1, INT32_MAX)

    def likelihood(self, counts: Counts, alpha: float) -> Likelihood:
        """Build the likelihood of the counts; without ties, or without wins, the tie parameter is fixed."""
        effective = self._effective_counts(counts)
        won, tied = effective.totals[::2].any(), effective.totals[1] > 0.0
        fixed = self.form.no_ties if not tied else FARTHEST
        return Likelihood(effective, self.form, float(alpha), counts.sided, bool(tied and won), fixed)

    def _learn(self, votes: Votes, counts: Counts, *, fresh: bool) -> None:
        """Maximise the likelihood of all votes so far, starting from the current ratings."""
        self.check_parameters()
        if not counts.cells.any():
            raise all_zero_error("sample_weight", "vote")
        likelihood = self.likelihood(counts, self.alpha)
        if likelihood.alpha == 0.0:
            tied = bool(likelihood.counts.totals[1] > 0.0)
            _refuse_infinite(likelihood.counts, votes.items, advantage=likelihood.advantage, tie=tied)
        with one_blas_thread():
            maximum = maximise(likelihood, self.start(likelihood, fresh=fresh), self.tol, self.max_iter)
        if not maximum.converged:
            text = f"No maximum was found within {maximum.n_iter} steps. Raise max_iter, tol or alpha."
            warnings.warn(text, ConvergenceWarning, stacklevel=4)
        self.store_maximum(likelihood, maximum)

    def start(self, likelihood: Likelihood, *, fresh: bool) -> FloatArray:
        """Starting point of the search: equal strengths, or the current ratings."""
        x = np.zeros(likelihood.size)
        if likelihood.tie:
            totals = likelihood.counts.totals / likelihood.counts.totals.max()
            x[-1] = likelihood.form.first_guess(float(totals[1] / totals.sum()))
        if not fresh:
            x[: len(self.ratings_)] = self.ratings_
            if likelihood.advantage:
                x[likelihood.counts.n_items] = self.advantage_
        return likelihood.center(x)

    def store_maximum(self, likelihood: Likelihood, maximum: Maximum) -> None:
        """Set the fitted attributes from the maximum."""
        ratings, self.advantage_, self.log_tie_ = likelihood.parts(maximum.x)
        self.ratings_ = ratings - ratings.mean()
        self.x_, self.n_iter_, self.value_ = maximum.x, maximum.n_iter, maximum.value

    @property
    def elo_(self) -> FloatArray:
        """Ratings on the scale of chess."""
        check_is_fitted(self, "ratings_")
        return 1500.0 + ELO * self.ratings_

    def probabilities(self, left: IntArray, right: IntArray) -> FloatArray:
        """Probabilities of outcomes -1, 0 and +1 for items by number, shape (n, 3)."""
        d = self.ratings_[left] - self.ratings_[right] + self.advantage_
        return self.form.probabilities(d, self.log_tie_)

    def interval(
        self,
        level: float = 0.95,
        *,
        method: str = "information",
        n_resamples: int = 500,
        random_state: Seed = 0,
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the confidence interval of each rating.

        Parameters
        ----------
        level
            Confidence of each single interval.
        method
            "information": from the curvature of the likelihood, valid if the model is. "robust": valid also
            if votes are distributed otherwise, as half wins are. "bootstrap": between quantiles of the
            ratings of resampled votes, each solved with alpha of at least 0.001, since a resample may not be
            connected. A resample holds only observed outcomes: where all resamples are equal, as for a single
            vote, the interval is from minus to plus infinity.
        n_resamples, random_state
            Number of resamples and seed of "bootstrap".

        Weights of votes count as numbers of votes.
        """
        self.check_fitted()
        check_share("level", level, 0.95)
        if method == "bootstrap":
            return drawn_interval(self.resample_ratings(n_resamples, random_state), level)
        return normal_interval(self.ratings_, self.covariance(method), level)

    def covariance(
        self, method: str = "information", *, n_resamples: int = 500, random_state: Seed = 0
    ) -> FloatArray:
        """Covariance matrix of the errors of the ratings; each row sums to 0, as the ratings do."""
        if method == "bootstrap":
            drawn = self.resample_ratings(n_resamples, random_state)
            return np.cov(drawn, rowvar=False).reshape(drawn.shape[1], -1)
        n = len(self.ratings_) if hasattr(self, "ratings_") else 0
        return self.errors(method)[:n, :n]

    def errors(self, method: str) -> FloatArray:
        """Covariance of the errors of ratings, advantage and logarithm of the tie parameter."""
        self.check_fitted()
        check_choice("method", method, METHODS)
        likelihood = self.likelihood(self.counts_, self.alpha)
        raw = self.counts_ if method == "robust" else None
        return covariance(likelihood, likelihood.at(self.x_), raw)

    def parameter_errors(self, method: str = "information") -> dict[str, float]:
        """Standard errors of `advantage_` and `log_tie_`, if they were free.

        The standard error of the tie parameter is about the parameter times that of its logarithm.

        Parameters
        ----------
        method
            "information" or "robust".
        """
        check_choice("method", method, METHODS[:2])
        variances = np.diagonal(self.errors(method))[len(self.ratings_) :].clip(min=0.0)
        likelihood = self.likelihood(self.counts_, self.alpha)
        free = {"advantage": likelihood.advantage, "log_tie": likelihood.tie}
        names = [name for name, is_free in free.items() if is_free]
        return dict(zip(names, np.sqrt(variances).tolist(), strict=True))

    def resample_ratings(self, n_resamples: int = 500, random_state: Seed = 0) -> FloatArray:
        """Ratings of resampled votes: shape (n_resamples, n_items)."""
        self.check_fitted()
        check_whole("n_resamples", n_resamples, 2, INT32_MAX)
        with one_blas_thread():
            return bootstrap(self, int(n_resamples), generator(random_state))

    def rank_bounds(
        self,
        level: float = 0.95,
        method: str = "information",
        *,
        n_resamples: int = 500,
        random_state: Seed = 0,
    ) -> tuple[IntArray, IntArray]:
        """Best and worst possible rank of each item, simultaneously valid at this level."""
        check_share("level", level, 0.95)
        if method == "bootstrap":
            return open_ranks(self.ratings_, self.resample_ratings(n_resamples, random_state), level)
        return separated_ranks(self.ratings_, self.covariance(method), level)

    def leaderboard(
        self,
        level: float = 0.95,
        *,
        method: str = "information",
        scale: str = "natural",
        n_resamples: int = 500,
        random_state: Seed = 0,
    ) -> Leaderboard:
        """Build the leaderboard: items by rating, with intervals, possible ranks, and records.

        Parameters
        ----------
        level
            Confidence of each single interval, and of all ranks together.
        method
            As for `interval`. More than 5,000 items need "bootstrap"; their ranks then follow from intervals
            that do not overlap, which leave more ranks open.
        scale
            "natural": log-strengths; "elo": as `elo_`.
        n_resamples, random_state
            Number of resamples and seed of "bootstrap".
        """
        if scale not in ("natural", "elo"):
            raise ParameterError("scale", scale, "'natural' or 'elo'")
        self.check_fitted()
        check_share("level", level, 0.95)
        base, unit = (0.0, 1.0) if scale == "natural" else (1500.0, ELO)
        if method == "bootstrap":
            drawn = self.resample_ratings(n_resamples, random_state)
            ends, ranks = drawn_interval(drawn, level), open_ranks(self.ratings_, drawn, level)
        else:
            errors = self.covariance(method)
            ends = normal_interval(self.ratings_, errors, level)
            ranks = separated_ranks(self.ratings_, errors, level)
        low, high = (base + unit * end for end in ends)
        return leaderboard(self.items_, base + unit * self.ratings_, (low, high), ranks, self.counts_, level)
