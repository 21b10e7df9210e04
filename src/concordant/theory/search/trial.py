"""Trial: a combination put to the test on label distributions of a few items, by enumerating orders.

>>> from concordant.theory.combination import combination
>>> trial = Trial(combination("ap", "squared"), n_items=4)
>>> uneven = trial.mixtures([[(1, 1, 0, 0), (0, 0, 1, 1), (0, 0, 1, 0)]], [[3, 3, 1]])
>>> trial.outcomes(uneven).regrets.round(4).tolist()
[0.0238]
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import LabelDistribution, tile
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.combination import Combination
from concordant.theory.conditions import net_means, pair_means
from concordant.theory.kinds import PairSquared
from concordant.theory.lowrank import every_order
from concordant.theory.search.expected import Mixtures, Reached, minimisers, read_by
from concordant.theory.search.pair_decoding import places_in_doubles
from concordant.theory.spaces import every_label, written
from concordant.types import BoolArray, FloatArray

__all__ = ["Outcomes", "Trial", "joined"]

TIED = 1e-7  # scores nearer than this share of their largest difference count as equal
NOISE = 1e-9  # and those nearer than this share of the largest difference of all mixtures
BLOCK = 4000  # mixtures evaluated together


class Outcomes(NamedTuple):
    """What becomes of mixtures.

    Attributes
    ----------
    regrets, least
        Regret of the decoded minimiser, mean over the orders that its scores allow; and that of the best of
        these orders: above 0, it is lost however ties are broken.
    scores, settled
        The minimiser, and whether it is one.
    """

    regrets: FloatArray
    least: FloatArray
    scores: FloatArray
    settled: BoolArray

    def take(self, rows: Any) -> Outcomes:
        """Some of them."""
        return Outcomes(self.regrets[rows], self.least[rows], self.scores[rows], self.settled[rows])


def joined(parts: Iterable[Outcomes]) -> Outcomes:
    """Put outcomes together, in order."""
    columns: Any = zip(*parts, strict=True)
    return Outcomes(*(np.concatenate(column) for column in columns))


class Trial:
    """All labels and all orders of a few items, and what a combination makes of mixtures of the labels.

    Parameters
    ----------
    one
        The combination.
    n_items
        Items of the query; all their orders are looked at.
    highest
        Highest grade, on grades.

    Attributes
    ----------
    labels, orders
        All labels of the space, and all orders, best first.
    values
        Value of each order (columns) under each label (rows); high is good, 0 where undefined.
    """

    def __init__(self, one: Combination, n_items: int = 4, highest: int = 2) -> None:
        self.one, self.n_items = one, n_items
        self.labels = every_label(one.space, n_items, highest)
        self.orders = every_order(n_items)
        self.values = np.stack([self.order_values(number) for number in range(len(self.labels))])

    def order_values(self, number: int) -> FloatArray:
        """Value of every order under a label: each order is a query."""
        metric, times = self.one.metric, len(self.orders)
        label = tile(self.labels[number], np.arange(self.n_items), times)
        scores = np.argsort(self.orders, axis=1).ravel() * -1.0
        copies = Queries.from_sizes(np.full(times, self.n_items))
        values = np.nan_to_num(metric.per_query(label, scores, qid=copies), nan=0.0)
        return values if metric.greater_is_better else -values

    @functools.cached_property
    def table(self) -> FloatArray:
        """What the surrogate is told of each label: one row of numbers, or one matrix of pairs."""
        if not isinstance(self.one.surrogate, PairSquared):
            return read_by(self.one, self.labels)
        single = Queries.from_sizes([self.n_items])
        certain = (LabelDistribution((label,), np.ones((1, 1)), single) for label in self.labels)
        metric = self.one.metric
        means = (pair_means(sure, metric) if metric.name == "ap" else net_means(sure) for sure in certain)
        return np.stack([matrix for (matrix,) in means])

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each label, by how it is written."""
        return {written(label): number for number, label in enumerate(self.labels)}

    @functools.cached_property
    def spread(self) -> float:
        """How much two orders differ at most: the measure of regret; 0 where no order matters."""
        return float(np.ptp(self.values, axis=1).max(initial=0.0))

    @property
    def quick(self) -> bool:
        """Whether minimisers of many mixtures are found together."""
        return isinstance(self.one.surrogate, PairSquared) or self.one.surrogate.smooth

    def mixtures(self, labels: Sequence[Sequence[Any]], counts: Sequence[Sequence[int]]) -> Mixtures:
        """Read mixtures of labels, all of as many; counts are whole numbers, as which the labels compare."""
        chosen = [[self.numbers[written(as_label(label))] for label in row] for row in labels]
        shares = np.asarray(counts, dtype=np.float64)
        return Mixtures(np.array(chosen), shares / shares.sum(axis=1, keepdims=True))

    def outcomes(self, mixtures: Mixtures) -> Outcomes:
        """Minimise, decode and compare with the best order, mixture by mixture."""
        return joined(self.block(mixtures.take(rows)) for rows in blocks(len(mixtures)))

    def block(self, mixtures: Mixtures) -> Outcomes:
        """Outcomes of a few."""
        reached = self.minimised(mixtures)
        values = mixtures.mean(self.values)
        allowed, best = self.allowed(reached.scores), values.max(axis=1)
        mean = (values * allowed).sum(axis=1) / allowed.sum(axis=1)
        least = best - np.where(allowed, values, -np.inf).max(axis=1)
        return Outcomes(best - mean, least, reached.scores, reached.settled)

    def allowed(self, scores: FloatArray) -> BoolArray:
        """Which orders the scores allow."""
        apart = np.ptp(scores, axis=1)
        slack = np.maximum(TIED * apart, NOISE * apart.max(initial=0.0))[:, None, None]
        held: BoolArray = (np.diff(scores[:, self.orders], axis=2) <= slack).all(axis=2)
        return held

    def minimised(self, mixtures: Mixtures) -> Reached:
        """Scores that minimise the expected surrogate; of pairs, those of the decoded order."""
        surrogate = self.one.surrogate
        if isinstance(surrogate, PairSquared):
            return self.decoded(mixtures)
        if surrogate.smooth:
            return minimisers(surrogate, self.table, mixtures)
        return self.vertices(surrogate, mixtures)

    def vertices(self, surrogate: Surrogate, mixtures: Mixtures) -> Reached:
        """Minimisers of losses with corners, by linear programs."""
        from concordant.theory.exact.polyhedral import polyhedral_minimiser

        scores = np.zeros((len(mixtures), self.n_items))
        settled = np.zeros(len(mixtures), dtype=bool)
        for row, (chosen, probs) in enumerate(zip(*mixtures, strict=True)):
            labels = tuple(self.labels[number] for number in chosen)
            found = polyhedral_minimiser(self.one.metric, surrogate, labels, tuple(probs))
            if found is not None:
                scores[row], settled[row] = found, True
        return Reached(scores, np.full(len(mixtures), np.nan), settled)

    def decoded(self, mixtures: Mixtures) -> Reached:
        """Places of the items in the decoded order of the expected pair targets, negated."""
        found = [places_in_doubles(self.one, u) for u in mixtures.mean(self.table)]
        scores = -np.stack(found).astype(np.float64)
        return Reached(scores, np.zeros(len(scores)), np.ones(len(scores), dtype=bool))


def as_label(label: Any) -> Any:
    """Give grades as an array; other labels as they are."""
    return np.asarray(label, dtype=np.float64) if isinstance(label, (tuple, list)) else label


def blocks(count: int) -> Iterator[slice]:
    """Cut mixtures into blocks; one, empty, where there are none."""
    return (slice(first, first + BLOCK) for first in range(0, max(count, 1), BLOCK))
