"""Glicko's ratings, each with a deviation."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ParameterError
from concordant.ratings.sequential import (
    NO_NUMBERS,
    Played,
    SequentialModel,
    State,
    check_number,
)
from concordant.types import FloatArray, IntArray

__all__ = ["Glicko"]

POINT = math.log(10.0) / 400.0
WIDEST = 1e100  # deviation
MOST = 2.0**53  # periods that a double can count
UNSEEN = np.iinfo(np.int64).min  # the period of items without votes


class Glicko(SequentialModel):
    """Glicko's ratings: a normal distribution for each item, of which `deviations_` is the spread.

    All votes of a period start from the ratings before it. Between the periods in which an item has votes its
    variance grows by c^2 a period.

    Parameters
    ----------
    initial
        Rating of a newcomer.
    deviation
        Deviation of a newcomer, and the largest one.
    c
        Growth of the deviation: by so much in a period, if it were 0 before. 0 for items that do not change.
    floor
        The deviation never falls below it, so that ratings go on moving. Glickman suggests 30 for people.
    period
        Length of a rating period in the unit of `time`, days for dates: votes at times of equal
        floor(time / period) are one. With period 1, `time` may simply number the periods. None: every vote is
        a period of its own for its two items.
    advantage
        Points added to the left: of the first move, of playing at home.

    References
    ----------
    Glickman (1999), Parameter estimation in large dynamic paired comparison experiments.

    Examples
    --------
    >>> model = Glicko(c=0.0, period=1)
    >>> votes = ["me", "me", "me"], ["b", "c", "d"], [-1, 1, 1]
    >>> model.fit(*votes, time=[1, 1, 1]).ratings_.round(1).tolist()
    [1337.8, 1662.2, 1662.2, 1400.2]
    """

    methods: ClassVar[tuple[str, ...]] = ("deviation", "bootstrap")

    def __init__(
        self,
        *,
        initial: float = 1500.0,
        deviation: float = 350.0,
        c: float = 15.0,
        floor: float = 0.0,
        period: float | None = None,
        advantage: float = 0.0,
    ) -> None:
        self.initial = initial
        self.deviation = deviation
        self.c = c
        self.floor = floor
        self.period = period
        self.advantage = advantage

    def check_parameters(self) -> None:
        """Raise for parameters outside their range."""
        check_number("deviation", self.deviation, 0.0, above=True)
        if self.deviation > WIDEST:
            raise ParameterError(
                "deviation", self.deviation, f"at most {WIDEST:g}, so that it can be squared"
            )
        check_number("c", self.c, 0.0)
        check_number("floor", self.floor, 0.0)
        if self.floor > self.deviation:
            raise ParameterError("floor", self.floor, f"at most the deviation, {self.deviation}")
        if self.period is not None:
            check_number("period", self.period, 0.0, above=True)
        for name in ("initial", "advantage"):
            check_number(name, getattr(self, name), -math.inf)

    def periods(self, times: FloatArray | None) -> IntArray:
        """Give the number of each vote's period; none where each vote is one of its own."""
        if self.period is None:
            return NO_NUMBERS
        if times is None:
            raise ParameterError("period", self.period, "None where the votes have no time: pass time=")
        numbers = np.floor(times / self.period)
        if np.abs(numbers).max() > MOST:
            raise ParameterError("period", self.period, f"longer: the times have more than {MOST:g} of them")
        return numbers.astype(np.int64)

    def newcomers(self, n: int) -> State:
        """Give the state of so many items that have no votes."""
        ratings, variances = np.full(n, float(self.initial)), np.full(n, float(self.deviation) ** 2)
        sums = {"points": np.zeros(n), "information": np.zeros(n), "last": np.full(n, UNSEEN, dtype=np.int64)}
        return State({"ratings": ratings, "variances": variances, **sums})

    def play(self, state: State, played: Played, times: IntArray) -> None:
        """Change the state by the votes."""
        from concordant.ratings import sequential_kernels

        kernels: Any = sequential_kernels
        votes = played.left, played.right, played.outcome, played.weights, times, played.periods
        options = (
            float(self.c),
            float(self.deviation) ** 2,
            float(self.floor) ** 2,
            POINT,
            float(self.advantage),
        )
        kernels.glicko_votes(*votes, *options, *state.of_items.values(), state.levels)

    def closed(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Give the ratings and the variances as if the period of each item's last vote were over."""
        ratings, variances, points, information, _ = state.of_items.values()
        after = 1.0 / (1.0 / variances + information)
        return ratings + POINT * after * points, np.maximum(after, self.floor**2)

    def rate(self, state: State) -> FloatArray:
        """Give the rating of each item."""
        return self.closed(state)[0]

    @property
    def deviations_(self) -> FloatArray:
        """Deviation of each item after its last vote."""
        check_is_fitted(self, "state_")
        deviations: FloatArray = np.sqrt(self.closed(self.state_)[1])
        return deviations

    def shares(self, left: IntArray, right: IntArray) -> FloatArray:
        """Give the share of the points that the left is foretold; nearer 1/2 where ratings are uncertain."""
        from scipy.special import expit

        variances = self.closed(self.state_)[1]
        trust = 1.0 / np.sqrt(1.0 + 3.0 * (variances[left] + variances[right]) * (POINT / math.pi) ** 2)
        difference = self.ratings_[left] + self.advantage - self.ratings_[right]
        shares: FloatArray = expit(POINT * trust * difference)
        return shares

    def by_deviation(self, tail: float) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Give the ratings less and plus normal quantiles of their deviations, and these."""
        from scipy.special import ndtri

        deviations = self.deviations_
        reach = ndtri(1.0 - tail) * deviations
        return (self.ratings_ - reach, self.ratings_ + reach), deviations
