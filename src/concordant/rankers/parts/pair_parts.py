"""From data in parts to the sums of a pair ranker; in memory `PairRanker.problem` does this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from concordant._base.validate import all_zero_error
from concordant.data.check import weight_kind
from concordant.data.queries import naming_query
from concordant.exceptions import ShapeError
from concordant.metrics.metric import Metric
from concordant.rankers.fit_progress import show_pass
from concordant.rankers.fitted_certificate import Sample
from concordant.rankers.guarantee import Guarantee, label_space, look_up_guarantee
from concordant.rankers.pair_features import Groups
from concordant.rankers.pair_scores import PairScorer
from concordant.rankers.pair_training import PairProblem, PairSums, pack_moments, pair_targets, unpack_moments
from concordant.rankers.parts.linear_parts import index_shares, joint_sample, shares_by_part
from concordant.rankers.parts.ranker_source import PartsSource
from concordant.scale.parts import Parts, Tree
from concordant.scale.scan.scan import Part, PartRows, locating
from concordant.solvers.checkpoint import Snapshot, digest
from concordant.solvers.ridge import Moments, check_overflow
from concordant.theory.kinds import PairSquared
from concordant.types import FloatArray


@dataclass(frozen=True)
class PairPreparation:
    """Builds the regressions on pairs of a part from its rows; may be sent to another process.

    Attributes
    ----------
    metric, groups
        Metric to optimize, and the feature groups of pairs.
    digests
        True if digests of the rows are needed.
    """

    metric: Metric
    groups: Groups
    digests: bool

    @property
    def symmetric(self) -> bool:
        """True if the scores of pairs are symmetric."""
        return self.metric.name == "ap"

    def __call__(self, part: Part, rows: PartRows, shares: FloatArray) -> PairRankerPart:
        """Supervision -> targets of pairs, for a single part."""
        queries = rows.queries
        with locating(part, rows):
            with naming_query(queries):
                labels = self.metric.read_labels(rows.y)
                targets = pair_targets(self.metric, labels, queries)
            scorer = PairScorer(rows.X, queries.offsets, self.groups, symmetric=self.symmetric)
        weights = np.ones(queries.n_rows) if rows.sample_weight is None else rows.sample_weight
        space = label_space(self.metric, PairSquared(), labels, queries)
        weighted = weight_kind(rows.sample_weight, queries.offsets)
        return PairRankerPart(part, space, PairProblem(scorer, targets, shares, weights), weighted)

    def check_width(self, n_features: int) -> None:
        """Raise if the groups have too many features, before anything is read."""
        if not callable(self.groups):
            PairScorer(np.empty((0, n_features)), np.zeros(1, int), self.groups, symmetric=self.symmetric)


@dataclass(frozen=True, eq=False)
class PairRankerPart:
    """Pairs of a part.

    Attributes
    ----------
    part
        Part in the source, for messages.
    space
        Label space.
    problem
        Rows of the regressions, with label weights as passed by the caller.
    weighted
        Kind of `sample_weight`; see `data.check.weight_kind`.
    """

    part: Part
    space: str
    problem: PairProblem
    weighted: str

    def __sizeof__(self) -> int:
        # Dask moves small results to large ones.
        return int(self.problem.scorer.X.nbytes + 4 * self.problem.weights.nbytes)


@dataclass(frozen=True)
class PairFacts:
    """Facts about a part that are needed before the sums.

    Attributes
    ----------
    space, weighted
        As in `PairRankerPart`.
    widths
        Number of features of a pair and of an item.
    largest
        Largest weight of a label.
    digest
        Digest of the rows; empty if not needed.
    """

    space: str
    weighted: str
    widths: tuple[int, int]
    largest: float
    digest: str


def report(part: PairRankerPart, digests: bool) -> PairFacts:
    """Collect the facts about a part, before its pairs are summed."""
    problem, scorer = part.problem, part.problem.scorer
    with locating(part.part), np.errstate(over="ignore", invalid="ignore"):  # weights are unscaled
        rows_digest = problem.digest if digests else ""
    largest = float(problem.weights.max())
    return PairFacts(part.space, part.weighted, (scorer.width, scorer.item_width), largest, rows_digest)


def sum_pairs(part: PairRankerPart, largest: float) -> PairSums:
    """Sum the pairs, and the items, of a part; label weights are scaled to at most 1."""
    problem = replace(part.problem, weights=part.problem.weights / largest)
    with locating(part.part):
        return PairSums(*problem.moments(lambda _: None), problem.n_informative)


def _merge_sums(*sums: PairSums) -> PairSums:
    return reduce(PairSums.merged, sums)


@dataclass(frozen=True, eq=False)
class PartitionedPairs:
    """Regressions on pairs of items in parts; in memory this is `PairProblem`.

    Attributes
    ----------
    parts
        Parts, each a `PairRankerPart`.
    largest
        Largest weight of a label.
    zero_sums
        Sums of no rows.
    digest
        Digest of the data; empty if not needed.
    """

    parts: Parts
    largest: float
    zero_sums: PairSums
    digest: str

    def sums(self, snapshot: Snapshot | None, verbose: int) -> PairSums:
        """Compute all sums of a fit in a single pass; saved on the way if there is a snapshot."""
        tree = Tree(_merge_sums) if snapshot is None else _restore_tree(snapshot, self.zero_sums)
        with show_pass("pairs", verbose, self.parts):
            whole: PairSums = self.parts.merge(tree, sum_pairs, self.largest)
        for sums in (whole.pairs, whole.items):
            if sums is not None:
                check_overflow(sums)
        return whole


def _restore_tree(snapshot: Snapshot, zero_sums: PairSums) -> Tree:
    """Restore the tree of sums from the snapshot; later additions are saved there."""
    tree = Tree(_merge_sums, partial(_save_tree, snapshot))
    if (saved := snapshot.read()) is None:
        return tree
    facts, arrays = saved
    tree.done, tree.counts = facts["parts"], facts["counts"]
    for level, (count, informative) in enumerate(zip(tree.counts, facts["informative"], strict=True)):
        if not count:
            tree.values.append(None)
            continue
        pairs = unpack_moments(f"pairs.{level}", arrays, zero_sums.pairs, snapshot.path)
        items = zero_sums.items and unpack_moments(f"items.{level}", arrays, zero_sums.items, snapshot.path)
        tree.values.append(PairSums(pairs, items, informative))
    return tree


def _save_tree(snapshot: Snapshot, tree: Tree) -> None:
    arrays: dict[str, Any] = {}
    for level, sums in enumerate(tree.values):
        for name in ("pairs", "items"):
            if (moments := getattr(sums, name, None)) is not None:
                arrays |= pack_moments(f"{name}.{level}", moments)
    informative = [0 if sums is None else sums.n_informative for sums in tree.values]
    snapshot.write({"parts": tree.done, "counts": tree.counts, "informative": informative}, arrays)


def partitioned_pairs(
    preparation: PairPreparation, source: PartsSource, decoder: str, show_progress: Callable[[Parts], Any]
) -> tuple[PartitionedPairs, Guarantee, Sample]:
    """Prepare all parts with their query shares, and collect their facts.

    `show_progress` is a context manager around the pass over the parts.
    """
    index, metric = source.index, preparation.metric
    preparation.check_width(source.n_features)
    parts = source.parts(preparation, shares_by_part(index, index_shares(index)))
    with show_progress(parts):
        facts = parts.each(report, preparation.digests)
    largest = max(part_facts.largest for part_facts in facts)
    if not largest:
        raise all_zero_error("sample_weight", "row")
    sample = joint_sample(facts, index, None)
    claim = look_up_guarantee(metric, PairSquared(), decoder, sample.space, n_items=int(index.sizes.max()))
    zero_sums = _zero_sums(facts, symmetric=preparation.symmetric)
    problem = PartitionedPairs(
        parts, largest, zero_sums, digest(np.array([part_facts.digest for part_facts in facts]))
    )
    return problem, claim.under_weights(sample.weighted), sample


def _zero_sums(facts: Sequence[PairFacts], *, symmetric: bool) -> PairSums:
    """Return sums of no rows; raise if a user's function returns other features in some parts."""
    width, item_width = facts[0].widths
    if widths := [part_facts.widths[0] for part_facts in facts if part_facts.widths[0] != width]:
        raise ShapeError(
            "features(left, right)", (widths[0],), f"{width} numbers per pair, as in other parts"
        )
    items = Moments.zero(item_width, intercept=True) if symmetric else None
    return PairSums(Moments.zero(width, intercept=symmetric), items, 0)
