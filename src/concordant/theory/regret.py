"""Exact regret: how far scores are from the best possible on a known distribution of labels.

>>> from concordant.data import synthetic
>>> toy = synthetic.grades(n_queries=5, n_items=6)
>>> best = bayes("ndcg@3", toy.distribution)
>>> regret("ndcg@3", toy.distribution, best.scores).max()
np.float64(0.0)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from concordant._base.validate import check_lengths, refuse_misaligned
from concordant.data.labels import check_outcome
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label, LabelDistribution, check_probabilities, tile
from concordant.exceptions import NoStandardizationError, ParameterError, ShapeError
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["Bayes", "RankingMetric", "bayes", "comparison_regret", "expected", "regret"]

MAX_ITEMS = 8  # 8! = 40,320 orders: the most that are enumerated
ROUNDING = 1e-12


class RankingMetric(Protocol):
    """Interface of metrics for regret: values, direction, and the standardization where one exists."""

    @property
    def greater_is_better(self) -> bool:
        """True if the best ranking has the largest value."""

    def per_query(self, labels: ArrayLike, scores: ArrayLike, *, qid: ArrayLike = None) -> FloatArray:
        """Compute the metric of each query; NaN where it is undefined."""

    def targets(self, labels: ArrayLike, *, qid: ArrayLike = None) -> FloatArray:
        """Compute the standardization r(y) of each row; NoStandardizationError where there is none."""


@dataclass(frozen=True, eq=False)
class Bayes:
    """Best expected values of a metric, and scores that attain them.

    Attributes
    ----------
    values
        Best expected value of the metric, per query.
    scores
        Scores per row, in the caller's order; every ranking by them attains the values, however it breaks
        ties.
    """

    values: FloatArray
    scores: FloatArray


def expected(metric: RankingMetric | str, distribution: LabelDistribution, scores: ArrayLike) -> FloatArray:
    """Compute the expected value of the metric on each query.

    A label under which the metric is undefined on a query contributes 0: all rankings are equal there. Tie
    rules that look at the grades (worst, best) become the mean over orders: no ranking knows the label.

    Parameters
    ----------
    metric
        A metric, or its name.
    distribution
        The exact distribution of the labels.
    scores
        One score per row, high is better.

    Examples
    --------
    >>> from concordant.data.synthetic import LabelDistribution
    >>> intents = LabelDistribution(([1, 0], [0, 1]), [[0.75, 0.25]], queries=[0, 0])
    >>> expected("p@1", intents, [2.0, 1.0]).tolist()
    [0.75]
    """
    ranking_metric = _resolve_metric(metric)
    return distribution.mean_per_query(
        lambda label: ranking_metric.per_query(label, scores, qid=distribution.queries)
    )


def bayes(metric: RankingMetric | str, distribution: LabelDistribution) -> Bayes:
    """Compute the best expected value of each query, and scores that attain it.

    Where the metric has a standardization r, sorting by E[r(Y)] is optimal (any order of equal entries is);
    otherwise all orders of each query are tried, for queries of at most 8 items. The parameters are those of
    `expected`.

    Examples
    --------
    >>> from concordant.data.synthetic import LabelDistribution
    >>> intents = LabelDistribution(([1, 0], [0, 1]), [[0.75, 0.25]], queries=[0, 0])
    >>> bayes("dcg", intents).scores.tolist()
    [0.75, 0.25]
    """
    ranking_metric = _resolve_metric(metric)
    try:
        scores = distribution.mean_per_row(
            lambda label: ranking_metric.targets(label, qid=distribution.queries)
        )
    except NoStandardizationError as missing:
        scores = _enumerate_best_scores(ranking_metric, distribution, missing)
    return Bayes(expected(ranking_metric, distribution, break_ties(scores, distribution.queries)), scores)


def break_ties(scores: FloatArray, queries: Queries) -> FloatArray:
    """Return scores of the same order without ties, so that no tie rule affects the best value.

    >>> break_ties(np.array([0.5, 0.5, 0.9]), Queries.from_sizes([3])).tolist()
    [2.0, 1.0, 3.0]
    """
    order = np.lexsort((-queries.gather(scores), queries.codes))
    places = np.empty(len(order))
    places[order] = np.arange(len(order)) - np.repeat(queries.offsets[:-1], queries.sizes)
    return queries.scatter(queries.n_rows - places)


def regret(metric: RankingMetric | str, distribution: LabelDistribution, scores: ArrayLike) -> FloatArray:
    """Compute the regret of each query: expected loss beyond the best possible; never negative.

    The parameters are those of `expected`.

    Examples
    --------
    >>> from concordant.data.synthetic import LabelDistribution
    >>> intents = LabelDistribution(([1, 0], [0, 1]), [[0.75, 0.25]], queries=[0, 0])
    >>> regret("p@1", intents, [1.0, 2.0]).tolist()
    [0.5]
    """
    ranking_metric = _resolve_metric(metric)
    best = bayes(ranking_metric, distribution).values
    gap = best - expected(ranking_metric, distribution, scores)
    gap = gap if ranking_metric.greater_is_better else -gap
    # Only rounding is removed: anything more negative would be a defect and should show.
    return np.where(np.abs(gap) <= ROUNDING * np.maximum(np.abs(best), 1.0), 0.0, gap)


def comparison_regret(probabilities: ArrayLike, predictions: ArrayLike) -> FloatArray:
    """Compute, for each pair, the probability of error beyond that of the most probable outcome.

    Parameters
    ----------
    probabilities
        P(y = -1, 0, +1 | pair), shape (n_pairs, 3).
    predictions
        Predicted outcomes in {-1, 0, +1}.

    Examples
    --------
    >>> comparison_regret([[0.25, 0.5, 0.25], [0.0, 0.25, 0.75]], [-1, 1]).tolist()
    [0.25, 0.0]
    """
    refuse_misaligned(probabilities=probabilities, predictions=predictions)
    table = np.asarray(probabilities, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 3:
        raise ShapeError("probabilities", table.shape, "(n_pairs, 3): P(y = -1), P(y = 0), P(y = +1)")
    table = check_probabilities(table, table.shape)
    predicted = check_outcome(predictions, "predictions")
    check_lengths("probabilities", len(table), predictions=predicted)
    column = predicted + 1
    missed: FloatArray = table.max(axis=1) - table[np.arange(len(table)), column]
    return missed


def _resolve_metric(metric: RankingMetric | str) -> RankingMetric:
    """Return the metric itself, or the metric of this name.

    A ranking cannot know the grades: tie rules that look at them (worst, best) become the mean over orders.
    """
    from concordant.metrics import Metric
    from concordant.metrics import metric as by_name

    named = by_name(metric) if isinstance(metric, str) else metric
    if isinstance(named, Metric) and named.convention.ties in ("worst", "best"):
        named = by_name(named, convention=named.convention.replace(ties="expected"))
    return named


def _enumerate_best_scores(
    metric: RankingMetric, distribution: LabelDistribution, missing: NoStandardizationError
) -> FloatArray:
    queries = distribution.queries
    if queries.sizes.max() > MAX_ITEMS:
        largest = int(queries.sizes.max())
        raise ParameterError.because(
            f"metric {str(metric)!r} has no standardization, so queries may have at most {MAX_ITEMS} items, "
            f"got {largest}."
        ) from missing
    orders = {int(n): _orders_as_scores(int(n)) for n in np.unique(queries.sizes) if n > 1}
    scores = np.zeros(queries.n_rows)
    for query in range(queries.n_queries):
        rows = queries.rows([query])
        if len(rows) < 2:  # nothing to order, and no labels at all where there are no rows
            continue
        candidates = orders[len(rows)]
        values = _order_values(metric, distribution, query, rows, candidates)
        scores[rows] = candidates[values.argmax() if metric.greater_is_better else values.argmin()]
    return scores


def _orders_as_scores(n: int) -> FloatArray:
    """List all orders of n items as rows of scores.

    >>> _orders_as_scores(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.array(list(itertools.permutations(range(n))), dtype=np.float64)


def _order_values(
    metric: RankingMetric, distribution: LabelDistribution, query: int, rows: IntArray, candidates: FloatArray
) -> FloatArray:
    """Compute the expected metric of each candidate order of a query."""
    values = np.zeros(len(candidates))
    for label, prob in zip(distribution.labels, distribution.probs[query], strict=True):
        if prob > 0:
            values += prob * values_of_scores(_fixed_by(label, metric), label, rows, candidates)
    return values


def values_of_scores(metric: RankingMetric, label: Label, rows: IntArray, scores: FloatArray) -> FloatArray:
    """Compute the metric of some rows of a label for each row of scores: each is a query; 0 if undefined."""
    times, n = scores.shape
    copies = Queries.from_sizes(np.full(times, n))
    values = metric.per_query(tile(label, rows, times), scores.ravel(), qid=copies)
    return np.where(np.isnan(values), 0.0, values)


def _fixed_by(label: Any, metric: Any) -> Any:
    """Return the metric for the rows of a query: `max_grade="data"` becomes the highest grade of all rows."""
    if getattr(metric, "by_query", True):
        return metric
    highest = float(metric.read_labels(label).values.max(initial=0.0))
    return replace(metric, convention=metric.convention.replace(max_grade=highest))
