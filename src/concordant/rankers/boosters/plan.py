"""What trees are grown for: a metric, the loss that goes with it, and how its curvature is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import GradeError, ParameterError
from concordant.metrics.conditions import Family, check_assumption
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.claim import Claim
from concordant.rankers.recipe import chosen_for_trees, lifted, training_labels
from concordant.supervision.queries import Queries
from concordant.surrogates import Loss, Pairwise, Softmax, Squared, Surrogate
from concordant.types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KINDS", "Plan", "Slopes", "chosen_loss", "slopes"]

Slopes = tuple["NDArray[np.float32]", "NDArray[np.float32]"]
"""Gradient and curvature of each row, as libraries of trees read them."""

KINDS = ("auto", "exact", "majorising")
LINEAR = (Softmax, Pairwise)  # in their targets, which a weight multiplies
LARGEST = 1e15  # label: squares of it fit into single precision, in which libraries keep gains


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
        takes: Callable[[Surrogate], bool] | None = None,
    ) -> Plan:
        """Read names, and refuse what trees cannot be grown by; `takes`: as for `chosen_loss`.

        >>> Plan.of("ndcg@10", "squared").curvature
        'exact'
        """
        check_assumption(assume, f)
        wanted = read_metric(metric)
        loss, height = chosen_loss(surrogate, lift, wanted, takes)
        return cls(wanted, loss, chosen_curvature(loss, curvature), height, assume, f)

    def labels(self, y: Any, queries: Queries) -> tuple[FloatArray, Claim]:
        """Give what the surrogate reads, by sorted row, and what is known of training on it."""
        return training_labels(self.metric, self.surrogate, y, queries, self.assume, self.f)

    def weighed(
        self, labels: FloatArray, weights: FloatArray | None, queries: Queries
    ) -> tuple[FloatArray, FloatArray]:
        """Lift the labels; give them, and the weight of each row that is still to be counted.

        Losses that are linear in targets count a weight as a factor of the target. It comes before the lift,
        which would else be larger for rows of a larger weight, and change their order.
        """
        if weights is None:
            weights = np.ones(len(labels))
        elif isinstance(self.surrogate, LINEAR):
            labels, weights = labels * weights, np.ones(len(labels))
        if (large := np.abs(labels * weights) > LARGEST).any():
            first = int(np.argmax(large))
            row, value = int(queries.order[first]), float(labels[first] * weights[first])
            where, hint = f"row {row}, standardized and weighed,", "for raw counts use gain='linear'."
            raise GradeError(value, where, "is too large for the single precision of boosters", hint).at(row)
        return lifted(labels, queries.offsets, self.lift), weights


def chosen_loss(
    name: str | Surrogate, lift: float | str, metric: Metric, takes: Callable[[Surrogate], bool] | None = None
) -> tuple[Surrogate, float]:
    """Give surrogate and lift; instead of the one that "auto" stands for squared, if a library has it not.

    `takes` tells what the library has; None: all.

    >>> from concordant import metric
    >>> chosen_loss("auto", "auto", metric("auc"), lambda loss: loss in (Squared(), Softmax()))
    (Squared(centred=True), 0.0)
    """
    loss, height = chosen_for_trees(name, lift, metric)
    if takes is None or takes(loss) or not (isinstance(name, str) and name == "auto"):
        return loss, height
    return chosen_for_trees(Squared(), lift, metric)


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


def slopes(loss: Loss, scores: ArrayLike, kind: str, scale: float = 1.0) -> tuple[float, Slopes]:
    """Give the summed loss, and its gradient and curvature, both times `scale`: steps stay as they are."""
    values, grad = loss.value_and_grad(scores)
    curvature = loss.curvature(scores, kind, grad)
    return float(values.sum()), ((scale * grad).astype(np.float32), (scale * curvature).astype(np.float32))
