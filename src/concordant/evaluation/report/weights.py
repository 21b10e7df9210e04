"""What the features count for: weights, shares in the gains of trees, or what is lost without them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from concordant.evaluation.report.facts import is_model, model_scores, opened
from concordant.evaluation.report.pieces import Weights
from concordant.evaluation.report.scored import Scored, thinned
from concordant.metrics.metric import Metric
from concordant.rankers.boosted import BoostedRanker
from concordant.supervision.queries import Queries
from concordant.types import FloatArray, IntArray

__all__ = ["feature_weights", "shuffled_drops", "spread_within"]

MOST_WEIGHTS = 20
MOST_QUERIES, MOST_CELLS = 100, 2**22  # of shuffling: queries, and features times rows
ONLY_SCORES = "There are only scores here: they do not say what features they were made of."
TOO_MANY = "The model does not say what its features count for, and they are too many to try one by one."
PAIRS = "The model weighs features of pairs of rows, not of single rows: see its coef_."
SPARSE = "The model does not say what its features count for; sparse features are not tried one by one."


def feature_weights(
    model: Any, X: Any, judged: Scored, metric: Metric, seed: int, given: Sequence[str] | None = None
) -> Weights:
    """Give the 20 features that count most, or say why nothing is known.

    Of a linear model: the weight times the spread of the feature within these queries, which is how far the
    score moves as the feature moves by its spread. Of trees: shares in the gains of the splits. Of others:
    what the metric loses where a feature is shuffled within queries. `given`: what the caller calls them.
    """
    if not is_model(model):
        return Weights("none", (), (), 0, ONLY_SCORES)
    ranker, features, names = opened(model, X)
    n_features = int(np.shape(features)[1])
    if given is not None and len(given) == n_features:  # steps of a pipeline may make other features
        names = list(given)
    kind, values = told_by(ranker, n_features)
    if not kind:
        kind, values = "drops", shuffled_drops(ranker, features, judged, metric, seed)
    if isinstance(values, str):
        return Weights("none", (), (), n_features, values)
    if kind == "weights":
        values = values * spread_within(ranker, features, judged.queries)
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_WEIGHTS]
    return Weights(kind, tuple(names[i] for i in order), tuple(values[order].tolist()), n_features)


def told_by(ranker: Any, n_features: int) -> tuple[str, Any]:
    """Give what the model says itself: one number a feature; no kind where it does not."""
    # Other libraries' importances count splits, or something else.
    shares = "importances" if isinstance(ranker, BoostedRanker) else "foreign"
    for kind, attribute in (("weights", "coef_"), (shares, "feature_importances_")):
        values = np.ravel(np.asarray(getattr(ranker, attribute, ()), dtype=np.float64))
        if len(values) == n_features:  # else they are weights of pairs, not of features
            return kind, values
    return "", ""


def spread_within(ranker: Any, X: Any, queries: Queries) -> FloatArray:
    """Root mean square of each feature's distance from its query's mean; 0 where it does not vary there."""
    from concordant.scorers.spread import squares_within

    inside, _ = squares_within(queries.gather(numbers_of(ranker, X)), queries.offsets)
    return np.asarray(np.sqrt(np.maximum(inside, 0.0) / max(queries.n_rows, 1)))


def numbers_of(ranker: Any, X: Any) -> Any:
    """Give the features as numbers, dense or compressed rows."""
    if hasattr(ranker, "checked_features"):
        return ranker.checked_features(X, reset=False)
    return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)


def shuffled_drops(ranker: Any, X: Any, judged: Scored, metric: Metric, seed: int) -> FloatArray | str:
    """Give what the metric loses on up to 100 queries where a feature is shuffled within each; or why not.

    Shuffling within a query keeps what is the same for all its rows: such a feature loses nothing.
    """
    if not hasattr(ranker, "predict"):
        return PAIRS
    features = numbers_of(ranker, X)
    if hasattr(features, "tocsr"):
        return SPARSE
    chosen = thinned(judged.n_queries, MOST_QUERIES)
    rows = judged.queries.rows(chosen)
    if features.shape[1] * len(rows) > MOST_CELLS:
        return TOO_MANY
    trial, rng = np.array(features[rows]), np.random.default_rng(seed)
    part = part_of(judged, chosen)
    whole, drops = worth(ranker, trial, part, metric), np.empty(trial.shape[1])
    for number in range(trial.shape[1]):
        kept = trial[:, number].copy()
        trial[:, number] = kept[np.lexsort((rng.random(len(kept)), part.queries.codes))]
        drops[number] = whole - worth(ranker, trial, part, metric)
        trial[:, number] = kept
    return drops if metric.greater_is_better else -drops


def part_of(judged: Scored, chosen: IntArray) -> Scored:
    """Give some queries, the rows of each adjacent."""
    rows = judged.queries.rows(chosen)
    ids = None if judged.docid is None else judged.docid[rows]
    queries = Queries.from_sizes(judged.queries.sizes[chosen])
    return Scored(judged.name, judged.y[rows], judged.scores[rows], queries, ids)


def worth(ranker: Any, features: FloatArray, part: Scored, metric: Metric) -> float:
    """Give the mean of the metric."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # these features have lost their names
        scores = model_scores(ranker, features, part.queries)
    scored = replace(part, scores=np.asarray(scores, dtype=np.float64))
    return float(metric.average(scored.values(metric)))
