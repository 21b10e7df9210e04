"""Risk bound of a fitted linear ranker, from the queries that it was fitted on."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from concordant.data.check import on_host
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import ConcordantError, NoRiskBoundError, ParameterError
from concordant.rankers.recipe import training_labels
from concordant.surrogates import Surrogate
from concordant.theory.bounds.empirical import EmpiricalBound, bound_of_fit
from concordant.theory.bounds.hinges import has_hinge_facts
from concordant.theory.bounds.smooth import bound_of_loss, why_unbounded
from concordant.types import ArrayLike

if TYPE_CHECKING:
    from concordant.rankers.linear import LinearRanker


def bound_risk(
    model: LinearRanker, X: ArrayLike, y: ArrayLike, qid: ArrayLike, alpha: float
) -> EmpiricalBound:
    """Bound the risk of the weights; hinges bound the loss of the ranking, other losses only themselves.

    `alpha` is the penalty, if it bounds the length of the weights whatever the data; else 0.
    """
    loss, guarantee = model.surrogate_, model.certificate_.claim
    if reason := _why_unbounded(loss):
        raise NoRiskBoundError(reason)
    features = model.checked_features(X, reset=False)
    qid = on_host(qid)
    queries = Queries.for_rows(qid, features.shape[0], "X")
    with naming_query(qid):
        f = model.f if guarantee.assumed == "P_f" else None
        labels, _ = training_labels(guarantee.metric, loss, on_host(y), queries, guarantee.assumed, f)
    arguments = loss, labels, queries.gather(features), Queries.from_sizes(queries.sizes), model.coef_
    try:
        with np.errstate(all="ignore"):
            if has_hinge_facts(loss):
                bound = _bound_by_length(partial(bound_of_fit, *arguments), alpha)
            else:
                bound = bound_of_loss(*arguments)
    except ConcordantError as error:
        raise NoRiskBoundError(str(error).splitlines()[0].rstrip(".")) from error
    if not math.isfinite(bound.value):
        raise NoRiskBoundError("its terms are too large for doubles")
    return bound


def _bound_by_length(bound: Callable[[float | None], EmpiricalBound], alpha: float) -> EmpiricalBound:
    """Bound by the length that the penalty allows, or by a union over lengths if the weights are longer."""
    if alpha:
        with suppress(ParameterError):  # a warm start, or other queries than those of the fit
            return bound(alpha)
    return bound(None)


def _why_unbounded(loss: Surrogate) -> str:
    """Return why no bound is known for a loss; empty if one is."""
    if not has_hinge_facts(loss):
        return why_unbounded(loss)
    metric = getattr(loss, "metric", None)  # of a listwise hinge
    if metric is not None and not metric.bounded:
        return f"{metric.name} has no largest loss; concordant.theory.bounds.empirical(largest=...) takes one"
    return ""
