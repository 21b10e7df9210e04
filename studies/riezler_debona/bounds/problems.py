"""Small problems on which bounds are put to the test: few queries of known probability, losses by definition.

Every query has the same levels, its items from the best to the worst. Orders are enumerated, and the weights
are a fine grid of the disc of radius B: the risk of every w on it is exact.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from concordant import Queries
from concordant import metric as read_metric
from concordant.types import FloatArray, IntArray

PROBS = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 1.0, 1.0]) / 12.0


@dataclass(frozen=True, eq=False)
class Problem:
    """A distribution over finitely many queries, and a grid of weights.

    Attributes
    ----------
    levels
        Sizes of the levels, best first.
    features
        Shape (queries, items, features); no item is longer than 1.
    probs
        Probability of each query.
    weights
        One row per w of the grid.
    B
        The largest length of a row.
    """

    levels: tuple[int, ...]
    features: FloatArray
    probs: FloatArray
    weights: FloatArray
    B: float

    @property
    def scores(self) -> FloatArray:
        """Scores by query, item and w."""
        item_scores: FloatArray = self.features @ self.weights.T
        return item_scores

    @property
    def places(self) -> FloatArray:
        """The level of each item, 1 the best."""
        return np.repeat(np.arange(1.0, len(self.levels) + 1), self.levels)

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Better and worse item of each pair of different levels."""
        better, worse = np.nonzero(self.places[:, None] < self.places[None, :])
        return better, worse

    def position_hinge(self, *, cut: bool = False) -> FloatArray:
        """Sum over pairs of (r/y_i - r/y_j - (s_i - s_j))_+, or of each cut off at its margin."""
        (better, worse), inverse = self.pairs(), len(self.levels) / self.places
        gaps = (inverse[better] - inverse[worse])[:, None]
        ahead = self.scores[:, better] - self.scores[:, worse]
        hinges: FloatArray = np.clip(gaps - ahead, 0.0, gaps if cut else np.inf).sum(1)
        return hinges

    def zero_one(self) -> FloatArray:
        """Number of pairs whose better item has the lower score, by query and w."""
        better, worse = self.pairs()
        count: FloatArray = (self.scores[:, better] < self.scores[:, worse]).sum(axis=1).astype(np.float64)
        return count

    def pieces(self, metric: str) -> FloatArray:
        """Loss less [F(gold) - F(order)], by query, inconsistent order and w."""
        orders, change = self.orders(), self.changes()
        grades = len(self.levels) - self.places
        copies = Queries.from_sizes(np.full(len(orders), len(grades)))
        tiled = np.tile(grades, len(orders))
        value = read_metric(metric).per_query(tiled, -orders.ravel().astype(np.float64), qid=copies)
        slack: FloatArray = (1.0 - value)[:, None] - np.einsum("oi,kiw->kow", change, self.scores)
        return slack

    def orders(self) -> IntArray:
        """Place of each item, in every order that contradicts the levels."""
        (better, worse), m = self.pairs(), sum(self.levels)
        every = np.array(list(itertools.permutations(range(m))))
        return every[(every[:, better] > every[:, worse]).any(axis=1)]

    def changes(self) -> FloatArray:
        """Coefficients of the scores in F(gold) - F(order), one row per order."""
        (better, worse), m = self.pairs(), sum(self.levels)
        orders = self.orders()
        inverted = orders[:, better] > orders[:, worse]
        ends = np.eye(m)[better] - np.eye(m)[worse]
        largest_changes: FloatArray = inverted @ ends * 4.0 / (m * (m - 1))
        return largest_changes

    def max_hinge(self, metric: str) -> FloatArray:
        """The largest hinge of an order, by query and w."""
        largest: FloatArray = np.maximum(self.pieces(metric).max(axis=1), 0.0)
        return largest

    def sum_hinge(self, metric: str) -> FloatArray:
        """Sum over orders of their hinges, by query and w."""
        total: FloatArray = np.maximum(self.pieces(metric), 0.0).sum(axis=1)
        return total

    def softmax_hinge(self, metric: str, temperature: float) -> FloatArray:
        """T log(1 + sum over orders of exp(piece / T)), by query and w."""
        total = np.exp(self.pieces(metric) / temperature).sum(axis=1)
        value: FloatArray = temperature * np.log1p(total)
        return value

    def centred(self, values: FloatArray) -> FloatArray:
        """Subtract a loss's value at the shortest w of the grid, 0 where that is on it."""
        origin = int(np.linalg.norm(self.weights, axis=1).argmin())
        return values - values[:, origin, None]

    def differences(self) -> FloatArray:
        """Best item's features less the worst's, by query."""
        return self.features[:, 0] - self.features[:, -1]

    def order_differences(self) -> FloatArray:
        """Features of the gold order less those of its reverse, by query."""
        steepest = self.changes()[self.orders().tolist().index(list(range(sum(self.levels)))[::-1])]
        differences: FloatArray = np.einsum("i,kif->kf", steepest, self.features)
        return differences


def disc(B: float, n_radii: int = 12, n_angles: int = 72) -> FloatArray:
    """Points of the disc of radius B: the centre, and rings up to the boundary.

    >>> disc(2.0, 1, 4).round(6).tolist()
    [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [-0.0, -2.0]]
    """
    turns = 2.0 * np.pi * np.arange(n_angles) / n_angles
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    radii = B * np.arange(1, n_radii + 1) / n_radii
    return np.vstack([np.zeros((1, 2)), *(radius * ring for radius in radii)])


def adversarial(levels: tuple[int, ...], B: float = 1.0) -> Problem:
    """Queries that move the losses as far as possible: each puts its halves at the ends of a diameter.

    >>> from concordant.theory.bounds import kappa
    >>> problem = adversarial((2, 2))
    >>> lengths = np.linalg.norm(problem.order_differences(), axis=1)
    >>> bool(np.allclose(lengths, 2 * kappa(4)))
    True
    """
    m, turns = sum(levels), 2.0 * np.pi * np.arange(len(PROBS)) / len(PROBS)
    half = max(itertools.accumulate(levels), key=lambda upper: upper * (m - upper))
    sides = np.where(np.arange(m) < half, -1.0, 1.0)
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return Problem(levels, sides[None, :, None] * ring[:, None, :], PROBS, disc(B), B)


def misordered() -> Problem:
    """Query of three items, and a w that inverts the lower two by 0.1 and has the rest right.

    >>> problem = misordered()
    >>> problem.zero_one()[:, -1].tolist(), problem.position_hinge()[:, -1].round(6).tolist()
    ([1.0], [0.6])
    """
    features = np.array([[[1.1], [-1.1], [-1.0]]]) / 1.1
    return Problem((1, 1, 1), features, np.ones(1), np.linspace(-1.1, 1.1, 45)[:, None], 1.1)
