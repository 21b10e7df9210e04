"""Bounds on the risk of a fitted ranker, and its losses in training and in test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant import Queries, RankingData
from concordant._internals import level_codes, segment_sum
from concordant.metrics import AP
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder
from concordant.theory.bounds import EmpiricalBound, average_precision, empirical, listwise, multipartite

if TYPE_CHECKING:
    from concordant import LinearRanker
    from concordant.theory.bounds import Bound

BASE = 1.0 / 64.0  # of the union: with features from 0 to 1, rankers this short cost next to nothing


@dataclass(frozen=True)
class Losses:
    """Means over the queries of a part; a query whose labels are all equal loses nothing.

    Attributes
    ----------
    hinge
        The hinge, cut off at what the worst order of each query loses.
    loss
        The loss that the hinge dominates, and that is bounded.
    worst
        The same of the worst order: no ranking loses more.
    """

    hinge: float
    loss: float
    worst: float


@dataclass(frozen=True)
class Guarantee:
    """A bound on the risk of a ranker.

    Attributes
    ----------
    bounds, largest
        The loss that is bounded, in words, and its largest value.
    rule
        How B was fixed: "regulariser" or "union".
    B, M
        Largest length of the weights for which it holds; largest distance of a document from its list's mean.
    complexity, confidence
        What is added to the training hinge.
    value
        The bound.
    vacuous
        Whether it is at least the largest value of the loss, and says nothing.
    needed
        Training queries like these at which the same ranker's bound would be below what the worst orders lose
        on them; infinite where its hinge is not below that.
    sharp
        The bound without cutting off, in which M enters.
    paper
        log10 of the excess by the paper's own theorems, corrected, at the same B; NaN for the union, of which
        they know nothing.
    """

    bounds: str
    largest: float
    rule: str
    B: float
    M: float
    complexity: float
    confidence: float
    value: float
    vacuous: bool
    needed: float
    sharp: float
    paper: float


def measure(
    model: LinearRanker, train: RankingData, test: RankingData, delta: float, n_alphas: int
) -> tuple[Losses, Losses, dict[str, Guarantee]]:
    """Measure the losses on both parts, and the bounds by rule.

    Each rule holds with probability 1 - delta for all penalties of the grid at once. The penalty that
    validation queries choose depends on the training queries too, since rankers trained on those were
    compared: what the regulariser promises of one penalty gets a share delta / n_alphas. The union holds for
    weights of any length, hence for all penalties, as it stands.
    """
    queries, guarantees = Queries.from_ids(train.qid), []

    def bounded(rule: str, chance: float, version: str = "tight") -> EmpiricalBound:
        how: dict[str, Any] = {"B": rule, "delta": chance, "version": version, "base": BASE}
        return empirical(model, train.X, train.y, queries, **how)

    union = bounded("union", delta)
    if isinstance(model.surrogate_, (ListwiseHinge, PositionHinge, Preorder)):
        rule = "regulariser", delta / n_alphas
        bound = bounded(*rule)
        paper = paper_bound(model, train, queries, bound).log10
        guarantees.append(as_guarantee(bound, bounded(*rule, "sharp").value, paper))
    by_rule = {
        guarantee.rule: guarantee
        for guarantee in (*guarantees, as_guarantee(union, bounded("union", delta, "sharp").value))
    }
    tested = empirical(model, test.X, test.y, test.qid, B="union")  # for what it measures, not what it bounds
    return _losses(union), _losses(tested), by_rule


def _losses(bound: EmpiricalBound) -> Losses:
    return Losses(bound.empirical, bound.measured, bound.worst)


def as_guarantee(bound: EmpiricalBound, sharp: float = math.nan, paper: float = math.nan) -> Guarantee:
    """Convert a bound, with the training queries at which it would say something."""
    room = bound.worst - bound.empirical
    needed = bound.n * (bound.excess / room) ** 2 if room > 0.0 else math.inf
    return Guarantee(
        bounds=bound.bounds,
        largest=bound.largest,
        rule=bound.rule,
        B=bound.B,
        M=bound.M,
        complexity=bound.terms["complexity"].value,
        confidence=bound.terms["confidence"].value,
        value=bound.value,
        vacuous=bound.vacuous,
        needed=needed,
        sharp=sharp,
        paper=paper,
    )


def paper_bound(
    model: LinearRanker, train: RankingData, queries: Queries, training_bound: EmpiricalBound
) -> Bound:
    """Corrected Theorem 3 or 4, or a corollary, at the same n, B, M and delta.

    They are about lists of one length: pairs are taken at their mean, which makes the length irrelevant, and
    orders are those of the list that has most.
    """
    loss, y = model.surrogate_, queries.gather(train.y)
    n, at = training_bound.n, (training_bound.B, training_bound.M, training_bound.delta)
    if not isinstance(loss, ListwiseHinge):
        levels = 1 + int(level_codes(y, queries.offsets).max()) if isinstance(loss, PositionHinge) else 2
        return multipartite(n, (1,) * max(levels, 2), *at, reduction="pairs")
    if not isinstance(loss.metric, AP):
        return listwise(n, int(queries.sizes.max()), *at)
    relevant = segment_sum((y > 0.0).astype(np.float64), queries.offsets).astype(int)
    lists = zip(queries.sizes.tolist(), relevant.tolist(), strict=True)
    m, rel = max(lists, key=lambda counts: math.comb(*counts))
    return average_precision(n, m, rel, *at)
