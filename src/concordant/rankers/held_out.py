"""Queries held out of training: what a caller may give, and what scores are worth on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.folds import Rows
from concordant.rankers.training import query_weights
from concordant.supervision.queries import Queries, naming_query
from concordant.types import FloatArray

__all__ = ["Evaluate", "evaluation", "given_rows"]

Evaluate = Callable[[FloatArray], float]


def given_rows(eval_set: Any) -> tuple[Any, Any, Any]:
    """Give features, labels and query ids of held-out queries."""
    if all(hasattr(eval_set, name) for name in ("X", "y", "qid")):  # RankingData, and the like
        return eval_set.X, eval_set.y, eval_set.qid
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
        raise ParameterError("eval_set", type(eval_set).__name__, "RankingData or (X, y, qid)")
    first = eval_set[0]
    if hasattr(first, "qid") or (isinstance(first, (tuple, list)) and len(np.shape(first[:1])) > 2):
        raise ParameterError("eval_set", "a list of sets", "one set: RankingData or (X, y, qid)")
    return eval_set[0], eval_set[1], eval_set[2] if len(eval_set) == 3 else None


def evaluation(metric: Metric, rows: Rows, name: str) -> Evaluate:
    """Give the score of the rows as a function of theirs: losses negated, so that higher is better."""
    queries = Queries.of(rows.qid, rows.X.shape[0], f"X of {name}")
    with naming_query(rows.qid):
        labels = metric.read_labels(rows.y)
    weights = None if rows.query_weight is None else query_weights(rows.query_weight, queries)
    sign = 1.0 if metric.greater_is_better else -1.0

    def score(scores: FloatArray) -> float:
        return sign * float(metric(labels, scores, qid=queries, weights=weights))

    if not math.isfinite(score(np.zeros(queries.n_rows))):
        hint = "hold out queries whose labels differ."
        raise LabelError(f"{metric} is undefined on every query of {name}", hint)
    return score
