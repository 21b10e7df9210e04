"""Facts about a model: scores, certificate, feature weights, and its training."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from concordant._base.validate import check_column, feature_labels, refuse_misaligned
from concordant.data.queries import Queries
from concordant.evaluation.report.report_values import (
    CertificateSummary,
    Curve,
    Estimate,
    FeatureWeights,
    Learning,
    MetricRow,
)
from concordant.evaluation.report.scored import ScoredRows, Trust, estimate_means, thin
from concordant.exceptions import ConcordantError, ParameterError
from concordant.metrics.convention import Convention, format_field
from concordant.metrics.metric import Metric
from concordant.rankers.boosted import BoostedRanker
from concordant.rankers.fitted_certificate import Descent, FittedCertificate
from concordant.rankers.folds import FitRows
from concordant.types import ArrayLike, FloatArray, IntArray

# Texts: the meaning of each field of a convention for the metrics that read it, and of certificates.

FIELDS = (
    "gain", "discount", "ties", "empty", "empty_ap", "ap_denominator", "precision_denominator",
    "relevant_from", "max_grade", "short_list",
)  # fmt: skip
WORDS: Mapping[tuple[str, object], str] = {
    ("gain", "exp2"): "A document of grade y is worth 2^y - 1.",
    ("gain", "linear"): "A document of grade y is worth y.",
    ("discount", "log2"): "At place i it counts 1/log2(1 + i) of its worth.",
    ("discount", "mslr"): "At places 1 and 2 it counts in full, at a later place i 1/log2(i) of its worth.",
    ("ties", "expected"): "Equal scores: the value is the mean over all their orders.",
    ("ties", "input"): "Equal scores: rows stand in the order of the input, which may favour a ranker that "
    "cannot tell them apart.",
    ("ties", "worst"): "Equal scores: the lowest grade stands first, the worst case.",
    ("ties", "best"): "Equal scores: the highest grade stands first, which flatters the ranker.",
    ("ties", "id_descending"): "Equal scores: the greater document id stands first.",
    ("empty", "skip"): "A query in which nothing is relevant is left out of the mean, and counted.",
    ("empty", "nan"): "A query in which nothing is relevant makes the mean undefined.",
    ("empty_ap", "skip"): "AP leaves a query out in which nothing is relevant.",
    ("empty_ap", "nan"): "AP is undefined where nothing is relevant.",
    ("ap_denominator", "relevant"): "AP@k divides by the number of relevant documents.",
    ("ap_denominator", "min"): "AP@k divides by the number of relevant documents, or by k if that is less.",
    ("ap_denominator", "found"): "AP@k divides by the relevant documents found in the first k.",
    ("ap_denominator", "uncut"): "AP@k ignores k.",
    ("precision_denominator", "k"): "P@k divides by k, even where the list is shorter.",
    ("precision_denominator", "min"): "P@k divides by k, or by the length of the list if that is less.",
    ("max_grade", "data"): "ERR takes the highest grade of the data for the highest there is.",
    ("max_grade", "probability"): "ERR takes a grade for the probability to stop there.",
    ("short_list", "zero"): "NDCG@k of a list shorter than k is 0.",
}
PLAIN: Mapping[str, str] = {  # meaning of the status of a certificate
    "proven": "With enough queries, and features that can express it, this loss leads to the best order for "
    "{metric}, whatever the labels are like.",
    "conditional": "Under a condition on the labels this loss leads to the best order for {metric}; beyond "
    "it nobody knows.",
    "refuted": "There are labels on which this loss leads to a wrong order for {metric}, however many "
    "queries it learns from.",
    "open": "Nobody knows whether this loss leads to the best order for {metric}.",
}
ORDERS: Mapping[str, str] = {
    "expected": "the mean over all orders of a query's rows: what chance would give",
    "input": "the rows in the order of the input",
    "worst": "the worst order of all",
    "best": "the best order of all",
    "id_descending": "the rows by descending document id",
    "random": "one random order",
}


def convention_words(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return a sentence for each field that any of the metrics reads, by the first metric's convention.

    >>> from concordant.metrics import metric
    >>> convention_words([metric("rr")])[2]
    'A document is relevant from grade 1 on.'
    """
    metric_list = list(metrics)
    read = {field for metric in metric_list for field in metric.convention_fields or FIELDS}
    rules = metric_list[0].convention
    names = (metric.name.upper() for metric in metric_list if metric.compares_pairs)
    pairs = " and ".join(dict.fromkeys(names))
    said = {field: _field_sentence(rules, field) for field in FIELDS if field in read}
    if pairs:
        said["empty"] += f" For {pairs} that is one in which no two documents are of different worth."
    return tuple(filter(None, said.values()))


def _field_sentence(rules: Convention, field: str) -> str:
    """Return the meaning of a field; empty if another sentence says it."""
    value = getattr(rules, field)
    if isinstance(value, str) and (field, value) in WORDS:
        return WORDS[field, value]
    text = format_field(value)
    said = {
        "gain": f"A document of grade y is worth {text}(y).",
        "discount": f"At place i it counts {text}(i) of its worth.",
        "ties": f"Equal scores: one random order, by seed {rules.seed}.",
        "empty": f"A query in which nothing is relevant counts as {text} where a metric is 0/0 there.",
        "empty_ap": "" if value is None else f"AP counts {text} where nothing is relevant.",
        "relevant_from": f"A document is relevant from grade {text} on.",
        "max_grade": f"ERR takes {text} for the highest grade.",
    }
    return said.get(field, "")


def order_of_ties(rules: Convention) -> str:
    """Describe the order of rows that all have the same score."""
    return ORDERS[rules.ties]


SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the training queries of a learning curve
NONE_KEPT = "This model keeps no scores by round."
ASK = "Pass the training rows as learning_curve, and it is fitted again to parts of them."


def is_model(model: Any) -> bool:
    """True if this is a model; else it is an array of scores."""
    ranker = last_step(model)
    return any(callable(getattr(ranker, name, None)) for name in ("predict", "scores_to_rank"))


def last_step(model: Any) -> Any:
    """Return the ranker itself: the best estimator of a search, the last step of a pipeline."""
    best_model = getattr(model, "best_estimator_", model)
    steps = getattr(best_model, "steps", None)
    return steps[-1][1] if steps else best_model


def _unwrap_model(model: Any, X: Any) -> tuple[Any, Any, list[str]]:
    """Return the ranker itself, the features as it reads them, and their names or labels."""
    best_model, ranker = getattr(model, "best_estimator_", model), last_step(model)
    before = best_model[:-1] if len(getattr(best_model, "steps", ())) > 1 else None
    features = X if before is None else before.transform(X)
    if not hasattr(features, "shape"):
        features = np.asarray(features)
    names = getattr(ranker, "feature_names_in_", None)
    if names is None and before is not None:
        with suppress(AttributeError, ValueError):  # not every transformer names its output
            names = before.get_feature_names_out(getattr(X, "columns", None))
    if names is None or len(names) != features.shape[1]:
        labels = feature_labels(features.shape[1])
        names = labels if before is None else [f"transformed {label.partition(' (')[0]}" for label in labels]
    return ranker, features, [str(name) for name in names]


def model_scores(model: Any, X: ArrayLike, queries: Queries) -> Any:
    """Return scores by which sorting each query yields the model's ranking; an array is returned as it is."""
    if not is_model(model):
        return model
    if X is None:
        raise ParameterError.because(
            "X is missing: a model needs features to score. Pass X, or an array of scores."
        )
    ranker = last_step(model)
    if not hasattr(ranker, "scores_to_rank"):
        scores = model.predict(X)
        refuse_misaligned(X=X, scores=scores)
        return scores
    return ranker.scores_to_rank(X if ranker is model else _unwrap_model(model, X)[1], queries)


def describe_certificate(
    model: Any, scores: FloatArray, row: MetricRow, baseline: str
) -> CertificateSummary | None:
    """Describe the certificate in words; None if the model has none."""
    certificate = getattr(last_step(model), "certificate_", None)
    if not isinstance(certificate, FittedCertificate):
        return None
    return CertificateSummary(
        status=certificate.status,
        plain=_plain_words(certificate),
        caution=_caution(scores, row, baseline),
        guaranteed=certificate.guaranteed(),
        limits=certificate.limits(),
        fitted=f"{certificate.optimality}.",
        regret=certificate.regrets(),
    )


def _caution(scores: FloatArray, row: MetricRow, baseline: str) -> str:
    """Return what qualifies a guarantee: a model without distinct scores, or one behind its baseline."""
    ranked = scores[np.isfinite(scores)]
    if not ranked.size or ranked.min() == ranked.max():
        return "this model learned nothing: all its scores are equal"
    apart = row.difference.value
    if apart and (apart < 0.0) == row.greater_is_better:
        return f"on these queries this model is worse than {baseline}"
    return ""


def _plain_words(certificate: FittedCertificate) -> str:
    """Explain the status of a certificate in a sentence without terms."""
    weights = " with weighted gains" * (certificate.claim.items_weighted and certificate.status == "proven")
    said = PLAIN[certificate.status].format(metric=f"{certificate.claim.metric}{weights}")
    if certificate.status != "refuted" or not certificate.holds_under:
        return said
    return f"{said} Under a condition it leads to the best one."


def describe_learning(model: Any, validation_history: Any, refits: Curve | None) -> Learning:
    """Return the available curves, or a hint on how to get one."""
    ranker = last_step(model)
    optimality = getattr(getattr(ranker, "certificate_", None), "optimality", None)
    about = f"{optimality}." if isinstance(optimality, Descent) else ""
    curves = [*_caller_curves(validation_history), *_model_curves(ranker), *([refits] if refits else [])]
    shown = tuple(curve for curve in curves if np.isfinite(curve.y).any())
    if shown:
        return Learning(shown, about)
    missing = f"{NONE_KEPT} {ASK}" if is_model(model) else "Scores do not tell how they came about."
    return Learning((), f"{about} {missing}".strip())


def _caller_curves(history: Any) -> Iterator[Curve]:
    if history is None:
        return
    named = history if isinstance(history, Mapping) else {"validation score": history}
    for name, values in named.items():
        column = check_column(values, f"validation_history {name!r}")
        yield _by_round(str(name), column, "round", str(name))


def _model_curves(model: Any) -> Iterator[Curve]:
    """Yield the curves that the model stores: scores by trees, loss and scores by epoch, or by penalty."""
    history = getattr(model, "history_", None)
    if isinstance(history, Mapping):
        for name, values in history.items():
            label = "mean training loss" if name == "loss" else "score on validation queries"
            yield _by_round(label, np.asarray(values, dtype=np.float64), "epoch", label)
    elif isinstance(history, np.ndarray):
        label = "score on held-out queries"
        yield _by_round(label, history.astype(np.float64), "trees", label)
    if hasattr(model, "alphas_") and hasattr(model, "scores_"):
        yield _penalty_curve(model.alphas_, np.asarray(model.scores_))


def _by_round(name: str, values: FloatArray, x_name: str, y_name: str) -> Curve:
    """Build a curve over rounds 1, 2, ...; rounds without a value are left out."""
    rounds = np.flatnonzero(np.isfinite(values))
    return Curve(name, x_name, y_name, tuple((rounds + 1.0).tolist()), tuple(values[rounds].tolist()))


def _penalty_curve(alphas: FloatArray, scores: FloatArray) -> Curve:
    """Build the curve of the mean over folds by penalty, between the least and the greatest fold."""
    usable = np.flatnonzero(~np.isnan(scores).all(axis=1) & (alphas > 0.0))
    part = scores[usable]
    mean, low, high = (tuple(f(part, axis=1).tolist()) for f in (np.nanmean, np.nanmin, np.nanmax))
    name = "score by cross-validation, with its range over folds"
    x = tuple(alphas[usable].tolist())
    return Curve(name, "penalty alpha", "score", x, mean, low, high, log_x=True)


def fit_learning_curve(
    model: Any, training: Any, judged: ScoredRows, X: Any, metric: Metric, trust: Trust
) -> Curve:
    """Fit the model to nested parts of the training queries; compute the metric on the judged queries.

    Parts that are too small for the model, so that it raises, are left out.
    """
    from concordant.rankers.folds import read_eval_set

    if not is_model(model):
        raise ParameterError.because("learning_curve needs a model to fit again, got an array of scores.")
    features, labels, qid = read_eval_set(training, "learning_curve")
    features = features if hasattr(features, "shape") else np.asarray(features)
    rows = FitRows.from_columns(features, labels, qid, None, None)
    queries = Queries.for_rows(rows.qid, features.shape[0], "X of learning_curve")
    order = np.random.default_rng(trust.seed).permutation(queries.n_queries)
    estimates: dict[int, Estimate] = {}
    for size in sorted({max(1, round(share * queries.n_queries)) for share in SHARES}):
        with suppress(ConcordantError) if size < queries.n_queries else nullcontext():
            fresh = fit_to_rows(model, rows, queries.rows(np.sort(order[:size])))
            scored = replace(judged, scores=check_column(model_scores(fresh, X, judged.queries), "scores"))
            values = scored.values(metric)
            estimates[size] = estimate_means([float(metric.average(values))], [values], trust)[0]
    return Curve(
        name="fitted to parts of the training queries",
        x_name="training queries",
        y_name=f"{metric} on the judged queries",
        x=tuple(map(float, estimates)),
        y=tuple(estimate.value for estimate in estimates.values()),
        low=tuple(estimate.low for estimate in estimates.values()),
        high=tuple(estimate.high for estimate in estimates.values()),
        log_x=True,
    )


def fit_to_rows(model: Any, rows: FitRows, row_indices: IntArray) -> Any:
    """Fit the same model to some rows, those of each query adjacent."""
    from sklearn import config_context
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    fresh, part = clone(model), rows._replace(X=None).take(row_indices)
    folders = [name for name in fresh.get_params() if name.split("__")[-1] == "checkpoint"]
    fresh.set_params(**dict.fromkeys(folders))  # checkpoints belong to the original model
    with warnings.catch_warnings(), config_context(enable_metadata_routing=True):  # pipelines hand qid on
        warnings.simplefilter("ignore")  # the original fit has already issued these warnings
        # Data frames keep their column names.
        fresh.fit(
            _safe_indexing(rows.X, row_indices), part.y, **_query_arguments(fresh, part.qid, len(row_indices))
        )
    return fresh


def _query_arguments(model: Any, qid: Any, n_rows: int) -> dict[str, Any]:
    """Return the queries under the argument name of `fit`: ids, sizes, or nothing if it reads rows."""
    from sklearn.utils.validation import has_fit_parameter

    ranker = last_step(model)
    if has_fit_parameter(ranker, "qid"):
        return {"qid": qid}
    if has_fit_parameter(ranker, "group"):  # LightGBM's, xgboost's of old
        starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]]) if qid is not None else [0]
        return {"group": np.diff(np.r_[starts, n_rows])}
    return {}


# Importance of the features: weights, shares in the gains of trees, or the loss without them.

MOST_WEIGHTS = 20
MOST_QUERIES, MOST_CELLS = 100, 2**22  # limits of shuffling: queries, and features times rows
ONLY_SCORES = "There are only scores here: they do not say what features they were made of."
TOO_MANY = "The model does not say what its features count for, and they are too many to try one by one."
PAIRS = "The model weighs features of pairs of rows, not of single rows: see its coef_."
SPARSE = "The model does not say what its features count for; sparse features are not tried one by one."


def feature_weights(
    model: Any,
    X: Any,
    judged: ScoredRows,
    metric: Metric,
    seed: int,
    caller_names: Sequence[str] | None = None,
) -> FeatureWeights:
    """Return the 20 most important features, or the reason why their importance is unknown.

    For a linear model: the weight times the spread of the feature within these queries, which is how far the
    score moves as the feature moves by its spread. For trees: shares in the gains of the splits. For others:
    the loss of the metric if a feature is shuffled within queries. `caller_names`: names of the columns of X.
    """
    if not is_model(model):
        return FeatureWeights("none", (), (), 0, ONLY_SCORES)
    ranker, features, names = _unwrap_model(model, X)
    n_features = int(np.shape(features)[1])
    # Steps of a pipeline may make other features.
    if caller_names is not None and len(caller_names) == n_features:
        names = list(caller_names)
    kind, values = _model_importances(ranker, n_features)
    if not kind:
        kind, values = "drops", _shuffled_drops(ranker, features, judged, metric, seed)
    if isinstance(values, str):
        return FeatureWeights("none", (), (), n_features, values)
    if kind == "weights":
        values = values * _spread_within(ranker, features, judged.queries)
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_WEIGHTS]
    return FeatureWeights(kind, tuple(names[i] for i in order), tuple(values[order].tolist()), n_features)


def _model_importances(ranker: Any, n_features: int) -> tuple[str, Any]:
    """Kind and values of the weights or importances that the model stores; empty if there are none."""
    # Other libraries' importances count splits, or something else.
    shares = "importances" if isinstance(ranker, BoostedRanker) else "foreign"
    for kind, attribute in (("weights", "coef_"), (shares, "feature_importances_")):
        values = np.ravel(np.asarray(getattr(ranker, attribute, ()), dtype=np.float64))
        if len(values) == n_features:  # else they are weights of pairs, not of features
            return kind, values
    return "", ""


def _spread_within(ranker: Any, X: Any, queries: Queries) -> FloatArray:
    """Root mean square of each feature's distance from its query's mean; 0 where it does not vary there."""
    from concordant.solvers.linear_scores import squares_within

    inside, _ = squares_within(queries.gather(_numeric_features(ranker, X)), queries.offsets)
    return np.asarray(np.sqrt(np.maximum(inside, 0.0) / max(queries.n_rows, 1)))


def _numeric_features(ranker: Any, X: Any) -> Any:
    """Return the features as numbers, dense or compressed rows."""
    if hasattr(ranker, "checked_features"):
        return ranker.checked_features(X, reset=False)
    return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)


def _shuffled_drops(ranker: Any, X: Any, judged: ScoredRows, metric: Metric, seed: int) -> FloatArray | str:
    """Return the loss of the metric on up to 100 queries if a feature is shuffled within each; or why not.

    Shuffling within a query changes nothing if the feature is the same for all its rows.
    """
    if not hasattr(ranker, "predict"):
        return PAIRS
    features = _numeric_features(ranker, X)
    if hasattr(features, "tocsr"):
        return SPARSE
    query_indices = thin(judged.n_queries, MOST_QUERIES)
    rows = judged.queries.rows(query_indices)
    if features.shape[1] * len(rows) > MOST_CELLS:
        return TOO_MANY
    trial, rng = np.array(features[rows]), np.random.default_rng(seed)
    part = _select_queries(judged, query_indices)
    whole, drops = _mean_metric(ranker, trial, part, metric), np.empty(trial.shape[1])
    for number in range(trial.shape[1]):
        column = trial[:, number].copy()
        trial[:, number] = column[np.lexsort((rng.random(len(column)), part.queries.codes))]
        drops[number] = whole - _mean_metric(ranker, trial, part, metric)
        trial[:, number] = column
    return drops if metric.greater_is_better else -drops


def _select_queries(judged: ScoredRows, query_indices: IntArray) -> ScoredRows:
    """Select some queries, the rows of each adjacent."""
    rows = judged.queries.rows(query_indices)
    ids = None if judged.docid is None else judged.docid[rows]
    queries = Queries.from_sizes(judged.queries.sizes[query_indices])
    return ScoredRows(judged.name, judged.y[rows], judged.scores[rows], queries, ids)


def _mean_metric(ranker: Any, features: FloatArray, part: ScoredRows, metric: Metric) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # these features have lost their names
        scores = model_scores(ranker, features, part.queries)
    scored = replace(part, scores=np.asarray(scores, dtype=np.float64))
    return float(metric.average(scored.values(metric)))
