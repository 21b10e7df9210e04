"""Build a report from a model and judged rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import (
    check_counts,
    check_grades,
    check_ids,
    check_lengths,
    check_scores,
    check_share,
    refuse_misaligned,
)
from concordant.data.labels import Comparisons, Grades, Permutations, Preferences
from concordant.data.queries import Queries, naming_query
from concordant.evaluation.effects import N_BOOT
from concordant.evaluation.report.document import Report
from concordant.evaluation.report.facts import (
    convention_words,
    describe_certificate,
    describe_learning,
    feature_weights,
    fit_learning_curve,
    is_model,
    last_step,
    model_scores,
    order_of_ties,
)
from concordant.evaluation.report.report_values import Conventions, JudgedData, PresetRow
from concordant.evaluation.report.scored import (
    ScoredRows,
    Trust,
    calibrate_grades,
    count_by_value,
    count_caveats,
    find_worst_queries,
    measure_metric,
    metric_rows,
    sort_by_gain,
)
from concordant.exceptions import LabelError, ParameterError, ShapeError
from concordant.metrics.convention import Convention
from concordant.metrics.explain import explain
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.types import ArrayLike

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "ap", "rr")
MOST_GRADES = 10


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """Input of a report other than scores and metrics.

    `model` and `X` are None if there are only scores. `noticed`: sentences on the data, for the counts.
    """

    model: Any = None
    X: Any = None
    title: str | None = None
    validation_history: Any = None
    learning_curve: Any = None
    fingerprint: str = ""
    date: str = ""
    noticed: Sequence[str] = ()
    features: Sequence[str] | None = None


def report(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    qid: ArrayLike = None,
    docid: ArrayLike = None,
    features: Sequence[str] | None = None,
    baseline: Any = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    convention: str | Convention | None = None,
    title: str | None = None,
    validation_history: Any = None,
    learning_curve: Any = None,
    name: str | None = None,
    baseline_name: str | None = None,
    fingerprint: str = "",
    date: str = "",
    confidence: float = 0.95,
    n_boot: int = N_BOOT,
    seed: int = 0,
) -> Report:
    """Evaluate a ranker on graded queries; `Report.write` writes the report as an HTML page.

    Parameters
    ----------
    model
        A fitted model; or one score per row, high is better, without certificate and feature weights.
    X
        Features, as the model reads them; None if `model` and `baseline` are scores.
    y
        One grade >= 0 per row.
    qid
        Query ids in any order, or a `Queries`; None: all rows form a single query.
    docid
        Document ids, shown in rankings, and read by the tie rule `id_descending`.
    features
        Names of the columns of X; None: those that the model was fitted with, else "column 0 (LETOR 1)", ...
    baseline
        A fitted model, or one score per row; None: all scores are equal, so that the tie rule of the
        convention decides (by default the mean over all orders, the result of chance).
    metrics
        Names or metrics, the headline first; None: the metric that the model was trained for, then ndcg@1,
        ndcg@5, ndcg@10, ap and rr.
    convention
        Rules of all metrics (see `Convention`); None: the convention of each metric.
    title
        Title of the page; None: the name of the model.
    validation_history
        Scores by round, if the model stores none: a column, or columns by name.
    learning_curve
        Training rows, as `RankingData` or (X, y, qid): the model is fitted again to 1/16, 1/8, ... of their
        queries, which takes about twice the time of a fit. None: no such curve.
    name, baseline_name
        Names of model and baseline; None: their classes.
    fingerprint, date
        Shown as they are; left out if empty, so that equal inputs give equal pages.
    confidence, n_boot, seed
        Confidence of the intervals, bootstrap resamples of the queries, and their seed; with the same values,
        `compare` computes the same intervals.

    Examples
    --------
    >>> from concordant import LinearRanker, synthetic
    >>> toy = synthetic.grades(n_queries=60, n_items=8, seed=0)
    >>> model = LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
    >>> toy_report = report(model, toy.X, toy.y, qid=toy.qid, title="A toy")
    >>> toy_report.metrics[0].metric, toy_report.certificate.status, toy_report.gains.n_queries
    ('ndcg@5', 'proven', 59)
    """
    refuse_misaligned(X=X, y=y, qid=qid, docid=docid, model=model, baseline=baseline)
    grades = _read_grades(y)
    queries = Queries.for_rows(qid, len(grades))
    ids = None if docid is None else check_ids(docid, "docid")
    check_lengths("y", len(grades), docid=ids)
    with naming_query(qid):
        scores = check_scores(model_scores(model, X, queries), len(grades))
        baseline_scores = (
            None if baseline is None else check_scores(model_scores(baseline, X, queries), len(grades))
        )
    first = ScoredRows(name or _model_name(model, "the scores"), grades, scores, queries, ids)
    against = None
    if baseline_scores is not None:
        against = ScoredRows(
            baseline_name or _model_name(baseline, "other scores"), grades, baseline_scores, queries, ids
        )
    metric_list = _read_metrics(model, metrics, convention)
    request = ReportRequest(
        model if is_model(model) else None,
        X,
        title,
        validation_history,
        learning_curve,
        str(fingerprint),
        str(date),
        features=_checked_names(features, X),
    )
    return assemble_report(first, against, metric_list, request, _checked_trust(confidence, n_boot, seed))


def _read_grades(y: ArrayLike) -> Any:
    if isinstance(y, (Preferences, Permutations, Comparisons)):
        hint = "metric.per_query and evaluation.paired read the other kinds."
        raise LabelError(f"a report needs one grade per row, and y is {type(y).__name__}", hint)
    return check_grades(y.values if isinstance(y, Grades) else y)


def _checked_names(features: Sequence[str] | None, X: Any) -> list[str] | None:
    if features is None:
        return None
    names = [features] if isinstance(features, str) else [str(name) for name in features]
    n_features = 0 if X is None else np.shape(X)[1]
    if len(names) != n_features:
        raise ShapeError("features", (len(names),), f"one name for each of {n_features} columns of X")
    return names


def _model_name(model: Any, otherwise: str) -> str:
    return type(last_step(model)).__name__ if is_model(model) else otherwise


def _checked_trust(confidence: float, n_boot: int, seed: int) -> Trust:
    check_counts(n_boot=n_boot)
    return Trust(check_share("confidence", confidence, 0.95), n_boot, seed)


def _read_metrics(model: Any, metrics: Any, convention: str | Convention | None) -> list[Metric]:
    """Return the metrics, each once; the headline first."""
    if metrics is None:
        model_metric = getattr(last_step(model), "metric", None)
        metrics = ([model_metric] if isinstance(model_metric, (str, Metric)) else []) + list(METRICS)
        if metrics[0] is model_metric and convention is None:
            convention = read_metric(model_metric).convention  # so that one table has one convention
    metric_list = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    if not metric_list:
        raise ParameterError("metrics", metrics, "at least one metric, such as 'ndcg@10'")
    return list(dict.fromkeys(read_metric(metric, convention=convention) for metric in metric_list))


def assemble_report(
    model: ScoredRows,
    baseline: ScoredRows | None,
    metrics: Sequence[Metric],
    request: ReportRequest,
    trust: Trust,
) -> Report:
    """Assemble the report of checked rows; a baseline with different rows is matched by query."""
    headline = metrics[0]
    against = baseline or _equal_scores(model)
    paired_metrics = [measure_metric(metric, model, against) for metric in metrics]
    rows = metric_rows(paired_metrics, trust)
    same_rows = baseline is not None and baseline.queries is model.queries
    refits = None
    if request.learning_curve is not None:
        refits = fit_learning_curve(request.model, request.learning_curve, model, request.X, headline, trust)
    return Report(
        title=request.title or f"Report on {model.name}",
        judged=_describe_data(model, against, headline, request, has_baseline=baseline is not None),
        metrics=rows,
        conventions=_describe_conventions(metrics, model),
        distribution=count_by_value(paired_metrics[0]),
        gains=sort_by_gain(paired_metrics[0], model.queries),
        learning=describe_learning(request.model, request.validation_history, refits),
        calibration=calibrate_grades(model, trust.confidence),
        certificate=describe_certificate(request.model, model.scores, rows[0], against.name),
        weights=feature_weights(request.model, request.X, model, headline, trust.seed, request.features),
        worst=find_worst_queries(paired_metrics[0], model, baseline if same_rows else None),
        counts=count_caveats(model, paired_metrics[0].mean.n_skipped, request.noticed),
        confidence=trust.confidence,
        n_boot=trust.n_boot,
    )


def _equal_scores(model: ScoredRows) -> ScoredRows:
    """Build a ranker with equal scores; rows that are not in the ranking stay out of it."""
    scores = np.where(np.isneginf(model.scores), -np.inf, 0.0)
    return ScoredRows("equal scores", model.y, scores, model.queries, model.docid)


def _describe_data(
    model: ScoredRows, against: ScoredRows, headline: Metric, request: ReportRequest, *, has_baseline: bool
) -> JudgedData:
    import concordant

    levels, sizes = np.unique(model.y, return_counts=True)
    lengths = model.queries.sizes
    about = f"The baseline is {against.name}."
    if not has_baseline:
        order = order_of_ties(headline.convention)
        about = f"No baseline was given: the numbers are compared with equal scores for all rows, {order}."
    return JudgedData(
        model=model.name,
        baseline=against.name,
        against=about,
        n_rows=model.queries.n_rows,
        n_queries=model.n_queries,
        n_features=None if request.model is None else int(np.shape(request.X)[1]),
        shortest=int(lengths.min(initial=0 if not lengths.size else lengths[0])),
        median=float(np.median(lengths)),
        longest=int(lengths.max(initial=0)),
        grades=tuple(zip(levels[:MOST_GRADES].tolist(), sizes[:MOST_GRADES].tolist(), strict=True)),
        fingerprint=request.fingerprint,
        date=request.date,
        version=str(concordant.__version__),
    )


def _describe_conventions(metrics: Sequence[Metric], model: ScoredRows) -> Conventions:
    headline = metrics[0]
    explanation = explain(headline, model.y, model.scores, qid=model.queries, docid=model.docid)
    first = float(explanation.rows[0].value)
    rows = [
        PresetRow(row.preset, float(row.value), float(row.value) - first, _preset_reason(row))
        for row in explanation.rows[1:]
    ]
    name = str(headline.convention)
    return Conventions(name, convention_words(metrics), str(headline), tuple(rows))


def _preset_reason(row: Any) -> str:
    """Describe the steps from the headline to a preset, or why there are none."""
    steps = (str(step).removesuffix(" +nan") for step in row.steps)  # from no number to one is no change
    return "; ".join(steps) or str(row.reason)
