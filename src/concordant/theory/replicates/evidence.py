"""Columns that a condition reads from votes: expectations that are linear in the weights of the votes.

Each class holds the columns whose means decide the condition. It evaluates the condition for any weights of
the votes, and decides from a band around the means whether it holds everywhere in the band, or nowhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from concordant._base.validate import check_number
from concordant.exceptions import ParameterError
from concordant.metrics.graphs import check_family
from concordant.metrics.metric import Family
from concordant.theory.noise_conditions import (
    acyclic,
    clear_rounding,
    exchange_items,
    follows,
    low_noise,
    no_cycle,
    preserves_chain,
    reinforces,
)
from concordant.theory.replicates.annotator_votes import AnnotatorVotes
from concordant.theory.replicates.replicated import Replicates
from concordant.types import BoolArray, FloatArray, IntArray

# Limits of what a vote can say, observed or not: without such a limit no mean is ever certain.


class Limits(NamedTuple):
    """Limits of what a vote can say, and the assumptions they need.

    Attributes
    ----------
    weight
        Largest weight of a preference; 1 for grades and orders, by their nature.
    apart
        Largest difference of the caller's f between two items; None: the largest observed.
    uneven
        True if votes may have different weights: a rare heavy vote can turn a mean, and resamples without it
        do not show that. The band is then made of bounds that hold for all votes within the limits.
    assumes
        Assumptions, in words.
    """

    weight: float = 1.0
    apart: float | None = None
    uneven: bool = False
    assumes: tuple[str, ...] = ()


EVEN = Limits()


def build_limits(
    replicates: Replicates, f: Family | None, largest: float | None, largest_f: float | None
) -> Limits:
    """Build the limits; raise if votes exceed them, or if the condition does not read them."""
    weighted = any(votes.kind == "preferences" for votes in replicates.votes)
    if largest is not None and not weighted:
        raise ParameterError.because("largest was given, but only preferences have weights. Leave it out.")
    if largest_f is not None and f is None:
        raise ParameterError.because("largest_f needs f. Pass f, or leave largest_f out.")
    assumes, weight, uneven = list[str](), 1.0, f is not None
    if weighted:
        least, most = _weight_range(replicates.votes)
        weight = most if largest is None else _check_limit("largest", largest, most)
        uneven |= least < weight
        source = " (the largest seen)" if largest is None else ""
        assumes.append(f"no vote prefers one item to another by a weight above {weight:g}{source}")
    if f is not None:
        by = "by more than was seen" if largest_f is None else f"by more than {largest_f:g}"
        assumes.append(f"no vote sets f of two items apart {by}")
    return Limits(weight, largest_f, uneven, tuple(assumes))


def _weight_range(votes: tuple[AnnotatorVotes, ...]) -> tuple[float, float]:
    """Return the least and the largest weight of a preference, 1 if there is none."""
    positive_weights = [
        query_votes.values[query_votes.values > 0.0]
        for query_votes in votes
        if query_votes.kind == "preferences"
    ]
    weights = np.concatenate(positive_weights)
    return (float(weights.min()), float(weights.max())) if len(weights) else (1.0, 1.0)


def _check_limit(name: str, limit: float, observed: float) -> float:
    number = check_number(name, limit, above=0.0)
    if number < observed:
        raise ParameterError(name, limit, f"at least {observed:g}, the largest value in the data")
    return number


COLUMNS = 2**16  # columns multiplied at once


class BandVerdict(NamedTuple):
    """Outcome in a band: the condition holds everywhere, or nowhere, and the items that show the failure."""

    everywhere: bool
    nowhere: bool
    shown: tuple[int, ...] = ()


class Evidence:
    """Columns of numbers, one row per vote, in families of the same unit.

    Attributes
    ----------
    n_items
        Items of the query.
    families
        Stored families, each (n_votes, number of its columns); `derived` ones follow.
    reaches
        Largest absolute value that a vote can have in each family, observed or not.
    ends
        First column of each family, and the end of the last.
    uneven
        See `Limits`.
    """

    def __init__(self, n_items: int, *families: Any, reaches: Iterable[float], uneven: bool = False) -> None:
        self.n_items = n_items
        self.families = families
        self.reaches = [float(reach) for reach in reaches]
        self.uneven = uneven
        self.ends = np.cumsum([0, *(family.shape[1] for family in families)])

    def derived(self, n_columns: int, reach: float) -> None:
        """Add a family that is not stored: a subclass computes its `means` and `squares` from others."""
        self.reaches.append(reach)
        self.ends = np.append(self.ends, self.ends[-1] + n_columns)

    @property
    def reach(self) -> FloatArray:
        """Largest absolute value that a vote can have in each column."""
        return np.repeat(self.reaches, np.diff(self.ends))

    def means(self, weights: FloatArray) -> FloatArray:
        """Return the mean of each column for each row of weights, which sum to 1."""
        return np.concatenate([_weigh_columns(weights, family) for family in self.families], axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the mean square of each column, in units of its reach, for one row of weights."""
        both = zip(self.families, self.reaches, strict=False)  # the stored ones come first
        return np.concatenate([_weigh_columns(weights[None], family, reach)[0] for family, reach in both])

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Split the columns into families."""
        return np.split(values, self.ends[1:-1])

    def holds(self, weights: FloatArray, margin: float) -> BoolArray:
        """True, for each row of weights, if the condition holds on the weighted votes."""
        raise NotImplementedError

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> BandVerdict:
        """Decide whether the condition holds everywhere, or nowhere, between the two ends of the band."""
        raise NotImplementedError


def _weigh_columns(weights: FloatArray, family: Any, unit: float | None = None) -> FloatArray:
    """Return weights @ family, or @ (family / unit)**2; integers become doubles a block at a time."""
    products = np.empty((len(weights), family.shape[1]))
    for first in range(0, family.shape[1], COLUMNS):
        block = family[:, first : first + COLUMNS].astype(np.float64)
        products[:, first : first + COLUMNS] = weights @ (block if unit is None else (block / unit) ** 2)
    return products


def _item_pairs(n: int) -> tuple[IntArray, IntArray]:
    """Indices i and j of all i < j."""
    i, j = np.triu_indices(n, 1)
    return i.astype(np.int64), j.astype(np.int64)


def _square_matrix(upper: FloatArray, n: int, lower: FloatArray | None = None) -> FloatArray:
    """Build matrices from the entries with i < j; below the diagonal the negatives, of `lower` if given.

    >>> _square_matrix(np.array([1.0, 2.0, 3.0]), 3).tolist()
    [[0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, -3.0, 0.0]]
    """
    i, j = _item_pairs(n)
    matrix = np.zeros((*upper.shape[:-1], n, n))
    matrix[..., i, j] = upper
    matrix[..., j, i] = -(upper if lower is None else lower)
    return matrix


class MajorityEvidence(Evidence):
    """P_DAG: d_ij, at most the largest weight for a vote."""

    def __init__(self, votes: AnnotatorVotes, limits: Limits = EVEN, *more: tuple[Any, float]) -> None:
        i, j = _item_pairs(votes.n_items)
        nets = votes.nets()[:, i, j]
        families, reaches = zip((nets, limits.weight), *more, strict=True)
        super().__init__(votes.n_items, *families, reaches=reaches, uneven=limits.uneven)
        self.unit = _largest_magnitude(nets)

    def nets(self, weights: FloatArray) -> FloatArray:
        """Return d for each row of weights."""
        return _square_matrix(
            clear_rounding(_weigh_columns(weights, self.families[0]), self.unit), self.n_items
        )

    def holds(self, weights: FloatArray, margin: float) -> BoolArray:
        """True if there is no cycle."""
        return acyclic(self.nets(weights), margin)

    def edges(self, lower: FloatArray, upper: FloatArray, margin: float) -> tuple[BoolArray, BoolArray]:
        """Return the certain edges and the possible edges."""
        low, high = self.split(lower)[0], self.split(upper)[0]
        return _square_matrix(low, self.n_items, high) > margin, _square_matrix(
            high, self.n_items, low
        ) > margin

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> BandVerdict:
        """Holds if no possible edges form a cycle of three or more; fails if certain edges do."""
        certain, possible = self.edges(lower, upper, margin)
        cycle = find_cycle(certain)
        return BandVerdict(has_no_long_cycle(possible), bool(cycle), cycle)


def _largest_magnitude(numbers: Any) -> float:
    """Largest absolute value; 1 if all are 0."""
    return float(np.abs(numbers).max(initial=0)) or 1.0


def find_cycle(edges: BoolArray) -> tuple[int, ...]:
    """Return the items along a cycle, or an empty tuple.

    >>> find_cycle(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool))
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


def has_no_long_cycle(edges: BoolArray) -> bool:
    """True if no cycle visits three or more items; back and forth between two is no cycle here.

    In a strongly connected graph without such a cycle every edge lies on a cycle of two, so that edges go
    both ways, and a single path joins any two items: a tree, of 2 (n - 1) edges.

    >>> has_no_long_cycle(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool))
    True
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(csr_array(edges.astype(np.int8)), connection="strong")
    inside = edges & (part[:, None] == part)
    numbers = np.bincount(part, inside.sum(axis=1))
    return bool((inside == inside.T).all() and (numbers == 2 * (np.bincount(part) - 1)).all())


class FamilyEvidence(MajorityEvidence):
    """P_f: d_ij, and E[f_i] - E[f_j].

    For net weights, the latter is at most 2 (n - 1) weights for a vote: each of them is a sum of n - 1.
    """

    def __init__(self, votes: AnnotatorVotes, f: Family | None, query: object, limits: Limits = EVEN) -> None:
        i, j = _item_pairs(votes.n_items)
        self.values = _family_values(votes, f, query)
        apart = self.values[:, i] - self.values[:, j]
        reach = max(2.0 * (votes.n_items - 1), 1.0) * limits.weight
        if f is not None:
            observed = _largest_magnitude(apart)
            reach = observed if limits.apart is None else _check_limit("largest_f", limits.apart, observed)
        super().__init__(votes, limits, (apart, reach))

    def holds(self, weights: FloatArray, margin: float) -> BoolArray:
        """True if the majority follows E[f]."""
        means = clear_rounding(weights @ self.values, _largest_magnitude(self.values))
        return follows(self.nets(weights), means, margin)

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> BandVerdict:
        """Holds if each possible edge is certainly followed; fails if a certain one is certainly not.

        A cycle of certain edges fails too: no numbers follow all of them.
        """
        certain, possible = self.edges(lower, upper, margin)
        low, high = self.split(lower)[1], self.split(upper)[1]
        least, most = _square_matrix(low, self.n_items, high), _square_matrix(high, self.n_items, low)
        shown = np.argwhere(certain & (most <= 0.0))
        items = tuple(shown[0].tolist()) if len(shown) else find_cycle(certain)
        return BandVerdict(bool((~possible | (least > 0.0)).all()), bool(items), items)


def _family_values(votes: AnnotatorVotes, f: Family | None, query: object) -> FloatArray:
    """Return f for each vote; f=None: the net weights."""
    if f is None:
        return np.asarray(votes.nets().sum(axis=2, dtype=np.float64))
    values = np.zeros((len(votes.counts), votes.n_items))
    for row, a in enumerate(votes.preferred()):
        better, worse = np.nonzero(a)
        if len(better):
            family_values = f(better, worse, a[better, worse], votes.n_items)
            values[row] = check_family(family_values, votes.n_items, query)
    return values


class LowNoiseEvidence(MajorityEvidence):
    """Low noise: d_ij, and the sums d_ab + d_bc + d_ca around three items.

    For a vote, the latter is at most three weights; for grades and orders, which have no cycle, at most 1.
    """

    def __init__(self, votes: AnnotatorVotes, limits: Limits = EVEN) -> None:
        super().__init__(votes, limits)
        every = itertools.chain.from_iterable(itertools.combinations(range(votes.n_items), 3))
        self.triples = np.fromiter(every, dtype=np.int64).reshape(-1, 3).T
        self.each = votes.nets()
        self.derived(self.triples.shape[1], 3.0 * limits.weight if votes.kind == "preferences" else 1.0)

    def blocks(self) -> list[slice]:
        """Split the triples into blocks that fit into memory."""
        size = max(1, COLUMNS * 64 // len(self.each))
        return [slice(first, first + size) for first in range(0, self.triples.shape[1], size)]

    def sums(self, nets: Any, block: slice = slice(None)) -> Any:
        """Sum around each triple of each matrix."""
        a, b, c = self.triples[:, block]
        return nets[:, a, b] + nets[:, b, c] + nets[:, c, a]

    def means(self, weights: FloatArray) -> FloatArray:
        """Return the means of both families for each row of weights."""
        nets = _weigh_columns(weights, self.families[0])
        return np.append(nets, self.sums(_square_matrix(nets, self.n_items)), axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the mean squares, computed a block of triples at a time."""
        unit = self.reaches[1]
        parts = [weights @ (self.sums(self.each, block) / unit) ** 2 for block in self.blocks()]
        return np.concatenate([super().squares(weights), *parts])

    def holds(self, weights: FloatArray, margin: float) -> BoolArray:
        """True if the low-noise condition holds."""
        return low_noise(self.nets(weights), margin)

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> BandVerdict:
        """Along a path i, k, j the sum around i, j, k must not be below 0; a certain cycle fails too."""
        certain, possible = self.edges(lower, upper, margin)
        low, high = self.split(lower)[1], self.split(upper)[1]
        everywhere, items = True, find_cycle(certain)
        a, b, c = self.triples
        around = (
            ((-high, -low), ((a, b, c), (b, c, a), (c, a, b))),
            ((low, high), ((c, b, a), (b, a, c), (a, c, b))),
        )
        for (least, most), (i, k, j) in ((ends, path) for ends, paths in around for path in paths):
            everywhere &= bool((~(possible[i, k] & possible[k, j]) | (least >= -margin)).all())
            wrong = np.flatnonzero(certain[i, k] & certain[k, j] & (most < -margin))
            if len(wrong) and not items:
                items = tuple(int(path_items[wrong[0]]) for path_items in (i, k, j))
        return BandVerdict(everywhere, bool(items), items)


# Evidence for the order-preserving space: mean ranks, and shares of two orders compared.


class OrderEvidence(Evidence):
    """Order-preserving: E[rank of j] - E[rank of i], and P(order) - P(order with i and j exchanged).

    The second family has a column for each two items and each order with i first of which the votes contain
    the order itself or the exchanged order. Its columns are not stored: `first` and `second` are the rows of
    the two orders, -1 for an order that nobody voted for.
    """

    def __init__(self, votes: AnnotatorVotes, query: object) -> None:
        self.places = votes.places(query)
        self.i, self.j = _item_pairs(votes.n_items)
        apart = self.places[:, self.j] - self.places[:, self.i]
        super().__init__(votes.n_items, apart, reaches=[max(votes.n_items - 1, 1)])
        both = zip(self.i.tolist(), self.j.tolist(), strict=True)
        self.partners = {pair: exchange_items(self.places, *pair) for pair in both}
        columns = [_exchanged_rows(self.places, pair, partner) for pair, partner in self.partners.items()]
        self.pair = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
        listed = np.concatenate([*columns, np.empty((0, 2), dtype=np.int64)])
        self.first, self.second = listed.T
        self.derived(len(listed), 1.0)

    def means(self, weights: FloatArray) -> FloatArray:
        """Return the means of both families for each row of weights."""
        share = np.append(
            weights, np.zeros((len(weights), 1)), axis=1
        )  # the last: orders that nobody voted for
        return np.append(super().means(weights), share[:, self.first] - share[:, self.second], axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the mean squares; of a difference of shares that is their sum."""
        share = np.append(weights, 0.0)
        return np.append(super().squares(weights), share[self.first] + share[self.second])

    def holds(self, weights: FloatArray, margin: float) -> BoolArray:
        """True if the order is preserved along a chain."""
        del margin  # has no meaning here, and is 0
        return preserves_chain(self.places, weights, lambda i, j: self.partners[min(i, j), max(i, j)])

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> BandVerdict:
        """Holds if the chain is certain, all orders occur, and each certainly exceeds its exchange.

        Fails if two items that certainly follow one another in any chain have an order that is certainly
        below its exchange. Two orders that nobody voted for need not have probability 0.
        """
        del margin
        (low, less), (high, more) = self.split(lower), self.split(upper)
        above = _square_matrix(low, self.n_items, high) > 0.0
        fewer = above.sum(axis=1)  # items below
        chain = np.argsort(-fewer).tolist()
        complete = sorted(fewer.tolist()) == list(range(self.n_items))
        everywhere, items = complete, tuple[int, ...]()
        for k, (i, j) in enumerate(zip(self.i.tolist(), self.j.tolist(), strict=True)):
            pair_columns = self.pair == k
            turned = bool(above[j, i])
            better, worse = (j, i) if turned else (i, j)
            if not above[better, worse]:
                continue
            between = ~(above[:, better] | above[worse])
            between[[i, j]] = False
            least, most = (
                (-more[pair_columns], -less[pair_columns])
                if turned
                else (less[pair_columns], more[pair_columns])
            )
            if complete and abs(chain.index(i) - chain.index(j)) == 1:
                everywhere &= bool((least > 0.0).all()) and 2 * len(least) == math.factorial(self.n_items)
            if not between.any() and (most < 0.0).any() and not items:
                items = (better, worse)
        return BandVerdict(everywhere, bool(items), items)


def _exchanged_rows(places: IntArray, pair: tuple[int, int], partner: IntArray) -> IntArray:
    """Rows of `places` of each order with i first, and with j first; -1 if not among the votes."""
    i, j = pair
    rows = np.arange(len(places))
    ahead = places[:, i] < places[:, j]
    alone = ~ahead & (partner < 0)
    listed = np.stack((rows[ahead], partner[ahead]), axis=1)
    return np.concatenate((listed, np.stack((np.full(alone.sum(), -1), rows[alone]), axis=1)))


# Evidence for P_reinforce: shares of the relevance, of items and of two items together.


class RelevanceEvidence(Evidence):
    """P_reinforce: u_ii - u_jj, and u_ig - u_jg for the other items g.

    For a vote, the former is at most 1, by a single relevant item, and the latter 1/2, by i and g alone.
    """

    def __init__(self, votes: AnnotatorVotes, relevant_from: float, query: object) -> None:
        self.relevant = votes.relevance(relevant_from, query)
        sizes, n = self.relevant.sum(axis=1), votes.n_items
        self.shares = self.relevant / np.maximum(sizes, 1.0)[:, None]
        self.i, self.j = _item_pairs(n)
        super().__init__(n, self.shares[:, self.i] - self.shares[:, self.j], reaches=[1.0])
        every = np.arange(n)
        self.pair, self.company = np.nonzero((every != self.i[:, None]) & (every != self.j[:, None]))
        self.derived(len(self.pair), 0.5)

    def together(self, weights: FloatArray) -> FloatArray:
        """Return u for each row of weights."""
        n = self.n_items
        u = (self.shares[:, :, None] * self.relevant[:, None, :]).reshape(-1, n * n)
        return _weigh_columns(weights, u).reshape(-1, n, n)

    def means(self, weights: FloatArray) -> FloatArray:
        """Return the means of both families for each row of weights."""
        u, first, second = self.together(weights), self.i[self.pair], self.j[self.pair]
        apart = u[:, first, self.company] - u[:, second, self.company]
        return np.append(super().means(weights), apart, axis=1)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the mean squares: E[(u_ig - u_jg)^2] has three terms E[y_i y_j y_g / sum(y)^2]."""
        shares, i, j, unit = self.shares, self.i, self.j, self.reaches[1]
        terms = np.empty((len(i), self.n_items))
        for g in range(self.n_items):
            both = (shares * (weights * self.relevant[:, g])[:, None]).T @ shares
            terms[:, g] = both[i, i] + both[j, j] - 2.0 * both[i, j]
        return np.append(super().squares(weights), terms[self.pair, self.company] / unit**2)

    def holds(self, weights: FloatArray, margin: float) -> BoolArray:
        """True if P_reinforce holds."""
        return reinforces(self.together(weights), margin)

    def verdict(self, lower: FloatArray, upper: FloatArray, margin: float) -> BandVerdict:
        """Holds if each possible lead covers what may be missed; fails if no lead of some pair can."""
        (low, less), (high, more) = self.split(lower), self.split(upper)
        intact, broken = np.ones(len(low), dtype=bool), np.ones(len(low), dtype=bool)
        for least, most, behind, ahead in ((low, high, -more, -less), (-high, -low, less, more)):
            # One item leads by `least` to `most`; the other is better company by `behind` to `ahead`.
            sure, worst = (
                np.bincount(self.pair, np.maximum(end, 0.0), minlength=len(low)) for end in (behind, ahead)
            )
            intact &= (most < 0.0) | (np.maximum(least, 0.0) >= worst - margin)
            broken &= (most < 0.0) | (most < sure - margin)
        shown = np.flatnonzero(broken)
        items = (int(self.i[shown[0]]), int(self.j[shown[0]])) if len(shown) else ()
        return BandVerdict(bool(intact.all()), bool(items), items)
