"""Sorting by score: the decoder of every surrogate with one score per item."""

from __future__ import annotations

import time

import numpy as np

from concordant.decoders.decoded import Decoded, check_number
from concordant.exceptions import EmptyDataError, NonFiniteError, ParameterError
from concordant.supervision.columns import (
    check_column,
    check_lengths,
    check_nonnegative,
    check_scores,
    refuse,
)
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["positions", "sort", "top"]


def positions(scores: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
    """Give the place of each row in its query, 1 the best; rows of equal score keep their order.

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
    column = check_column(scores, "scores")
    values = check_scores(column, len(column))
    queries = Queries.of(qid, len(values), "scores")
    order = np.lexsort((-queries.gather(values), queries.codes))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(1, len(order) + 1) - np.repeat(queries.offsets[:-1], queries.sizes)
    return queries.scatter(places)


def sort(u: ArrayLike, discounts: ArrayLike) -> Decoded:
    """Give the order of largest sum of u * discount of its place: sorted, equal items in their given order.

    It decodes every metric that adds up gains by place: DCG, NDCG, ERU.

    Parameters
    ----------
    u
        One finite number per item, such as the expected standardized label.
    discounts
        One number >= 0 per place, never rising.

    Examples
    --------
    >>> sort([0.5, 2.0, 0.5], discounts=[1.0, 0.5, 0.25])
    Decoded(order=array([1, 0, 2]), value=2.375, proven=True, bound=2.375, gap=0.0, seconds=...)
    """
    started = time.perf_counter()
    values, rates = check_finite(u), check_nonnegative(discounts, "discounts", "place")
    check_lengths("u", len(values), discounts=rates)
    if (np.diff(rates) > 0).any():
        raise ParameterError("discounts", discounts, "never rising: the first place counts most")
    order = np.argsort(-values, kind="stable")
    return sorted_by(values[order] * rates, order, started)


def top(u: ArrayLike, q: int) -> Decoded:
    """Give an order whose first q items have the largest mean of u: it decodes precision@q.

    The q items come sorted, of equal ones the earlier first; the others follow as they were given, since no
    order of theirs matters. Selection takes linear time, sorting is of q items only.

    Parameters
    ----------
    u
        One finite number per item, such as its probability of being relevant.
    q
        How many places count, at most the number of items.

    Examples
    --------
    >>> top([0.1, 0.9, 0.4, 0.4], q=2)
    Decoded(order=array([1, 2, 0, 3]), value=0.65, proven=True, bound=0.65, gap=0.0, seconds=...)
    """
    started = time.perf_counter()
    values = check_finite(u)
    check_number("q", q, least=1, whole=True)
    if q > len(values):
        raise ParameterError("q", q, f"at most the number of items, {len(values)}")
    least = np.partition(values, len(values) - q)[len(values) - q]
    above, level = np.flatnonzero(values > least), np.flatnonzero(values == least)
    chosen = np.concatenate((above, level[: q - len(above)]))
    chosen = chosen[np.lexsort((chosen, -values[chosen]))]
    others = np.ones(len(values), dtype=bool)
    others[chosen] = False
    order = np.concatenate((chosen, np.flatnonzero(others)))
    return sorted_by(values[chosen] / q, order, started)


def sorted_by(terms: FloatArray, order: IntArray, started: float) -> Decoded:
    """Give an order that is optimal as it is, worth the sum of these terms."""
    with np.errstate(over="ignore"):
        value = float(terms.sum())
    if not np.isfinite(value):
        raise NonFiniteError("the value", value, "the best order", 1, "the sum overflows: rescale u.")
    return Decoded.of(order, value, value, proven=True, started=started)


def check_finite(u: ArrayLike) -> FloatArray:
    """Give one finite number per item, at least one."""
    values = check_column(u, "u")
    if not values.size:
        raise EmptyDataError("u")
    if not np.isfinite(values).all():
        refuse(~np.isfinite(values), values, "u")
    return values
