"""SequentialModel: ratings that move with every vote, and the chance of a tie that goes with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import LabelError, NonFiniteError, ParameterError
from concordant.ratings.base import RatingModel, Seed, check_level, check_whole, generator
from concordant.ratings.counts import Counts
from concordant.ratings.intervals import drawn_interval, open_ranks
from concordant.ratings.leaderboard import Leaderboard, leaderboard
from concordant.ratings.played import LEVELS, NO_NUMBERS, Played, State, in_order, joined
from concordant.ratings.ties import davidson, fit_tie
from concordant.ratings.votes import Votes, read_votes
from concordant.supervision.columns import check_lengths, frozen
from concordant.supervision.times import check_time, days_since_1970
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LEVELS",
    "NO_NUMBERS",
    "Played",
    "SequentialModel",
    "State",
    "check_number",
    "check_times",
    "davidson",
    "fit_tie",
]

RESAMPLES = 500


class SequentialModel(RatingModel):
    """Ratings that move with every vote, in order of time; the same work for every vote.

    Each vote is foretold before it is learned: `tie_` makes these forecasts most likely. Fitting some votes
    and updating by the others gives the same as fitting all, to the last bit, where none of the others is
    earlier.

    Attributes
    ----------
    tie_
        Davidson's parameter nu: with s the share of the points that the ratings foretell for the left, the
        outcomes have probabilities proportional to s, nu * sqrt(s * (1 - s)), and 1 - s. Found by maximum
        likelihood on the forecasts; 0 where there was no tie yet, infinite where there was nothing else.
    """

    methods: ClassVar[tuple[str, ...]] = ("bootstrap",)  # of intervals; the first is the default
    state_: State
    history_: list[Played]
    latest_: float
    tie_: float
    clock_: str

    def newcomers(self, n: int) -> State:
        """Give the state of so many items that have no votes."""
        raise NotImplementedError

    def play(self, state: State, played: Played, times: IntArray) -> None:
        """Change the state by the votes; `times` may be empty: each once."""
        raise NotImplementedError

    def rate(self, state: State) -> FloatArray:
        """Give the rating of each item."""
        raise NotImplementedError

    def shares(self, left: IntArray, right: IntArray) -> FloatArray:
        """Give the share of the points that the left is foretold."""
        raise NotImplementedError

    def by_deviation(self, tail: float) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Give the ends of intervals by deviations, and these, where the model has them."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise for parameters outside their range."""
        raise NotImplementedError

    def fit(
        self,
        left: ArrayLike,
        right: ArrayLike = None,
        outcome: ArrayLike = None,
        *,
        time: ArrayLike = None,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Learn the ratings from these votes alone.

        Parameters
        ----------
        left, right
            Ids of the items of each vote: text or numbers. `left` may be a `Comparisons`, alone.
        outcome
            -1 the left won, +1 the right won, 0 a tie.
        time
            Dates or numbers by which the votes are sorted, votes of equal time as they stand. None: in the
            order of the rows.
        sample_weight
            Weight >= 0 of each vote, by which its step is multiplied; default 1.
        """
        self.check_parameters()
        votes = read_votes(left, right, outcome, sample_weight)
        times, clock = check_times(time, len(votes))
        self.take_in(votes, times, fresh=True)
        self.learned_, self.clock_ = self.get_params(), clock
        return self

    def update(
        self,
        left: ArrayLike,
        right: ArrayLike = None,
        outcome: ArrayLike = None,
        *,
        time: ArrayLike = None,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Go on with further votes, none earlier than those so far; new items are added."""
        if not hasattr(self, "state_"):
            return self.fit(left, right, outcome, time=time, sample_weight=sample_weight)
        self.check_unchanged()
        votes = read_votes(left, right, outcome, sample_weight, known=self.known_)
        times, clock = check_times(time, len(votes))
        if (times is None) != math.isnan(self.latest_):
            problem = "time is given for some votes and not for others"
            raise LabelError(problem, "give the time of all votes, in `fit` and `update`, or of none.")
        if clock != vars(self).get("clock_", clock):
            problem = f"time holds {clock}, and of the votes so far it held {self.clock_}"
            raise LabelError(problem, "give the time of all votes as one kind.")
        if times is not None and times.min() < self.latest_:
            problem = (
                f"time[{times.argmin()}] = {times.min():g} is before {self.latest_:g}, the latest so far"
            )
            raise LabelError(problem, "update by later votes, or fit all of them together.")
        return self.take_in(votes, times, fresh=False)

    def take_in(self, votes: Votes, times: FloatArray | None, *, fresh: bool) -> Self:
        """Learn the votes in order of time, and remember them."""
        played = in_order(votes, times, self.periods(times))
        state = self.newcomers(len(votes.items) - (0 if fresh else len(self.known_)))
        state = state if fresh else self.state_.followed_by(state)
        self.play(state, played, NO_NUMBERS)
        ratings = check_finite(self.rate(state), votes.items.names)
        if not np.isfinite(state.levels[:, :2]).all():
            raise ParameterError("sample_weight", "given", "smaller: their sum is no double")
        self.history_ = [played] if fresh else [*self.history_, played]
        self.known_, self.state_, self.ratings_ = votes.items, state, ratings
        self.latest_ = math.nan if times is None else float(times.max())
        self.tie_ = fit_tie(*state.levels.T)
        return self

    @property
    def counts_(self) -> Counts:  # type: ignore[override]
        """Votes so far, summed by pair: counted when asked for, since the ratings need none of it."""
        played = joined(self.history_)
        weights = played.weights if len(played.weights) else None
        return Counts.of(Votes(self.known_, played.left, played.right, played.outcome, weights))

    def periods(self, _times: FloatArray | None) -> IntArray:
        """Give the number of each vote's period; none where each vote is one of its own."""
        return NO_NUMBERS

    def probabilities(self, left: IntArray, right: IntArray) -> FloatArray:
        """Give the probability of outcomes -1, 0 and +1 for items by number, shape (n, 3)."""
        self.check_unchanged()
        return davidson(self.shares(left, right), self.tie_)

    def interval(
        self,
        level: float = 0.95,
        *,
        method: str | None = None,
        n_resamples: int = RESAMPLES,
        random_state: Seed = 0,
    ) -> tuple[FloatArray, FloatArray]:
        """Give the ends of each rating's interval.

        Parameters
        ----------
        level
            Confidence of each interval, by itself.
        method
            "bootstrap": quantiles of the ratings of votes drawn with replacement, in order; an item that is
            without votes in a sample is a newcomer there. A bootstrap knows only outcomes that it has seen:
            it is too sure of items with few votes, and where every sample gives the same rating (one vote, or
            the same one over and over) it knows nothing, and the interval is infinite. "deviation", of Glicko
            alone and its default: the rating less and plus normal quantiles of its deviation. It is about
            ratings beside those of the others: the level of all of them, which no vote tells, is not in it.
        n_resamples, random_state
            Of "bootstrap": how often the votes are drawn; equal states give equal intervals.
        """
        return self.ends_and_errors(level, method, n_resamples, random_state)[0]

    def rank_bounds(
        self,
        level: float = 0.95,
        method: str | None = None,
        n_resamples: int = RESAMPLES,
        random_state: Seed = 0,
    ) -> tuple[IntArray, IntArray]:
        """Give the best and the worst rank that each item may have, all of them at once at this level.

        By differences of ratings, as of the models of strengths, with errors over the samples, or those of
        Glicko's deviations; of more than 5000 items by intervals at a level so high that they hold together.
        """
        _, errors = self.ends_and_errors(level, method, n_resamples, random_state)
        return open_ranks(self.ratings_, errors, level)

    def leaderboard(
        self,
        level: float = 0.95,
        *,
        method: str | None = None,
        n_resamples: int = RESAMPLES,
        random_state: Seed = 0,
    ) -> Leaderboard:
        """Give the items by rating, with intervals, the ranks that the votes leave open, and records.

        Parameters
        ----------
        level
            Confidence of each interval by itself, and of all ranks together.
        method, n_resamples, random_state
            As of `interval`.
        """
        ends, errors = self.ends_and_errors(level, method, n_resamples, random_state)
        ranks = open_ranks(self.ratings_, errors, level)
        return leaderboard(self.items_, self.ratings_, ends, ranks, self.counts_, level)

    def ends_and_errors(
        self, level: float, method: str | None, n_resamples: int, random_state: Seed
    ) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Give the intervals, and samples of the ratings' errors, or the deviations where these are known."""
        self.check_fitted()
        if method not in (None, *self.methods):
            raise ParameterError("method", method, " or ".join(map(repr, self.methods)))
        level = check_level(level)
        if (method or self.methods[0]) == "deviation":
            return self.by_deviation(0.5 - 0.5 * level)
        drawn = self.resampled(n_resamples, random_state)
        return drawn_interval(drawn, level), drawn

    def resampled(self, n_resamples: int = RESAMPLES, random_state: Seed = 0) -> FloatArray:
        """Give ratings by votes drawn with replacement, kept in order: shape (n_resamples, n_items)."""
        self.check_fitted()
        size = check_whole("n_resamples", n_resamples, 2), len(self.known_)
        rng, played, ratings = generator(random_state), joined(self.history_), np.empty(size)
        n_votes = len(played.left)
        for row in ratings:
            drawn = np.bincount(rng.integers(n_votes, size=n_votes), minlength=n_votes)
            state = self.newcomers(len(self.known_))
            self.play(state, played, frozen(drawn))
            row[:] = check_finite(self.rate(state), self.known_.names)
        return ratings


def check_finite(ratings: FloatArray, names: NDArray[Any]) -> FloatArray:
    """Refuse ratings that no double can hold."""
    if (bad := ~np.isfinite(ratings)).any():
        item, hint = int(np.argmax(bad)), "smaller weights and advantages, and larger scales, keep it finite."
        raise NonFiniteError(
            "the rating", float(ratings[item]), f"item {names[item].item()!r}", int(bad.sum()), hint
        )
    return ratings


def check_times(time: ArrayLike, n_rows: int) -> tuple[FloatArray | None, str]:
    """Give the time of each row as a number (of dates, the days since 1970), and which kind they were."""
    if time is None:
        return None, ""
    moments = check_time(time)
    check_lengths("left", n_rows, time=moments)
    return days_since_1970(moments), "dates" if moments.dtype.kind == "M" else "numbers"


def check_number(name: str, value: object, least: float, *, above: bool = False) -> None:
    """Refuse what is no finite number >= `least`, or not above it."""
    allowed = (
        f"a finite number {'>' if above else '>='} {least:g}" if math.isfinite(least) else "a finite number"
    )
    if isinstance(value, bool) or not math.isfinite(number := as_double(value)):
        raise ParameterError(name, value, allowed)
    if number < least or (above and number == least):
        raise ParameterError(name, value, allowed)
