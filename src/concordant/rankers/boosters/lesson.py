"""From checked rows to what trees are grown on: the loss on its labels, and the score of held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.rankers.boosters.booster import Data
from concordant.rankers.boosters.plan import Plan
from concordant.rankers.claim import Claim
from concordant.rankers.folds import Rows
from concordant.rankers.optimality import Sample
from concordant.rankers.training import label_weights, n_informative, query_shares, query_weights, seen
from concordant.supervision.queries import Queries
from concordant.types import FloatArray

__all__ = ["Lesson", "halves", "told"]


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
        labels, own, claim = told(plan, rows, queries)
        shares = query_shares(rows.query_weight, queries)
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


def told(plan: Plan, rows: Rows, queries: Queries) -> tuple[FloatArray, FloatArray, Claim]:
    """Give what the surrogate is told, by sorted row, the weight of each, and what is known of that."""
    labels, claim = plan.labels(rows.y, queries)
    return *plan.weighed(labels, mean_one(rows.sample_weight, queries), queries), claim


def mean_one(sample_weight: Any, queries: Queries) -> FloatArray | None:
    """Give the weight of each sorted row's label, of which the mean one that counts is 1; None: all are."""
    if sample_weight is None:
        return None
    given = label_weights(sample_weight, queries)
    given = given / given.max()  # so that huge and tiny ones can be added
    own: FloatArray = given / given[given > 0.0].mean()
    return own


def halves(rows: Rows, share: float, seed: int | None) -> tuple[Rows, Rows]:
    """Hold out about this share of the queries that count; the others are left to the training rows."""
    queries = Queries.of(rows.qid, rows.X.shape[0], "X")
    given = None if rows.query_weight is None else query_weights(rows.query_weight, queries)
    counted = np.arange(queries.n_queries) if given is None else np.flatnonzero(given)
    shuffled = np.random.default_rng(seed).permutation(counted)
    held = queries.rows(np.sort(shuffled[round((1.0 - share) * len(counted)) :]))
    train = np.setdiff1d(np.arange(queries.n_rows), held)
    if not (held.size and len(held) < len(queries.rows(counted))):
        wanted = (
            f"such that of {len(counted)} queries that count some are held out, and some are not; or give "
            "eval_set"
        )
        raise ParameterError("validation_fraction", share, wanted)
    return rows.take(train), rows.take(np.sort(held))
