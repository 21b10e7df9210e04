"""Standardizations of preference graphs: a number per item from the weights of its pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from concordant._base.segments import segment_reduce, segment_sum
from concordant._base.validate import check_column
from concordant.data.labels import Preferences
from concordant.data.queries import Queries
from concordant.exceptions import LabelError, NonFiniteError, RowError, ShapeError
from concordant.metrics.graded import HIGHEST_GAIN
from concordant.metrics.metric import Family
from concordant.types import ArrayLike, FloatArray, IntArray


class GraphPairs(NamedTuple):
    """Pairs of sorted rows with a[better, worse] > 0, each once, those of a query adjacent."""

    better: IntArray
    worse: IntArray
    weights: FloatArray
    offsets: IntArray

    @classmethod
    def from_preferences(cls, labels: Preferences, queries: Queries) -> GraphPairs:
        """Add up the weights of preferences that occur several times."""
        if (large := np.flatnonzero(labels.weights > HIGHEST_GAIN)).size:
            e = large[0]
            problem = f"preference {e} weighs {labels.weights[e]:g}, which overflows when added up"
            raise LabelError(problem, "rescale the weights.")
        better, worse, weights, _ = labels.grouped(queries)
        order = np.lexsort((worse, better))  # by query too: its sorted rows are adjacent
        better, worse = better[order], worse[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(better) != 0) | (np.diff(worse) != 0)][: len(better)])
        sums = segment_sum(weights[order], np.r_[starts, len(better)])
        positive = starts[sums > 0]
        return cls(
            better[positive],
            worse[positive],
            sums[sums > 0],
            np.searchsorted(better[positive], queries.offsets),
        )


def net_weights(better: IntArray, worse: IntArray, weights: FloatArray, n_items: int) -> FloatArray:
    """Weight for each item minus the weight against it: sum_k (a[i,k] - a[k,i]).

    >>> net_weights(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 3.0]), 3).tolist()
    [1.0, 2.0, -3.0]
    """
    won, lost = (np.bincount(rows, weights=weights, minlength=n_items) for rows in (better, worse))
    return np.subtract(won, lost, dtype=np.float64)


def raised_net_weights(labels: Preferences, queries: Queries) -> FloatArray:
    """Net weights plus n C, which keeps them >= 0; C is the largest a[i,j] of the query.

    Any larger C gives the same orders. With the C of each query, its targets do not depend on other queries,
    are proportional to its weights, and are 0 if nothing is preferred.
    """
    pairs = GraphPairs.from_preferences(labels, queries)
    largest = segment_reduce(np.maximum, pairs.weights, pairs.offsets)
    level = np.repeat(queries.sizes * largest, queries.sizes)
    return level + net_weights(*pairs[:3], queries.n_rows)


def by_family(labels: Preferences, queries: Queries, f: Family | None = None) -> FloatArray:
    """Return f of each query with a preference, raised if it falls below 0; default: the net weights."""
    pairs = GraphPairs.from_preferences(labels, queries)
    # No pair joins two queries: the net weights of all queries are computed at once.
    values = net_weights(*pairs[:3], queries.n_rows) if f is None else _evaluate_family(f, pairs, queries)
    lowest = np.minimum(segment_reduce(np.minimum, values, queries.offsets), 0.0)
    raised: FloatArray = values - np.repeat(lowest, queries.sizes)
    return raised


def _evaluate_family(f: Family, pairs: GraphPairs, queries: Queries) -> FloatArray:
    """Evaluate a user's f, which counts the items of a query from 0; 0 for queries without a preference."""
    values = np.zeros(queries.n_rows)
    for q in np.flatnonzero(np.diff(pairs.offsets)):
        first, last = queries.offsets[q], queries.offsets[q + 1]
        query_pairs = slice(pairs.offsets[q], pairs.offsets[q + 1])
        family_values = f(
            pairs.better[query_pairs] - first,
            pairs.worse[query_pairs] - first,
            pairs.weights[query_pairs],
            int(last - first),
        )
        values[first:last] = check_family(family_values, int(last - first), queries.ids[q].item())
    return values


def check_family(family_values: ArrayLike, n_items: int, query: object) -> FloatArray:
    """Check one number per item of the query, none so large that a difference overflows."""
    name = f"f of query {query!r}"
    try:
        values = check_column(family_values, name)
    except RowError as error:
        error.row = None  # an item of this query, no row of the data
        raise
    if len(values) != n_items:
        raise ShapeError(name, values.shape, f"one number for each of its {n_items} items")
    if (bad := ~(np.abs(values) <= HIGHEST_GAIN)).any():
        item, hint = int(np.argmax(bad)), f"f gives finite numbers, at most {HIGHEST_GAIN:.2g} in size."
        raise NonFiniteError(name, float(values[item]), f"item {item}", int(bad.sum()), hint)
    return values
