"""Scored rows, and what follows from a metric of them: the table, the distribution, gains and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.segments import segment_reduce
from concordant.data.queries import Queries
from concordant.decoders.sorting import positions
from concordant.evaluation.effects import N_BOOT, mean_intervals
from concordant.evaluation.report.report_values import (
    Bin,
    Caveats,
    Distribution,
    Estimate,
    Gains,
    GradeByScore,
    MetricRow,
    RankedRow,
    WorstQuery,
)
from concordant.evaluation.significance import mean_of, paired
from concordant.metrics.metric import Metric, MetricValue
from concordant.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


SCORE_BINS = 20
MOST_BARS = 400  # more cannot be told apart on a screen
SAME = 1e-9  # values of a query that differ by no more are a tie, as in `compare`


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Checked rows of a ranker, named as metrics name their arguments."""

    name: str
    y: FloatArray
    scores: FloatArray
    queries: Queries
    docid: NDArray[Any] | None = None

    def values(self, metric: Metric) -> FloatArray:
        """Return one value per query."""
        return metric.per_query(self.y, self.scores, qid=self.queries, docid=self.docid)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.queries.n_queries


@dataclass(frozen=True)
class Trust:
    """Settings of intervals and p-values: confidence, resamples of the queries, seed."""

    confidence: float = 0.95
    n_boot: int = N_BOOT
    seed: int = 0


@dataclass(frozen=True, eq=False)
class PairedMetric:
    """A metric of both rankers; `baseline` follows the order of `model`, NaN where an id is missing."""

    metric: Metric
    model: FloatArray
    baseline: FloatArray
    mean: MetricValue
    baseline_mean: MetricValue

    @property
    def gain(self) -> FloatArray:
        """Gain of the model on each query, positive where it is better."""
        return (self.model - self.baseline) * (1.0 if self.metric.greater_is_better else -1.0)

    def columns(self) -> list[FloatArray]:
        """Return values per query of the model, of the baseline, and of their difference."""
        return [self.model, self.baseline, self.model - self.baseline]

    def means(self) -> list[float]:
        """Return the means of the columns; of the difference, over queries where both are defined."""
        return [float(self.mean), float(self.baseline_mean), mean_of(self.model - self.baseline)]

    def row(self, estimates: Sequence[Estimate], seed: int) -> MetricRow:
        """Build the row of the table."""
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


def metric_rows(paired_metrics: Sequence[PairedMetric], trust: Trust) -> tuple[MetricRow, ...]:
    """Build the table; the queries are resampled once for all metrics."""
    means = [mean for paired_metric in paired_metrics for mean in paired_metric.means()]
    estimates = estimate_means(
        means, [column for paired_metric in paired_metrics for column in paired_metric.columns()], trust
    )
    return tuple(
        paired_metric.row(estimates[3 * i : 3 * i + 3], trust.seed)
        for i, paired_metric in enumerate(paired_metrics)
    )


def measure_metric(metric: Metric, model: ScoredRows, baseline: ScoredRows) -> PairedMetric:
    """Compute a metric of both rankers, query by query and on average."""
    model_values, baseline_values = model.values(metric), baseline.values(metric)
    means = metric.average(model_values), metric.average(baseline_values)
    return PairedMetric(
        metric, model_values, _align_queries(baseline_values, baseline.queries, model.queries), *means
    )


def _align_queries(values: FloatArray, source: Queries, target: Queries) -> FloatArray:
    """Reorder values per query from the source's to the target's ids; NaN where an id is missing."""
    if source is target:
        return values
    places = {query_id: position for position, query_id in enumerate(source.ids.tolist())}
    taken = [places.get(query_id, -1) for query_id in target.ids.tolist()]
    return np.append(values, np.nan)[taken]


def estimate_means(means: Sequence[float], columns: Sequence[FloatArray], trust: Trust) -> list[Estimate]:
    """Add intervals to means; NaN if fewer than two queries count, or the mean is undefined."""
    ends = mean_intervals(np.stack(columns, axis=1), trust.confidence, trust.n_boot, trust.seed)
    lows, highs = (np.where(np.isnan(means), np.nan, end) for end in ends)
    return [Estimate(*map(float, numbers)) for numbers in zip(means, lows, highs, strict=True)]


def count_by_value(paired_metric: PairedMetric) -> Distribution:
    """Count the queries by value: 20 bins of equal width, over [0, 1] if all values are in it."""
    model_values, others = (
        values[~np.isnan(values)] for values in (paired_metric.model, paired_metric.baseline)
    )
    all_values = np.concatenate((model_values, others))
    ends = (all_values.min(initial=0.0), all_values.max(initial=1.0))
    edges = np.histogram_bin_edges(all_values, SCORE_BINS, range=ends)
    mine, theirs = (tuple(np.histogram(values, edges)[0].tolist()) for values in (model_values, others))
    quarters = (
        np.quantile(model_values, np.linspace(0.0, 1.0, 5)) if model_values.size else np.full(5, np.nan)
    )
    return Distribution(
        str(paired_metric.metric), tuple(edges.tolist()), mine, theirs, tuple(quarters.tolist())
    )


def sort_by_gain(paired_metric: PairedMetric, queries: Queries) -> Gains:
    """Sort the queries by gain; of many queries, evenly spaced ones are kept, both ends included."""
    gained = paired_metric.gain
    numbers = np.flatnonzero(~np.isnan(gained))
    order = numbers[np.argsort(-gained[numbers], kind="stable")]
    shown = order[thin(len(order), MOST_BARS)]
    won, lost = int((gained[order] > SAME).sum()), int((gained[order] < -SAME).sum())
    ids: Sequence[Any] = queries.ids[shown].tolist()
    return Gains(
        metric=str(paired_metric.metric),
        differences=tuple(gained[shown].tolist()),
        qid=tuple(map(str, ids)),
        n_queries=len(order),
        wins=won,
        ties=len(order) - won - lost,
        losses=lost,
    )


def thin(n: int, most: int) -> IntArray:
    """Return at most so many of n indices, evenly spaced, both ends among them."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).round().astype(np.int64))


# Single rows and queries: calibration, the worst queries, ties and empty queries.

CALIBRATION_BINS = 10
N_WORST = 10
N_ROWS = 10
N_MISSED = 5


def calibrate_grades(scored: ScoredRows, confidence: float) -> GradeByScore:
    """Return the mean grade by score: ten bins of about equally many rows, equal scores in the same bin.

    Rows of a query are not independent: the interval is that of a ratio of sums over queries, with each query
    as an observation, by the normal approximation.
    """
    scores, grades = scored.queries.gather(scored.scores), scored.queries.gather(scored.y)
    ranked_rows = np.flatnonzero(np.isfinite(scores))
    codes, number = scored.queries.codes[ranked_rows], _deciles(scores[ranked_rows])
    bins = [
        _build_bin(scores[ranked_rows][in_bin], grades[ranked_rows][in_bin], codes[in_bin], confidence)
        for in_bin in (
            np.flatnonzero(number == bin_number) for bin_number in range(int(number.max(initial=-1)) + 1)
        )
    ]
    return GradeByScore(tuple(bins), len(scores) - len(ranked_rows))


def _deciles(scores: FloatArray) -> IntArray:
    """Return the bin of each row; no bin is empty."""
    if not scores.size:
        return np.empty(0, dtype=np.int64)
    inner = np.quantile(scores, np.linspace(0.0, 1.0, CALIBRATION_BINS + 1)[1:-1], method="lower")
    return np.unique(np.searchsorted(np.unique(inner), scores, side="left"), return_inverse=True)[1]


def _build_bin(scores: FloatArray, grades: FloatArray, codes: IntArray, confidence: float) -> Bin:
    from scipy.stats import norm

    mean = float(grades.mean())
    sums = np.bincount(np.unique(codes, return_inverse=True)[1], weights=grades - mean)
    n = len(sums)
    half = float("nan")
    if n > 1:
        half = float(
            norm.ppf((1.0 + confidence) / 2.0) * np.sqrt(n / (n - 1.0) * (sums**2).sum()) / len(grades)
        )
    ends = float(scores.min()), float(scores.max())
    centre = float((scores / len(scores)).sum())  # a sum of huge scores would overflow
    return Bin(*ends, centre, mean, mean - half, mean + half, len(grades))


def find_worst_queries(
    paired_metric: PairedMetric, model: ScoredRows, baseline: ScoredRows | None
) -> tuple[WorstQuery, ...]:
    """Return the queries of lowest value (of a loss: highest), each with the head of its ranking.

    `baseline` is None if it has no order of the same rows.
    """
    sign = 1.0 if paired_metric.metric.greater_is_better else -1.0
    defined = np.flatnonzero(~np.isnan(paired_metric.model))
    query_indices = defined[np.argsort(sign * paired_metric.model[defined], kind="stable")[:N_WORST]]
    return tuple(_worst_query(int(q), paired_metric, model, baseline) for q in query_indices)


def _worst_query(
    q: int, paired_metric: PairedMetric, model: ScoredRows, baseline: ScoredRows | None
) -> WorstQuery:
    rows = model.queries.rows([q])
    scores = model.scores[rows]
    places = positions(scores)
    others = None if baseline is None else positions(baseline.scores[rows])
    names = rows.tolist() if model.docid is None else model.docid[rows].tolist()
    shown = with_missed(np.argsort(places), model.y[rows])
    tied = _repeated(scores)
    ranked = [
        RankedRow(
            rank=int(places[i]),
            docid=str(names[i]) if model.docid is not None else f"row {names[i]}",
            grade=float(model.y[rows[i]]),
            score=float(scores[i]),
            tied=bool(tied[i]),
            baseline_rank=None if others is None else int(others[i]),
        )
        for i in shown
    ]
    qid = str(model.queries.ids[q].item() if hasattr(model.queries.ids[q], "item") else model.queries.ids[q])
    return WorstQuery(
        qid, float(paired_metric.model[q]), float(paired_metric.baseline[q]), len(rows), tuple(ranked)
    )


def with_missed(order: IntArray, grades: FloatArray) -> IntArray:
    """Return the head of an order, and from below it the best rows whose grade is above the head's least."""
    head, rest = order[:N_ROWS], order[N_ROWS:]
    missed = rest[grades[rest] > grades[head].min(initial=np.inf)]
    best = missed[np.argsort(-grades[missed], kind="stable")[:N_MISSED]]
    return np.concatenate((head, rest[np.isin(rest, best)]))


def _repeated(scores: FloatArray) -> BoolArray:
    """True for each ranked row whose score another row has, too."""
    _, inverse, count = np.unique(scores, return_inverse=True, return_counts=True)
    return (count[inverse] > 1) & np.isfinite(scores)


def count_caveats(scored: ScoredRows, n_skipped: int, noticed: Sequence[str]) -> Caveats:
    """Count ties, and queries with little or no information."""
    queries, sizes = scored.queries, scored.queries.sizes
    scores, grades, codes = queries.gather(scored.scores), queries.gather(scored.y), queries.codes
    ranked = np.isfinite(scores)
    tied = _count_equal_pairs(queries.n_queries, codes[ranked], scores[ranked])
    alike = _count_equal_pairs(queries.n_queries, codes[ranked], scores[ranked], grades[ranked])
    some = sizes > 0
    highest, lowest = (segment_reduce(ufunc, grades, queries.offsets) for ufunc in (np.maximum, np.minimum))
    return Caveats(
        n_tied_queries=int((tied > 0).sum()),
        n_tied_pairs=int(tied.sum()),
        n_pairs=int((sizes * (sizes - 1) // 2).sum()),
        n_decided_ties=int((tied - alike).sum()),
        n_without_rows=int((~some).sum()),
        n_one_row=int((sizes == 1).sum()),
        n_nothing_relevant=int((highest <= 0.0)[some].sum()),
        n_same_grade=int((highest == lowest)[some].sum()),
        n_skipped=n_skipped,
        n_not_ranked=int((~ranked).sum()),
        noticed=tuple(noticed),
    )


def _count_equal_pairs(n_queries: int, codes: IntArray, *keys: FloatArray) -> IntArray:
    """Count, for each query, the pairs of rows that are equal in every key."""
    order = np.lexsort((*keys, codes))
    columns = [codes[order], *(key[order] for key in keys)]
    new = np.zeros(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        new |= column[1:] != column[:-1]
    starts = np.r_[0, np.flatnonzero(new) + 1][: len(order)]
    sizes = np.diff(np.r_[starts, len(order)])
    total = np.bincount(columns[0][starts], weights=sizes * (sizes - 1) // 2, minlength=n_queries)
    return total.astype(np.int64)
