"""The risk bound that comes with a fit, where one is known for the loss."""

from __future__ import annotations

import math

import numpy as np

from concordant.exceptions import ConcordantError
from concordant.rankers.partitioned.linear import PartedProblem
from concordant.rankers.training import Problem
from concordant.theory.bounds.empirical import bound_of_fit
from concordant.theory.bounds.fitted import EmpiricalBound
from concordant.theory.bounds.hinges import UNBOUNDED, is_known
from concordant.theory.bounds.smooth import bound_of_loss
from concordant.theory.bounds.swing import why_unbounded
from concordant.types import FloatArray

__all__ = ["risk_bound"]


IN_PARTS = "of data in parts no risk bound is computed: it reads all queries together"


def risk_bound(
    problem: Problem | PartedProblem, coef: FloatArray, alpha: float | None
) -> tuple[EmpiricalBound | None, str]:
    """Give a bound on the risk of the weights, or None and the reason.

    As much work as a few gradients. Hinges bound the loss of the ranking, other losses only themselves.

    Parameters
    ----------
    problem
        What was fitted.
    coef
        The weights, for X as given.
    alpha
        The penalty, where it bounds their length whatever the data; else None.
    """
    loss = problem.surrogate
    if isinstance(problem, PartedProblem):
        return None, why_unbounded(loss) if not is_known(loss) and why_unbounded(loss) else IN_PARTS
    hinge = is_known(loss)
    if not hinge and (reason := why_unbounded(loss)):
        return None, reason
    lost = getattr(getattr(loss, "metric", None), "name", "")  # of a listwise hinge
    if lost in UNBOUNDED:
        return None, f"{lost} has no largest loss; concordant.theory.bounds.empirical(largest=...) takes one"
    try:
        with np.errstate(all="ignore"):
            given = loss, problem.labels, problem.X, problem.queries, coef
            bound = bound_of_fit(*given, alpha) if hinge else bound_of_loss(*given)
    except ConcordantError as error:
        return None, str(error).splitlines()[0].rstrip(".")
    return (bound, "") if math.isfinite(bound.value) else (None, "its terms are too large for doubles")
