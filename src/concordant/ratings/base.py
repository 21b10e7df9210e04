"""RatingModel: what every model of ratings offers, and the checks that all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from concordant.ratings.counts import Counts
from concordant.ratings.leaderboard import Leaderboard, leaderboard, overlapping_ranks
from concordant.ratings.votes import Items, Votes, read_votes
from concordant.supervision.columns import check_ids, check_lengths
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RatingModel"]


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
        Votes so far, summed by pair.
    """

    known_: Items
    ratings_: FloatArray
    counts_: Counts

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
            Ids of the items of each vote: text or numbers. `left` may be a `Comparisons`, alone.
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
        votes = read_votes(left, right, outcome, sample_weight, known=self.known_)
        return self.adopt(votes, self.counts_.plus(Counts.of(votes, sided=self.counts_.sided)), fresh=False)

    def adopt(self, votes: Votes, counts: Counts, *, fresh: bool) -> Self:
        """Learn, and then remember the votes."""
        self.learn(votes, counts, fresh=fresh)
        self.known_, self.counts_ = votes.items, counts
        return self

    @property
    def items_(self) -> NDArray[Any]:
        """Names of the items."""
        check_is_fitted(self, "known_")
        return self.known_.names

    @property
    def components_(self) -> list[NDArray[Any]]:
        """Names of the items, by component: in one of several, everyone beat everyone, if through others.

        A tie counts as a win each way. Largest first. Ratings in different components are comparable only as
        far as the model's own assumptions go.
        """
        check_is_fitted(self, "counts_")
        return [self.known_.names[numbers] for numbers in self.counts_.components()]

    def codes(self, left: ArrayLike, right: ArrayLike) -> tuple[IntArray, IntArray]:
        """Numbers of the items of each pair; single ids are pairs of one."""
        check_is_fitted(self, "ratings_")
        sides = [[ids] if np.ndim(ids) == 0 else ids for ids in (left, right)]
        left, right = (check_ids(ids, name) for ids, name in zip(sides, ("left", "right"), strict=True))
        check_lengths("left", len(left), right=right)
        return self.known_.codes(left, "left"), self.known_.codes(right, "right")

    def predict_proba(self, left: ArrayLike, right: ArrayLike) -> FloatArray:
        """Give the probability that the left wins, of a tie, and that the right wins: shape (n, 3)."""
        return self.probabilities(*self.codes(left, right))

    def predict(self, left: ArrayLike, right: ArrayLike) -> IntArray:
        """Give the most probable outcome; 0 where both sides are equally probable, or a tie is as much so."""
        loses, tie, wins = self.predict_proba(left, right).T
        side = np.where(wins > loses, 1, -1)
        return np.where((wins == loses) | (tie >= np.maximum(wins, loses)), 0, side).astype(np.int64)

    def rank_bounds(self, level: float) -> tuple[IntArray, IntArray]:
        """Give the best and the worst rank that each item may have: by intervals that do not overlap."""
        return overlapping_ranks(*self.interval(level))

    def leaderboard(self, level: float = 0.95) -> Leaderboard:
        """Give the items by rating, with intervals, ranks that may be shared, and their records."""
        check_is_fitted(self, "ratings_")
        return leaderboard(
            self.items_, self.ratings_, self.interval(level), self.rank_bounds(level), self.counts_, level
        )
