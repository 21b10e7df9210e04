"""Elo's ratings, with a fixed K or with FIDE's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.ratings.sequential import Played, SequentialModel, State, check_number
from concordant.types import FloatArray, IntArray

__all__ = ["Elo"]


class Elo(SequentialModel):
    """Elo's ratings: each vote moves both by K times (points - foretold points); a tie is half a point.

    The share of the points foretold for the left is 1 / (1 + 10^(-(left + advantage - right) / scale)).

    Parameters
    ----------
    k
        How far one vote moves a rating, or "fide": 30 in an item's first 30 votes, then 15, and 10 from when
        its rating has once reached 2400.
    initial
        Rating of a newcomer.
    scale
        Difference of ratings at which the odds are 10 to 1.
    advantage
        Points added to the left: of the first move, of playing at home.

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
        if isinstance(self.k, str):
            if self.k != "fide":
                raise ParameterError("k", self.k, "a number > 0, or 'fide'")
        else:
            check_number("k", self.k, 0.0, above=True)
        check_number("scale", self.scale, 0.0, above=True)
        for name in ("initial", "advantage"):
            check_number(name, getattr(self, name), -math.inf)

    def newcomers(self, n: int) -> State:
        """Give the state of so many items that have no votes."""
        state = State({"ratings": np.full(n, float(self.initial))})
        if self.k == "fide":
            state.of_items |= {"games": np.zeros(n, dtype=np.int64), "best": np.full(n, float(self.initial))}
        return state

    def play(self, state: State, played: Played, times: IntArray) -> None:
        """Change the state by the votes."""
        from concordant.ratings import sequential_kernels

        kernels: Any = sequential_kernels
        votes = played.left, played.right, played.outcome, played.weights, times
        options = math.log(10.0) / self.scale, float(self.advantage)
        if self.k == "fide":
            kernels.fide_votes(*votes, *options, *state.of_items.values(), state.levels)
        else:
            kernels.elo_votes(*votes, float(self.k), *options, state.of_items["ratings"], state.levels)

    def rate(self, state: State) -> FloatArray:
        """Give the rating of each item."""
        return state.of_items["ratings"].copy()

    def shares(self, left: IntArray, right: IntArray) -> FloatArray:
        """Give the share of the points that the left is foretold."""
        from scipy.special import expit

        difference = self.ratings_[left] + self.advantage - self.ratings_[right]
        shares: FloatArray = expit(math.log(10.0) / self.scale * difference)
        return shares
