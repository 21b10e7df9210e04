"""What P_reinforce reads of votes: shares of the relevance, of items and of two items together."""

from __future__ import annotations

import numpy as np

from concordant.theory.noise.predicates import reinforces
from concordant.theory.replicates.evidence import Evidence, Verdict, pairs_of, weighted
from concordant.theory.replicates.votes import Votes
from concordant.types import BoolArray, FloatArray

__all__ = ["Shares"]


class Shares(Evidence):
    """P_reinforce: u_ii - u_jj, and u_ig - u_jg for the other items g.

    One vote makes the former at most 1, by a single relevant item, and the latter 1/2, by i and g alone.
    """

    def __init__(self, votes: Votes, relevant_from: float, query: object) -> None:
        self.relevant = votes.relevance(relevant_from, query)
        sizes, n = self.relevant.sum(axis=1), votes.n_items
        self.shares = self.relevant / np.maximum(sizes, 1.0)[:, None]
        self.i, self.j = pairs_of(n)
        super().__init__(n, self.shares[:, self.i] - self.shares[:, self.j], reaches=[1.0])
        every = np.arange(n)
        self.pair, self.company = np.nonzero((every != self.i[:, None]) & (every != self.j[:, None]))
        self.derived(len(self.pair), 0.5)

    def together(self, weights: FloatArray) -> FloatArray:
        """Give u for each row of weights."""
        n = self.n_items
        u = (self.shares[:, :, None] * self.relevant[:, None, :]).reshape(-1, n * n)
        return weighted(weights, u).reshape(-1, n, n)

    def means(self, weights: FloatArray) -> FloatArray:
        """Give both families for each row of weights."""
        u, first, second = self.together(weights), self.i[self.pair], self.j[self.pair]
        apart = u[:, first, self.company] - u[:, second, self.company]
        return np.append(super().means(weights), apart, axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Give the mean squares: E[(u_ig - u_jg)^2] has three terms E[y_i y_j y_g / sum(y)^2]."""
        shares, i, j, unit = self.shares, self.i, self.j, self.reaches[1]
        terms = np.empty((len(i), self.n_items))
        for g in range(self.n_items):
            both = (shares * (weights * self.relevant[:, g])[:, None]).T @ shares
            terms[:, g] = both[i, i] + both[j, j] - 2.0 * both[i, j]
        return np.append(super().squares(weights), terms[self.pair, self.company] / unit**2)

    def held(self, weights: FloatArray, margin: float) -> BoolArray:
        """P_reinforce."""
        return reinforces(self.together(weights), margin)

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> Verdict:
        """Holds if each possible lead makes up for what may be missed; fails if no lead of one pair can."""
        (low, less), (high, more) = self.split(lower), self.split(upper)
        kept, broken = np.ones(len(low), dtype=bool), np.ones(len(low), dtype=bool)
        for least, most, behind, ahead in ((low, high, -more, -less), (-high, -low, less, more)):
            # One item leads by `least` to `most`; the other is better company by `behind` to `ahead`.
            sure, worst = (
                np.bincount(self.pair, np.maximum(end, 0.0), minlength=len(low)) for end in (behind, ahead)
            )
            kept &= (most < 0.0) | (np.maximum(least, 0.0) >= worst - margin)
            broken &= (most < 0.0) | (most < sure - margin)
        shown = np.flatnonzero(broken)
        items = (int(self.i[shown[0]]), int(self.j[shown[0]])) if len(shown) else ()
        return Verdict(bool(kept.all()), bool(items), items)
