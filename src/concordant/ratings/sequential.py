"""SequentialModel: ratings that move with every vote, and the chance of a tie that goes with them."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import LabelError, NonFiniteError, NotNumericError, ParameterError
from concordant.ratings.base import RatingModel
from concordant.ratings.counts import Counts
from concordant.ratings.leaderboard import Leaderboard, leaderboard, overlapping_ranks
from concordant.ratings.votes import Votes, read_votes
from concordant.supervision.columns import as_numpy, check_column, check_lengths, frozen
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Played",
    "SequentialModel",
    "State",
    "check_level",
    "check_number",
    "check_times",
    "davidson",
    "fit_tie",
]

LEVELS = 2048  # of differences in the logarithm of the odds: each 1/128 wide, the last open
NO_WEIGHTS, NO_NUMBERS = frozen(np.empty(0)), frozen(np.empty(0, dtype=np.int64))


@dataclass(eq=False)
class State:
    """What the votes so far have left: arrays with an entry per item, and what the tie is fitted to.

    `levels` holds, by level of the foretold difference's size, the weight of the votes, that of the ties, and
    the sum of the sizes.
    """

    of_items: dict[str, NDArray[Any]]
    levels: FloatArray = field(default_factory=lambda: np.zeros((LEVELS, 3)))

    def followed_by(self, newcomers: State) -> State:
        """Give a copy, with further items."""
        joined = {
            name: np.concatenate((old, newcomers.of_items[name])) for name, old in self.of_items.items()
        }
        return State(joined, self.levels.copy())


@dataclass(frozen=True, eq=False)
class Played:
    """Votes in the order in which they are learned; empty weights are all 1, no periods are one a vote.

    All are read-only: so one compiled version of a kernel serves all callers.
    """

    left: IntArray
    right: IntArray
    outcome: IntArray
    weights: FloatArray
    periods: IntArray


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

    state_: State
    history_: list[Played]
    latest_: float
    tie_: float

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
        return self.take_in(votes, check_times(time, len(votes)), fresh=True)

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
        votes = read_votes(left, right, outcome, sample_weight, known=self.known_)
        times = check_times(time, len(votes))
        if (times is None) != math.isnan(self.latest_):
            problem = "time is given for some votes and not for others"
            raise LabelError(problem, "give the time of all votes, in `fit` and `update`, or of none.")
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
        self.history_ = [played] if fresh else [*self.history_, played]
        self.known_, self.state_, self.ratings_ = votes.items, state, self.rate(state)
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
        return davidson(self.shares(left, right), self.tie_)

    def leaderboard(self, level: float = 0.95) -> Leaderboard:
        """Give the items by rating, with intervals, records, and ranks by intervals that do not overlap."""
        check_is_fitted(self, "ratings_")
        ends = self.interval(level)  # once: it may be a bootstrap
        return leaderboard(self.items_, self.ratings_, ends, overlapping_ranks(*ends), self.counts_, level)

    def resampled(self, n_resamples: int, random_state: int) -> FloatArray:
        """Give ratings by votes drawn with replacement, kept in order: shape (n_resamples, n_items)."""
        rng, played = np.random.default_rng(random_state), joined(self.history_)
        n_votes, ratings = len(played.left), np.empty((n_resamples, len(self.known_)))
        for row in ratings:
            drawn = np.bincount(rng.integers(n_votes, size=n_votes), minlength=n_votes)
            state = self.newcomers(len(self.known_))
            self.play(state, played, frozen(drawn))
            row[:] = self.rate(state)
        return ratings

    def bootstrapped(
        self, level: float, n_resamples: int, random_state: int
    ) -> tuple[FloatArray, FloatArray]:
        """Give quantiles of the ratings over samples of the votes."""
        check_is_fitted(self, "state_")
        tail = 0.5 - 0.5 * check_level(level)
        if isinstance(n_resamples, bool) or not isinstance(n_resamples, numbers.Integral) or n_resamples < 2:
            raise ParameterError("n_resamples", n_resamples, "a whole number >= 2")
        low, high = np.quantile(self.resampled(int(n_resamples), random_state), [tail, 1.0 - tail], axis=0)
        return low, high


def in_order(votes: Votes, times: FloatArray | None, periods: IntArray) -> Played:
    """Give the votes in order of time; rows of equal time as they stand."""
    weights = NO_WEIGHTS if votes.weights is None else votes.weights
    columns: tuple[NDArray[Any], ...] = votes.left, votes.right, votes.outcome, weights, periods
    if times is not None and (np.diff(times) < 0.0).any():
        order = np.argsort(times, kind="stable")
        columns = tuple(column[order] if len(column) else column for column in columns)
    return Played(*(frozen(np.ascontiguousarray(column)) for column in columns))


def joined(parts: list[Played]) -> Played:
    """Give the votes of `fit` and of all updates as one."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights if len(part.weights) else np.ones(len(part.left)) for part in parts]
    columns = zip(*((part.left, part.right, part.outcome, part.periods) for part in parts), strict=True)
    left, right, outcome, periods = (frozen(np.concatenate(column)) for column in columns)
    return Played(left, right, outcome, frozen(np.concatenate(weights)), periods)


def fit_tie(votes: FloatArray, ties: FloatArray, sizes: FloatArray) -> float:
    """Give the nu >= 0 that makes so many ties among votes of such foretold differences most likely.

    At a difference d in the logarithm of the odds a tie has probability p / (1 + p), where p is
    nu * sqrt(s * (1 - s)) = nu / (2 cosh(d / 2)). Levels count at their means: nu moves by about a millionth.
    """
    from scipy.optimize import brentq

    total, tied = float(votes.sum()), float(ties.sum())
    if tied <= 0.0 or tied >= total:
        return 0.0 if tied <= 0.0 else math.inf
    seen = np.flatnonzero(votes)
    heights = 0.5 / np.cosh(np.minimum(0.5 * sizes[seen] / votes[seen], 300.0))

    def surplus(log_nu: float) -> float:
        return float(votes[seen] @ (1.0 / (1.0 + math.exp(-log_nu) / heights))) - tied

    odds = math.log(tied / (total - tied))  # the root, if all heights were 1
    ends = odds - math.log(heights.max()) - 1e-9, odds - math.log(heights.min()) + 1e-9
    return math.exp(brentq(surplus, *ends, xtol=1e-12))


def davidson(shares: FloatArray, nu: float) -> FloatArray:
    """Give probabilities in proportion to s, nu * sqrt(s * (1 - s)) and 1 - s: shape (n, 3).

    >>> davidson(np.array([0.5, 0.8]), 1.0).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.571, 0.286, 0.143]]
    """
    if math.isinf(nu):
        return np.tile([0.0, 1.0, 0.0], (len(shares), 1))
    tie = nu * np.sqrt(shares * (1.0 - shares))
    return np.stack((shares, tie, 1.0 - shares), axis=1) / (1.0 + tie)[:, None]


def check_times(time: ArrayLike, n_rows: int) -> FloatArray | None:
    """Give the time of each row as a number: of dates, the days since 1970; None stays None."""
    if time is None:
        return None
    times = as_numpy(time, "time")
    check_lengths("left", n_rows, time=times)
    if (
        times.dtype.kind in "OUS"
        and times.ndim == 1
        and len(times)
        and not isinstance(times[0], (int, float))
    ):
        try:
            times = times.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise NotNumericError(
                "time", f"row 0 is {times[0]!r}, which is no date like 2006-12-31"
            ) from error
    if times.dtype.kind == "M":
        missing = np.isnat(times)
        days = (times.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        times = np.where(missing, np.nan, days)
    values = check_column(times, "time")
    if (bad := ~np.isfinite(values)).any():
        row = int(np.argmax(bad))
        hint = "every vote has a time, or none has."
        raise NonFiniteError("time", float(values[row]), f"row {row}", int(bad.sum()), hint).at(row)
    return values


def check_number(name: str, value: object, least: float, *, above: bool = False) -> None:
    """Refuse what is no finite number >= `least`, or not above it."""
    allowed = (
        f"a finite number {'>' if above else '>='} {least:g}" if math.isfinite(least) else "a finite number"
    )
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
        raise ParameterError(name, value, allowed)
    if value < least or (above and value == least):
        raise ParameterError(name, value, allowed)


def check_level(level: float) -> float:
    """Give a probability between 0 and 1."""
    check_number("level", level, 0.0, above=True)
    if level >= 1.0:
        raise ParameterError("level", level, "between 0 and 1")
    return float(level)
