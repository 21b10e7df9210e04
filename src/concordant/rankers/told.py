"""What a checkpoint is told of metric and surrogate: the name, and what a user's functions in it give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from concordant.metrics.convention import FUNCTIONS, Convention
from concordant.metrics.metric import Metric
from concordant.solvers.checkpoint import digest, spelled
from concordant.surrogates import Surrogate
from concordant.types import FloatArray

__all__ = ["told_metric", "told_surrogate"]

POINTS = {"gain": np.arange(65.0), "discount": np.arange(1, 1025)}  # grades and places that tell rules apart


def told_metric(metric: Metric) -> str:
    """Give a metric as text that tells it from others: two functions of one name may give other values.

    >>> from concordant.metrics.parse import metric
    >>> told_metric(metric("dcg@5"))
    'dcg@5'
    """
    own = {name: getattr(metric.convention, name) for name in FUNCTIONS}
    own = {name: rule for name, rule in own.items() if callable(rule)}
    if not own:
        return str(metric)
    defaults = {name: getattr(Convention(), name) for name in own}
    named = replace(metric, convention=metric.convention.replace(**defaults))
    given = (f"{name}={spelled(rule)} {digest(values_of(name, rule))}" for name, rule in own.items())
    return " ".join((str(named), *given))


def told_surrogate(surrogate: Surrogate) -> str:
    """Give a surrogate as text that tells it from others, and so the metric that it may hold.

    >>> from concordant.surrogates import Softmax
    >>> told_surrogate(Softmax())
    'Softmax()'
    """
    metric = getattr(surrogate, "metric", None)
    text = repr(surrogate)
    return text.replace(repr(metric), told_metric(metric)) if isinstance(metric, Metric) else text


def values_of(name: str, rule: Callable[[Any], Any]) -> FloatArray:
    """Give a rule's values at the first grades or places, as far as it has any: a table ends somewhere."""
    for size in range(len(POINTS[name]), 0, -1):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return np.asarray(rule(POINTS[name][:size].copy()), dtype=np.float64)
        except Exception:  # noqa: BLE001, S112  whatever it is: rows that need the value will show it
            continue
    return np.empty(0)
