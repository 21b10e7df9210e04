"""From checked rows to what trees are grown on: the loss on its labels, and the score of held-out rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.rankers.boosters.booster import Booster, Data, Trees
from concordant.rankers.boosters.plan import Plan
from concordant.rankers.boosters.watch import Watch
from concordant.rankers.claim import Claim
from concordant.rankers.folds import Rows
from concordant.rankers.optimality import Sample
from concordant.rankers.training import label_weights, n_informative, query_shares, query_weights, seen
from concordant.supervision.queries import Queries
from concordant.surrogates import Surrogate
from concordant.types import FloatArray

__all__ = ["Lesson", "Taught", "halves", "mean_weight", "summed_weights", "told"]


@dataclass(frozen=True, eq=False)
class Taught(ABC):
    """What is known of that which trees are grown on, wherever it is.

    Attributes
    ----------
    surrogate, curvature
        What is minimised, and the kind of its curvature.
    claim, sample, n_informative
        What is known of metric and loss, what certificates say of the data; and queries that count and whose
        labels differ.
    n_counted
        Queries of a weight above 0.
    """

    surrogate: Surrogate
    curvature: str
    claim: Claim
    sample: Sample
    n_informative: int
    n_counted: int

    @abstractmethod
    def ends(self, booster: Booster, trees: Trees, watch: Watch, model: Any) -> tuple[float, float]:
        """Mean training loss at scores 0, and of the trees that were kept."""


@dataclass(frozen=True, eq=False)
class Lesson(Taught):
    """What trees are grown on, in memory: features, loss and held-out features."""

    data: Data

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
        return cls(plan.surrogate, plan.curvature, claim, sample, differing, counted, data)

    def mean_loss(self, scores: FloatArray) -> float:
        """Mean of the loss over the queries that count."""
        return float(self.data.loss.value_and_grad(scores)[0].sum()) / self.n_counted

    def ends(self, booster: Booster, trees: Trees, watch: Watch, model: Any) -> tuple[float, float]:
        """Mean training loss at scores 0, and of the trees that were kept; mostly known from the rounds."""
        first, n_trees = self.mean_loss(np.zeros(self.data.X.shape[0])), booster.n_trees(model)
        if watch.trained is None and n_trees in watch.losses:
            return first, watch.losses[n_trees] / self.n_counted
        if watch.trained is None:
            watch.trained = booster.scores(model, self.data.X, trees)
        return first, self.mean_loss(watch.trained)


def told(plan: Plan, rows: Rows, queries: Queries) -> tuple[FloatArray, FloatArray, Claim]:
    """Give what the surrogate is told, by sorted row, the weight of each, and what is known of that."""
    labels, claim = plan.labels(rows.y, queries)
    return *plan.weighed(labels, mean_one(rows.sample_weight, queries), queries), claim


def mean_one(sample_weight: Any, queries: Queries) -> FloatArray | None:
    """Give the weight of each sorted row's label, of which the mean one that counts is 1; None: all are."""
    if sample_weight is None:
        return None
    given = label_weights(sample_weight, queries)
    highest, mean = mean_weight([summed_weights(given)])
    own: FloatArray = given / highest / mean
    return own


def summed_weights(given: FloatArray) -> tuple[float, float, int]:
    """Give the highest weight, the sum of those above 0 as shares of it, and their number."""
    highest = float(given.max(initial=0.0))
    shares = given / (highest or 1.0)  # so that huge and tiny ones can be added
    counting = shares[shares > 0.0]
    return highest, float(counting.sum()), len(counting)


def mean_weight(sums: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """Give the highest weight of all parts, and the mean one above 0 as a share of it.

    >>> mean_weight([summed_weights(np.array([4.0, 0.0])), summed_weights(np.array([2.0, 3.0]))])
    (4.0, 0.75)
    """
    highest = max(top for top, _, _ in sums)
    if not highest:
        raise ParameterError("sample_weight", "all zero", "positive for at least one row")
    mean = sum(total * (top / highest) for top, total, _ in sums) / sum(number for _, _, number in sums)
    return highest, mean


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
