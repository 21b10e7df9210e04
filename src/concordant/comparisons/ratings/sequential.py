"""SequentialModel: ratings that are updated vote by vote, and the tie parameter fitted to their forecasts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from concordant._base.validate import (
    INT32_MAX,
    check_lengths,
    check_share,
    check_whole,
    freeze,
    refuse_misaligned,
    sum_overflow_error,
)
from concordant.comparisons.ratings.intervals import drawn_interval, open_ranks
from concordant.comparisons.ratings.leaderboard import Leaderboard, leaderboard
from concordant.comparisons.ratings.rating_model import RatingModel, Seed, generator
from concordant.comparisons.ratings.votes import Counts, Votes, read_votes
from concordant.data.times import check_time, days_since_1970, refuse_merged
from concordant.exceptions import LabelError, NonFiniteError, ParameterError
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Votes in the order in which they are learned, and the state of a sequential model after them.

LEVELS = 2048  # bins of differences in the logarithm of the odds: each 1/128 wide, the last open
NO_WEIGHTS, NO_NUMBERS = freeze(np.empty(0)), freeze(np.empty(0, dtype=np.int64))


@dataclass(eq=False)
class State:
    """State after the votes so far: arrays with an entry per item, and statistics that the tie is fitted to.

    `levels` holds, by bin of the size of the predicted difference, the weight of the votes, that of the ties,
    and the sum of the sizes.
    """

    of_items: dict[str, NDArray[Any]]
    levels: FloatArray = field(default_factory=lambda: np.zeros((LEVELS, 3)))

    def with_newcomers(self, newcomers: State) -> State:
        """Return a copy with further items."""
        columns = self.of_items.items()
        arrays = {name: np.concatenate((array, newcomers.of_items[name])) for name, array in columns}
        return State(arrays, self.levels.copy())


@dataclass(frozen=True, eq=False)
class Played:
    """Votes in the order of learning; empty weights mean all 1, empty periods one per vote.

    All arrays are read-only: so one compiled version of a kernel serves all callers.
    """

    left: IntArray
    right: IntArray
    outcome: IntArray
    weights: FloatArray
    periods: IntArray


def _in_order(votes: Votes, times: FloatArray | None, periods: IntArray) -> Played:
    """Sort the votes by time; rows of equal time keep their order."""
    weights = NO_WEIGHTS if votes.weights is None else votes.weights
    columns: tuple[NDArray[Any], ...] = votes.left, votes.right, votes.outcome, weights, periods
    if times is not None and (np.diff(times) < 0.0).any():
        order = np.argsort(times, kind="stable")
        columns = tuple(column[order] if len(column) else column for column in columns)
    return Played(*(freeze(np.ascontiguousarray(column)) for column in columns))


def _concatenate_played(parts: list[Played]) -> Played:
    """Concatenate the votes of `fit` and of all updates."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights if len(part.weights) else np.ones(len(part.left)) for part in parts]
    columns = zip(*((part.left, part.right, part.outcome, part.periods) for part in parts), strict=True)
    left, right, outcome, periods = (freeze(np.concatenate(column)) for column in columns)
    return Played(left, right, outcome, freeze(np.concatenate(weights)), periods)


# The probability of a tie by Davidson's model, for ratings that predict only points.


def fit_tie(votes: FloatArray, ties: FloatArray, sizes: FloatArray) -> float:
    """Fit nu >= 0 by maximum likelihood to the numbers of ties at each predicted difference.

    At a difference d in the logarithm of the odds a tie has probability p / (1 + p), where p is
    nu * sqrt(s * (1 - s)) = nu / (2 cosh(d / 2)). Levels count at their means: nu moves by about a millionth.
    """
    from scipy.optimize import brentq

    total, tied = float(votes.sum()), float(ties.sum())
    if tied <= 0.0 or tied >= total:
        return 0.0 if tied <= 0.0 else math.inf
    nonempty = np.flatnonzero(votes)
    heights = 0.5 / np.cosh(np.minimum(0.5 * sizes[nonempty] / votes[nonempty], 300.0))

    def surplus(log_nu: float) -> float:
        return float(votes[nonempty] @ (1.0 / (1.0 + math.exp(-log_nu) / heights))) - tied

    odds = math.log(tied / (total - tied))  # the root, if all heights were 1
    ends = odds - math.log(heights.max()) - 1e-9, odds - math.log(heights.min()) + 1e-9
    return math.exp(brentq(surplus, *ends, xtol=1e-12))


def davidson(shares: FloatArray, nu: float) -> FloatArray:
    """Probabilities in proportion to s, nu * sqrt(s * (1 - s)) and 1 - s: shape (n, 3).

    >>> davidson(np.array([0.5, 0.8]), 1.0).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.571, 0.286, 0.143]]
    """
    if math.isinf(nu):
        return np.tile([0.0, 1.0, 0.0], (len(shares), 1))
    tie = nu * np.sqrt(shares * (1.0 - shares))
    return np.stack((shares, tie, 1.0 - shares), axis=1) / (1.0 + tie)[:, None]


RESAMPLES = 500


class SequentialModel(RatingModel):
    """Base of ratings that are updated vote by vote, in order of time, at a constant cost per vote.

    Each vote is predicted before it is learned: `tie_` maximises the likelihood of these forecasts. Fitting
    some votes and updating by the others gives the same bits as fitting all, if none of the others is
    earlier.

    Attributes
    ----------
    tie_
        Davidson's parameter nu: with s the predicted share of the points of the left, the outcomes have
        probabilities proportional to s, nu * sqrt(s * (1 - s)), and 1 - s. Fitted by maximum likelihood to
        the forecasts; 0 if there was no tie yet, infinite if there were only ties.
    """

    methods: ClassVar[tuple[str, ...]] = ("bootstrap",)  # of intervals; the first is the default
    state_: State
    history_: list[Played]
    latest_: float
    tie_: float
    clock_: str

    def newcomers(self, n: int) -> State:
        """Return the state of n items without votes."""
        raise NotImplementedError

    def _play(self, state: State, played: Played, times: IntArray) -> None:
        """Update the state by the votes, in place; `times` may be empty: each once."""
        raise NotImplementedError

    def _rate(self, state: State) -> FloatArray:
        """Return the rating of each item."""
        raise NotImplementedError

    def shares(self, left: IntArray, right: IntArray) -> FloatArray:
        """Predict the share of the points of the left."""
        raise NotImplementedError

    def _by_deviation(self, tail: float) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Ends of intervals by deviations, and the deviations, if the model has them."""
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
            Dates or numbers by which the votes are sorted; votes of equal time keep their order. None: in the
            order of the rows.
        sample_weight
            Weight >= 0 of each vote, by which its step is multiplied; default 1.
        """
        self.check_parameters()
        votes = read_votes(left, right, outcome, sample_weight)
        columns = {"left": left, "right": right, "outcome": outcome, "sample_weight": sample_weight}
        times, clock = check_times(time, len(votes), **columns)
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
        """Learn from further votes, none earlier than those so far; new items are added."""
        if not hasattr(self, "state_"):
            return self.fit(left, right, outcome, time=time, sample_weight=sample_weight)
        self.check_unchanged()
        votes = read_votes(left, right, outcome, sample_weight, known_items=self.known_)
        columns = {"left": left, "right": right, "outcome": outcome, "sample_weight": sample_weight}
        times, clock = check_times(time, len(votes), **columns)
        if (times is None) != math.isnan(self.latest_):
            problem = "time is missing for some votes"
            raise LabelError(problem, "give the time of all votes, in `fit` and `update`, or of none.")
        if clock != vars(self).get("clock_", clock):
            problem = f"time holds {clock}, but earlier votes had {self.clock_}"
            raise LabelError(problem, "give the time of all votes as one kind.")
        if times is not None and times.min() < self.latest_:
            early = f"time[{times.argmin()}] = {times.min():g}"
            problem = f"{early} is before {self.latest_:g}, the latest so far"
            raise LabelError(problem, "update by later votes, or fit all of them together.")
        return self.take_in(votes, times, fresh=False)

    def take_in(self, votes: Votes, times: FloatArray | None, *, fresh: bool) -> Self:
        """Learn the votes in order of time, and store them."""
        played = _in_order(votes, times, self._periods(times))
        state = self.newcomers(len(votes.items) - (0 if fresh else len(self.known_)))
        state = state if fresh else self.state_.with_newcomers(state)
        self._play(state, played, NO_NUMBERS)
        ratings = _check_finite(self._rate(state), votes.items.names)
        if not np.isfinite(state.levels[:, :2]).all():
            raise sum_overflow_error("sample_weight")
        self.history_ = [played] if fresh else [*self.history_, played]
        self.known_, self.state_, self.ratings_ = votes.items, state, ratings
        self.latest_ = math.nan if times is None else float(times.max())
        self.tie_ = fit_tie(*state.levels.T)
        return self

    @property
    def counts_(self) -> Counts:  # type: ignore[override]
        """Votes so far, summed by pair: computed on access, since the ratings do not need it."""
        played = _concatenate_played(self.history_)
        weights = played.weights if len(played.weights) else None
        return Counts.from_votes(Votes(self.known_, played.left, played.right, played.outcome, weights))

    def _periods(self, _times: FloatArray | None) -> IntArray:
        """Number of the period of each vote; empty if each vote is a separate period."""
        return NO_NUMBERS

    def probabilities(self, left: IntArray, right: IntArray) -> FloatArray:
        """Probabilities of outcomes -1, 0 and +1 for items by number, shape (n, 3)."""
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
        """Ends of the interval of each rating.

        Parameters
        ----------
        level
            Confidence of each single interval.
        method
            "bootstrap": quantiles of the ratings of votes drawn with replacement, in order; an item without
            votes in a sample is a newcomer there. Samples hold only observed outcomes: intervals of items
            with few votes are too narrow, and where all samples give the same rating (a single vote, or the
            same one repeated) the interval is infinite. "deviation", for Glicko only and its default: the
            rating minus and plus normal quantiles of its deviation. It is about ratings relative to those of
            the others: the common level of all of them, which no vote determines, is not included.
        n_resamples, random_state
            Number of resamples and seed of "bootstrap"; equal states give equal intervals.
        """
        return self.ends_and_errors(level, method, n_resamples, random_state)[0]

    def rank_bounds(
        self,
        level: float = 0.95,
        method: str | None = None,
        n_resamples: int = RESAMPLES,
        random_state: Seed = 0,
    ) -> tuple[IntArray, IntArray]:
        """Best and worst possible rank of each item, simultaneously valid at this level.

        By differences of ratings, as for the models of strengths, with errors over the samples, or from
        Glicko's deviations; for more than 5000 items by intervals at a level so high that they hold together.
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
        """Build the leaderboard: items by rating, with intervals, possible ranks, and records.

        Parameters
        ----------
        level
            Confidence of each single interval, and of all ranks together.
        method, n_resamples, random_state
            As for `interval`.
        """
        ends, errors = self.ends_and_errors(level, method, n_resamples, random_state)
        ranks = open_ranks(self.ratings_, errors, level)
        return leaderboard(self.items_, self.ratings_, ends, ranks, self.counts_, level)

    def ends_and_errors(
        self, level: float, method: str | None, n_resamples: int, random_state: Seed
    ) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Intervals, and samples of the errors of the ratings, or their deviations if the model has them."""
        self.check_fitted()
        if method not in (None, *self.methods):
            raise ParameterError("method", method, " or ".join(map(repr, self.methods)))
        level = check_share("level", level, 0.95)
        if (method or self.methods[0]) == "deviation":
            return self._by_deviation(0.5 - 0.5 * level)
        drawn = self.resample_ratings(n_resamples, random_state)
        return drawn_interval(drawn, level), drawn

    def resample_ratings(self, n_resamples: int = RESAMPLES, random_state: Seed = 0) -> FloatArray:
        """Ratings of votes drawn with replacement, in order: shape (n_resamples, n_items)."""
        self.check_fitted()
        size = check_whole("n_resamples", n_resamples, 2, INT32_MAX), len(self.known_)
        rng, played, ratings = generator(random_state), _concatenate_played(self.history_), np.empty(size)
        n_votes = len(played.left)
        for row in ratings:
            drawn = np.bincount(rng.integers(n_votes, size=n_votes), minlength=n_votes)
            state = self.newcomers(len(self.known_))
            self._play(state, played, freeze(drawn))
            row[:] = _check_finite(self._rate(state), self.known_.names)
        return ratings


def _check_finite(ratings: FloatArray, names: NDArray[Any]) -> FloatArray:
    if (bad := ~np.isfinite(ratings)).any():
        item, hint = int(np.argmax(bad)), "smaller weights and advantages, and larger scales, keep it finite."
        where = f"item {names[item].item()!r}"
        raise NonFiniteError("the rating", float(ratings[item]), where, int(bad.sum()), hint)
    return ratings


def check_times(time: ArrayLike, n_rows: int, /, **columns: Any) -> tuple[FloatArray | None, str]:
    """Convert times to numbers (dates to days since 1970); also return their kind."""
    if time is None:
        return None, ""
    refuse_misaligned(**columns, time=time)
    moments = check_time(time)
    check_lengths("left", n_rows, time=moments)
    days = days_since_1970(moments)
    refuse_merged(moments, days, "time")
    return days, "dates" if moments.dtype.kind == "M" else "numbers"
