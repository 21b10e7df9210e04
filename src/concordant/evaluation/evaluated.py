"""evaluate: the quality of a ranker by any metrics, on data in memory, on disk, or on a cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import refuse_misaligned
from concordant.data.check import are_in_memory
from concordant.data.labels import RankingData
from concordant.data.queries import Queries
from concordant.exceptions import (
    ConcordantError,
    FeaturesError,
    LabelError,
    NotMeasuredError,
    ParameterError,
    ShapeError,
)
from concordant.metrics.comparison import ComparisonMetric
from concordant.metrics.metric import Metric, MetricValue
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import explain_unknown_arguments
from concordant.rankers.fit_progress import show_pass
from concordant.rankers.missing_qid import warn_at_use
from concordant.rankers.parts.linear_parts import refuse_joint
from concordant.rankers.parts.ranker_source import PartsSource, as_parts_source
from concordant.rankers.training import query_weights
from concordant.scale.scan.scan import Part, PartRows, Scan, locating
from concordant.types import ArrayLike, FloatArray

Scores = Callable[[Any, Queries], ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, MetricValue]):
    """Means of metrics by name, and the per-query values that they are means of.

    Attributes
    ----------
    means
        Mean of each metric over the queries on which it is defined.
    per_query
        One value per query, in ascending order of the ids; NaN where the metric's convention skips it.
    ids
        The queries.
    """

    means: dict[str, MetricValue]
    per_query: dict[str, FloatArray]
    ids: np.ndarray

    def __getitem__(self, name: str) -> MetricValue:
        try:
            canonical_name = name if name in self.means else str(read_metric(name))
            return self.means[canonical_name]
        except (KeyError, ConcordantError) as error:
            raise NotMeasuredError(name, self.means) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.means.values()))


@explain_unknown_arguments
def evaluate(
    model: Any,
    X: ArrayLike,
    y: ArrayLike = None,
    *,
    qid: ArrayLike = None,
    query_weight: ArrayLike = None,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10",),
    client: Any = None,
    verbose: int = 0,
) -> Evaluation:
    """Compute the mean of metrics over queries, each query ranked by a model.

    One part of a scan is in memory at a time, and each is read once, whatever the number of metrics. Means
    are taken over the values of all queries, in the order of their ids: parts and workers do not change them.

    Parameters
    ----------
    model
        A fitted ranker, any object with `predict`, or a function of features that returns one score per row.
    X, y, qid, query_weight
        As for `LinearRanker.fit`: arrays or frames, a `Scan`, or Dask collections; or a `RankingData`.
    metrics
        Metrics or their names. For data in parts, ties under the rule "random" are broken part by part.
    client
        A `distributed.Client`, whose workers read and rank the parts.
    verbose
        1 shows a progress bar on standard error while a scan is read.

    Examples
    --------
    >>> from concordant import LinearRanker, synthetic
    >>> toy = synthetic.grades(n_queries=50, n_items=8, seed=0)
    >>> result = evaluate(lambda X: X[:, 0], toy.X, toy.y, qid=toy.qid, metrics=["ndcg@5", "ap"])
    >>> list(result), result["ap"].n_queries, result.per_query["ndcg@5"].shape
    (['ndcg@5', 'ap'], 50, (50,))
    """
    unique_metrics = _read_metrics(metrics)
    if (data := RankingData.like(X)) is not None:
        if y is not None or qid is not None:
            raise ParameterError.because(
                "y or qid was given, but X already has labels and query ids. Leave y and qid out."
            )
        X, y, qid = data.X, data.y, data.qid
    if isinstance(X, Scan) and any(metric.convention.ties == "id_descending" for metric in unique_metrics):
        X = X.with_docid()
    if client is not None or not are_in_memory(X, y, qid, query_weight):
        source = as_parts_source(X, y, qid, None, query_weight, client)
        return _evaluate_parts(model, source, unique_metrics, verbose)
    refuse_misaligned(X=X, y=y, qid=qid, query_weight=query_weight)
    queries = Queries.for_rows(qid, count_rows(X), "X")
    warn_at_use(model, "evaluate(model, X, y, qid=qid)", queries.n_rows, qid)
    scores = _scoring_function(model)(X, queries)
    refuse_misaligned(X=X, scores=scores)
    weights = None if query_weight is None else query_weights(query_weight, queries)
    query_args = {"qid": queries, "docid": None if data is None else data.docid}
    values = [metric.per_query(y, scores, **query_args) for metric in unique_metrics]
    for metric in unique_metrics:
        metric.warn_of_labels(y)
    return _average(unique_metrics, np.array(values), queries.ids, weights)


def count_rows(X: ArrayLike) -> int:
    """Return the number of rows of features in memory; raise for other types."""
    if not np.shape(X):
        hint = "give an array or a frame, a RankingData, or cc.scan_parquet(path)"
        raise FeaturesError("X", f"it is a {type(X).__name__}; {hint}")
    return int(np.shape(X)[0])


def _read_metrics(metrics: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    """Read the metrics, each once; raise for metrics of pairs, which have no queries."""
    specs = list(metrics) if isinstance(metrics, Iterable) and not isinstance(metrics, str) else [metrics]
    unique_metrics = list(dict.fromkeys(read_metric(spec) for spec in specs))
    if not unique_metrics:
        raise ParameterError("metrics", metrics, "at least one metric")
    for metric in unique_metrics:
        if isinstance(metric, ComparisonMetric):
            raise ParameterError.because(
                f"metric {str(metric)!r} scores pairs, not rankings. Use evaluation.evaluate_outcomes."
            )
    return unique_metrics


def _evaluate_parts(model: Any, source: PartsSource, metrics: list[Metric], verbose: int) -> Evaluation:
    for metric in metrics:
        refuse_joint(metric)
    if source.feature_names is not None:
        model = _without_names(model, source.feature_names)
    index = source.index
    parts = source.parts(_keep_rows, [None] * (len(index.edges) - 1))
    with show_pass("evaluating", verbose, parts):
        values = np.concatenate(parts.each(_evaluate_part, parts.share(model), metrics), axis=1)
    weights = None if index.weights is None else index.weights[index.order]
    return _average(metrics, values[:, index.order], index.ids[index.order], weights)


def _keep_rows(part: Part, rows: PartRows, spec: None) -> tuple[Part, PartRows]:
    del spec
    return part, rows


def _evaluate_part(prepared: tuple[Part, PartRows], model: Any, metrics: list[Metric]) -> FloatArray:
    """Values of each metric on each query of a part."""
    part, rows = prepared
    scores = _scoring_function(model)(rows.X, rows.queries)
    with locating(part, rows):
        query_args = {"qid": rows.queries, "docid": rows.docid}
        return np.array([metric.per_query(rows.y, scores, **query_args) for metric in metrics])


def _scoring_function(model: Any) -> Scores:
    """Return the function that ranks rows by scores; for pair rankers, by places."""
    if hasattr(model, "scores_to_rank"):
        return lambda X, queries: np.asarray(model.scores_to_rank(X, queries), dtype=np.float64)
    if hasattr(model, "predict"):
        return lambda X, _: model.predict(X)
    if callable(model):
        return lambda X, _: model(X)
    raise ParameterError("model", model, "a fitted ranker or a function that maps features to scores")


def _without_names(model: Any, names: tuple[str, ...]) -> Any:
    """Return a model that takes columns by number; raise unless they are the columns of its fit."""
    fitted_names = getattr(model, "feature_names_in_", None)
    n_features = getattr(model, "n_features_in_", len(names))
    if fitted_names is None and n_features != len(names):
        raise ShapeError("X", (len(names),), f"{n_features} features, as the model was fitted with")
    if fitted_names is not None and tuple(map(str, fitted_names)) != names:
        hint = "name the features in the order of the model: features=[*model.feature_names_in_]."
        raise LabelError("the columns are not the features that the model was fitted to", hint)
    if "feature_names_in_" not in getattr(model, "__dict__", {}):  # a pipeline takes them from its first step
        return model
    copied = copy.copy(model)
    del copied.feature_names_in_
    return copied


def _average(
    metrics: list[Metric], values: FloatArray, ids: np.ndarray, weights: FloatArray | None
) -> Evaluation:
    names = [str(metric) for metric in metrics]
    means = [
        metric.average(metric_values, weights) for metric, metric_values in zip(metrics, values, strict=True)
    ]
    return Evaluation(dict(zip(names, means, strict=True)), dict(zip(names, values, strict=True)), ids)
