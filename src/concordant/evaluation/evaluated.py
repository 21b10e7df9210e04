"""evaluate: what a ranker is worth by any metrics, on data in memory, on disk, or on a cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

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
from concordant.rankers.partitioned.linear import refuse_joint
from concordant.rankers.partitioned.source import Source, source_of
from concordant.rankers.progress import passing
from concordant.rankers.training import query_weights
from concordant.supervision.data import RankingData
from concordant.supervision.queries import Queries
from concordant.supervision.scans.scan import Part, PartRows, Scan, locating
from concordant.types import ArrayLike, FloatArray

__all__ = ["Evaluation", "evaluate"]

Scores = Callable[[Any, Queries], FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, MetricValue]):
    """Means of metrics, by their names; and the values they are means of.

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
            known = name if name in self.means else str(read_metric(name))
            return self.means[known]
        except (KeyError, ConcordantError) as error:
            raise NotMeasuredError(name, self.means) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.means.values()))


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
    """Give the mean of metrics over queries, each query ranked by a model.

    Of a scan one part is in memory at a time, and each is read once, whatever the number of metrics. Means
    are taken over the values of all queries, in the order of their ids: parts and workers change nothing.

    Parameters
    ----------
    model
        A fitted ranker, anything with `predict`, or a function of features that gives one score per row.
    X, y, qid, query_weight
        As for `LinearRanker.fit`: arrays or frames, a `Scan`, or Dask collections; or a `RankingData`.
    metrics
        Metrics or their names. Of data in parts, tied scores under the rule "random" are drawn part by part.
    client
        A `distributed.Client`, whose workers read and rank the parts.
    verbose
        1 shows a progress bar on standard error while a scan is read.

    Examples
    --------
    >>> from concordant import LinearRanker, synthetic
    >>> toy = synthetic.grades(n_queries=50, n_items=8, seed=0)
    >>> found = evaluate(lambda X: X[:, 0], toy.X, toy.y, qid=toy.qid, metrics=["ndcg@5", "ap"])
    >>> list(found), found["ap"].n_queries, found.per_query["ndcg@5"].shape
    (['ndcg@5', 'ap'], 50, (50,))
    """
    chosen = chosen_metrics(metrics)
    if (data := RankingData.like(X)) is not None:
        if y is not None or qid is not None:
            raise ParameterError("y", "given", "left out: X has labels and query ids of its own")
        X, y, qid = data.X, data.y, data.qid
    if isinstance(X, Scan) and any(metric.convention.ties == "id_descending" for metric in chosen):
        X = X.with_docid()
    source = source_of(X, y, qid, None, query_weight, client)
    if source is not None:
        return of_parts(model, source, chosen, verbose)
    queries = Queries.of(qid, height(X), "X")
    scores = scoring(model)(X, queries)
    weights = None if query_weight is None else query_weights(query_weight, queries)
    given = {"qid": queries, "docid": None if data is None else data.docid}
    found = [metric.per_query(y, scores, **given) for metric in chosen]
    return summed_up(chosen, np.array(found), queries.ids, weights)


def height(X: ArrayLike) -> int:
    """Give the rows of features in memory; what has none is refused."""
    if not np.shape(X):
        hint = "give an array or a frame, a RankingData, or cc.scan_parquet(path)"
        raise FeaturesError("X", f"it is a {type(X).__name__}; {hint}")
    return int(np.shape(X)[0])


def chosen_metrics(metrics: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    """Give the metrics, each once; those of pairs have no queries."""
    given = list(metrics) if isinstance(metrics, Iterable) and not isinstance(metrics, str) else [metrics]
    found = list(dict.fromkeys(read_metric(one) for one in given))
    if not found:
        raise ParameterError("metrics", metrics, "at least one")
    for one in found:
        if isinstance(one, ComparisonMetric):
            wanted = "of rankings; evaluation.evaluate_outcomes judges pairs"
            raise ParameterError("metrics", str(one), wanted)
    return found


def of_parts(model: Any, source: Source, metrics: list[Metric], verbose: int) -> Evaluation:
    """Rank and judge part by part."""
    for metric in metrics:
        refuse_joint(metric)
    if source.feature_names is not None:
        model = nameless(model, source.feature_names)
    index = source.index
    parts = source.parts(as_read, [None] * (len(index.edges) - 1))
    with passing("evaluating", verbose, parts):
        found = np.concatenate(parts.each(judged, parts.shared(model), metrics), axis=1)
    weights = None if index.weights is None else index.weights[index.order]
    return summed_up(metrics, found[:, index.order], index.ids[index.order], weights)


def as_read(part: Part, rows: PartRows, own: None) -> tuple[Part, PartRows]:
    """Keep a part as it is."""
    del own
    return part, rows


def judged(held: tuple[Part, PartRows], model: Any, metrics: list[Metric]) -> FloatArray:
    """Values of each metric on each query of a part."""
    part, rows = held
    scores = scoring(model)(rows.X, rows.queries)
    with locating(part, rows):
        given = {"qid": rows.queries, "docid": rows.docid}
        return np.array([metric.per_query(rows.y, scores, **given) for metric in metrics])


def scoring(model: Any) -> Scores:
    """Give what ranks rows: scores, or of pair rankers places."""
    if hasattr(model, "scores_to_rank"):
        return lambda X, queries: np.asarray(model.scores_to_rank(X, queries), dtype=np.float64)
    if hasattr(model, "predict"):
        return lambda X, _: np.asarray(model.predict(X))
    if callable(model):
        return lambda X, _: np.asarray(model(X))
    raise ParameterError("model", model, "a fitted ranker, or a function of features that gives scores")


def nameless(model: Any, names: tuple[str, ...]) -> Any:
    """Give a model that takes these columns by their number; others than it was fitted to are refused."""
    known = getattr(model, "feature_names_in_", None)
    n_features = getattr(model, "n_features_in_", len(names))
    if known is None and n_features != len(names):
        raise ShapeError("X", (len(names),), f"{n_features} features, as the model was fitted with")
    if known is not None and tuple(map(str, known)) != names:
        hint = "name the features in the order of the model: features=[*model.feature_names_in_]."
        raise LabelError("the columns are not the features that the model was fitted to", hint)
    if "feature_names_in_" not in getattr(model, "__dict__", {}):  # a pipeline has those of its first step
        return model
    plain = copy.copy(model)
    del plain.feature_names_in_
    return plain


def summed_up(
    metrics: list[Metric], values: FloatArray, ids: np.ndarray, weights: FloatArray | None
) -> Evaluation:
    """Take the means."""
    names = [str(metric) for metric in metrics]
    means = [metric.average(own, weights) for metric, own in zip(metrics, values, strict=True)]
    return Evaluation(dict(zip(names, means, strict=True)), dict(zip(names, values, strict=True)), ids)
