"""From data in parts to the training set of trees; in memory `TreeTrainingSet.from_rows` does this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.warn import warn_caller
from concordant.data.check import weight_kind
from concordant.data.queries import naming_query
from concordant.exceptions import WorkerLostError
from concordant.metrics.standardization import usable_targets
from concordant.rankers.boosters import BOOSTERS, Booster
from concordant.rankers.boosters.booster import TINY, BoostingMonitor, Trees
from concordant.rankers.boosters.plan import BoostingPlan
from concordant.rankers.boosters.tree_training_set import BaseTreeTrainingSet, mean_weight, summed_weights
from concordant.rankers.guarantee import look_up_guarantee
from concordant.rankers.parts.linear_parts import index_shares, is_refuted, joint_sample, shares_by_part
from concordant.rankers.parts.ranker_source import PartsSource
from concordant.rankers.training import n_informative
from concordant.scale.cluster import addresses, wait_for_workers
from concordant.scale.cluster_parts import ClusterParts
from concordant.scale.parts import tree_sum
from concordant.scale.scan.index import Index
from concordant.scale.scan.scan import Part, PartRows, locating
from concordant.surrogates import Loss
from concordant.types import FloatArray, IntArray

Grown = TypeVar("Grown")

LOSSES = 3  # of workers, that a fit survives
RETURN = 30.0  # seconds to wait until a lost worker is restarted


@dataclass(frozen=True)
class LabelPreparation:
    """Builds targets from the labels of a part, with its queries' shares as the spec."""

    plan: BoostingPlan

    def __call__(self, part: Part, rows: PartRows, shares: FloatArray) -> LabelledPart:
        """Supervision -> targets, for a single part."""
        with locating(part, rows), naming_query(rows.queries):
            labels, claim = self.plan.labels(rows.y, rows.queries)
        return LabelledPart(self.plan, part, rows, labels, claim.space, shares)


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """Rows of a part and their targets before weighting, which needs facts about all parts."""

    plan: BoostingPlan
    part: Part
    rows: PartRows
    labels: FloatArray
    space: str
    shares: FloatArray

    def __sizeof__(self) -> int:
        return int(self.rows.X.nbytes)  # Dask moves small results to large ones

    def stand_in(self) -> FloatArray:
        """Return the targets to use if labels of other parts leave the metric without a standardization."""
        plan, rows = self.plan, self.rows
        labels = plan.metric.read_labels(rows.y)
        return usable_targets(plan.metric, labels, rows.queries, plan.assume, plan.f, every=False)[0]


@dataclass(frozen=True, eq=False)
class TreePart:
    """Training data of trees, of a single part.

    Attributes
    ----------
    X, labels, weights, offsets
        Features, labels as the surrogate reads them, row weights, and row offsets of the queries.
    loss, curvature
        Surrogate on these labels, and the kind of its curvature.
    report
        Facts about the part.
    """

    X: Any
    labels: FloatArray
    weights: FloatArray
    offsets: IntArray
    loss: Loss
    curvature: str
    report: PartReport

    def __sizeof__(self) -> int:
        return int(self.X.nbytes)


@dataclass(frozen=True, eq=False)
class PartReport:
    """Facts about a part before the first tree.

    Attributes
    ----------
    space, n_informative, weighted
        As in `PartFacts`.
    sums
        Mass of the targets and loss at scores 0; then number, summed curvatures and summed gains of the rows
        that have a curvature there.
    low, high
        Minimum and maximum of each feature.
    """

    space: str
    n_informative: int
    weighted: str
    sums: FloatArray
    low: FloatArray
    high: FloatArray


def _weight_sums(part: LabelledPart) -> tuple[float, float, int]:
    return summed_weights(cast("FloatArray", part.rows.sample_weight))


def _label_space(part: LabelledPart) -> str:
    return part.space


def _weigh_part(part: LabelledPart, every: bool, n_counted: int, highest: float, mean: float) -> TreePart:
    """Weigh and lift the targets of a part, and bind the loss; `n_counted` queries count in all parts."""
    plan, rows, queries, sample_weight = part.plan, part.rows, part.rows.queries, part.rows.sample_weight
    with locating(part.part, rows), naming_query(queries):
        label_weights = None if sample_weight is None else sample_weight / highest / mean
        weighted = weight_kind(label_weights, queries.offsets)
        labels, label_weights = plan.weigh_and_lift(
            part.labels if every else part.stand_in(), label_weights, queries
        )
    weights = np.repeat(part.shares * n_counted, queries.sizes) * label_weights
    loss = plan.surrogate.bind(labels, queries.offsets, weights)
    informative = n_informative(plan.surrogate.levels(labels, queries.offsets), queries.offsets, part.shares)
    mass = float(part.shares @ segment_sum(labels, queries.offsets))
    sums = np.array([mass, *_slope_sums(loss, plan.curvature)])
    report = PartReport(part.space, informative, weighted, sums, rows.X.min(axis=0), rows.X.max(axis=0))
    return TreePart(rows.X, labels, weights, queries.offsets, loss, plan.curvature, report)


def _slope_sums(loss: Loss, kind: str) -> tuple[float, int, float, float]:
    """Return the loss at scores 0; then number, curvatures and gains of the rows with a curvature there."""
    zeros = np.zeros(int(loss.offsets[-1]))
    values, grad = loss.value_and_grad(zeros)
    curvature = loss.curvature(zeros, kind)
    is_curved = curvature > 0.0
    gains = grad[is_curved] ** 2 / curvature[is_curved]
    return float(values.sum()), int(is_curved.sum()), float(curvature[is_curved].sum()), float(gains.sum())


def _read_report(part: TreePart) -> PartReport:
    return part.report


def _loss_sum(part: TreePart, trees: Trees, contents: bytes) -> FloatArray:
    booster = BOOSTERS[trees.library]
    scores = booster.scores(booster.from_bytes(contents), part.X, replace(trees, n_jobs=1))
    return np.array([part.loss.value_and_grad(scores)[0].sum()])


@dataclass(frozen=True, eq=False)
class PartitionedTreeTrainingSet(BaseTreeTrainingSet):
    """Training set of trees, held by the workers of a cluster.

    Attributes
    ----------
    parts, places, sizes
        Parts, each a `TreePart`; address of the worker that holds each part, and number of rows of each.
    n_features
        Number of features.
    unit, gain
        As in `TrainingFacts`.
    at_rest
        Mean loss at scores 0.
    varies
        True if any feature has two values.
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
    def from_parts(
        cls, plan: BoostingPlan, source: PartsSource, places: Sequence[str]
    ) -> PartitionedTreeTrainingSet:
        """Supervision -> targets -> loss, of each part where it is; `places`: worker address of each part."""
        index = source.index
        shares = index_shares(index)
        labelled = cast(
            "ClusterParts", source.parts(LabelPreparation(plan), shares_by_part(index, shares), places)
        )
        n_counted = int((shares > 0.0).sum())
        weights = mean_weight(labelled.each(_weight_sums)) if source.weighted else (1.0, 1.0)
        every = not is_refuted(plan.metric, plan.surrogate, labelled.each(_label_space))
        parts = labelled.map_parts(_weigh_part, every, n_counted, *weights)
        del labelled  # whose rows are in the parts
        reports = parts.each(_read_report)
        mass, at_rest, n_curved, curvature, gain = tree_sum(report.sums for report in reports)
        sample = joint_sample(reports, index, float(mass) if plan.surrogate.reads == "targets" else None)
        claim = look_up_guarantee(plan.metric, plan.surrogate, "sort", sample.space, plan.assume)
        return cls(
            surrogate=plan.surrogate,
            curvature=plan.curvature,
            claim=claim.under_weights(sample.weighted),
            sample=sample,
            n_informative=sum(report.n_informative for report in reports),
            n_counted=n_counted,
            parts=parts,
            places=places,
            n_features=source.n_features,
            sizes=part_sizes(index),
            unit=float(curvature / n_curved) if n_curved else 1.0,
            gain=float(gain / n_curved) if n_curved else 0.0,
            at_rest=float(at_rest / n_counted),
            varies=_has_two_values(reports),
        )

    def first_and_last_loss(
        self, booster: Booster, trees: Trees, monitor: BoostingMonitor, model: Any
    ) -> tuple[float, float]:
        """Return the mean training loss at scores 0, and of the trees, which are sent to the parts."""
        del monitor
        contents = self.parts.share(booster.to_bytes(model))
        return self.at_rest, float(self.parts.total(_loss_sum, trees, contents)[0]) / self.n_counted


def grow_despite_losses(client: Any, grow: Callable[[bool], Grown]) -> Grown:
    """Grow trees, and start over if a worker is lost, since LightGBM cannot continue with others.

    Equally many workers grow the same trees, whichever workers they are, so we wait a while for lost ones.

    Parameters
    ----------
    client
        Client of the cluster.
    grow
        `grow(again)` grows the trees on the current workers; `again` is True after a failure.
    """
    n_workers = len(addresses(client))
    for turn in range(LOSSES):
        try:
            return grow(turn > 0)
        except WorkerLostError as error:
            n_left, problem = wait_for_workers(client, n_workers, RETURN), str(error).splitlines()[0]
            warn_caller(f"{problem} All trees are grown again by {n_left} of {n_workers} workers.")
    return grow(True)


def part_sizes(index: Index) -> IntArray:
    """Return the number of rows of each part."""
    return np.add.reduceat(index.sizes, index.edges[:-1])


def _has_two_values(reports: Sequence[PartReport]) -> bool:
    """True if any feature has two values; the counterpart of `can_split` in memory."""
    low = np.min([report.low for report in reports], axis=0)
    high = np.max([report.high for report in reports], axis=0)
    return bool((high - low > TINY).any())
