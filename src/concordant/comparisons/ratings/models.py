"""Models of ratings: Bradley-Terry, Davidson, Rao-Kupper, Elo and Glicko."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from concordant._base.light_sklearn import check_is_fitted
from concordant._base.validate import check_number
from concordant.comparisons.ratings.likelihood import DAVIDSON, FARTHEST, RAO_KUPPER, TieForm
from concordant.comparisons.ratings.sequential import NO_NUMBERS, Played, SequentialModel, State
from concordant.comparisons.ratings.strength import StrengthModel
from concordant.comparisons.ratings.votes import Counts
from concordant.exceptions import ParameterError
from concordant.types import FloatArray, IntArray

# The models of Bradley and Terry, and of Davidson and of Rao and Kupper, which model ties.


class BradleyTerry(StrengthModel):
    """Bradley-Terry model: strengths p with P(i beats j) = p_i / (p_i + p_j).

    Parameters
    ----------
    ties
        Treatment of ties: "half", half a win for each side, or "drop", ignored.
    alpha
        Precision of a normal prior on log-strengths and advantage; 0 gives the ratings of maximum likelihood,
        which must then be finite: every item beat every other, directly or through others; otherwise a
        `NotConnectedError` names the items that did not.
    advantage
        Whether the strength of the left side has an extra factor, as White in chess.
    tol
        Estimated change of ratings by a further Newton step, below which the search ends.
    max_iter
        Maximum number of steps.

    Attributes
    ----------
    items_, ratings_, counts_, components_
        Names of the items, their log-strengths, the votes by pair, and the connected components.
    advantage_, value_, n_iter_
        Log of the left side's factor; the log-likelihood, minus alpha's penalty; number of Newton steps.

    Examples
    --------
    >>> model = BradleyTerry().fit(["a", "a", "b"], ["b", "b", "a"], [-1, -1, -1])
    >>> model.items_.tolist(), model.ratings_.round(3).tolist()  # half of log(2)
    (['a', 'b'], [0.347, -0.347])
    >>> model.predict_proba("a", "b").round(3).tolist()
    [[0.667, 0.0, 0.333]]
    """

    def __init__(
        self,
        *,
        ties: str = "half",
        alpha: float = 0.0,
        advantage: bool = False,
        tol: float = 1e-10,
        max_iter: int = 200,
    ) -> None:
        super().__init__(alpha=alpha, advantage=advantage, tol=tol, max_iter=max_iter)
        self.ties = ties

    def check_parameters(self) -> None:
        """Raise for parameters outside their range."""
        super().check_parameters()
        if not (isinstance(self.ties, str) and self.ties in ("half", "drop")):
            raise ParameterError("ties", self.ties, "'half' or 'drop'")

    def _effective_counts(self, counts: Counts) -> Counts:
        cells = np.zeros_like(counts.cells)
        half = 0.5 * counts.cells[:, 1] if self.ties == "half" else 0.0
        for side in (0, 2):
            np.add(counts.cells[:, side], half, out=cells[:, side])
        return counts.with_cells(cells)


class Davidson(StrengthModel):
    """Davidson model: win, tie and loss in the proportions p_i : nu sqrt(p_i p_j) : p_j.

    Davidson (1970). If all pairs meet equally often, the ratings order the items by the number of wins and
    half ties.

    Parameters
    ----------
    alpha, advantage, tol, max_iter
        As for `BradleyTerry`. With alpha = 0 some cycle of votes must also hold more wins than ties (two
        items that beat each other do), or `NoFiniteRatingsError` is raised.

    Attributes
    ----------
    items_, ratings_, counts_, components_, advantage_, value_, n_iter_
        As for `BradleyTerry`.
    nu_
        Frequency of ties: between equals, nu / (2 + nu) of the votes. 0 if there are no ties; infinite if
        there are only ties (with alpha > 0).

    Examples
    --------
    >>> model = Davidson().fit(["a"] * 4, ["b"] * 4, [-1, -1, 0, 1])
    >>> model.predict_proba("a", "b").round(3).tolist()
    [[0.5, 0.25, 0.25]]
    """

    form: ClassVar[TieForm] = DAVIDSON

    @property
    def nu_(self) -> float:
        """Tie parameter of the model."""
        check_is_fitted(self, "ratings_")
        return _exp_tie(self.log_tie_)


class RaoKupper(StrengthModel):
    """Rao-Kupper model: P(i beats j) = p_i / (p_i + theta p_j), and a tie otherwise.

    Rao and Kupper (1967): the better side of a logistic contest wins only if it leads by log(theta).

    Parameters
    ----------
    alpha, advantage, tol, max_iter
        As for `Davidson`.

    Attributes
    ----------
    items_, ratings_, counts_, components_, advantage_, value_, n_iter_
        As for `BradleyTerry`.
    theta_
        The threshold, >= 1: 1 if there are no ties; infinite if there are only ties (with alpha > 0).

    Examples
    --------
    >>> model = RaoKupper().fit(["a"] * 4, ["b"] * 4, [-1, -1, 0, 1])
    >>> model.predict_proba("a", "b").round(3).tolist()
    [[0.5, 0.25, 0.25]]
    """

    form: ClassVar[TieForm] = RAO_KUPPER

    @property
    def theta_(self) -> float:
        """Tie parameter of the model."""
        check_is_fitted(self, "ratings_")
        return _exp_tie(self.log_tie_)


def _exp_tie(log_tie: float) -> float:
    """Exponentiate the log of a tie parameter; values that represent infinity become infinite."""
    return math.inf if log_tie >= FARTHEST else float(np.exp(log_tie))


# Elo's ratings, with a fixed K or with FIDE's.


class Elo(SequentialModel):
    """Elo ratings: each vote moves both by K times (points - predicted points); a tie is half a point.

    The predicted share of the points of the left is 1 / (1 + 10^(-(left + advantage - right) / scale)).

    Parameters
    ----------
    k
        Step size of a vote, or "fide": 30 in an item's first 30 votes, then 15, and 10 once its rating has
        reached 2400.
    initial
        Rating of a newcomer.
    scale
        Difference of ratings at which the odds are 10 to 1.
    advantage
        Points added to the left, for the first move or for playing at home.

    References
    ----------
    Elo (1978), The rating of chess players, past and present. FIDE's K as in R's PlayerRatings::kfide.

    Examples
    --------
    >>> model = Elo().fit(["ann", "bob", "ann"], ["bob", "cat", "cat"], [-1, 0, -1])
    >>> model.items_.tolist(), model.ratings_.round(1).tolist()
    (['ann', 'bob', 'cat'], [1531.2, 1484.7, 1484.0])
    >>> model.predict_proba(["ann"], ["cat"]).round(3).tolist()
    [[0.379, 0.331, 0.289]]
    """

    def __init__(
        self, k: float | str = 32.0, *, initial: float = 1500.0, scale: float = 400.0, advantage: float = 0.0
    ) -> None:
        self.k = k
        self.initial = initial
        self.scale = scale
        self.advantage = advantage

    def check_parameters(self) -> None:
        """Raise for parameters outside their range."""
        if not (isinstance(self.k, str) and self.k == "fide"):
            check_number("k", self.k, above=0.0, also="'fide'")
        check_number("scale", self.scale, above=0.0)
        for name in ("initial", "advantage"):
            check_number(name, getattr(self, name))

    def newcomers(self, n: int) -> State:
        """Return the state of n items without votes."""
        state = State({"ratings": np.full(n, float(self.initial))})
        if self.k == "fide":
            state.of_items |= {"games": np.zeros(n, dtype=np.int64), "best": np.full(n, float(self.initial))}
        return state

    def _play(self, state: State, played: Played, times: IntArray) -> None:
        from concordant.comparisons.ratings import sequential_kernels

        kernels: Any = sequential_kernels
        votes = played.left, played.right, played.outcome, played.weights, times
        options = math.log(10.0) / self.scale, float(self.advantage)
        if self.k == "fide":
            kernels.fide_votes(*votes, *options, *state.of_items.values(), state.levels)
        else:
            kernels.elo_votes(*votes, float(self.k), *options, state.of_items["ratings"], state.levels)

    def _rate(self, state: State) -> FloatArray:
        return state.of_items["ratings"].copy()

    def shares(self, left: IntArray, right: IntArray) -> FloatArray:
        """Predict the share of the points of the left."""
        from scipy.special import expit

        difference = self.ratings_[left] + self.advantage - self.ratings_[right]
        return expit(math.log(10.0) / self.scale * difference)


# Glicko's ratings, each with a deviation.

POINT = math.log(10.0) / 400.0
WIDEST = 1e100  # deviation
MOST = 2.0**53  # periods that a double can count
UNSEEN = np.iinfo(np.int64).min  # the period of items without votes


class Glicko(SequentialModel):
    """Glicko ratings: a normal distribution for each item, with `deviations_` as its spread.

    All votes of a period start from the ratings before it. Between the periods in which an item has votes its
    variance grows by c^2 per period.

    Parameters
    ----------
    initial
        Rating of a newcomer.
    deviation
        Deviation of a newcomer, and the maximum.
    c
        Growth of the deviation: from 0 to c in one period. 0 for items that do not change.
    floor
        Minimum of the deviation, so that ratings keep moving. Glickman suggests 30 for people.
    period
        Length of a rating period in the unit of `time`, days for dates: votes at times of equal
        floor(time / period) share a period. With period 1, `time` may simply number the periods. None: every
        vote is a separate period for its two items.
    advantage
        Points added to the left, for the first move or for playing at home.

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
        check_number("deviation", self.deviation, above=0.0)
        if self.deviation > WIDEST:
            allowed = f"at most {WIDEST:g}"
            raise ParameterError("deviation", self.deviation, allowed)
        check_number("c", self.c, least=0.0)
        check_number("floor", self.floor, least=0.0)
        if self.floor > self.deviation:
            raise ParameterError("floor", self.floor, f"at most deviation={self.deviation}")
        if self.period is not None:
            check_number("period", self.period, above=0.0, also="None")
        for name in ("initial", "advantage"):
            check_number(name, getattr(self, name))

    def _periods(self, times: FloatArray | None) -> IntArray:
        """Number of the period of each vote; empty if each vote is a separate period."""
        if self.period is None:
            return NO_NUMBERS
        if times is None:
            raise ParameterError.because(
                "period was given, but the votes have no times. Pass time=... to fit."
            )
        numbers = np.floor(times / self.period)
        if np.abs(numbers).max() > MOST:
            raise ParameterError.because(
                f"period={self.period:g} is too short: the times span more than {MOST:g} periods."
            )
        return numbers.astype(np.int64)

    def newcomers(self, n: int) -> State:
        """Return the state of n items without votes."""
        ratings, variances = np.full(n, float(self.initial)), np.full(n, float(self.deviation) ** 2)
        sums = {"points": np.zeros(n), "information": np.zeros(n), "last": np.full(n, UNSEEN, dtype=np.int64)}
        return State({"ratings": ratings, "variances": variances, **sums})

    def _play(self, state: State, played: Played, times: IntArray) -> None:
        from concordant.comparisons.ratings import sequential_kernels

        kernels: Any = sequential_kernels
        votes = played.left, played.right, played.outcome, played.weights, times, played.periods
        most, least = float(self.deviation) ** 2, float(self.floor) ** 2
        options = float(self.c), most, least, POINT, float(self.advantage)
        kernels.glicko_votes(*votes, *options, *state.of_items.values(), state.levels)

    def _close_period(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Ratings and variances at the end of the period of each item's last vote."""
        ratings, variances, points, information, _ = state.of_items.values()
        after = 1.0 / (1.0 / variances + information)
        return ratings + POINT * after * points, np.maximum(after, self.floor**2)

    def _rate(self, state: State) -> FloatArray:
        return self._close_period(state)[0]

    @property
    def deviations_(self) -> FloatArray:
        """Deviation of each item after its last vote."""
        check_is_fitted(self, "state_")
        return np.sqrt(self._close_period(self.state_)[1])

    def shares(self, left: IntArray, right: IntArray) -> FloatArray:
        """Predict the share of the points of the left; closer to 1/2 for uncertain ratings."""
        from scipy.special import expit

        variances = self._close_period(self.state_)[1]
        trust = 1.0 / np.sqrt(1.0 + 3.0 * (variances[left] + variances[right]) * (POINT / math.pi) ** 2)
        difference = self.ratings_[left] + self.advantage - self.ratings_[right]
        return expit(POINT * trust * difference)

    def _by_deviation(self, tail: float) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Ratings minus and plus normal quantiles of their deviations, and the deviations."""
        from scipy.special import ndtri

        deviations = self.deviations_
        reach = ndtri(1.0 - tail) * deviations
        return (self.ratings_ - reach, self.ratings_ + reach), deviations
