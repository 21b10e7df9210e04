"""Rows with scores, and what a metric makes of them: the metric table, the distribution, gains and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.evaluation.bootstrap import mean_intervals
from concordant.evaluation.report.pieces import Distribution, Estimate, Gains, MetricRow
from concordant.evaluation.significance import mean_of, paired
from concordant.metrics.metric import Metric, MetricValue
from concordant.supervision.queries import Queries
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Measured",
    "Scored",
    "Trust",
    "distribution",
    "estimated",
    "gains",
    "measured",
    "metric_rows",
    "thinned",
]

N_BINS = 20
MOST_BARS = 400  # more cannot be told apart on a screen
SAME = 1e-9  # values of one query that differ by no more are a tie, as for `compare`


@dataclass(frozen=True, eq=False)
class Scored:
    """Checked rows of a ranker, by the names that metrics are called with."""

    name: str
    y: FloatArray
    scores: FloatArray
    queries: Queries
    docid: NDArray[Any] | None = None

    def values(self, metric: Metric) -> FloatArray:
        """One value per query."""
        return metric.per_query(self.y, self.scores, qid=self.queries, docid=self.docid)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.queries.n_queries


@dataclass(frozen=True)
class Trust:
    """How intervals and p-values are made: their confidence, resamples of the queries, seed."""

    confidence: float = 0.95
    n_boot: int = 1999
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Measured:
    """A metric of both rankers; `baseline` follows the model's queries, NaN where it has none of that id."""

    metric: Metric
    model: FloatArray
    baseline: FloatArray
    mean: MetricValue
    baseline_mean: MetricValue

    @property
    def gain(self) -> FloatArray:
        """How much better the model is on each query."""
        return (self.model - self.baseline) * (1.0 if self.metric.greater_is_better else -1.0)

    def columns(self) -> list[FloatArray]:
        """Values per query of the model, of the baseline, and of their difference."""
        return [self.model, self.baseline, self.model - self.baseline]

    def means(self) -> list[float]:
        """Give the means of the columns; of the difference, over queries where both are defined."""
        return [float(self.mean), float(self.baseline_mean), mean_of(self.model - self.baseline)]

    def row(self, estimates: Sequence[Estimate], seed: int) -> MetricRow:
        """Give the line of the table."""
        return MetricRow(
            metric=str(self.metric),
            greater_is_better=self.metric.greater_is_better,
            model=estimates[0],
            baseline=estimates[1],
            difference=estimates[2],
            p_value=paired(self.model, self.baseline, seed=seed).permutation,
            n_counted=self.mean.n_queries - self.mean.n_skipped,
            n_skipped=self.mean.n_skipped,
        )


def metric_rows(found: Sequence[Measured], trust: Trust) -> tuple[MetricRow, ...]:
    """Give the table: the queries are resampled once for all of it."""
    means = [mean for one in found for mean in one.means()]
    estimates = estimated(means, [column for one in found for column in one.columns()], trust)
    return tuple(one.row(estimates[3 * i : 3 * i + 3], trust.seed) for i, one in enumerate(found))


def measured(metric: Metric, model: Scored, baseline: Scored) -> Measured:
    """Give a metric of both rankers, query by query and on average."""
    own, other = model.values(metric), baseline.values(metric)
    means = metric.average(own), metric.average(other)
    return Measured(metric, own, aligned(other, baseline.queries, model.queries), *means)


def aligned(values: FloatArray, given: Queries, wanted: Queries) -> FloatArray:
    """Give values per query in the order of other queries, by id; NaN where an id is missing."""
    if given is wanted:
        return values
    places = {one: place for place, one in enumerate(given.ids.tolist())}
    taken = [places.get(one, -1) for one in wanted.ids.tolist()]
    return np.append(values, np.nan)[taken]


def estimated(means: Sequence[float], columns: Sequence[FloatArray], trust: Trust) -> list[Estimate]:
    """Give means with their intervals; none where fewer than two queries count, or the mean is undefined."""
    ends = mean_intervals(np.stack(columns, axis=1), trust.confidence, trust.n_boot, trust.seed)
    lows, highs = (np.where(np.isnan(means), np.nan, end) for end in ends)
    return [Estimate(*map(float, one)) for one in zip(means, lows, highs, strict=True)]


def distribution(one: Measured) -> Distribution:
    """Count the queries by value: 20 bins of equal width, over [0, 1] where all values are there."""
    known, others = (values[~np.isnan(values)] for values in (one.model, one.baseline))
    seen = np.concatenate((known, others))
    ends = (seen.min(initial=0.0), seen.max(initial=1.0))
    edges = np.histogram_bin_edges(seen, N_BINS, range=ends)
    mine, theirs = (tuple(np.histogram(values, edges)[0].tolist()) for values in (known, others))
    quarters = np.quantile(known, np.linspace(0.0, 1.0, 5)) if known.size else np.full(5, np.nan)
    return Distribution(str(one.metric), tuple(edges.tolist()), mine, theirs, tuple(quarters.tolist()))


def gains(one: Measured, queries: Queries) -> Gains:
    """Sort the queries by what the model gains; of many, evenly spaced ones are kept, both ends included."""
    gained = one.gain
    numbers = np.flatnonzero(~np.isnan(gained))
    order = numbers[np.argsort(-gained[numbers], kind="stable")]
    shown = order[thinned(len(order), MOST_BARS)]
    won, lost = int((gained[order] > SAME).sum()), int((gained[order] < -SAME).sum())
    ids: Sequence[Any] = queries.ids[shown].tolist()
    return Gains(
        metric=str(one.metric),
        differences=tuple(gained[shown].tolist()),
        qid=tuple(map(str, ids)),
        n_queries=len(order),
        wins=won,
        ties=len(order) - won - lost,
        losses=lost,
    )


def thinned(n: int, most: int) -> IntArray:
    """Give at most so many of n places, evenly spaced, both ends among them."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).round().astype(np.int64))
