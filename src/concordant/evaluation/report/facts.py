"""What a model tells of itself: scores, certificate, weights of its features, and how it came about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from concordant.evaluation.report.pieces import Certified, Curve, Estimate, Learning, Weights
from concordant.evaluation.report.scored import Scored, Trust, estimated
from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.certificate import FittedCertificate
from concordant.rankers.folds import Rows
from concordant.rankers.optimality import Descent
from concordant.supervision.columns import check_column
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["certified", "is_model", "last_step", "learning", "model_scores", "refitted", "weights"]

MOST_WEIGHTS = 20
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the training queries of a learning curve
NONE_KEPT = "This model keeps no scores by round."
ASK = "Pass the training rows as learning_curve, and it is fitted again to parts of them."


def is_model(given: Any) -> bool:
    """Whether this is a model; else it is an array of scores."""
    return any(callable(getattr(given, name, None)) for name in ("predict", "scores_to_rank"))


def last_step(model: Any) -> Any:
    """Give the ranker itself, of a pipeline the last step."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def model_scores(model: Any, X: ArrayLike, queries: Queries) -> Any:
    """Give scores by which sorting each query gives the model's ranking; an array is taken as it is."""
    if not is_model(model):
        return model
    if X is None:
        raise ParameterError("X", None, "given: a model scores features. Only an array of scores needs none")
    if hasattr(model, "scores_to_rank"):
        return model.scores_to_rank(X, queries)
    return model.predict(X)


def certified(model: Any) -> Certified | None:
    """Give what is guaranteed, in words; None where the model has no certificate."""
    given = getattr(last_step(model), "certificate_", None)
    if not isinstance(given, FittedCertificate):
        return None
    return Certified(
        status=given.status,
        guaranteed=given.guaranteed(),
        limits=given.limits(),
        fitted=f"{given.optimality}.",
        regret=given.regrets(),
        risk=given.risk(),
        vacuous=None if given.bound is None else bool(given.bound.vacuous),
    )


def weights(model: Any, X: Any, queries: Queries) -> Weights | None:
    """Give the 20 features that count most; None where the model does not say.

    Of a linear model: the weight times the spread of the feature within these queries, which is how far the
    score moves as the feature moves by its spread. Of trees: shares in the gains of the splits.
    """
    coef = getattr(model, "coef_", None)
    shares = getattr(model, "feature_importances_", None)
    if not is_model(model) or (coef is None and shares is None):
        return None
    n_features = np.shape(X)[1]
    values = np.asarray(shares if coef is None else coef, dtype=np.float64).ravel()
    if len(values) != n_features:  # weights of pairs, not of features
        return None
    kind = "importances" if coef is None else "weights"
    if kind == "weights":
        values = values * spread_within(model, X, queries)
    names = feature_names(model, X, n_features)
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_WEIGHTS]
    return Weights(kind, tuple(names[i] for i in order), tuple(values[order].tolist()), n_features)


def spread_within(model: Any, X: Any, queries: Queries) -> FloatArray:
    """Root mean square of each feature's distance from its query's mean; 0 where it does not vary there."""
    from concordant.scorers.spread import squares_within

    checked = model.checked_features(X, reset=False) if hasattr(model, "checked_features") else np.asarray(X)
    inside, _ = squares_within(queries.gather(checked), queries.offsets)
    return np.asarray(np.sqrt(np.maximum(inside, 0.0) / max(queries.n_rows, 1)))


def feature_names(model: Any, X: Any, n_features: int) -> list[str]:
    """Give names, or numbers from 0 on."""
    given = getattr(model, "feature_names_in_", None)
    if given is None:
        given = getattr(X, "columns", None)
    return [f"feature {number}" for number in range(n_features)] if given is None else [*map(str, given)]


def learning(model: Any, validation_history: Any, refits: Curve | None) -> Learning:
    """Give every curve there is, or say how to get one."""
    own = last_step(model)
    told = getattr(getattr(own, "certificate_", None), "optimality", None)
    about = f"{told}." if isinstance(told, Descent) else ""
    curves = [*given_curves(validation_history), *model_curves(own), *([refits] if refits else [])]
    shown = tuple(curve for curve in curves if np.isfinite(curve.y).any())
    if shown:
        return Learning(shown, about)
    missing = f"{NONE_KEPT} {ASK}" if is_model(model) else "Scores do not tell how they came about."
    return Learning((), f"{about} {missing}".strip())


def given_curves(history: Any) -> Iterator[Curve]:
    """Give the curves that the caller handed over: a column, or columns by name."""
    if history is None:
        return
    named = history if isinstance(history, Mapping) else {"validation score": history}
    for name, values in named.items():
        column = check_column(values, f"validation_history {name!r}")
        yield by_round(str(name), column, "round", str(name))


def model_curves(model: Any) -> Iterator[Curve]:
    """Give what the model kept: scores by trees, loss and scores by epochs, scores by penalty."""
    history = getattr(model, "history_", None)
    if isinstance(history, Mapping):
        for name, values in history.items():
            label = "mean training loss" if name == "loss" else "score on validation queries"
            yield by_round(label, np.asarray(values, dtype=np.float64), "epoch", label)
    elif isinstance(history, np.ndarray):
        label = "score on held-out queries"
        yield by_round(label, history.astype(np.float64), "trees", label)
    if hasattr(model, "alphas_") and hasattr(model, "scores_"):
        yield penalty_curve(model.alphas_, np.asarray(model.scores_))


def by_round(name: str, values: FloatArray, x_name: str, y_name: str) -> Curve:
    """Give values at 1, 2, ...; rounds without one are left out."""
    rounds = np.flatnonzero(np.isfinite(values))
    return Curve(name, x_name, y_name, tuple((rounds + 1.0).tolist()), tuple(values[rounds].tolist()))


def penalty_curve(alphas: FloatArray, scores: FloatArray) -> Curve:
    """Give the mean over folds by penalty, between the least and the greatest fold."""
    known = np.flatnonzero(~np.isnan(scores).all(axis=1) & (alphas > 0.0))
    part = scores[known]
    mean, low, high = (tuple(f(part, axis=1).tolist()) for f in (np.nanmean, np.nanmin, np.nanmax))
    name = "score by cross-validation, with its range over folds"
    x = tuple(alphas[known].tolist())
    return Curve(name, "penalty alpha", "score", x, mean, low, high, log_x=True)


def refitted(model: Any, training: Any, judged: Scored, X: Any, metric: Metric, trust: Trust) -> Curve:
    """Fit the model to nested parts of the training queries; give what each is worth on the judged ones."""
    from concordant.rankers.held_out import given_rows

    if not is_model(model):
        raise ParameterError("learning_curve", "training rows", "left out where the model is only its scores")
    features, labels, qid = given_rows(training)
    features = features if hasattr(features, "shape") else np.asarray(features)
    rows = Rows.of(features, labels, qid, None, None)
    queries = Queries.of(rows.qid, features.shape[0], "X of learning_curve")
    order = np.random.default_rng(trust.seed).permutation(queries.n_queries)
    sizes = sorted({max(1, round(share * queries.n_queries)) for share in SHARES})
    found: list[Estimate] = []
    for size in sizes:
        fresh = fitted_to(model, rows, queries.rows(np.sort(order[:size])))
        scored = replace(judged, scores=check_column(model_scores(fresh, X, judged.queries), "scores"))
        values = scored.values(metric)
        found += estimated([float(metric.average(values))], [values], trust)
    return Curve(
        name="fitted to parts of the training queries",
        x_name="training queries",
        y_name=f"{metric} on the judged queries",
        x=tuple(map(float, sizes)),
        y=tuple(one.value for one in found),
        low=tuple(one.low for one in found),
        high=tuple(one.high for one in found),
        log_x=True,
    )


def fitted_to(model: Any, rows: Rows, chosen: IntArray) -> Any:
    """Fit the same model to some rows."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    fresh, part = clone(model), rows._replace(X=None).take(chosen)
    if "checkpoint" in fresh.get_params():
        fresh.set_params(checkpoint=None)  # that folder is the model's own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to say of this model was said when it was fitted
        fresh.fit(_safe_indexing(rows.X, chosen), part.y, qid=part.qid)  # frames keep their names
    return fresh
