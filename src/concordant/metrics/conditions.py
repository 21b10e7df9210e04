"""Conditions on the distribution of the labels, under which a metric has a standardization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["CONDITIONS", "Family", "Standardization", "check_assumption"]

CONDITIONS: Mapping[str, str] = {  # name -> where it is shown that one follows
    "P_reinforce": "Ramaswamy et al. 2013, Corollary 5",
    "low_noise": "Buffoni et al. 2011, section 5.3",
    "P_f": "Ramaswamy et al. 2013, Theorem 6",
    "order_preserving": "Buffoni et al. 2011, section 5.4",
}

Family: TypeAlias = Callable[[IntArray, IntArray, FloatArray, int], ArrayLike]
"""f(better, worse, weights, n_items) of one query's preferences: one number per item."""

Standardization: TypeAlias = Callable[[Any, Queries], FloatArray]
"""Labels and queries -> one target >= 0 per sorted row."""


def check_assumption(assume: str | None, f: Family | None = None) -> None:
    """Refuse a condition that is in no theorem, and an f that none reads."""
    if isinstance(assume, str) and assume == "P_DAG":
        own = "P_DAG serves no scores of items, PairRanker(decoder='edge-deletion') uses it"
        raise ParameterError("assume", assume, f"one of {', '.join(CONDITIONS)}: {own}")
    if assume is not None and not (isinstance(assume, str) and assume in CONDITIONS):
        raise UnknownNameError("condition", assume, CONDITIONS)
    if f is not None and assume != "P_f":
        raise ParameterError("f", f, "left out: only assume='P_f' reads it")
    if f is not None and not callable(f):
        raise ParameterError("f", f, "a function f(better, worse, weights, n_items)")
