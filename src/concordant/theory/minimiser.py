"""The score vector that minimises an expected surrogate, on a query of known label distribution, exactly.

>>> from concordant.supervision.synthetic import LabelDistribution
>>> from concordant.surrogates import Preorder, Squared
>>> coin = LabelDistribution(([3, 1, 0], [3, 4, 4]), [[0.5, 0.5]], queries=["q"] * 3)
>>> for kind in (Squared(), Preorder()):
...     found = minimiser("ndcg", kind, coin)
...     print(kind.name, "sorts", (-found.scores).argsort() + 1, "with regret", round(found.regret, 4))
squared sorts [1 2 3] with regret 0.0
preorder sorts [2 1 3] with regret 0.0923
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.synthetic.distribution import LabelDistribution
from concordant.surrogates.parse import surrogate as read_surrogate
from concordant.surrogates.surrogate import Loss, Surrogate
from concordant.theory.regret import regret
from concordant.types import FloatArray

__all__ = ["FLAT", "ExpectedLoss", "Minimiser", "least_gap", "minimiser"]

NEWTON_STEPS = 5  # after L-BFGS: the loss is then quadratic, or close to it
FLAT = 1e-6  # curvature below this share of the largest is none


@dataclass(frozen=True, eq=False)
class Minimiser:
    """Scores at which the expected surrogate of a query is least, and what is known of them.

    Attributes
    ----------
    scores
        One per item; with mean 0 if the surrogate does not see the level.
    value, gradient_norm
        The expected surrogate there, and the length of its gradient.
    curvature
        The least second derivative over the directions that change a score difference. Above 0 there is no
        other minimiser.
    gap
        The least difference between two scores; 0 means a tie.
    regret
        Regret of sorting by the scores.
    """

    scores: FloatArray
    value: float
    gradient_norm: float
    curvature: float
    gap: float
    regret: float


def minimiser(metric: Metric | str, surrogate: Surrogate | str, distribution: LabelDistribution) -> Minimiser:
    """Minimise the expected surrogate over all score vectors, to the precision of doubles.

    Parameters
    ----------
    metric
        A metric or its name: its standardized labels are what the surrogate is given (unless it reads the
        grades), and its regret is what counts.
    surrogate
        A smooth surrogate of grades or targets, or its name.
    distribution
        The label distribution of one query, in grades.
    """
    from scipy.optimize import minimize

    chosen, solve = read_metric(metric), minimize
    expected = ExpectedLoss(chosen, read_surrogate(surrogate), distribution)
    options: Any = {"ftol": 0.0, "gtol": 1e-10, "maxiter": 1000}
    start = np.zeros(expected.n_items)
    scores = np.asarray(solve(expected.value_and_grad, start, jac=True, method="L-BFGS-B", options=options).x)
    scores = polished(expected, scores - scores.mean())
    value, grad = expected.value_and_grad(scores)
    # Directions that sum to 0, orthonormal: the other one moves all scores alike.
    across = np.linalg.svd(np.ones((1, expected.n_items)))[2][1:]
    bends = np.linalg.eigvalsh(across @ expected.hessian(scores) @ across.T)
    return Minimiser(
        scores,
        value,
        float(np.linalg.norm(grad)),
        float(bends[0]) if bends.size else math.inf,
        least_gap(scores),
        float(regret(chosen, distribution, scores)[0]),
    )


class ExpectedLoss:
    """The mean of a surrogate over the labels of one query: each outcome is a query, weighted."""

    def __init__(self, metric: Metric, surrogate: Surrogate, distribution: LabelDistribution) -> None:
        graded = all(isinstance(label, np.ndarray) for label in distribution.labels)
        if distribution.queries.n_queries != 1 or not graded:
            raise ParameterError("distribution", distribution, "that of one query, in grades")
        if surrogate.reads == "positions" or not surrogate.smooth:
            raise ParameterError("surrogate", surrogate, "smooth, and one that reads grades or targets")
        reads_grades = surrogate.reads == "grades"
        labels: list[Any] = [
            label if reads_grades else metric.targets(label) for label in distribution.labels
        ]
        self.n_items, self.times = distribution.queries.n_rows, distribution.n_labels
        offsets = np.arange(self.times + 1) * self.n_items
        weights = np.repeat(distribution.probs[0], self.n_items)
        self.loss: Loss = surrogate.bind(np.concatenate(labels), offsets, weights)

    def value_and_grad(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Give the expected surrogate, and its gradient."""
        values, grad = self.loss.value_and_grad(np.tile(scores, self.times))
        return float(values.sum()), self.summed(grad)

    def hessian(self, scores: FloatArray) -> FloatArray:
        """Give the (generalised) second derivatives."""
        tiled = np.tile(scores, self.times)
        columns = [
            self.summed(self.loss.hessian_product(tiled, np.tile(one, self.times)))
            for one in np.eye(self.n_items)
        ]
        return np.stack(columns)

    def summed(self, rows: FloatArray) -> FloatArray:
        """Add up what the outcomes say of each item."""
        total: FloatArray = rows.reshape(self.times, self.n_items).sum(axis=0)
        return total


def polished(expected: ExpectedLoss, scores: FloatArray) -> FloatArray:
    """Newton steps, as long as they shorten the gradient."""
    grad = expected.value_and_grad(scores)[1]
    for _ in range(NEWTON_STEPS):
        moved = scores - np.linalg.pinv(expected.hessian(scores), rcond=FLAT, hermitian=True) @ grad
        after = expected.value_and_grad(moved)[1]
        if not np.linalg.norm(after) < np.linalg.norm(grad):
            break
        scores, grad = moved, after
    return scores


def least_gap(scores: FloatArray) -> float:
    """Give the least difference between two scores.

    >>> least_gap(np.array([3.0, 1.0, 1.5]))
    0.5
    """
    return float(np.diff(np.sort(scores)).min(initial=math.inf))
