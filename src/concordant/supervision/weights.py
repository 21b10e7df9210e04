"""Weights of queries, given by row."""

from __future__ import annotations

import numpy as np

from concordant._segments import segment_reduce
from concordant.exceptions import LabelError
from concordant.supervision.queries import Queries
from concordant.types import FloatArray

__all__ = ["agreed_weights"]


def agreed_weights(given: FloatArray, queries: Queries) -> FloatArray:
    """Give one weight per query from one per row; rows of a query must agree.

    >>> agreed_weights(np.array([2.0, 1.0, 2.0]), Queries.from_ids(["b", "a", "b"])).tolist()
    [1.0, 2.0]
    """
    rows = queries.gather(given)
    lowest = segment_reduce(np.minimum, rows, queries.offsets)
    highest = segment_reduce(np.maximum, rows, queries.offsets)
    if (apart := np.flatnonzero(lowest != highest)).size:
        q = apart[0]
        problem = f"query_weight of query {queries.ids[q].item()!r} is both {lowest[q]:g} and {highest[q]:g}"
        raise LabelError(problem, "give all rows of a query the same query_weight; rows have sample_weight.")
    return lowest
