"""From data in parts to the objective of a linear ranker: what `LinearRanker.problem` does in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant._segments import segment_sum
from concordant.exceptions import NonFiniteError, ParameterError
from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.rankers.claim import Claim, claimed, joint_space
from concordant.rankers.optimality import Sample
from concordant.rankers.partitioned.source import Source
from concordant.rankers.recipe import training_labels
from concordant.rankers.training import n_informative, spread_of
from concordant.solvers.checkpoint import digest
from concordant.solvers.partitioned.cluster_parts import anew
from concordant.solvers.partitioned.objective import (
    Asked,
    LinearPart,
    PartitionedObjective,
    Survey,
    surveyed,
)
from concordant.solvers.partitioned.parts import Parts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.solvers.precondition import sampled_queries
from concordant.supervision.queries import naming_query
from concordant.supervision.scans.index import Index
from concordant.supervision.scans.scan import Part, PartRows, locating
from concordant.surrogates import Surrogate
from concordant.types import FloatArray, IntArray

__all__ = [
    "Facts",
    "LinearPreparation",
    "PartedProblem",
    "is_refuted",
    "parted_problem",
    "refuse_joint",
    "shares_of",
]


@dataclass(frozen=True)
class LinearPreparation:
    """What makes the objective of a part of its rows; it may be sent to another process.

    Attributes
    ----------
    metric, surrogate, assume, f
        As of `LinearRanker`.
    digests
        Whether somebody asks for digests of the rows.
    every
        As of `usable_targets`.
    """

    metric: Metric
    surrogate: Surrogate
    assume: str | None
    f: Family | None
    digests: bool
    every: bool = True

    def __call__(self, part: Part, rows: PartRows, asked: Asked) -> RankedPart:
        """Supervision -> targets -> loss, of one part."""
        queries, recipe = rows.queries, (self.metric, self.surrogate)
        with locating(part, rows), naming_query(queries):
            labels, claim = training_labels(*recipe, rows.y, queries, self.assume, self.f, every=self.every)
            weights = np.repeat(asked.shares, queries.sizes)
            weights = weights if rows.sample_weight is None else weights * rows.sample_weight
            loss = self.surrogate.bind(labels, queries.offsets, weights)
        levels = self.surrogate.levels(labels, queries.offsets)
        own = rows.X, rows.y, rows.sample_weight, rows.query_weight, queries.ids, queries.offsets
        facts = Facts(
            claim.space,
            float(asked.shares @ segment_sum(labels, queries.offsets)),
            n_informative(levels, queries.offsets, asked.shares),
            bool(weights.any()),
            digest(*own) if self.digests else "",
        )
        return RankedPart(loss, rows.X, asked, facts)


@dataclass(frozen=True)
class Facts:
    """What a certificate, and a checkpoint, ask of a part.

    Attributes
    ----------
    space
        What the labels are.
    mass
        Sum of the targets, queries counted by their shares.
    n_informative
        Queries that count and whose labels differ.
    counts
        Whether any row has a weight.
    digest
        Of the rows; empty where nobody asks.
    """

    space: str
    mass: float
    n_informative: int
    counts: bool
    digest: str


class RankedPart(LinearPart):
    """The objective of a part, with what is known of its rows."""

    def __init__(self, loss: Any, X: Any, asked: Asked, facts: Facts) -> None:
        super().__init__(loss, X, asked)
        self.facts = facts

    def __sizeof__(self) -> int:
        # Dask moves what is small to what is large.
        return int(self.scorer.X.nbytes + 6 * self.scores.nbytes)


def report(part: RankedPart) -> tuple[Survey, Facts]:
    """Measure a part, before the first gradient."""
    with np.errstate(over="ignore", invalid="ignore"):  # of squares: told by name
        return part.survey(), part.facts


@dataclass(frozen=True, eq=False)
class PartedProblem:
    """A loss on labels in parts, and the scale of the features; the penalty is still open.

    Attributes
    ----------
    surrogate, claim, scale, objective, sample, n_informative
        As of `Problem`.
    parts
        What is read, or held.
    digest
        Of the data; empty where nobody asked.
    """

    surrogate: Surrogate
    claim: Claim
    scale: FloatArray
    objective: Callable[[float], PartitionedObjective]
    sample: Sample
    n_informative: int
    parts: Parts
    digest: str


def parted_problem(
    preparation: LinearPreparation, source: Source, told: Callable[[Parts], Any], *, fit_scale: bool
) -> PartedProblem:
    """Tell each part what it must know, measure all of them, and bind the loss; `told` sees the parts."""
    refuse_joint(preparation.metric)
    index = source.index
    shares = shares_of(index)
    queries, counts = sampled_queries(index.offsets, source.n_features, np.random.default_rng(0))
    own, places = shared_out(index, shares, queries, counts)
    parts = source.parts(preparation, own)
    surveys, facts = reported(parts, told)
    if is_refuted(preparation.metric, preparation.surrogate, [one.space for one in facts]):
        parts = anew(parts, replace(preparation, every=False), own)
        surveys, facts = reported(parts, told)
    survey, starts = surveyed(list(surveys), places, np.concatenate([one.counts for one in own]))
    check_facts(facts, survey, index.n_rows)
    scale = np.ones(source.n_features)
    if fit_scale:
        inside, whole = survey.squares
        scale = spread_of(inside, whole, float(shares @ index.sizes))
    metric, surrogate, sizes = preparation.metric, preparation.surrogate, np.diff(index.edges)
    space = joint_space([one.space for one in facts])
    mass = float(tree_sum(np.array([one.mass]) for one in facts)[0])
    mass_known = mass if surrogate.reads == "targets" else None
    return PartedProblem(
        surrogate=surrogate,
        claim=claimed(metric, surrogate, "sort", space, preparation.assume),
        scale=scale,
        objective=lambda alpha: PartitionedObjective(parts, survey, starts, sizes, alpha, scale),
        sample=Sample(space, index.n_queries, int(index.sizes.max()), mass_known, source.weighted),
        n_informative=sum(one.n_informative for one in facts),
        parts=parts,
        digest=digest(np.array([one.digest for one in facts])),
    )


def reported(parts: Parts, told: Callable[[Parts], Any]) -> tuple[tuple[Survey, ...], tuple[Facts, ...]]:
    """Measure all parts, by a pass that is told."""
    with told(parts):
        surveys, facts = zip(*parts.each(report), strict=True)
    return surveys, facts


def is_refuted(metric: Metric, surrogate: Surrogate, spaces: Sequence[str]) -> bool:
    """Whether some parts have targets, by their own labels, that the labels of others leave to no part.

    >>> from concordant import metric, surrogates
    >>> asked = surrogates.Pairwise(), ["binary", "grades"]
    >>> is_refuted(metric("pd"), *asked), is_refuted(metric("wpd"), *asked)
    (True, False)
    """
    return metric.joint_targets and surrogate.reads == "targets" and len(set(spaces)) > 1


def refuse_joint(metric: Metric) -> None:
    """Refuse a metric by which a part is worth what other parts make it."""
    if not metric.by_query:
        wanted = "a number for data in parts, each of which has a highest grade of its own"
        raise ParameterError("max_grade", metric.convention.max_grade, wanted)


def shares_of(index: Index) -> FloatArray:
    """Give the share of each query in the mean, in the order of the parts."""
    weights = np.ones(index.n_queries) if index.weights is None else index.weights
    if not weights.any():
        raise ParameterError("query_weight", "all zero", "positive for at least one query")
    weights = weights / weights.max()  # so that huge and tiny ones can be added
    shares: FloatArray = weights / weights[index.order].sum()
    return shares


def shared_out(
    index: Index, shares: FloatArray, queries: IntArray, counts: IntArray
) -> tuple[list[Asked], IntArray]:
    """Tell each part of its queries; and where its sampled ones, part after part, stand in the sample."""
    chosen = index.order[queries]  # numbered part after part
    own, places = [], []
    for number in range(len(index.edges) - 1):
        mine = index.own(number)
        place = np.flatnonzero((chosen >= mine.start) & (chosen < mine.stop))
        local = chosen[place] - mine.start
        own.append(Asked(index.ranks[mine], shares[mine], local, counts[place]))
        places.append(place)
    return own, np.concatenate(places)


def check_facts(facts: tuple[Facts, ...], survey: Survey, n_rows: int) -> None:
    """Refuse rows none of which counts, and features whose squares leave the doubles."""
    if not any(one.counts for one in facts):
        raise ParameterError("sample_weight", "all zero", "positive for at least one row")
    sound = survey.widest < np.sqrt(np.finfo(np.float64).max / n_rows)
    if not sound.all():
        where = f"feature {int(np.argmin(sound))}"
        raise NonFiniteError("the sum of squares", np.inf, where, 1, "rescale X.")
