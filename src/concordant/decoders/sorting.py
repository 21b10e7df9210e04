"""Sorting by score: the decoder of every surrogate with one score per item."""

from __future__ import annotations

import numpy as np

from concordant.supervision.columns import check_column, check_scores
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, IntArray

__all__ = ["positions"]


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
