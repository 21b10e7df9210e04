"""What trees are grown for: a metric, the loss that goes with it, and how its curvature is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.conditions import Family, check_assumption
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.claim import Claim
from concordant.rankers.recipe import chosen_for_trees, lifted, training_labels
from concordant.supervision.queries import Queries
from concordant.surrogates import Loss, Surrogate
from concordant.types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KINDS", "Plan", "Slopes", "slopes"]

Slopes = tuple["NDArray[np.float32]", "NDArray[np.float32]"]
"""Gradient and curvature of each row, as libraries of trees read them."""

KINDS = ("auto", "exact", "majorising")


@dataclass(frozen=True)
class Plan:
    """What trees are grown for, and by which loss and curvature.

    Attributes
    ----------
    metric, surrogate
        What is trained for, and what is minimised.
    curvature
        A kind of `Loss.curvature`.
    lift
        What is added to all targets of a query, as a share of the highest.
    assume, f
        As for `concordant.standardize`.
    """

    metric: Metric
    surrogate: Surrogate
    curvature: str
    lift: float = 0.0
    assume: str | None = None
    f: Family | None = None

    @classmethod
    def of(
        cls,
        metric: Any,
        surrogate: Any = "auto",
        curvature: str = "auto",
        lift: float | str = "auto",
        assume: str | None = None,
        f: Family | None = None,
    ) -> Plan:
        """Read names, and refuse what trees cannot be grown by.

        >>> Plan.of("ndcg@10", "squared").curvature
        'exact'
        """
        check_assumption(assume, f)
        wanted = read_metric(metric)
        loss, height = chosen_for_trees(surrogate, lift, wanted)
        return cls(wanted, loss, chosen_curvature(loss, curvature), height, assume, f)

    def labels(self, y: Any, queries: Queries) -> tuple[FloatArray, Claim]:
        """Give what the surrogate reads, by sorted row, and what is known of training on it."""
        labels, claim = training_labels(self.metric, self.surrogate, y, queries, self.assume, self.f)
        return lifted(labels, queries.offsets, self.lift), claim


def chosen_curvature(loss: Surrogate, kind: str) -> str:
    """Give a kind that the surrogate has."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError("curvature", kind, f"one of {', '.join(map(repr, KINDS))}")
    if not loss.curvatures:
        wanted = "one with a curvature, by which trees step; its corners, or steepness, leave it without"
        raise ParameterError("surrogate", loss, wanted)
    if kind == "auto":
        return loss.curvatures[0]
    if kind not in loss.curvatures:
        has = ", ".join(map(repr, ("auto", *loss.curvatures)))
        raise ParameterError("curvature", kind, f"one of {has} for {loss}")
    return kind


def slopes(loss: Loss, scores: ArrayLike, kind: str) -> tuple[float, Slopes]:
    """Give the summed loss, and its gradient and curvature."""
    values, grad = loss.value_and_grad(scores)
    curvature = loss.curvature(scores, kind, grad)
    return float(values.sum()), (grad.astype(np.float32), curvature.astype(np.float32))
