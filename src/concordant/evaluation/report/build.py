"""From a model and judged rows to a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.evaluation.report.document import Report
from concordant.evaluation.report.facts import (
    certified,
    is_model,
    last_step,
    learning,
    model_scores,
    refitted,
)
from concordant.evaluation.report.pieces import Conventions, Judged, PresetRow
from concordant.evaluation.report.rows import calibration, counts, worst
from concordant.evaluation.report.scored import (
    Scored,
    Trust,
    distribution,
    gains,
    measured,
    metric_rows,
)
from concordant.evaluation.report.weights import feature_weights
from concordant.evaluation.report.words import convention_words, order_of_ties
from concordant.exceptions import LabelError, ParameterError, ShapeError
from concordant.metrics.convention import Convention
from concordant.metrics.explain import explain
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.columns import check_grades, check_ids, check_lengths, check_scores
from concordant.supervision.labels import Comparisons, Grades, Permutations, Preferences
from concordant.supervision.queries import Queries, naming_query
from concordant.supervision.synthetic.items import check_counts
from concordant.types import ArrayLike

__all__ = ["Given", "assembled", "report"]

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "ap", "rr")
MOST_GRADES = 10


@dataclass(frozen=True, eq=False)
class Given:
    """What a report is asked to say beside its numbers.

    `model` and `X` are None where there are only scores. `noticed`: sentences on the data, for the counts.
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
    n_boot: int = 1999,
    seed: int = 0,
) -> Report:
    """Judge a ranker on graded queries: `Report.write` makes one HTML page of it.

    Parameters
    ----------
    model
        A fitted model; or one score per row, high is better, and then there is neither certificate nor
        weights.
    X
        Features, as the model reads them; None where `model` and `baseline` are scores.
    y
        One grade >= 0 per row.
    qid
        Query ids in any order, or a `Queries`; None: all rows are one query.
    docid
        Document ids, shown in rankings, and read by the tie rule `id_descending`.
    features
        Names of the columns of X; None: those that the model was fitted with, else numbers from 0 on.
    baseline
        A fitted model, or one score per row; None: all scores are equal, so that the tie rule of the
        convention decides (by default the mean over all orders, what chance would give).
    metrics
        Names or metrics, the headline first; None: the model's own, then ndcg@1, ndcg@5, ndcg@10, ap and rr.
    convention
        Rules of all metrics (see `Convention`); None: each metric's own.
    title
        None: names the model.
    validation_history
        Scores by round, where the model keeps none: a column, or columns by name.
    learning_curve
        Training rows, as `RankingData` or (X, y, qid): the model is fitted again to 1/16, 1/8, ... of their
        queries, which takes about twice the time of one fit. None: no such curve.
    name, baseline_name
        What to call them; None: their classes.
    fingerprint, date
        Shown as they are; left out where empty, so that equal inputs give equal pages.
    confidence, n_boot, seed
        Confidence of the intervals, bootstrap resamples of the queries, and their seed.

    Examples
    --------
    >>> from concordant import LinearRanker, synthetic
    >>> toy = synthetic.grades(n_queries=60, n_items=8, seed=0)
    >>> model = LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
    >>> told = report(model, toy.X, toy.y, qid=toy.qid, title="A toy")
    >>> told.metrics[0].metric, told.certificate.status, told.gains.n_queries
    ('ndcg@5', 'proven', 59)
    """
    grades = graded(y)
    queries = Queries.of(qid, len(grades))
    ids = None if docid is None else check_ids(docid, "docid")
    check_lengths("y", len(grades), docid=ids)
    with naming_query(qid):
        own = check_scores(model_scores(model, X, queries), len(grades))
        other = None if baseline is None else check_scores(model_scores(baseline, X, queries), len(grades))
    first = Scored(name or named(model, "the scores"), grades, own, queries, ids)
    against = None
    if other is not None:
        against = Scored(baseline_name or named(baseline, "other scores"), grades, other, queries, ids)
    chosen = chosen_metrics(model, metrics, convention)
    given = Given(
        model if is_model(model) else None,
        X,
        title,
        validation_history,
        learning_curve,
        str(fingerprint),
        str(date),
        features=checked_names(features, X),
    )
    return assembled(first, against, chosen, given, checked_trust(confidence, n_boot, seed))


def graded(y: ArrayLike) -> Any:
    """Give one grade per row; other labels are refused."""
    if isinstance(y, (Preferences, Permutations, Comparisons)):
        hint = "metric.per_query and evaluation.paired read the other kinds."
        raise LabelError(f"a report needs one grade per row, and y is {type(y).__name__}", hint)
    return check_grades(y.values if isinstance(y, Grades) else y)


def checked_names(given: Sequence[str] | None, X: Any) -> list[str] | None:
    """Refuse names that are not one for each column."""
    if given is None:
        return None
    names = [given] if isinstance(given, str) else [str(name) for name in given]
    n_features = 0 if X is None else np.shape(X)[1]
    if len(names) != n_features:
        raise ShapeError("features", (len(names),), f"one name for each of {n_features} columns of X")
    return names


def named(given: Any, otherwise: str) -> str:
    """Give the class of a model."""
    return type(last_step(given)).__name__ if is_model(given) else otherwise


def checked_trust(confidence: float, n_boot: int, seed: int) -> Trust:
    """Refuse intervals that are none."""
    if not (isinstance(confidence, float) and 0.0 < confidence < 1.0):
        raise ParameterError("confidence", confidence, "between 0 and 1, such as 0.95")
    check_counts(n_boot=n_boot)
    return Trust(confidence, n_boot, seed)


def chosen_metrics(model: Any, metrics: Any, convention: str | Convention | None) -> list[Metric]:
    """Give the metrics, each once; the headline first."""
    if metrics is None:
        own = getattr(last_step(model), "metric", None)
        metrics = ([own] if isinstance(own, (str, Metric)) else []) + list(METRICS)
        if metrics[0] is own and convention is None:
            convention = read_metric(own).convention  # so that one table has one convention
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    if not given:
        raise ParameterError("metrics", metrics, "one metric at least, such as 'ndcg@10'")
    return list(dict.fromkeys(read_metric(one, convention=convention) for one in given))


def assembled(
    model: Scored, baseline: Scored | None, metrics: Sequence[Metric], given: Given, trust: Trust
) -> Report:
    """Give the report of checked rows; a baseline of its own rows is matched by query."""
    headline = metrics[0]
    against = baseline or equal_scores(model)
    found = [measured(one, model, against) for one in metrics]
    same_rows = baseline is not None and baseline.queries is model.queries
    refits = None
    if given.learning_curve is not None:
        refits = refitted(given.model, given.learning_curve, model, given.X, headline, trust)
    return Report(
        title=given.title or f"Report on {model.name}",
        judged=judged(model, against, headline, given, chosen=baseline is not None),
        metrics=metric_rows(found, trust),
        conventions=conventions(metrics, model),
        distribution=distribution(found[0]),
        gains=gains(found[0], model.queries),
        learning=learning(given.model, given.validation_history, refits),
        calibration=calibration(model, trust.confidence),
        certificate=certified(given.model),
        weights=feature_weights(given.model, given.X, model, headline, trust.seed, given.features),
        worst=worst(found[0], model, baseline if same_rows else None),
        counts=counts(model, found[0].mean.n_skipped, given.noticed),
        confidence=trust.confidence,
        n_boot=trust.n_boot,
    )


def equal_scores(model: Scored) -> Scored:
    """Give the ranker that tells nothing apart; rows that are not in the ranking stay out of it."""
    scores = np.where(np.isneginf(model.scores), -np.inf, 0.0)
    return Scored("equal scores", model.y, scores, model.queries, model.docid)


def judged(model: Scored, against: Scored, headline: Metric, given: Given, *, chosen: bool) -> Judged:
    """Give the size of the data, and who is compared."""
    import concordant

    levels, sizes = np.unique(model.y, return_counts=True)
    lengths = model.queries.sizes
    about = f"The baseline is {against.name}."
    if not chosen:
        order = order_of_ties(headline.convention)
        about = f"No baseline was given: the numbers are compared with equal scores for all rows, {order}."
    return Judged(
        model=model.name,
        baseline=against.name,
        against=about,
        n_rows=model.queries.n_rows,
        n_queries=model.n_queries,
        n_features=None if given.model is None else int(np.shape(given.X)[1]),
        shortest=int(lengths.min(initial=0 if not lengths.size else lengths[0])),
        median=float(np.median(lengths)),
        longest=int(lengths.max(initial=0)),
        grades=tuple(zip(levels[:MOST_GRADES].tolist(), sizes[:MOST_GRADES].tolist(), strict=True)),
        fingerprint=given.fingerprint,
        date=given.date,
        version=str(concordant.__version__),
    )


def conventions(metrics: Sequence[Metric], model: Scored) -> Conventions:
    """Give the convention in words, and the headline under every preset."""
    headline = metrics[0]
    told = explain(headline, model.y, model.scores, qid=model.queries, docid=model.docid)
    first = float(told.rows[0].value)
    rows = [
        PresetRow(row.preset, float(row.value), float(row.value) - first, reason(row))
        for row in told.rows[1:]
    ]
    name = str(headline.convention)
    return Conventions(name, convention_words(metrics), str(headline), tuple(rows))


def reason(row: Any) -> str:
    """Give the steps from the headline to a preset, or why there are none."""
    steps = (str(step).removesuffix(" +nan") for step in row.steps)  # from no number to one is no change
    return "; ".join(steps) or str(row.reason)
