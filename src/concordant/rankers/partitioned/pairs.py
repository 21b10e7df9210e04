"""From data in parts to the sums of a pair ranker: what `PairRanker.problem` does in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.metric import Metric
from concordant.rankers.claim import Claim, claimed, joint_space, label_space
from concordant.rankers.optimality import Sample
from concordant.rankers.pair_groups import Groups
from concordant.rankers.pair_sums import PairSums, packed, unpacked
from concordant.rankers.pair_training import PairProblem, pair_targets
from concordant.rankers.partitioned.linear import shares_of
from concordant.rankers.partitioned.source import Source
from concordant.rankers.progress import passing
from concordant.scorers.pairs import PairScorer
from concordant.solvers.checkpoint import Snapshot, digest
from concordant.solvers.moments import Moments, refuse_overflow
from concordant.solvers.partitioned.parts import Parts
from concordant.solvers.partitioned.tree import Tree
from concordant.supervision.queries import naming_query
from concordant.supervision.scans.scan import Part, PartRows, locating
from concordant.theory.kinds import PairSquared
from concordant.types import FloatArray

__all__ = ["PairPreparation", "PartedPairs", "parted_pairs"]


@dataclass(frozen=True)
class PairPreparation:
    """What makes regressions on pairs of the rows of a part; it may be sent to another process.

    Attributes
    ----------
    metric, groups
        What is trained for, and the features of pairs.
    digests
        Whether somebody asks for digests of the rows.
    """

    metric: Metric
    groups: Groups
    digests: bool

    @property
    def symmetric(self) -> bool:
        """Whether the scores of pairs are."""
        return self.metric.name == "ap"

    def __call__(self, part: Part, rows: PartRows, shares: FloatArray) -> PairPart:
        """Supervision -> targets of pairs, of one part."""
        queries = rows.queries
        with locating(part, rows):
            with naming_query(queries):
                labels = self.metric.read_labels(rows.y)
                targets = pair_targets(self.metric, labels, queries)
            scorer = PairScorer(rows.X, queries.offsets, self.groups, symmetric=self.symmetric)
        weights = np.ones(queries.n_rows) if rows.sample_weight is None else rows.sample_weight
        space = label_space(self.metric, PairSquared(), labels, queries)
        return PairPart(part, space, PairProblem(scorer, targets, shares, weights))

    def check_width(self, n_features: int) -> None:
        """Refuse groups that have too many features, before anything is read."""
        if not callable(self.groups):
            PairScorer(np.empty((0, n_features)), np.zeros(1, int), self.groups, symmetric=self.symmetric)


@dataclass(frozen=True, eq=False)
class PairPart:
    """The pairs of a part.

    Attributes
    ----------
    part
        Where its rows are, for messages.
    space
        What the labels are.
    problem
        Rows of the regressions; the weights of labels are as they were given.
    """

    part: Part
    space: str
    problem: PairProblem

    def __sizeof__(self) -> int:
        # Dask moves what is small to what is large.
        return int(self.problem.scorer.X.nbytes + 4 * self.problem.weights.nbytes)


@dataclass(frozen=True)
class PairFacts:
    """What is asked of a part before the work.

    Attributes
    ----------
    space
        What the labels are.
    widths
        Number of features of a pair, and of an item.
    largest
        Weight of a label.
    digest
        Of the rows; empty where nobody asks.
    """

    space: str
    widths: tuple[int, int]
    largest: float
    digest: str


def report(held: PairPart, digests: bool) -> PairFacts:
    """Look at a part, before its pairs are added up."""
    problem, scorer = held.problem, held.problem.scorer
    with locating(held.part), np.errstate(over="ignore", invalid="ignore"):  # of weights as they were given
        own = problem.digest if digests else ""
    largest = float(problem.weights.max())
    return PairFacts(held.space, (scorer.width, scorer.item_width), largest, own)


def summed(held: PairPart, largest: float) -> PairSums:
    """Add up the pairs, and the items, of a part; labels weigh at most 1."""
    problem = replace(held.problem, weights=held.problem.weights / largest)
    with locating(held.part):
        return PairSums(*problem.moments(lambda _: None), problem.n_informative)


def together(*sums: PairSums) -> PairSums:
    """Merge from left to right."""
    return reduce(PairSums.merged, sums)


@dataclass(frozen=True, eq=False)
class PartedPairs:
    """Regressions on pairs of items in parts: what `PairProblem` is in memory.

    Attributes
    ----------
    parts
        Of which each is a `PairPart`.
    largest
        Weight of a label.
    nothing
        Sums of no rows.
    digest
        Of the data; empty where nobody asked.
    """

    parts: Parts
    largest: float
    nothing: PairSums
    digest: str

    def sums(self, snapshot: Snapshot | None, verbose: int) -> PairSums:
        """Give all that a fit must know, by one pass; written down on the way, where there is a snapshot."""
        tree = Tree(together) if snapshot is None else kept_tree(snapshot, self.nothing)
        with passing("pairs", verbose, self.parts):
            whole: PairSums = self.parts.merged(tree, summed, self.largest)
        for sums in (whole.pairs, whole.items):
            if sums is not None:
                refuse_overflow(sums)
        return whole


def kept_tree(snapshot: Snapshot, nothing: PairSums) -> Tree:
    """Give the sums so far, each level of the tree as it was written down; what is added is written down."""
    tree = Tree(together, partial(keep, snapshot))
    if (known := snapshot.read()) is None:
        return tree
    facts, arrays = known
    tree.done, tree.counts = facts["parts"], facts["counts"]
    for level, (count, informative) in enumerate(zip(tree.counts, facts["informative"], strict=True)):
        if not count:
            tree.values.append(None)
            continue
        pairs = unpacked(f"pairs.{level}", arrays, nothing.pairs, snapshot.path)
        items = nothing.items and unpacked(f"items.{level}", arrays, nothing.items, snapshot.path)
        tree.values.append(PairSums(pairs, items, informative))
    return tree


def keep(snapshot: Snapshot, tree: Tree) -> None:
    """Replace what is on disk."""
    arrays: dict[str, Any] = {}
    for level, sums in enumerate(tree.values):
        for name in ("pairs", "items"):
            if (one := getattr(sums, name, None)) is not None:
                arrays |= packed(f"{name}.{level}", one)
    informative = [0 if sums is None else sums.n_informative for sums in tree.values]
    snapshot.write({"parts": tree.done, "counts": tree.counts, "informative": informative}, arrays)


def parted_pairs(
    preparation: PairPreparation, source: Source, decoder: str, told: Callable[[Parts], Any]
) -> tuple[PartedPairs, Claim, Sample]:
    """Tell each part what its queries count, and look at all of them; `told` sees the parts."""
    index, metric = source.index, preparation.metric
    preparation.check_width(source.n_features)
    shares = shares_of(index)
    own = [shares[index.own(number)] for number in range(len(index.edges) - 1)]
    parts = source.parts(preparation, own)
    with told(parts):
        facts = parts.each(report, preparation.digests)
    largest, longest = max(one.largest for one in facts), int(index.sizes.max())
    if not largest:
        raise ParameterError("sample_weight", "all zero", "positive for at least one row")
    space = joint_space([one.space for one in facts])
    claim = claimed(metric, PairSquared(), decoder, space, n_items=longest)
    nothing = of_nothing(facts, symmetric=preparation.symmetric)
    problem = PartedPairs(parts, largest, nothing, digest(np.array([one.digest for one in facts])))
    return problem, claim, Sample(space, index.n_queries, longest, None, source.weighted)


def of_nothing(facts: Sequence[PairFacts], *, symmetric: bool) -> PairSums:
    """Give sums of no rows; a user's function that has other features in some parts is refused."""
    width, item_width = facts[0].widths
    if other := [one.widths[0] for one in facts if one.widths[0] != width]:
        raise ShapeError("features(left, right)", (other[0],), f"{width} numbers per pair, as in other parts")
    items = Moments.zero(item_width, intercept=True) if symmetric else None
    return PairSums(Moments.zero(width, intercept=symmetric), items, 0)
