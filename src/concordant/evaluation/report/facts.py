"""What a model tells of itself: scores, certificate, weights of its features, and how it came about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from concordant.evaluation.report.pieces import Certified, Curve, Estimate, Learning
from concordant.evaluation.report.scored import Scored, Trust, estimated
from concordant.evaluation.report.words import PLAIN
from concordant.exceptions import ConcordantError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.certificate import FittedCertificate
from concordant.rankers.folds import Rows
from concordant.rankers.optimality import Descent
from concordant.supervision.columns import check_column
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["certified", "is_model", "last_step", "learning", "model_scores", "opened", "refitted"]

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the training queries of a learning curve
NONE_KEPT = "This model keeps no scores by round."
ASK = "Pass the training rows as learning_curve, and it is fitted again to parts of them."


def is_model(given: Any) -> bool:
    """Whether this is a model; else it is an array of scores."""
    own = last_step(given)
    return any(callable(getattr(own, name, None)) for name in ("predict", "scores_to_rank"))


def last_step(model: Any) -> Any:
    """Give the ranker itself: of a search the best one, of a pipeline the last step."""
    found = getattr(model, "best_estimator_", model)
    steps = getattr(found, "steps", None)
    return steps[-1][1] if steps else found


def opened(model: Any, X: Any) -> tuple[Any, Any, list[str]]:
    """Give the ranker itself, the features as it reads them, and their names, else numbers from 0 on."""
    found, ranker = getattr(model, "best_estimator_", model), last_step(model)
    before = found[:-1] if len(getattr(found, "steps", ())) > 1 else None
    features = X if before is None else before.transform(X)
    if not hasattr(features, "shape"):
        features = np.asarray(features)
    names = getattr(ranker, "feature_names_in_", None)
    if names is None and before is not None:
        with suppress(AttributeError, ValueError):  # not every transformer names what it gives
            names = before.get_feature_names_out(getattr(X, "columns", None))
    if names is None or len(names) != features.shape[1]:
        names = [f"feature {number}" for number in range(features.shape[1])]
    return ranker, features, [str(name) for name in names]


def model_scores(model: Any, X: ArrayLike, queries: Queries) -> Any:
    """Give scores by which sorting each query gives the model's ranking; an array is taken as it is."""
    if not is_model(model):
        return model
    if X is None:
        raise ParameterError("X", None, "given: a model scores features. Only an array of scores needs none")
    ranker = last_step(model)
    if not hasattr(ranker, "scores_to_rank"):
        return model.predict(X)
    return ranker.scores_to_rank(X if ranker is model else opened(model, X)[1], queries)


def certified(model: Any) -> Certified | None:
    """Give what is guaranteed, in words; None where the model has no certificate."""
    given = getattr(last_step(model), "certificate_", None)
    if not isinstance(given, FittedCertificate):
        return None
    return Certified(
        status=given.status,
        plain=plainly(given),
        guaranteed=given.guaranteed(),
        limits=given.limits(),
        fitted=f"{given.optimality}.",
        regret=given.regrets(),
        risk=given.risk(),
        vacuous=None if given.bound is None else bool(given.bound.vacuous),
    )


def plainly(given: FittedCertificate) -> str:
    """Say in a sentence without terms what a status means for this metric."""
    said = PLAIN[given.status].format(metric=given.claim.metric)
    if given.status != "refuted" or not given.holds_under:
        return said
    return f"{said} Under a condition on them it leads to the best one."


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
    """Fit the model to nested parts of the training queries; give what each is worth on the judged ones.

    Parts that are too few for the model, so that it refuses them, are left out.
    """
    from concordant.rankers.held_out import given_rows

    if not is_model(model):
        raise ParameterError("learning_curve", "training rows", "left out where the model is only its scores")
    features, labels, qid = given_rows(training)
    features = features if hasattr(features, "shape") else np.asarray(features)
    rows = Rows.of(features, labels, qid, None, None)
    queries = Queries.of(rows.qid, features.shape[0], "X of learning_curve")
    order = np.random.default_rng(trust.seed).permutation(queries.n_queries)
    found: dict[int, Estimate] = {}
    for size in sorted({max(1, round(share * queries.n_queries)) for share in SHARES}):
        with suppress(ConcordantError) if size < queries.n_queries else nullcontext():
            fresh = fitted_to(model, rows, queries.rows(np.sort(order[:size])))
            scored = replace(judged, scores=check_column(model_scores(fresh, X, judged.queries), "scores"))
            values = scored.values(metric)
            found[size] = estimated([float(metric.average(values))], [values], trust)[0]
    return Curve(
        name="fitted to parts of the training queries",
        x_name="training queries",
        y_name=f"{metric} on the judged queries",
        x=tuple(map(float, found)),
        y=tuple(one.value for one in found.values()),
        low=tuple(one.low for one in found.values()),
        high=tuple(one.high for one in found.values()),
        log_x=True,
    )


def fitted_to(model: Any, rows: Rows, chosen: IntArray) -> Any:
    """Fit the same model to some rows, those of each query adjacent."""
    from sklearn import config_context
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    fresh, part = clone(model), rows._replace(X=None).take(chosen)
    folders = [name for name in fresh.get_params() if name.split("__")[-1] == "checkpoint"]
    fresh.set_params(**dict.fromkeys(folders))  # which are the model's own
    with warnings.catch_warnings(), config_context(enable_metadata_routing=True):  # pipelines hand qid on
        warnings.simplefilter("ignore")  # what there was to say of this model was said when it was fitted
        # Frames keep their names.
        fresh.fit(_safe_indexing(rows.X, chosen), part.y, **named_queries(fresh, part.qid, len(chosen)))
    return fresh


def named_queries(model: Any, qid: Any, n_rows: int) -> dict[str, Any]:
    """Give the queries by the name that `fit` has for them: ids, sizes, or none where it reads rows."""
    from sklearn.utils.validation import has_fit_parameter

    ranker = last_step(model)
    if has_fit_parameter(ranker, "qid"):
        return {"qid": qid}
    if has_fit_parameter(ranker, "group"):  # LightGBM's, xgboost's of old
        starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]]) if qid is not None else [0]
        return {"group": np.diff(np.r_[starts, n_rows])}
    return {}
