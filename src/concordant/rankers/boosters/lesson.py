"""From checked rows to what trees are grown on: the loss on its labels, and the score of held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.boosters.booster import Data
from concordant.rankers.boosters.plan import Plan
from concordant.rankers.claim import Claim
from concordant.rankers.folds import Rows
from concordant.rankers.optimality import Sample
from concordant.rankers.training import label_weights, n_informative, query_shares, query_weights, seen
from concordant.supervision.queries import Queries, naming_query
from concordant.types import FloatArray

__all__ = ["Evaluate", "Lesson", "evaluation", "given_rows", "halves"]

Evaluate = Callable[[FloatArray], float]


@dataclass(frozen=True, eq=False)
class Lesson:
    """What trees are grown on, and what is known of that.

    Attributes
    ----------
    data
        Features, loss and held-out features.
    claim, sample, n_informative
        What is known of metric and loss, what certificates say of the data; and queries that count and whose
        labels differ.
    n_counted
        Queries of a weight above 0.
    """

    data: Data
    claim: Claim
    sample: Sample
    n_informative: int
    n_counted: int

    @classmethod
    def of(cls, plan: Plan, rows: Rows, held: Any = None) -> Lesson:
        """Supervision -> targets -> loss, summed over queries, of which the mean one weighs 1."""
        queries = Queries.of(rows.qid, rows.X.shape[0], "X")
        labels, claim = plan.labels(rows.y, queries)
        shares, own = query_shares(rows.query_weight, queries), label_weights(rows.sample_weight, queries)
        counted = int((shares > 0.0).sum())
        weights = shares * counted
        targets = labels if plan.surrogate.reads == "targets" else None
        data = Data(
            X=queries.gather(rows.X),
            surrogate=plan.surrogate,
            loss=plan.surrogate.bind(labels, queries.offsets, np.repeat(weights, queries.sizes) * own),
            curvature=plan.curvature,
            labels=labels,
            query_weights=weights,
            row_weights=own,
            offsets=queries.offsets,
            held=held,
        )
        sample = seen(claim, queries, targets, shares, weighted=rows.sample_weight is not None)
        differing = n_informative(plan.surrogate.levels(labels, queries.offsets), queries.offsets, shares)
        return cls(data, claim, sample, differing, counted)

    def mean_loss(self, scores: FloatArray) -> float:
        """Mean of the loss over the queries that count."""
        return float(self.data.loss.value_and_grad(scores)[0].sum()) / self.n_counted


def given_rows(eval_set: Any) -> tuple[Any, Any, Any]:
    """Give features, labels and query ids of held-out queries."""
    if all(hasattr(eval_set, name) for name in ("X", "y", "qid")):  # RankingData, and the like
        return eval_set.X, eval_set.y, eval_set.qid
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
        raise ParameterError("eval_set", type(eval_set).__name__, "RankingData or (X, y, qid)")
    return eval_set[0], eval_set[1], eval_set[2] if len(eval_set) == 3 else None


def halves(rows: Rows, share: float, seed: int | None) -> tuple[Rows, Rows]:
    """Cut off about this share of the queries."""
    queries = Queries.of(rows.qid, rows.X.shape[0], "X")
    train, held = queries.split(1.0 - share, share, seed=seed)  # type: ignore[arg-type]
    if not (train.size and held.size):
        wanted = (
            f"such that of {queries.n_queries} queries some are held out, and some are not; or give eval_set"
        )
        raise ParameterError("validation_fraction", share, wanted)
    return rows.take(np.sort(train)), rows.take(np.sort(held))


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
