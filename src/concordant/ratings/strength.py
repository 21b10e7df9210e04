"""StrengthModel: ratings as log-strengths of maximal likelihood, and what all such models offer."""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.ratings.base import RatingModel
from concordant.ratings.counts import Counts
from concordant.ratings.existence import refuse_infinite
from concordant.ratings.forms import DAVIDSON, Form
from concordant.ratings.intervals import bootstrap, covariance, normal_interval, separated_ranks
from concordant.ratings.leaderboard import Leaderboard, leaderboard
from concordant.ratings.likelihood import FARTHEST, Likelihood, Maximum, maximise
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
    n_iter_
        Newton steps taken.
    """

    form: ClassVar[Form] = DAVIDSON
    alpha: float
    advantage: bool
    tol: float
    max_iter: int

    @property
    def sided(self) -> bool:
        """Whether it matters who stood left."""
        return bool(self.advantage)

    def checked(self) -> None:
        """Refuse parameters outside their range."""
        if not (isinstance(self.alpha, Real) and 0.0 <= self.alpha < math.inf):
            raise ParameterError("alpha", self.alpha, "a number >= 0")
        if not isinstance(self.advantage, (bool, np.bool_)):
            raise ParameterError("advantage", self.advantage, "True or False")
        if not (isinstance(self.tol, Real) and 0.0 < self.tol < math.inf):
            raise ParameterError("tol", self.tol, "a number > 0")
        if not (isinstance(self.max_iter, int) and self.max_iter >= 1):
            raise ParameterError("max_iter", self.max_iter, "a whole number >= 1")

    def counted(self, counts: Counts) -> Counts:
        """Give the votes as the model counts them."""
        return counts

    def likelihood(self, counts: Counts, alpha: float) -> Likelihood:
        """Give what is maximised; without a tie, or without a win, the tie parameter is known."""
        counted = self.counted(counts)
        won, tied = counted.cells[:, ::2].any(), counted.cells[:, 1].any()
        fixed = self.form.no_ties if not tied else FARTHEST
        return Likelihood(counted, self.form, float(alpha), counts.sided, bool(tied and won), fixed)

    def learn(self, votes: Votes, counts: Counts, *, fresh: bool) -> None:
        """Maximise the likelihood of all votes so far, beginning at the ratings so far."""
        self.checked()
        likelihood = self.likelihood(counts, self.alpha)
        if likelihood.alpha == 0.0:
            tied = bool(likelihood.counts.cells[:, 1].any())
            refuse_infinite(likelihood.counts, votes.items, advantage=likelihood.advantage, tie=tied)
        with one_blas_thread():
            found = maximise(likelihood, self.start(likelihood, fresh=fresh), self.tol, self.max_iter)
        if not found.converged:
            text = f"no maximum within {found.n_iter} steps: raise max_iter, or alpha"
            warnings.warn(text, ConvergenceWarning, stacklevel=4)
        self.take_over(likelihood, found)

    def start(self, likelihood: Likelihood, *, fresh: bool) -> FloatArray:
        """Where the search begins: equal strengths, or the ratings so far."""
        x = np.zeros(likelihood.size)
        if likelihood.tie:
            tied = likelihood.counts.cells.sum(axis=0)
            x[-1] = likelihood.form.first_guess(float(tied[1] / tied.sum()))
        if not fresh:
            x[: len(self.ratings_)] = self.ratings_
            if likelihood.advantage:
                x[likelihood.counts.n_items] = self.advantage_
        return likelihood.centred(x)

    def take_over(self, likelihood: Likelihood, found: Maximum) -> None:
        """Keep what was learned."""
        ratings, self.advantage_, self.log_tie_ = likelihood.parts(found.point.x)
        self.ratings_ = ratings - ratings.mean()
        self.x_, self.n_iter_, self.value_ = found.point.x, found.n_iter, found.point.value

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
        random_state: int = 0,
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
            connected.
        n_resamples, random_state
            Of "bootstrap".

        Weights of votes count as numbers of votes.
        """
        check_is_fitted(self, "ratings_")
        check_level(level)
        if method == "bootstrap":
            ratings = self.resampled(n_resamples, random_state)
            low, high = np.quantile(ratings, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
            return low, high
        return normal_interval(self.ratings_, self.covariance(method), level)

    def covariance(self, method: str = "information") -> FloatArray:
        """Give the covariance matrix of the errors of the ratings: each row sums to 0, as the ratings do."""
        check_is_fitted(self, "ratings_")
        if method not in METHODS[:2]:
            raise ParameterError("method", method, f"one of {', '.join(METHODS)}")
        likelihood = self.likelihood(self.counts_, self.alpha)
        raw = self.counts_ if method == "robust" else None
        return covariance(likelihood, likelihood.at(self.x_), raw)

    def resampled(self, n_resamples: int = 500, random_state: int = 0) -> FloatArray:
        """Give the ratings of resampled votes: shape (n_resamples, n_items)."""
        check_is_fitted(self, "ratings_")
        if not (isinstance(n_resamples, int) and n_resamples >= 1):
            raise ParameterError("n_resamples", n_resamples, "a whole number >= 1")
        return bootstrap(self, n_resamples, np.random.default_rng(random_state))

    def rank_bounds(self, level: float = 0.95, method: str = "information") -> tuple[IntArray, IntArray]:
        """Give the best and the worst rank that each item may have, all of them at once at this level."""
        check_level(level)
        return separated_ranks(self.ratings_, self.covariance(method), level)

    def leaderboard(
        self, level: float = 0.95, *, method: str = "information", scale: str = "natural"
    ) -> Leaderboard:
        """Give the items by rating, with intervals, the ranks that the votes leave open, and records.

        Parameters
        ----------
        level
            Confidence of each interval by itself, and of all ranks together.
        method
            "information" or "robust", as of `interval`.
        scale
            "natural": log-strengths; "elo": as `elo_`.
        """
        if scale not in ("natural", "elo"):
            raise ParameterError("scale", scale, "natural or elo")
        check_is_fitted(self, "ratings_")
        base, unit = (0.0, 1.0) if scale == "natural" else (1500.0, ELO)
        low, high = (base + unit * end for end in self.interval(level, method=method))
        ranks = self.rank_bounds(level, method)
        return leaderboard(self.items_, base + unit * self.ratings_, (low, high), ranks, self.counts_, level)


def check_level(level: float) -> None:
    """Refuse what is no confidence."""
    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise ParameterError("level", level, "a number between 0 and 1, such as 0.95")
