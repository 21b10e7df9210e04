"""Strongly connected components of the majority graph, each solved by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concordant.decoders.arc_searches import (
    as_gains,
    by_search,
    grain,
    improved,
    packed,
    rounding,
    violated,
)
from concordant.types import FloatArray, IntArray

__all__ = ["Part", "components"]

DYNAMIC_ITEMS = 16  # up to here dynamic programming, 2^n sets, takes milliseconds
PROGRAM_ITEMS = 300  # up to here an integer program: beyond, its first relaxation takes minutes
PROGRAM_SHARE = 1e-9  # of the largest weight, for each pair: as near as the program comes


def components(net: FloatArray) -> list[IntArray]:
    """Give the items of each strongly connected component, in an order that all edges between them follow."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    from concordant.decoders.kernels import topological

    number, labels = connected_components(csr_array(net), connection="strong")
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]  # numbered by their first items
    i, j = np.nonzero(net)
    edges = np.full((number, number), -1, dtype=np.int64)
    edges[codes[i], codes[j]] = 0
    np.fill_diagonal(edges, -1)
    order = np.empty(number, dtype=np.int64)
    topological(edges, 0, order)
    return [np.flatnonzero(codes == code) for code in order]


@dataclass(eq=False)
class Part:
    """One component: its items, their majority edges, the best order so far (of 0..n-1) and a bound."""

    items: IntArray
    net: FloatArray
    order: IntArray
    bound: float
    closed: bool = False

    @classmethod
    def begun(cls, net: FloatArray, items: IntArray) -> Part:
        """Solve a small component; begin a large one."""
        own = net[np.ix_(items, items)]
        if len(items) > DYNAMIC_ITEMS:
            return cls(items, own, by_search(own), packed(own))
        part = cls(items, own, np.arange(len(items)), 0.0)
        part.settle()
        return part

    @property
    def value(self) -> float:
        """Weight that the order violates."""
        return violated(self.net, self.order)

    def settle(self) -> None:
        """Try all sets."""
        from concordant._combinatorics import best_order

        self.order = best_order(*as_gains(self.net))
        self.bound, self.closed = self.value, True

    def close(self, deadline: float, told: Callable[[], None]) -> None:
        """Improve order and bound until they meet, or time runs out."""
        from concordant.decoders.linear_ordering import rounds

        step = grain(self.net)
        # A heavier edge is violated by no order as good as this one; cut, it does not hide the light ones.
        edges = np.minimum(self.net, self.value * (1.0 + 1e-6) + step)
        for order, bound in rounds(edges, step, deadline) if len(self.items) <= PROGRAM_ITEMS else ():
            candidate = improved(self.net, order)
            if violated(self.net, candidate) < self.value:
                self.order = candidate
            self.bound = max(self.bound, bound)
            self.closed = self.value - self.bound <= rounding(self.net, PROGRAM_SHARE)
            if self.closed:
                self.bound = self.value
            told()
            if self.closed:
                return
