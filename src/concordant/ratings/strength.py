"""StrengthModel: ratings as log-strengths of maximal likelihood, and what all such models offer."""

from __future__ import annotations

import math
import warnings
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from concordant._numbers import as_double
from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.ratings.base import RatingModel, Seed, check_level, check_whole, generator
from concordant.ratings.counts import Counts
from concordant.ratings.existence import refuse_infinite
from concordant.ratings.forms import DAVIDSON, Form
from concordant.ratings.intervals import (
    bootstrap,
    covariance,
    drawn_interval,
    normal_interval,
    open_ranks,
    separated_ranks,
)
from concordant.ratings.leaderboard import Leaderboard, leaderboard
from concordant.ratings.likelihood import FARTHEST, Likelihood
from concordant.ratings.newton import Maximum, maximise
from concordant.ratings.votes import Votes
from concordant.types import FloatArray, IntArray

__all__ = ["StrengthModel"]

ELO = 400.0 / math.log(10.0)  # points of one unit of log-strength
METHODS = ("information", "robust", "bootstrap")


class StrengthModel(RatingModel):
    """Each item has a strength; ratings are their logarithms, of mean 0.

    Attributes
    ----------
    ratings_
        Log-strength of each item, of mean 0.
    elo_
        The same on the scale of chess: 1500 + 400 / log(10) times the rating.
    advantage_
        Log of the factor on the left side's strength; 0 unless `advantage`.
    log_tie_
        Log of the tie parameter (`nu_` of `Davidson`, `theta_` of `RaoKupper`).
    value_
        Log-likelihood of the votes, less the penalty: alpha / 2 times the sum of the squares of ratings and
        advantage.
    n_iter_
        Newton steps taken, by the last `fit` or `update`.
    """

    may_change: ClassVar[tuple[str, ...]] = ("tol", "max_iter")

    form: ClassVar[Form] = DAVIDSON
    alpha: float
    advantage: bool
    tol: float
    max_iter: int

    @property
    def sided(self) -> bool:
        """Whether it matters who stood left."""
        return isinstance(self.advantage, (bool, np.bool_)) and bool(self.advantage)

    def checked(self) -> None:
        """Refuse parameters outside their range."""
        if not 0.0 <= as_double(self.alpha) < math.inf:
            raise ParameterError("alpha", self.alpha, "a number >= 0")
        if not isinstance(self.advantage, (bool, np.bool_)):
            raise ParameterError("advantage", self.advantage, "True or False")
        if not 0.0 < as_double(self.tol) < math.inf:
            raise ParameterError("tol", self.tol, "a number > 0")
        check_whole("max_iter", self.max_iter, 1)

    def likelihood(self, counts: Counts, alpha: float) -> Likelihood:
        """Give what is maximised; without a tie, or without a win, the tie parameter is known."""
        counted = self.counted(counts)
        won, tied = counted.totals[::2].any(), counted.totals[1] > 0.0
        fixed = self.form.no_ties if not tied else FARTHEST
        return Likelihood(counted, self.form, float(alpha), counts.sided, bool(tied and won), fixed)

    def learn(self, votes: Votes, counts: Counts, *, fresh: bool) -> None:
        """Maximise the likelihood of all votes so far, beginning at the ratings so far."""
        self.checked()
        if not counts.cells.any():
            raise ParameterError("sample_weight", "all zero", "above 0 for at least one vote")
        likelihood = self.likelihood(counts, self.alpha)
        if likelihood.alpha == 0.0:
            tied = bool(likelihood.counts.totals[1] > 0.0)
            refuse_infinite(likelihood.counts, votes.items, advantage=likelihood.advantage, tie=tied)
        with one_blas_thread():
            found = maximise(likelihood, self.start(likelihood, fresh=fresh), self.tol, self.max_iter)
        if not found.converged:
            text = f"no maximum within {found.n_iter} steps: raise max_iter, tol or alpha"
            warnings.warn(text, ConvergenceWarning, stacklevel=4)
        self.take_over(likelihood, found)

    def start(self, likelihood: Likelihood, *, fresh: bool) -> FloatArray:
        """Where the search begins: equal strengths, or the ratings so far."""
        x = np.zeros(likelihood.size)
        if likelihood.tie:
            totals = likelihood.counts.totals / likelihood.counts.totals.max()
            x[-1] = likelihood.form.first_guess(float(totals[1] / totals.sum()))
        if not fresh:
            x[: len(self.ratings_)] = self.ratings_
            if likelihood.advantage:
                x[likelihood.counts.n_items] = self.advantage_
        return likelihood.centred(x)

    def take_over(self, likelihood: Likelihood, found: Maximum) -> None:
        """Keep what was learned."""
        ratings, self.advantage_, self.log_tie_ = likelihood.parts(found.x)
        self.ratings_ = ratings - ratings.mean()
        self.x_, self.n_iter_, self.value_ = found.x, found.n_iter, found.value

    @property
    def elo_(self) -> FloatArray:
        """Ratings on the scale of chess."""
        check_is_fitted(self, "ratings_")
        points: FloatArray = 1500.0 + ELO * self.ratings_
        return points

    def probabilities(self, left: IntArray, right: IntArray) -> FloatArray:
        """Give the probability of each outcome, for items by number."""
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
        """Give the lower and the upper end of a confidence interval of each rating.

        Parameters
        ----------
        level
            Confidence of each interval, by itself.
        method
            "information": from the curvature of the likelihood, right if the model is. "robust": also where
            votes are distributed otherwise, as half wins are. "bootstrap": between quantiles of the ratings
            of resampled votes, each solved with alpha of at least 0.001, since a resample may not be
            connected. A resample holds only outcomes that were seen: where all resamples are alike, as of a
            single vote, the interval is from minus to plus infinity.
        n_resamples, random_state
            Of "bootstrap".

        Weights of votes count as numbers of votes.
        """
        self.check_fitted()
        check_level(level)
        if method == "bootstrap":
            return drawn_interval(self.resampled(n_resamples, random_state), level)
        return normal_interval(self.ratings_, self.covariance(method), level)

    def covariance(
        self, method: str = "information", *, n_resamples: int = 500, random_state: Seed = 0
    ) -> FloatArray:
        """Give the covariance matrix of the errors of the ratings: each row sums to 0, as the ratings do."""
        if method == "bootstrap":
            drawn = self.resampled(n_resamples, random_state)
            return np.cov(drawn, rowvar=False).reshape(drawn.shape[1], -1)
        n = len(self.ratings_) if hasattr(self, "ratings_") else 0
        return self.errors(method)[:n, :n]

    def errors(self, method: str) -> FloatArray:
        """Give the covariance of the errors of ratings, advantage and logarithm of the tie parameter."""
        self.check_fitted()
        if method not in METHODS:
            raise ParameterError("method", method, f"one of {', '.join(METHODS)}")
        likelihood = self.likelihood(self.counts_, self.alpha)
        raw = self.counts_ if method == "robust" else None
        return covariance(likelihood, likelihood.at(self.x_), raw)

    def parameter_errors(self, method: str = "information") -> dict[str, float]:
        """Give the standard errors of `advantage_` and `log_tie_`: of those that were free.

        That of a tie parameter itself is about the parameter times that of its logarithm.

        Parameters
        ----------
        method
            "information" or "robust".
        """
        if method not in METHODS[:2]:
            raise ParameterError("method", method, f"one of {', '.join(METHODS[:2])}")
        variances = np.diagonal(self.errors(method))[len(self.ratings_) :].clip(min=0.0)
        likelihood = self.likelihood(self.counts_, self.alpha)
        free = {"advantage": likelihood.advantage, "log_tie": likelihood.tie}
        names = [name for name, chosen in free.items() if chosen]
        return dict(zip(names, np.sqrt(variances).tolist(), strict=True))

    def resampled(self, n_resamples: int = 500, random_state: Seed = 0) -> FloatArray:
        """Give the ratings of resampled votes: shape (n_resamples, n_items)."""
        self.check_fitted()
        check_whole("n_resamples", n_resamples, 2)
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
        """Give the best and the worst rank that each item may have, all of them at once at this level."""
        check_level(level)
        if method == "bootstrap":
            return open_ranks(self.ratings_, self.resampled(n_resamples, random_state), level)
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
        """Give the items by rating, with intervals, the ranks that the votes leave open, and records.

        Parameters
        ----------
        level
            Confidence of each interval by itself, and of all ranks together.
        method
            As of `interval`. More than 5,000 items need "bootstrap", and their ranks are then by intervals
            that do not overlap, which leave more of them open.
        scale
            "natural": log-strengths; "elo": as `elo_`.
        n_resamples, random_state
            Of "bootstrap".
        """
        if scale not in ("natural", "elo"):
            raise ParameterError("scale", scale, "natural or elo")
        self.check_fitted()
        check_level(level)
        base, unit = (0.0, 1.0) if scale == "natural" else (1500.0, ELO)
        if method == "bootstrap":
            drawn = self.resampled(n_resamples, random_state)
            ends, ranks = drawn_interval(drawn, level), open_ranks(self.ratings_, drawn, level)
        else:
            errors = self.covariance(method)
            ends = normal_interval(self.ratings_, errors, level)
            ranks = separated_ranks(self.ratings_, errors, level)
        low, high = (base + unit * end for end in ends)
        return leaderboard(self.items_, base + unit * self.ratings_, (low, high), ranks, self.counts_, level)
