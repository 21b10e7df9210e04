"""Standardizations of preference graphs: a number per item from the weights of its pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from concordant._segments import segment_reduce, segment_sum
from concordant.exceptions import LabelError, NonFiniteError, RowError, ShapeError
from concordant.metrics.conditions import Family
from concordant.metrics.graded import HIGHEST_GAIN
from concordant.supervision.columns import check_column
from concordant.supervision.labels import Preferences
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["by_family", "net_weights", "raised_net_weights"]


class Pairs(NamedTuple):
    """Every pair of sorted rows with a[better, worse] > 0 once, those of a query adjacent."""

    better: IntArray
    worse: IntArray
    weights: FloatArray
    offsets: IntArray

    @classmethod
    def of(cls, labels: Preferences, queries: Queries) -> Pairs:
        """Add up the weights of a preference that is given several times."""
        if (large := np.flatnonzero(labels.weights > HIGHEST_GAIN)).size:
            e = large[0]
            problem = f"preference {e} weighs {labels.weights[e]:g}, which overflows when added up"
            raise LabelError(problem, "rescale the weights.")
        better, worse, weights, _ = labels.grouped(queries)
        order = np.lexsort((worse, better))  # by query too: its sorted rows are adjacent
        better, worse = better[order], worse[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(better) != 0) | (np.diff(worse) != 0)][: len(better)])
        sums = segment_sum(weights[order], np.r_[starts, len(better)])
        kept = starts[sums > 0]
        return cls(better[kept], worse[kept], sums[sums > 0], np.searchsorted(better[kept], queries.offsets))


def net_weights(better: IntArray, worse: IntArray, weights: FloatArray, n_items: int) -> FloatArray:
    """Weight for each item less the weight against it: sum_k (a[i,k] - a[k,i]).

    >>> net_weights(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 3.0]), 3).tolist()
    [1.0, 2.0, -3.0]
    """
    won, lost = (np.bincount(rows, weights=weights, minlength=n_items) for rows in (better, worse))
    return np.subtract(won, lost, dtype=np.float64)


def raised_net_weights(labels: Preferences, queries: Queries) -> FloatArray:
    """Net weights plus n C, which keeps them >= 0; C is the largest a[i,j] of the query.

    Any larger C gives the same orders. The query's own makes its targets independent of the other queries,
    proportional to its weights, and 0 where nothing is preferred.
    """
    pairs = Pairs.of(labels, queries)
    largest = segment_reduce(np.maximum, pairs.weights, pairs.offsets)
    level = np.repeat(queries.sizes * largest, queries.sizes)
    return level + net_weights(*pairs[:3], queries.n_rows)


def by_family(labels: Preferences, queries: Queries, f: Family | None = None) -> FloatArray:
    """Give f of each query that has a preference, raised where it falls below 0; default: the net weights."""
    pairs = Pairs.of(labels, queries)
    # No pair joins two queries: the net weights of all queries are found at once.
    values = net_weights(*pairs[:3], queries.n_rows) if f is None else ask(f, pairs, queries)
    lowest = np.minimum(segment_reduce(np.minimum, values, queries.offsets), 0.0)
    raised: FloatArray = values - np.repeat(lowest, queries.sizes)
    return raised


def ask(f: Family, pairs: Pairs, queries: Queries) -> FloatArray:
    """Values of a user's f, which counts the items of a query from 0; 0 for queries without a preference."""
    values = np.zeros(queries.n_rows)
    for q in np.flatnonzero(np.diff(pairs.offsets)):
        first, last = queries.offsets[q], queries.offsets[q + 1]
        own = slice(pairs.offsets[q], pairs.offsets[q + 1])
        given = f(pairs.better[own] - first, pairs.worse[own] - first, pairs.weights[own], int(last - first))
        values[first:last] = check_family(given, int(last - first), queries.ids[q].item())
    return values


def check_family(given: ArrayLike, n_items: int, query: object) -> FloatArray:
    """One number per item of the query, none so large that a difference overflows."""
    name = f"f of query {query!r}"
    try:
        values = check_column(given, name)
    except RowError as error:
        error.row = None  # an item of this query, no row of the data
        raise
    if len(values) != n_items:
        raise ShapeError(name, values.shape, f"one number for each of its {n_items} items")
    if (bad := ~(np.abs(values) <= HIGHEST_GAIN)).any():
        item, hint = int(np.argmax(bad)), f"f gives finite numbers, at most {HIGHEST_GAIN:.2g} in size."
        raise NonFiniteError(name, float(values[item]), f"item {item}", int(bad.sum()), hint)
    return values
