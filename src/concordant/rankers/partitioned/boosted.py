"""From data in parts to what trees are grown on: what `Lesson.of` does in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from concordant._segments import segment_sum
from concordant.exceptions import WorkerLostError
from concordant.metrics.standardization import usable_targets
from concordant.rankers.boosters import BOOSTERS, Booster
from concordant.rankers.boosters.booster import TINY, Trees
from concordant.rankers.boosters.lesson import Taught, mean_weight, summed_weights
from concordant.rankers.boosters.plan import Plan
from concordant.rankers.boosters.watch import Watch
from concordant.rankers.claim import claimed, joint_space
from concordant.rankers.optimality import Sample
from concordant.rankers.partitioned.linear import is_refuted, shares_of
from concordant.rankers.partitioned.source import Source
from concordant.rankers.training import n_informative
from concordant.solvers.partitioned.cluster import addresses, returned
from concordant.solvers.partitioned.cluster_parts import ClusterParts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.supervision.queries import naming_query
from concordant.supervision.scans.index import Index
from concordant.supervision.scans.scan import Part, PartRows, locating
from concordant.surrogates import Loss
from concordant.types import FloatArray, IntArray

__all__ = ["PartedLesson", "TreePart", "sizes_of", "surviving"]

Found = TypeVar("Found")

LOSSES = 3  # of workers, in one fit
RETURN = 30.0  # seconds that a lost worker may take to be started anew


@dataclass(frozen=True)
class LabelPreparation:
    """What makes targets of the labels of a part, whose own are its queries' shares."""

    plan: Plan

    def __call__(self, part: Part, rows: PartRows, shares: FloatArray) -> LabelledPart:
        """Supervision -> targets, of one part."""
        with locating(part, rows), naming_query(rows.queries):
            labels, claim = self.plan.labels(rows.y, rows.queries)
        return LabelledPart(self.plan, part, rows, labels, claim.space, shares)


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """The rows of a part and their targets, which are still to be weighed: that takes all parts."""

    plan: Plan
    part: Part
    rows: PartRows
    labels: FloatArray
    space: str
    shares: FloatArray

    def __sizeof__(self) -> int:
        return int(self.rows.X.nbytes)  # Dask moves what is small to what is large

    def stand_in(self) -> FloatArray:
        """Give the targets where labels of other parts leave the metric without a standardization."""
        plan, rows = self.plan, self.rows
        labels = plan.metric.read_labels(rows.y)
        return usable_targets(plan.metric, labels, rows.queries, plan.assume, plan.f, every=False)[0]


@dataclass(frozen=True, eq=False)
class TreePart:
    """What trees are grown on, of one part.

    Attributes
    ----------
    X, labels, weights, offsets
        Features, what the surrogate is told, how much each row counts, and the queries.
    loss, curvature
        The surrogate on that; and the kind of its curvature.
    report
        What is known of the part.
    """

    X: Any
    labels: FloatArray
    weights: FloatArray
    offsets: IntArray
    loss: Loss
    curvature: str
    report: Report

    def __sizeof__(self) -> int:
        return int(self.X.nbytes)


@dataclass(frozen=True, eq=False)
class Report:
    """What is known of a part before the first tree.

    Attributes
    ----------
    space, n_informative
        As of `Facts`.
    sums
        Mass of the targets, loss at scores 0; and the number, the curvatures and the gains of the rows that
        have a curvature there.
    low, high
        Ends of each feature.
    """

    space: str
    n_informative: int
    sums: FloatArray
    low: FloatArray
    high: FloatArray


def weight_sums(part: LabelledPart) -> tuple[float, float, int]:
    """Sum the weights of a part's labels, of which there are some."""
    return summed_weights(cast("FloatArray", part.rows.sample_weight))


def space_of(part: LabelledPart) -> str:
    """Give what the labels of a part are."""
    return part.space


def weighed(part: LabelledPart, every: bool, counted: int, highest: float, mean: float) -> TreePart:
    """Weigh and lift the targets of a part, and bind the loss; of so many queries in all parts."""
    plan, rows, queries, given = part.plan, part.rows, part.rows.queries, part.rows.sample_weight
    with locating(part.part, rows), naming_query(queries):
        own = None if given is None else given / highest / mean
        labels, own = plan.weighed(part.labels if every else part.stand_in(), own, queries)
    weights = np.repeat(part.shares * counted, queries.sizes) * own
    loss = plan.surrogate.bind(labels, queries.offsets, weights)
    differing = n_informative(plan.surrogate.levels(labels, queries.offsets), queries.offsets, part.shares)
    mass = float(part.shares @ segment_sum(labels, queries.offsets))
    sums = np.array([mass, *slope_sums(loss, plan.curvature)])
    report = Report(part.space, differing, sums, rows.X.min(axis=0), rows.X.max(axis=0))
    return TreePart(rows.X, labels, weights, queries.offsets, loss, plan.curvature, report)


def slope_sums(loss: Loss, kind: str) -> tuple[float, int, float, float]:
    """Give the loss at scores 0; and of the rows that have a curvature number, its sum, and the gains."""
    zeros = np.zeros(int(loss.offsets[-1]))
    values, grad = loss.value_and_grad(zeros)
    found = loss.curvature(zeros, kind)
    curved = found > 0.0
    gains = grad[curved] ** 2 / found[curved]
    return float(values.sum()), int(curved.sum()), float(found[curved].sum()), float(gains.sum())


def told(part: TreePart) -> Report:
    """Give what is known of a part."""
    return part.report


def loss_sum(part: TreePart, trees: Trees, contents: bytes) -> FloatArray:
    """Give the summed loss of a part at the scores of trees that were written."""
    booster = BOOSTERS[trees.library]
    scores = booster.scores(booster.read(contents), part.X, replace(trees, n_jobs=1))
    return np.array([part.loss.value_and_grad(scores)[0].sum()])


@dataclass(frozen=True, eq=False)
class PartedLesson(Taught):
    """What trees are grown on, held by the workers of a cluster.

    Attributes
    ----------
    parts, places, sizes
        Each a `TreePart`; the address of the worker that holds it, and its number of rows.
    n_features
        Of X.
    unit, gain
        As of `Measured`.
    at_rest
        Mean loss at scores 0.
    varies
        Whether any feature has two values.
    """

    parts: ClusterParts
    places: Sequence[str]
    n_features: int
    sizes: IntArray
    unit: float
    gain: float
    at_rest: float
    varies: bool

    @classmethod
    def of(cls, plan: Plan, source: Source, places: Sequence[str]) -> PartedLesson:
        """Supervision -> targets -> loss, of each part where it is; parts are held at these addresses."""
        index = source.index
        shares = shares_of(index)
        own = [shares[index.own(number)] for number in range(len(index.edges) - 1)]
        labelled = cast("ClusterParts", source.parts(LabelPreparation(plan), own, places))
        counted = int((shares > 0.0).sum())
        weights = mean_weight(labelled.each(weight_sums)) if source.weighted else (1.0, 1.0)
        every = not is_refuted(plan.metric, plan.surrogate, labelled.each(space_of))
        parts = labelled.made(weighed, every, counted, *weights)
        del labelled  # whose rows are in the parts
        reports = parts.each(told)
        mass, at_rest, curved, bend, gain = tree_sum(one.sums for one in reports)
        space, reads = joint_space([one.space for one in reports]), plan.surrogate.reads
        known = float(mass) if reads == "targets" else None
        return cls(
            surrogate=plan.surrogate,
            curvature=plan.curvature,
            claim=claimed(plan.metric, plan.surrogate, "sort", space, plan.assume),
            sample=Sample(space, index.n_queries, int(index.sizes.max()), known, source.weighted),
            n_informative=sum(one.n_informative for one in reports),
            n_counted=counted,
            parts=parts,
            places=places,
            n_features=source.n_features,
            sizes=sizes_of(index),
            unit=float(bend / curved) if curved else 1.0,
            gain=float(gain / curved) if curved else 0.0,
            at_rest=float(at_rest / counted),
            varies=has_two_values(reports),
        )

    def ends(self, booster: Booster, trees: Trees, watch: Watch, model: Any) -> tuple[float, float]:
        """Mean training loss at scores 0, and of the trees, which are sent to the parts."""
        del watch
        contents = self.parts.shared(booster.written(model))
        return self.at_rest, float(self.parts.total(loss_sum, trees, contents)[0]) / self.n_counted


def surviving(client: Any, grow: Callable[[bool], Found]) -> Found:
    """Grow trees, and all of them again where a worker is lost: LightGBM cannot go on with others.

    As many workers give the same trees, whichever they are; so lost ones are waited for, a while.

    Parameters
    ----------
    client
        Of the cluster.
    grow
        `grow(again)` gives them, by the workers that are there; it is told whether it was called before.
    """
    n_workers = len(addresses(client))
    for turn in range(LOSSES):
        try:
            return grow(turn > 0)
        except WorkerLostError as error:
            there, problem = returned(client, n_workers, RETURN), str(error).splitlines()[0]
            said = f"{problem} All trees are grown again, by {there} workers; there were {n_workers}."
            warnings.warn(said, UserWarning, stacklevel=4)
    return grow(True)


def sizes_of(index: Index) -> IntArray:
    """Give the number of rows of each part."""
    return np.add.reduceat(index.sizes, index.edges[:-1])


def has_two_values(reports: Sequence[Report]) -> bool:
    """Whether any feature has two values, as `varies` says in memory."""
    low = np.min([one.low for one in reports], axis=0)
    high = np.max([one.high for one in reports], axis=0)
    return bool((high - low > TINY).any())
