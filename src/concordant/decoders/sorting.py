"""Sorting by score: the decoder of all surrogates with one score per item."""

from __future__ import annotations

import time

import numpy as np

from concordant._base.validate import (
    check_column,
    check_lengths,
    check_nonnegative,
    check_scores,
    check_whole,
    refuse,
    refuse_misaligned,
)
from concordant.data.queries import Queries
from concordant.decoders.decoded import Decoded
from concordant.exceptions import EmptyDataError, NonFiniteError, ParameterError
from concordant.types import ArrayLike, FloatArray, IntArray


def positions(scores: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
    """Return the position of each row in its query, 1 the best; rows of equal score keep their order.

    Parameters
    ----------
    scores
        One score per row, high is better; -inf comes last, NaN and +inf are refused.
    qid
        Query ids in any order, or a `Queries`; None: all rows are one query.

    Examples
    --------
    >>> positions([0.2, 0.9, 0.2, 0.5], qid=["a", "a", "a", "b"]).tolist()
    [2, 1, 3, 1]
    """
    refuse_misaligned(scores=scores, qid=qid)
    values = check_scores(scores)
    queries = Queries.for_rows(qid, len(values), "scores")
    order = np.lexsort((-queries.gather(values), queries.codes))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(1, len(order) + 1) - np.repeat(queries.offsets[:-1], queries.sizes)
    return queries.scatter(places)


def sort(u: ArrayLike, discounts: ArrayLike) -> Decoded:
    """Sort items by u, the order with the largest sum of u times the discount of the position.

    Equal items keep their order. It decodes every metric that sums gains by position: DCG, NDCG, ERU.

    Parameters
    ----------
    u
        One finite number per item, such as the expected standardized label.
    discounts
        One number >= 0 per position, never increasing.

    Examples
    --------
    >>> sort([0.5, 2.0, 0.5], discounts=[1.0, 0.5, 0.25])
    Decoded(order=array([1, 0, 2]), value=2.375, proven=True, bound=2.375, gap=0.0, seconds=...)
    """
    started = time.perf_counter()
    values, rates = _check_finite(u), check_nonnegative(discounts, "discounts", "place")
    check_lengths("u", len(values), discounts=rates)
    if (np.diff(rates) > 0).any():
        raise ParameterError("discounts", discounts, "non-increasing from the first place on")
    order = np.argsort(-values, kind="stable")
    return _sorted_by(values[order] * rates, order, started)


def top(u: ArrayLike, q: int) -> Decoded:
    """Return an order whose first q items have the largest mean of u: it decodes precision@q.

    The q items are sorted, equal ones in their original order; the others follow in their original order,
    since their order does not matter. Selection takes linear time; only q items are sorted.

    Parameters
    ----------
    u
        One finite number per item, such as its probability of being relevant.
    q
        Number of positions that count, at most the number of items.

    Examples
    --------
    >>> top([0.1, 0.9, 0.4, 0.4], q=2)
    Decoded(order=array([1, 2, 0, 3]), value=0.65, proven=True, bound=0.65, gap=0.0, seconds=...)
    """
    started = time.perf_counter()
    values = _check_finite(u)
    check_whole("q", q, 1)
    if q > len(values):
        raise ParameterError("q", q, f"at most the number of items, {len(values)}")
    least = np.partition(values, len(values) - q)[len(values) - q]
    above, level = np.flatnonzero(values > least), np.flatnonzero(values == least)
    top_items = np.concatenate((above, level[: q - len(above)]))
    top_items = top_items[np.lexsort((top_items, -values[top_items]))]
    others = np.ones(len(values), dtype=bool)
    others[top_items] = False
    order = np.concatenate((top_items, np.flatnonzero(others)))
    return _sorted_by(values[top_items] / q, order, started)


def _sorted_by(terms: FloatArray, order: IntArray, started: float) -> Decoded:
    """Build the result of an optimal order, whose value is the sum of these terms."""
    with np.errstate(over="ignore"):
        value = float(terms.sum())
    if not np.isfinite(value):
        raise NonFiniteError("the value", value, "the best order", 1, "the sum overflows: rescale u.")
    return Decoded.from_order(order, value, value, proven=True, started=started)


def _check_finite(u: ArrayLike) -> FloatArray:
    """Check for one finite number per item, and at least one item."""
    values = check_column(u, "u")
    if not values.size:
        raise EmptyDataError("u")
    if not np.isfinite(values).all():
        refuse(~np.isfinite(values), values, "u")
    return values
