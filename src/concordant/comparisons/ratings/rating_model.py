"""RatingModel: the interface of all models of ratings, and their shared checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from concordant._base.light_sklearn import BaseEstimator, check_is_fitted
from concordant._base.validate import (
    check_lengths,
    check_seed,
    refuse_misaligned,
)
from concordant.comparisons.ratings.votes import Counts, Items, Votes, check_side, read_votes
from concordant.exceptions import ParameterError
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

Seed = int | np.random.Generator | None


class RatingModel(BaseEstimator):  # type: ignore[misc]
    """Ratings of items by votes: outcome -1 where the left won, +1 where the right won, 0 for a tie.

    Subclasses define how ratings are learned (`_learn`), and the probabilities of outcomes (`probabilities`).

    Attributes
    ----------
    items_
        Names of the items; those added by `update` come last.
    ratings_
        Rating of each item.
    counts_
        Votes so far, summed by pair: a `Counts`, whose `n_votes` is their total weight.
    learned_
        Parameters of the fit.
    """

    may_change: ClassVar[tuple[str, ...]] = ()  # parameters that may change between a fit and later calls
    known_: Items
    ratings_: FloatArray
    counts_: Counts
    learned_: dict[str, Any]

    @property
    def sided(self) -> bool:
        """True if the sides of a vote matter: then `counts_` counts them separately."""
        return False

    def _learn(self, votes: Votes, counts: Counts, *, fresh: bool) -> None:
        """Set `ratings_`, one per item of `votes.items`, or raise and change nothing.

        `counts` are all votes so far; `votes` are the new ones, in order: all of them if `fresh`.
        """
        raise NotImplementedError

    def probabilities(self, left: IntArray, right: IntArray) -> FloatArray:
        """Probabilities of outcomes -1, 0 and +1 for items by number, shape (n, 3)."""
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
        return self._adopt(votes, Counts.from_votes(votes, sided=self.sided), fresh=True)

    def update(
        self,
        left: ArrayLike,
        right: ArrayLike = None,
        outcome: ArrayLike = None,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Learn from further votes; new items are added. Same as `fit` if the model is not fitted."""
        if not hasattr(self, "counts_"):
            return self.fit(left, right, outcome, sample_weight=sample_weight)
        self.check_unchanged()
        votes = read_votes(left, right, outcome, sample_weight, known_items=self.known_)
        counts = self.counts_.plus(Counts.from_votes(votes, sided=self.counts_.sided))
        return self._adopt(votes, counts, fresh=False)

    def _adopt(self, votes: Votes, counts: Counts, *, fresh: bool) -> Self:
        self._learn(votes, counts, fresh=fresh)
        self.known_, self.counts_, self.learned_ = votes.items, counts, self.get_params()
        return self

    def check_fitted(self) -> None:
        """Raise if the model is not fitted, or its parameters have changed since."""
        check_is_fitted(self, "ratings_")
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise if parameters have changed since the fit: the ratings would contradict them."""
        now = self.get_params()
        for name, value in vars(self).get("learned_", {}).items():
            if name in now and name not in self.may_change and now[name] is not value and now[name] != value:
                hint = f"It was {value!r} when the model was fitted. Set it back, or fit again."
                raise ParameterError(name, now[name], "unchanged after fit", hint=hint)

    def _effective_counts(self, counts: Counts) -> Counts:
        """Transform counts of votes to those that the model uses, such as ties as half wins."""
        return counts

    @property
    def items_(self) -> NDArray[Any]:
        """Names of the items."""
        check_is_fitted(self, "known_")
        return self.known_.names

    @property
    def components_(self) -> list[NDArray[Any]]:
        """Names of the items by component, within which each won against each other, directly or indirectly.

        A tie counts as a win for both sides, or as the model counts it. Largest first. Ratings in different
        components are comparable only by the assumptions of the model.
        """
        self.check_fitted()
        return [self.known_.names[numbers] for numbers in self._effective_counts(self.counts_).components()]

    def codes(self, left: ArrayLike, right: ArrayLike) -> tuple[IntArray, IntArray]:
        """Item numbers of each pair; single ids are columns of length 1."""
        check_is_fitted(self, "ratings_")
        refuse_misaligned(left=left, right=right)
        left, right = check_side(left, "left"), check_side(right, "right")
        check_lengths("left", len(left), right=right)
        return self.known_.codes(left, "left"), self.known_.codes(right, "right")

    def predict_proba(self, left: ArrayLike, right: ArrayLike) -> FloatArray:
        """Probabilities that the left wins, of a tie, and that the right wins: shape (n, 3)."""
        return self.probabilities(*self.codes(left, right))

    def predict(self, left: ArrayLike, right: ArrayLike) -> IntArray:
        """Most probable outcome; 0 if both sides are equally probable, or a tie is as probable as either."""
        return _likeliest(self.predict_proba(left, right))


def _likeliest(probabilities: FloatArray) -> IntArray:
    """Most probable outcome; 0 if both sides are equally probable, or a tie is as probable as either.

    >>> _likeliest(np.array([[0.5, 0.2, 0.3], [0.3, 0.3, 0.4], [0.4, 0.2, 0.4], [0.4, 0.4, 0.2]])).tolist()
    [-1, 1, 0, 0]
    """
    left, tie, right = probabilities.T
    side = np.where(right > left, 1, -1)
    return np.where((right == left) | (tie >= np.maximum(right, left)), 0, side).astype(np.int64)


def generator(random_state: Seed) -> np.random.Generator:
    """Create a numpy generator from a seed or state."""
    return check_seed("random_state", random_state, also="a numpy Generator")
