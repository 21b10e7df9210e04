"""Expectations of labels, one matrix or row a query: what the noise conditions read."""

from __future__ import annotations

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.conditions import Family
from concordant.metrics.graphs import Pairs
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.theory.noise.predicates import ROUNDING
from concordant.types import FloatArray

__all__ = ["as_graphs", "average_precision", "cleared", "family_means", "net_means", "pair_means"]


def pair_means(distribution: LabelDistribution, metric: Metric | str = "ap") -> list[FloatArray]:
    """Give u_ij = E[y_i y_j / sum(y)] of each query, ids ascending: what `PairRanker("ap")` learns.

    Parameters
    ----------
    distribution
        Of grades.
    metric
        AP or its name: its convention says from which grade on an item is relevant, y_i = 1, and what AP@k
        has in place of sum(y).

    Examples
    --------
    >>> intents = LabelDistribution(([1, 1, 0], [0, 0, 1]), [[0.5, 0.5]], queries=["q"] * 3)
    >>> pair_means(intents)[0].tolist()
    [[0.25, 0.25, 0.0], [0.25, 0.25, 0.0], [0.0, 0.0, 0.5]]
    """
    chosen, queries = average_precision(metric), distribution.queries
    means = [np.zeros((size, size)) for size in queries.sizes]
    for label, probs in zip(distribution.labels, distribution.probs.T, strict=True):
        shares = chosen.standardize_under("P_reinforce", chosen.read_labels(label), queries)
        owned = np.split(shares, queries.offsets[1:-1])
        means = [
            mean + prob * np.outer(own, own > 0.0)
            for mean, own, prob in zip(means, owned, probs, strict=True)
        ]
    return means


def average_precision(metric: Metric | str) -> Metric:
    """Give the metric; refuse any but AP."""
    chosen = read_metric(metric)
    if chosen.name != "ap":
        raise ParameterError("metric", str(chosen), "ap")
    return chosen


def net_means(distribution: LabelDistribution) -> list[FloatArray]:
    """Give d_ij = E[a_ij - a_ji] of each query, ids ascending: what `PairRanker("pd")` learns.

    What is below 1e-12 of the largest E[abs(a_ij - a_ji)] is rounding, and 0.

    Parameters
    ----------
    distribution
        Of preferences; or of grades, of which a_ij is 1(y_i > y_j).

    Examples
    --------
    >>> votes = LabelDistribution(([2, 1, 0], [0, 2, 1]), [[0.75, 0.25]], queries=["q"] * 3)
    >>> net_means(votes)[0].tolist()
    [[0.0, 0.5, 0.5], [-0.5, 0.0, 1.0], [-0.5, -1.0, 0.0]]
    """
    queries = distribution.queries
    means, sizes = ([np.zeros((size, size)) for size in queries.sizes] for _ in range(2))
    for label, probs in zip(distribution.labels, distribution.probs.T, strict=True):
        for mean, size, net, prob in zip(means, sizes, nets(label, queries), probs, strict=True):
            np.add(mean, prob * net, out=mean)
            np.add(size, prob * np.abs(net), out=size)
    return [cleared(mean, float(size.max(initial=0.0))) for mean, size in zip(means, sizes, strict=True)]


def cleared(numbers: FloatArray, scale: float) -> FloatArray:
    """Give the numbers, 0 where they are rounding of sums of this size."""
    return np.where(np.abs(numbers) <= ROUNDING * scale, 0.0, numbers)


def nets(label: Label, queries: Queries) -> list[FloatArray]:
    """a_ij - a_ji of each query."""
    labels = read_metric("pd").read_labels(label)
    if not isinstance(labels, Preferences):
        grades = np.split(queries.gather(labels.values), queries.offsets[1:-1])
        return [np.sign(np.subtract.outer(own, own)) for own in grades]
    better, worse, weights, offsets = Pairs.of(labels, queries)
    found = []
    for q, size in enumerate(queries.sizes):
        own, a = slice(offsets[q], offsets[q + 1]), np.zeros((size, size))
        a[better[own] - queries.offsets[q], worse[own] - queries.offsets[q]] = weights[own]
        found.append(a - a.T)
    return found


def family_means(distribution: LabelDistribution, f: Family | None = None) -> list[FloatArray]:
    """Give E[f_i] of each query, up to a constant of the query, ids ascending.

    Parameters
    ----------
    distribution
        Of preferences.
    f
        As for `standardize(..., assume="P_f")`; None: the net weights, Duchi's f.
    """
    queries, pd = distribution.queries, read_metric("pd")
    means = distribution.mean_per_row(lambda label: pd.targets(label, qid=queries, assume="P_f", f=f))
    return np.split(queries.gather(means), queries.offsets[1:-1])


def as_graphs(distribution: LabelDistribution) -> LabelDistribution:
    """Give the distribution with labels as preferences: of grades and orders, each pair put one way.

    >>> votes = LabelDistribution(([2, 1, 1],), [[1.0]], queries=["q"] * 3)
    >>> as_graphs(votes).labels[0].better.tolist(), as_graphs(votes).labels[0].worse.tolist()
    ([0, 0], [1, 2])
    """
    labels, queries = distribution.labels, distribution.queries
    if isinstance(labels[0], Preferences):
        return distribution
    return LabelDistribution(tuple(as_graph(label, queries) for label in labels), distribution.probs, queries)


def as_graph(label: Label, queries: Queries) -> Preferences:
    """Prefer each item to all of its query that have a lower grade, or a later place."""
    grades = label.grades(queries) if isinstance(label, Permutations) else queries.gather(np.asarray(label))
    better, worse = [], []
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        own = grades[first:last]
        above, below = np.nonzero(own[:, None] > own[None, :])
        better.append(queries.order[first + above])
        worse.append(queries.order[first + below])
    return Preferences(np.concatenate(better), np.concatenate(worse), queries.n_rows)
