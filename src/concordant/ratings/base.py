"""RatingModel: what every model of ratings offers, and the checks that all of them share."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from concordant._numbers import as_double, is_whole, whole_numbers
from concordant.exceptions import ParameterError
from concordant.ratings.counts import Counts
from concordant.ratings.leaderboard import Leaderboard
from concordant.ratings.votes import Items, Votes, check_side, read_votes
from concordant.supervision.columns import check_lengths
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RatingModel", "Seed", "check_level", "check_whole", "generator", "likeliest"]

Seed = int | np.random.Generator | None


class RatingModel(BaseEstimator):  # type: ignore[misc]
    """Ratings of items by votes: outcome -1 where the left won, +1 where the right won, 0 for a tie.

    A subclass says how ratings are learned (`learn`), and how probable the outcomes are (`probabilities`).

    Attributes
    ----------
    items_
        Names of the items; those that came by `update` stand last.
    ratings_
        Rating of each item.
    counts_
        Votes so far, summed by pair: a `Counts`, whose `n_votes` is their number.
    learned_
        Parameters of the fit.
    """

    may_change: ClassVar[tuple[str, ...]] = ()  # parameters that may, between a fit and what follows it
    known_: Items
    ratings_: FloatArray
    counts_: Counts
    learned_: dict[str, Any]

    @property
    def sided(self) -> bool:
        """Whether it matters who stood left: then `counts_` keep it apart."""
        return False

    def learn(self, votes: Votes, counts: Counts, *, fresh: bool) -> None:
        """Set `ratings_`, one per item of `votes.items`, or raise and change nothing.

        `counts` are all votes so far; `votes` are the new ones, in order: all of them where `fresh`.
        """
        raise NotImplementedError

    def probabilities(self, left: IntArray, right: IntArray) -> FloatArray:
        """Give the probability of outcomes -1, 0 and +1 for items by number, shape (n, 3)."""
        raise NotImplementedError

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Give the lower and the upper end of each rating's confidence interval."""
        raise NotImplementedError

    def fit(
        self,
        left: ArrayLike,
        right: ArrayLike = None,
        outcome: ArrayLike = None,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Learn the ratings from these votes alone.

        Parameters
        ----------
        left, right
            Ids of the items of each vote: text or numbers; single ids are one vote. `left` may be a
            `Comparisons`, alone.
        outcome
            -1 the left won, +1 the right won, 0 a tie.
        sample_weight
            Weight >= 0 of each vote; default 1.
        """
        votes = read_votes(left, right, outcome, sample_weight)
        return self.adopt(votes, Counts.of(votes, sided=self.sided), fresh=True)

    def update(
        self,
        left: ArrayLike,
        right: ArrayLike = None,
        outcome: ArrayLike = None,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Learn from further votes; new items are added. Without a `fit` before, the same as `fit`."""
        if not hasattr(self, "counts_"):
            return self.fit(left, right, outcome, sample_weight=sample_weight)
        self.check_unchanged()
        votes = read_votes(left, right, outcome, sample_weight, known=self.known_)
        return self.adopt(votes, self.counts_.plus(Counts.of(votes, sided=self.counts_.sided)), fresh=False)

    def adopt(self, votes: Votes, counts: Counts, *, fresh: bool) -> Self:
        """Learn, and then remember the votes."""
        self.learn(votes, counts, fresh=fresh)
        self.known_, self.counts_, self.learned_ = votes.items, counts, self.get_params()
        return self

    def check_fitted(self) -> None:
        """Refuse a model that is not fitted, or not as its parameters say now."""
        check_is_fitted(self, "ratings_")
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Refuse parameters that are no longer those of the fit: what was learned would contradict them."""
        now = self.get_params()
        for name, value in vars(self).get("learned_", {}).items():
            if name in now and name not in self.may_change and now[name] is not value and now[name] != value:
                allowed = f"{value!r}, as when the model was fitted, or fit again"
                raise ParameterError(name, now[name], allowed)

    def counted(self, counts: Counts) -> Counts:
        """Give the votes as the model counts them."""
        return counts

    @property
    def items_(self) -> NDArray[Any]:
        """Names of the items."""
        check_is_fitted(self, "known_")
        return self.known_.names

    @property
    def components_(self) -> list[NDArray[Any]]:
        """Names of the items by component: within one, each won against each other, if through others.

        A tie counts as a win each way, or as the model counts it. Largest first. Ratings in different
        components are comparable only as far as the model's own assumptions go.
        """
        self.check_fitted()
        return [self.known_.names[numbers] for numbers in self.counted(self.counts_).components()]

    def codes(self, left: ArrayLike, right: ArrayLike) -> tuple[IntArray, IntArray]:
        """Numbers of the items of each pair; single ids are pairs of one."""
        check_is_fitted(self, "ratings_")
        left, right = check_side(left, "left"), check_side(right, "right")
        check_lengths("left", len(left), right=right)
        return self.known_.codes(left, "left"), self.known_.codes(right, "right")

    def predict_proba(self, left: ArrayLike, right: ArrayLike) -> FloatArray:
        """Give the probability that the left wins, of a tie, and that the right wins: shape (n, 3)."""
        return self.probabilities(*self.codes(left, right))

    def predict(self, left: ArrayLike, right: ArrayLike) -> IntArray:
        """Give the most probable outcome; 0 where both sides are equally probable, or a tie is as much so."""
        return likeliest(self.predict_proba(left, right))

    def rank_bounds(self, level: float = 0.95) -> tuple[IntArray, IntArray]:
        """Give the best and the worst rank that each item may have."""
        raise NotImplementedError

    def leaderboard(self, level: float = 0.95) -> Leaderboard:
        """Give the items by rating, with intervals, the ranks that the votes leave open, and records."""
        raise NotImplementedError


def likeliest(probabilities: FloatArray) -> IntArray:
    """Give the most probable outcome; 0 where both sides are equally probable, or a tie is as much so.

    >>> likeliest(np.array([[0.5, 0.2, 0.3], [0.3, 0.3, 0.4], [0.4, 0.2, 0.4], [0.4, 0.4, 0.2]])).tolist()
    [-1, 1, 0, 0]
    """
    left, tie, right = probabilities.T
    side = np.where(right > left, 1, -1)
    return np.where((right == left) | (tie >= np.maximum(right, left)), 0, side).astype(np.int64)


def check_level(level: float) -> float:
    """Give a confidence between 0 and 1."""
    if isinstance(level, bool) or not 0.0 < as_double(level) < 1.0:
        raise ParameterError("level", level, "a number between 0 and 1, such as 0.95")
    return float(level)


def check_whole(name: str, value: object, least: int) -> int:
    """Give a whole number that is at least so large."""
    if not isinstance(value, Integral) or not is_whole(value, least):
        raise ParameterError(name, value, whole_numbers(least))
    return int(value)


def generator(random_state: Seed) -> np.random.Generator:
    """Give numpy's generator of this state."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        allowed = "a whole number >= 0, a numpy Generator, or None"
        raise ParameterError("random_state", random_state, allowed) from error
