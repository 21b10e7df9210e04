"""What a condition reads of votes: expectations that are linear in the weights of the votes.

Each class has the columns whose means decide the condition, tells on any weights whether it holds, and tells
from a band around the means whether it holds everywhere in it, or nowhere. Here: what is read of majorities.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from concordant.metrics.conditions import Family
from concordant.metrics.graphs import check_family
from concordant.theory.noise.expectations import cleared
from concordant.theory.noise.predicates import acyclic, follows, low_noise, no_cycle
from concordant.theory.replicates.limits import EVEN, Limits, check_limit
from concordant.theory.replicates.votes import Votes
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["Evidence", "Followed", "Majorities", "Paths", "Verdict", "pairs_of", "square", "weighted"]

COLUMNS = 2**16  # multiplied at once


class Verdict(NamedTuple):
    """Whether the condition holds everywhere in a band, or nowhere, and which items show the latter."""

    everywhere: bool
    nowhere: bool
    shown: tuple[int, ...] = ()


class Evidence:
    """Columns of numbers, one row a vote, in families of the same unit.

    Attributes
    ----------
    n_items
        Of the query.
    families
        Those that are stored, each (n_votes, number of its columns); `derived` ones follow.
    reaches
        What a vote can say at most, by size, in each family, whether anyone said it or not.
    ends
        Where each family begins and ends.
    uneven
        As `Limits` has it.
    """

    def __init__(self, n_items: int, *families: Any, reaches: Iterable[float], uneven: bool = False) -> None:
        self.n_items = n_items
        self.families = families
        self.reaches = [float(reach) for reach in reaches]
        self.uneven = uneven
        self.ends = np.cumsum([0, *(family.shape[1] for family in families)])

    def derived(self, n_columns: int, reach: float) -> None:
        """Add a family that is not stored: `means` and `squares` of a subclass find it from others."""
        self.reaches.append(reach)
        self.ends = np.append(self.ends, self.ends[-1] + n_columns)

    @property
    def reach(self) -> FloatArray:
        """Give what a vote can do to each column."""
        return np.repeat(self.reaches, np.diff(self.ends))

    def means(self, weights: FloatArray) -> FloatArray:
        """Give the mean of each column for each row of weights, which sum to 1."""
        return np.concatenate([weighted(weights, family) for family in self.families], axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Give the mean of the squares of each column, in units of its reach, for one row of weights."""
        both = zip(self.families, self.reaches, strict=False)  # the stored ones come first
        return np.concatenate([weighted(weights[None], family, reach)[0] for family, reach in both])

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Give the numbers of each family."""
        return np.split(values, self.ends[1:-1])

    def held(self, weights: FloatArray, margin: float) -> BoolArray:
        """Tell, for each row of weights, whether the condition holds on the weighted votes."""
        raise NotImplementedError

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> Verdict:
        """Tell whether the condition holds everywhere, or nowhere, between the two ends."""
        raise NotImplementedError


def weighted(weights: FloatArray, family: Any, unit: float | None = None) -> FloatArray:
    """Give weights @ family, or @ (family / unit)**2; whole numbers become doubles a block at a time."""
    found = np.empty((len(weights), family.shape[1]))
    for first in range(0, family.shape[1], COLUMNS):
        block = family[:, first : first + COLUMNS].astype(np.float64)
        found[:, first : first + COLUMNS] = weights @ (block if unit is None else (block / unit) ** 2)
    return found


def pairs_of(n: int) -> tuple[IntArray, IntArray]:
    """Give i and j of all i < j."""
    i, j = np.triu_indices(n, 1)
    return i.astype(np.int64), j.astype(np.int64)


def square(upper: FloatArray, n: int, lower: FloatArray | None = None) -> FloatArray:
    """Give matrices from entries of i < j; below the diagonal the negatives, of `lower` where it is given.

    >>> square(np.array([1.0, 2.0, 3.0]), 3).tolist()
    [[0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, -3.0, 0.0]]
    """
    i, j = pairs_of(n)
    matrix = np.zeros((*upper.shape[:-1], n, n))
    matrix[..., i, j] = upper
    matrix[..., j, i] = -(upper if lower is None else lower)
    return matrix


class Majorities(Evidence):
    """P_DAG: d_ij, which one vote makes at most its largest weight."""

    def __init__(self, votes: Votes, limits: Limits = EVEN, *more: tuple[Any, float]) -> None:
        i, j = pairs_of(votes.n_items)
        nets = votes.nets()[:, i, j]
        families, reaches = zip((nets, limits.weight), *more, strict=True)
        super().__init__(votes.n_items, *families, reaches=reaches, uneven=limits.uneven)
        self.unit = largest(nets)

    def nets(self, weights: FloatArray) -> FloatArray:
        """Give d for each row of weights."""
        return square(cleared(weighted(weights, self.families[0]), self.unit), self.n_items)

    def held(self, weights: FloatArray, margin: float) -> BoolArray:
        """No cycle."""
        return acyclic(self.nets(weights), margin)

    def edges(self, lower: FloatArray, upper: FloatArray, margin: float) -> tuple[BoolArray, BoolArray]:
        """Give which edges are certain, and which are possible."""
        low, high = self.split(lower)[0], self.split(upper)[0]
        return square(low, self.n_items, high) > margin, square(high, self.n_items, low) > margin

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> Verdict:
        """Holds if no possible edges form a cycle of three or more; fails if certain ones do."""
        certain, possible = self.edges(lower, upper, margin)
        cycle = a_cycle(certain)
        return Verdict(no_long_cycle(possible), bool(cycle), cycle)


def largest(numbers: Any) -> float:
    """Give the largest by size; 1 if all are 0."""
    return float(np.abs(numbers).max(initial=0)) or 1.0


def a_cycle(edges: BoolArray) -> tuple[int, ...]:
    """Give the items along a cycle, or none.

    >>> a_cycle(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool))
    (0, 1, 2)
    """
    if no_cycle(edges):
        return ()
    left = np.ones(len(edges), dtype=bool)
    while (gone := left & ~(edges[:, left].any(axis=1) & edges[left].any(axis=0))).any():
        left &= ~gone
    path = [int(np.argmax(left))]
    while path.count(path[-1]) < 2:
        path.append(int(np.argmax(edges[path[-1]] & left)))
    cycle = path[path.index(path[-1]) : -1]
    first = cycle.index(min(cycle))
    return (*cycle[first:], *cycle[:first])


def no_long_cycle(edges: BoolArray) -> bool:
    """Tell whether no cycle visits three or more items; back and forth between two is no cycle here.

    In a strongly connected graph without one every edge lies on a cycle of two, so that edges go both ways,
    and along them there is but one way between two items: a tree, of 2 (n - 1) edges.

    >>> no_long_cycle(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool))
    True
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(csr_array(edges.astype(np.int8)), connection="strong")
    inside = edges & (part[:, None] == part)
    numbers = np.bincount(part, inside.sum(axis=1))
    return bool((inside == inside.T).all() and (numbers == 2 * (np.bincount(part) - 1)).all())


class Followed(Majorities):
    """P_f: d_ij, and E[f_i] - E[f_j].

    Of net weights a vote makes the latter 2 (n - 1) weights at most: each of them is a sum of n - 1.
    """

    def __init__(self, votes: Votes, f: Family | None, query: object, limits: Limits = EVEN) -> None:
        i, j = pairs_of(votes.n_items)
        self.values = family_values(votes, f, query)
        apart = self.values[:, i] - self.values[:, j]
        reach = max(2.0 * (votes.n_items - 1), 1.0) * limits.weight
        if f is not None:
            seen = largest(apart)
            reach = seen if limits.apart is None else check_limit("largest_f", limits.apart, seen)
        super().__init__(votes, limits, (apart, reach))

    def held(self, weights: FloatArray, margin: float) -> BoolArray:
        """The majority follows E[f]."""
        means = cleared(weights @ self.values, largest(self.values))
        return follows(self.nets(weights), means, margin)

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> Verdict:
        """Holds if each possible edge is certainly followed; fails if a certain one is certainly not.

        A cycle of certain edges fails too: no numbers follow all of them.
        """
        certain, possible = self.edges(lower, upper, margin)
        low, high = self.split(lower)[1], self.split(upper)[1]
        least, most = square(low, self.n_items, high), square(high, self.n_items, low)
        shown = np.argwhere(certain & (most <= 0.0))
        items = tuple(shown[0].tolist()) if len(shown) else a_cycle(certain)
        return Verdict(bool((~possible | (least > 0.0)).all()), bool(items), items)


def family_values(votes: Votes, f: Family | None, query: object) -> FloatArray:
    """Give f of each vote; None: the net weights."""
    if f is None:
        return np.asarray(votes.nets().sum(axis=2, dtype=np.float64))
    values = np.zeros((len(votes.counts), votes.n_items))
    for row, a in enumerate(votes.preferred()):
        better, worse = np.nonzero(a)
        if len(better):
            given = f(better, worse, a[better, worse], votes.n_items)
            values[row] = check_family(given, votes.n_items, query)
    return values


class Paths(Majorities):
    """Low noise: d_ij, and the sums d_ab + d_bc + d_ca around three items.

    One vote makes the latter at most three weights; grades and orders, which have no cycle, at most 1.
    """

    def __init__(self, votes: Votes, limits: Limits = EVEN) -> None:
        super().__init__(votes, limits)
        every = itertools.chain.from_iterable(itertools.combinations(range(votes.n_items), 3))
        self.triples = np.fromiter(every, dtype=np.int64).reshape(-1, 3).T
        self.each = votes.nets()
        self.derived(self.triples.shape[1], 3.0 * limits.weight if votes.kind == "preferences" else 1.0)

    def blocks(self) -> list[slice]:
        """Give the triples in parts that are looked at together."""
        size = max(1, COLUMNS * 64 // len(self.each))
        return [slice(first, first + size) for first in range(0, self.triples.shape[1], size)]

    def sums(self, nets: Any, block: slice = slice(None)) -> Any:
        """Give the sums around triples of each matrix."""
        a, b, c = self.triples[:, block]
        return nets[:, a, b] + nets[:, b, c] + nets[:, c, a]

    def means(self, weights: FloatArray) -> FloatArray:
        """Give both families for each row of weights."""
        nets = weighted(weights, self.families[0])
        return np.append(nets, self.sums(square(nets, self.n_items)), axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Give the mean squares, a block of triples at a time."""
        unit = self.reaches[1]
        parts = [weights @ (self.sums(self.each, block) / unit) ** 2 for block in self.blocks()]
        return np.concatenate([super().squares(weights), *parts])

    def held(self, weights: FloatArray, margin: float) -> BoolArray:
        """Low noise."""
        return low_noise(self.nets(weights), margin)

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> Verdict:
        """Along a path i, k, j the sum around i, j, k must not be below 0; a certain cycle fails too."""
        certain, possible = self.edges(lower, upper, margin)
        low, high = self.split(lower)[1], self.split(upper)[1]
        everywhere, items = True, a_cycle(certain)
        a, b, c = self.triples
        around = (
            ((-high, -low), ((a, b, c), (b, c, a), (c, a, b))),
            ((low, high), ((c, b, a), (b, a, c), (a, c, b))),
        )
        for (least, most), (i, k, j) in ((ends, path) for ends, paths in around for path in paths):
            everywhere &= bool((~(possible[i, k] & possible[k, j]) | (least >= -margin)).all())
            wrong = np.flatnonzero(certain[i, k] & certain[k, j] & (most < -margin))
            if len(wrong) and not items:
                items = tuple(int(one[wrong[0]]) for one in (i, k, j))
        return Verdict(everywhere, bool(items), items)
