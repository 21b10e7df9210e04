"""The score vector that minimises an expected surrogate, on a query of known label distribution, exactly.

>>> from concordant import synthetic
>>> from concordant.surrogates import Preorder, Squared
>>> coin = synthetic.LabelDistribution(([3, 1, 0], [3, 4, 4]), [[0.5, 0.5]], queries=["q"] * 3)
>>> for kind in (Squared(), Preorder()):
...     found = minimiser("ndcg", kind, coin)
...     print(kind.name, "sorts", (-found.scores).argsort() + 1, "with regret", round(found.regret, 4))
squared sorts [1 2 3] with regret 0.0
preorder sorts [2 1 3] with regret 0.0923
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concordant import Metric, synthetic
from concordant._internals import (
    ExpectedLosses,
    Mixtures,
    combination,
    minimisers,
    read_surrogate_labels,
    space_of,
)
from concordant.exceptions import ParameterError
from concordant.surrogates import Surrogate
from concordant.surrogates import surrogate as read_surrogate
from concordant.theory.regret import regret
from concordant.types import FloatArray

NEWTON_STEPS = 5  # at the end: the loss is then quadratic, or close to it
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


def minimiser(
    metric: Metric | str, surrogate: Surrogate | str, distribution: synthetic.LabelDistribution
) -> Minimiser:
    """Minimise the expected surrogate over all score vectors, to the precision of doubles.

    Parameters
    ----------
    metric
        A metric or its name: its standardized labels are what the surrogate is given (unless it reads the
        labels themselves), under the metric's first condition where it has no others; and its regret counts.
    surrogate
        A smooth surrogate, or its name.
    distribution
        The label distribution of one query.
    """
    kind, labels = read_surrogate(surrogate), list(distribution.labels)
    if distribution.queries.n_queries != 1:
        raise ParameterError("distribution", distribution, "the label distribution of one query")
    if not kind.smooth:
        raise ParameterError("surrogate", surrogate, "smooth")
    combined = combination(metric, kind, labels=_common_space(labels))
    mixture = Mixtures(np.arange(len(labels))[None], distribution.probs)
    table = read_surrogate_labels(combined, labels)
    expected = ExpectedLosses(kind, table, mixture)
    scores = _polish(expected, minimisers(kind, table, mixture).scores)
    value, grad = expected.value_and_grad(scores)
    # Directions that sum to 0, orthonormal: the other one moves all scores alike.
    across = np.linalg.svd(np.ones((1, scores.shape[1])))[2][1:]
    bends = np.linalg.eigvalsh(across @ expected.hessian(scores)[0] @ across.T)
    return Minimiser(
        scores[0],
        float(value[0]),
        float(np.linalg.norm(grad)),
        float(bends[0]) if bends.size else math.inf,
        least_gap(scores[0]),
        float(regret(combined.metric, distribution, scores[0])[0]),
    )


def _common_space(labels: list[synthetic.Label]) -> str:
    """Name the space that holds all the labels."""
    spaces = {space_of(label) for label in labels}
    return "grades" if "grades" in spaces else spaces.pop()


def _polish(expected: ExpectedLosses, scores: FloatArray) -> FloatArray:
    """Newton steps, as long as they shorten the gradient."""
    grad = expected.value_and_grad(scores)[1]
    for _ in range(NEWTON_STEPS):
        inverse = np.linalg.pinv(expected.hessian(scores)[0], rcond=FLAT, hermitian=True)
        moved = scores - grad @ inverse
        after = expected.value_and_grad(moved)[1]
        if not np.linalg.norm(after) < np.linalg.norm(grad):
            break
        scores, grad = moved, after
    return scores


def least_gap(scores: FloatArray) -> float:
    """Least difference between two scores.

    >>> least_gap(np.array([3.0, 1.0, 1.5]))
    0.5
    """
    return float(np.diff(np.sort(scores)).min(initial=math.inf))
