"""From data in parts to the objective of a linear ranker; in memory `LinearRanker.problem` does this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant._base.segments import one_blas_thread, segment_sum
from concordant._base.validate import all_zero_error
from concordant.data.check import joint_weight_kind, weight_kind
from concordant.data.queries import naming_query
from concordant.exceptions import NonFiniteError, ParameterError
from concordant.metrics.metric import Family, Metric
from concordant.rankers.fitted_certificate import Sample
from concordant.rankers.guarantee import Guarantee, joint_space, look_up_guarantee
from concordant.rankers.parts.ranker_source import PartsSource
from concordant.rankers.recipe import training_labels
from concordant.rankers.training import n_informative, spread_of
from concordant.scale.cluster_parts import prepare_again
from concordant.scale.parts import Parts, StreamedParts, tree_sum
from concordant.scale.scan.index import Index
from concordant.scale.scan.scan import Part, PartRows, locating
from concordant.solvers.checkpoint import digest
from concordant.solvers.linear_scores import squares_within
from concordant.solvers.objective import LinearObjective, Route, clip_curvatures
from concordant.solvers.precondition import rows_from, sampled_queries
from concordant.surrogates import Surrogate
from concordant.surrogates.surrogate import Loss
from concordant.types import FloatArray, IntArray

# The objective of a linear ranker over data in parts: each value and gradient is a sum over the parts.


@dataclass(frozen=True, eq=False)
class PartSpec:
    """Facts about the whole data that a part needs.

    Attributes
    ----------
    ranks, shares
        Rank of each of its queries among all, and the query's share in the mean.
    queries, counts
        Its queries in the sample for `whitening`, and the number of sampled rows of each.
    """

    ranks: IntArray
    shares: FloatArray
    queries: IntArray
    counts: IntArray


class LinearPart(LinearObjective):
    """Summed loss of a part's queries at scores X @ w; penalty and scale belong to the whole objective.

    Parameters
    ----------
    loss, X
        As in `LinearObjective`; row weights include the queries' shares in the mean over all parts.
    spec, facts
        Facts about the whole data, and about the part.
    """

    def __init__(self, loss: Loss, X: Any, spec: PartSpec, facts: PartFacts) -> None:
        super().__init__(loss, X, alpha=0.0, ranks=spec.ranks)
        self.spec, self.facts = spec, facts
        self.at: FloatArray | None = None  # weights w of the cached scores

    def __sizeof__(self) -> int:
        # Dask moves small results to large ones.
        return int(self.scorer.X.nbytes + 6 * self.scores.nbytes)

    def evaluate(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient; the scores are cached."""
        value_and_grad = self.value_and_grad(w)
        self.at = w.copy()
        return value_and_grad

    def hessian_product_at(self, w: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the Hessian at `w` times the direction; evaluate at `w` first if other scores are cached."""
        if self.at is None or not np.array_equal(self.at, w):
            self.evaluate(w)
        return self.hessian_product(direction)

    def measure(self) -> PartStats:
        """Compute the statistics that are needed before the first gradient."""
        spec, offsets, noise = self.spec, self.offsets, self.noise()
        with one_blas_thread():  # BLAS splits sums by its threads, whose number differs on workers
            bends = np.concatenate((self.bends(noise), self.bends_between(noise)))
        rows = rows_from(offsets[spec.queries], spec.counts)
        squares = np.stack(squares_within(self.scorer.X, offsets, spec.shares))
        return PartStats(squares, self.scorer.widest(), self.at_rest(), bends, self.scorer.X[rows])


@dataclass(frozen=True, eq=False)
class PartStats:
    """Statistics of a part, or of all parts, before the first gradient.

    Attributes
    ----------
    squares
        Sums of squares of each feature about the query means, and about 0, weighted by query shares.
    widest
        Largest absolute value of each feature.
    at_rest
        Summed loss at weights 0.
    bends
        Curvature of the loss in the scores, in the levels of queries, and between scores.
    sample
        Rows of the sample for `whitening`.
    """

    squares: FloatArray
    widest: FloatArray
    at_rest: float
    bends: FloatArray
    sample: FloatArray


def _merge_stats(stats: list[PartStats], order: IntArray, counts: IntArray) -> tuple[PartStats, IntArray]:
    """Merge statistics of parts, with sampled queries in the order of the sample; also return their offsets.

    Parameters
    ----------
    stats
        Statistics of the parts.
    order
        Position in the sample of each sampled query, part after part.
    counts
        Rows of each sampled query, part after part.
    """
    rows = np.concatenate([part_stats.sample for part_stats in stats])
    starts, positions = np.cumsum(counts) - counts, np.argsort(order)
    merged = PartStats(
        tree_sum(part_stats.squares for part_stats in stats),
        np.max([part_stats.widest for part_stats in stats], axis=0),
        float(tree_sum(np.array([part_stats.at_rest]) for part_stats in stats)[0]),
        tree_sum(part_stats.bends for part_stats in stats),
        rows[rows_from(starts[positions], counts[positions])],
    )
    return merged, np.cumsum([0, *counts[positions]])


def slope(part: LinearPart, w: FloatArray) -> FloatArray:
    """Return value, summed absolute slopes in the scores, and gradient of a part."""
    value, grad = part.evaluate(w)
    return np.concatenate(([value, np.abs(part.rows).sum()], grad))


def _height(part: LinearPart, w: FloatArray) -> FloatArray:
    return np.array([part.evaluate(w)[0]])


def _curve(part: LinearPart, w: FloatArray, direction: FloatArray) -> FloatArray:
    return part.hessian_product_at(w, direction)


class PartitionedObjective:
    """Sum over parts with the interface of `LinearObjective`, so that solvers see no difference.

    `scores` and `moves`, which solvers only add and pass back to `along`, hold the weights evaluated last and
    the direction of the last product: scores are not stored, so X is read again.

    Parameters
    ----------
    parts
        Parts, each a `LinearPart`.
    stats, offsets
        Statistics of all parts; and the row offsets of the sample's queries.
    sizes
        Number of queries of each part.
    alpha, scale
        As in `LinearObjective`.
    """

    sparse = False

    def __init__(
        self,
        parts: Parts,
        stats: PartStats,
        offsets: IntArray,
        sizes: IntArray,
        alpha: float,
        scale: FloatArray,
    ) -> None:
        self.parts, self.stats, self.starts, self.sizes = parts, stats, offsets, sizes
        self.n_queries = int(sizes.sum())
        self.alpha, self.scale, self.n_features, self.n_gradients = float(alpha), scale, len(scale), 0
        self.scores, self.moves, self.slopes = np.zeros(len(scale)), np.zeros(len(scale)), np.nan

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient, by a pass over the parts."""
        value, self.slopes, *grad = self.parts.total(slope, w / self.scale)
        self.scores, self.n_gradients = w.copy(), self.n_gradients + 1
        pulled = np.array(grad) / self.scale + self.alpha * w
        return float(value + 0.5 * self.alpha * (w @ w)), pulled

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Return the (generalised) Hessian at the weights evaluated last, times the direction."""
        self.moves, self.n_gradients = direction.copy(), self.n_gradients + 1
        product = self.parts.total(_curve, self.scores / self.scale, direction / self.scale)
        scaled: FloatArray = product / self.scale + self.alpha * direction
        return scaled

    def along(self, moves: FloatArray, length: float) -> float:
        """Return the summed values at the last weights + length * moves, by a pass over the parts."""
        self.n_gradients += 1
        return float(self.parts.total(_height, (self.scores + length * moves) / self.scale)[0])

    def route(self, rng: np.random.Generator, most: int | None = None) -> Route:
        """Return a random order of the parts and their queries; with `most`, so many queries of one part."""
        numbers = rng.permutation(self.parts.n_parts)[: None if most is None else 1]
        return [(int(number), rng.permutation(self.sizes[number])[:most]) for number in numbers]

    def visits(self, route: Route) -> Iterator[tuple[LinearObjective, IntArray]]:
        """Read the parts of the route in order."""
        if not isinstance(self.parts, StreamedParts):
            raise ParameterError("parts", self.parts, "read by this process")
        prepared = self.parts.iter_prepared(np.array([number for number, _ in route]))
        return ((part, order) for part, (_, order) in zip(prepared, route, strict=True))

    def at_rest(self) -> float:
        """Return the objective at weights 0."""
        return self.stats.at_rest

    def widest(self) -> FloatArray:
        """Return the largest absolute value of each feature."""
        return self.stats.widest

    def sample(self, rng: np.random.Generator) -> tuple[Any, IntArray]:
        """Return rows of random whole queries, drawn when the parts were measured."""
        del rng
        return self.stats.sample, self.starts

    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Return the summed curvature of the loss in each score, and in the levels of whole queries."""
        del rng
        bend, level, between = self.stats.bends
        return clip_curvatures(bend, level, lambda: between)


@dataclass(frozen=True)
class LinearPreparation:
    """Builds the objective of a part from its rows; may be sent to another process.

    Attributes
    ----------
    metric, surrogate, assume, f
        As in `LinearRanker`.
    digests
        True if digests of the rows are needed.
    every
        As in `usable_targets`.
    """

    metric: Metric
    surrogate: Surrogate
    assume: str | None
    f: Family | None
    digests: bool
    every: bool = True

    def __call__(self, part: Part, rows: PartRows, spec: PartSpec) -> LinearPart:
        """Supervision -> targets -> loss, for a single part."""
        queries, recipe = rows.queries, (self.metric, self.surrogate)
        with locating(part, rows), naming_query(queries):
            labels, claim = training_labels(*recipe, rows.y, queries, self.assume, self.f, every=self.every)
            weights = np.repeat(spec.shares, queries.sizes)
            weights = weights if rows.sample_weight is None else weights * rows.sample_weight
            loss = self.surrogate.bind(labels, queries.offsets, weights)
        levels = self.surrogate.levels(labels, queries.offsets)
        columns = rows.X, rows.y, rows.sample_weight, rows.query_weight, queries.ids, queries.offsets
        facts = PartFacts(
            claim.space,
            float(spec.shares @ segment_sum(labels, queries.offsets)),
            n_informative(levels, queries.offsets, spec.shares),
            bool(weights.any()),
            weight_kind(rows.sample_weight, queries.offsets),
            digest(*columns) if self.digests else "",
        )
        return LinearPart(loss, rows.X, spec, facts)


@dataclass(frozen=True)
class PartFacts:
    """Facts about a part for certificates and checkpoints.

    Attributes
    ----------
    space
        Label space.
    mass
        Sum of the targets, weighted by query shares.
    n_informative
        Number of queries that count and whose labels differ.
    counts
        True if any row has a positive weight.
    weighted
        Kind of `sample_weight`; see `data.check.weight_kind`.
    digest
        Digest of the rows; empty if not needed.
    """

    space: str
    mass: float
    n_informative: int
    counts: bool
    weighted: str
    digest: str


def report(part: LinearPart) -> tuple[PartStats, PartFacts]:
    """Measure a part, before the first gradient."""
    with np.errstate(over="ignore", invalid="ignore"):  # overflowing squares are reported by name later
        return part.measure(), part.facts


@dataclass(frozen=True, eq=False)
class PartitionedProblem:
    """Loss on labels in parts, and the scale of the features; the penalty is not chosen yet.

    Attributes
    ----------
    surrogate, claim, scale, objective, sample, n_informative
        As in `Problem`.
    parts
        Parts that are read, or held by workers.
    digest
        Digest of the data; empty if not needed.
    """

    surrogate: Surrogate
    claim: Guarantee
    scale: FloatArray
    objective: Callable[[float], PartitionedObjective]
    sample: Sample
    n_informative: int
    parts: Parts
    digest: str


def partitioned_problem(
    preparation: LinearPreparation,
    source: PartsSource,
    show_progress: Callable[[Parts], Any],
    *,
    fit_scale: bool,
) -> PartitionedProblem:
    """Prepare and measure all parts, and bind the loss; `show_progress` is a context manager for the pass."""
    refuse_joint(preparation.metric)
    index = source.index
    shares = index_shares(index)
    queries, counts = sampled_queries(index.offsets, source.n_features, np.random.default_rng(0))
    specs, places = assign_queries(index, shares, queries, counts)
    parts = source.parts(preparation, specs)
    all_stats, facts = _report_parts(parts, show_progress)
    if is_refuted(preparation.metric, preparation.surrogate, [part_facts.space for part_facts in facts]):
        parts = prepare_again(parts, replace(preparation, every=False), specs)
        all_stats, facts = _report_parts(parts, show_progress)
    stats, starts = _merge_stats(list(all_stats), places, np.concatenate([spec.counts for spec in specs]))
    _check_facts(facts, stats, index.n_rows)
    scale = np.ones(source.n_features)
    if fit_scale:
        inside, whole = stats.squares
        scale = spread_of(inside, whole, float(shares @ index.sizes))
    surrogate, sizes = preparation.surrogate, np.diff(index.edges)
    mass = float(tree_sum(np.array([part_facts.mass]) for part_facts in facts)[0])
    sample = joint_sample(facts, index, mass if surrogate.reads == "targets" else None)
    claim = look_up_guarantee(preparation.metric, surrogate, "sort", sample.space, preparation.assume)
    return PartitionedProblem(
        surrogate=surrogate,
        claim=claim.under_weights(sample.weighted),
        scale=scale,
        objective=lambda alpha: PartitionedObjective(parts, stats, starts, sizes, alpha, scale),
        sample=sample,
        n_informative=sum(part_facts.n_informative for part_facts in facts),
        parts=parts,
        digest=digest(np.array([part_facts.digest for part_facts in facts])),
    )


def _report_parts(
    parts: Parts, show_progress: Callable[[Parts], Any]
) -> tuple[tuple[PartStats, ...], tuple[PartFacts, ...]]:
    """Measure all parts, by a pass with a progress bar."""
    with show_progress(parts):
        stats, facts = zip(*parts.each(report), strict=True)
    return stats, facts


def is_refuted(metric: Metric, surrogate: Surrogate, spaces: Sequence[str]) -> bool:
    """True if labels of other parts rule out the targets that some parts chose by their labels alone.

    >>> from concordant import metric, surrogates
    >>> arguments = surrogates.Pairwise(), ["binary", "grades"]
    >>> is_refuted(metric("pd"), *arguments), is_refuted(metric("wpd"), *arguments)
    (True, False)
    """
    return metric.joint_targets and surrogate.reads == "targets" and len(set(spaces)) > 1


def refuse_joint(metric: Metric) -> None:
    """Raise for a metric whose value on a part depends on other parts."""
    if not metric.by_query:
        raise ParameterError("max_grade", metric.convention.max_grade, "a number for data in parts")


def joint_sample(facts: Sequence[Any], index: Index, mass: float | None) -> Sample:
    """Summarize the labels of all parts, whose facts have a `space` and whether they are `weighted`."""
    space = joint_space([part_facts.space for part_facts in facts])
    weighted = joint_weight_kind([part_facts.weighted for part_facts in facts])
    return Sample(space, index.n_queries, int(index.sizes.max()), mass, weighted)


def index_shares(index: Index) -> FloatArray:
    """Return the share of each query in the mean, in the order of the parts."""
    weights = np.ones(index.n_queries) if index.weights is None else index.weights
    if not weights.any():
        raise all_zero_error("query_weight", "query")
    weights = weights / weights.max()  # so that huge and tiny ones can be added
    shares: FloatArray = weights / weights[index.order].sum()
    return shares


def shares_by_part(index: Index, shares: FloatArray) -> list[FloatArray]:
    """Split the shares of the queries into those of each part."""
    return np.split(shares, index.edges[1:-1])


def assign_queries(
    index: Index, shares: FloatArray, queries: IntArray, counts: IntArray
) -> tuple[list[PartSpec], IntArray]:
    """Build the spec of each part; also return the sample positions of sampled queries, part after part."""
    sampled = index.order[queries]  # numbers of the sampled queries, part after part
    specs, all_positions = [], []
    for number in range(len(index.edges) - 1):
        part_queries = index.part_slice(number)
        positions = np.flatnonzero((sampled >= part_queries.start) & (sampled < part_queries.stop))
        local = sampled[positions] - part_queries.start
        specs.append(PartSpec(index.ranks[part_queries], shares[part_queries], local, counts[positions]))
        all_positions.append(positions)
    return specs, np.concatenate(all_positions)


def _check_facts(facts: tuple[PartFacts, ...], stats: PartStats, n_rows: int) -> None:
    """Raise if no row counts, or if squares of features overflow."""
    if not any(part_facts.counts for part_facts in facts):
        raise all_zero_error("sample_weight", "row")
    sound = stats.widest < np.sqrt(np.finfo(np.float64).max / n_rows)
    if not sound.all():
        where = f"feature {int(np.argmin(sound))}"
        raise NonFiniteError("the sum of squares", np.inf, where, 1, "rescale X.")
