"""What the order-preserving space reads of votes: mean places, and shares of two orders compared."""

from __future__ import annotations

import math

import numpy as np

from concordant.theory.noise.order_spaces import chained, swapped
from concordant.theory.replicates.evidence import Evidence, Verdict, pairs_of, square
from concordant.theory.replicates.votes import Votes
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["Orders"]


class Orders(Evidence):
    """Order-preserving: E[place of j] - E[place of i], and P(order) - P(order with i and j exchanged).

    The second family has one column for each two items and each order with i first that was seen, itself or
    exchanged. Its columns are not stored: `first` and `second` are the two orders, -1 one that nobody gave.
    """

    def __init__(self, votes: Votes, query: object) -> None:
        self.places = votes.places(query)
        self.i, self.j = pairs_of(votes.n_items)
        apart = self.places[:, self.j] - self.places[:, self.i]
        super().__init__(votes.n_items, apart, reaches=[max(votes.n_items - 1, 1)])
        both = zip(self.i.tolist(), self.j.tolist(), strict=True)
        self.partners = {pair: swapped(self.places, *pair) for pair in both}
        columns = [exchanges(self.places, pair, partner) for pair, partner in self.partners.items()]
        self.pair = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
        listed = np.concatenate([*columns, np.empty((0, 2), dtype=np.int64)])
        self.first, self.second = listed.T
        self.derived(len(listed), 1.0)

    def means(self, weights: FloatArray) -> FloatArray:
        """Give both families for each row of weights."""
        share = np.append(weights, np.zeros((len(weights), 1)), axis=1)  # the last: an order of nobody
        return np.append(super().means(weights), share[:, self.first] - share[:, self.second], axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Give the mean squares: of a difference of shares, their sum."""
        share = np.append(weights, 0.0)
        return np.append(super().squares(weights), share[self.first] + share[self.second])

    def held(self, weights: FloatArray, margin: float) -> BoolArray:
        """The order is preserved along a chain."""
        del margin  # has no meaning here, and is 0
        return chained(self.places, weights, lambda i, j: self.partners[min(i, j), max(i, j)])

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> Verdict:
        """Holds if the chain is certain, all orders were seen, and each certainly exceeds its exchange.

        Fails if two items that certainly follow one another in any chain have an order that is certainly
        below its exchange. Two orders that nobody gave are not known to have probability 0.
        """
        del margin
        (low, less), (high, more) = self.split(lower), self.split(upper)
        above = square(low, self.n_items, high) > 0.0
        fewer = above.sum(axis=1)  # items below
        chain = np.argsort(-fewer).tolist()
        complete = sorted(fewer.tolist()) == list(range(self.n_items))
        everywhere, items = complete, tuple[int, ...]()
        for k, (i, j) in enumerate(zip(self.i.tolist(), self.j.tolist(), strict=True)):
            own = self.pair == k
            turned = bool(above[j, i])
            better, worse = (j, i) if turned else (i, j)
            if not above[better, worse]:
                continue
            between = ~(above[:, better] | above[worse])
            between[[i, j]] = False
            least, most = (-more[own], -less[own]) if turned else (less[own], more[own])
            if complete and abs(chain.index(i) - chain.index(j)) == 1:
                everywhere &= bool((least > 0.0).all()) and 2 * len(least) == math.factorial(self.n_items)
            if not between.any() and (most < 0.0).any() and not items:
                items = (better, worse)
        return Verdict(everywhere, bool(items), items)


def exchanges(places: IntArray, pair: tuple[int, int], partner: IntArray) -> IntArray:
    """Give the orders with i first beside those with j first, by row of `places`; -1 where nobody gave it."""
    i, j = pair
    rows = np.arange(len(places))
    ahead = places[:, i] < places[:, j]
    alone = ~ahead & (partner < 0)
    seen = np.stack((rows[ahead], partner[ahead]), axis=1)
    return np.concatenate((seen, np.stack((np.full(alone.sum(), -1), rows[alone]), axis=1)))
