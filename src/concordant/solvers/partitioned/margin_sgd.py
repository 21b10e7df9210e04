"""Stochastic gradient over pairs that are read part by part: parts in random order, and the pairs of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from concordant.exceptions import ParameterError
from concordant.solvers.journal import Journal
from concordant.solvers.margin import MarginSolution
from concordant.solvers.online import epoch_of, n_passes, stepped
from concordant.solvers.partitioned.margin import PartedProblem
from concordant.solvers.partitioned.margin_part import MarginPart
from concordant.solvers.partitioned.parts import StreamedParts
from concordant.types import FloatArray

__all__ = ["ON_CLUSTER", "sgd_streamed"]

ON_CLUSTER = "'auto' on a cluster: a walk from pair to pair is of one machine"


def sgd_streamed(
    problem: PartedProblem, *, tol: float, seed: int, max_iter: int = 50, journal: Journal | None = None
) -> MarginSolution:
    """Do as `sgd_logistic` on rows that are read part by part: three passes an epoch.

    The steps of an epoch go from part to part, in random order, and within one from row to row; rows that
    stand together in a file should not be alike.
    """
    parts = problem.parts
    if not isinstance(parts, StreamedParts):
        raise ParameterError("solver", "sgd", ON_CLUSTER)

    def begun(epoch: int, steps: FloatArray) -> Callable[[], tuple[FloatArray]]:
        return partial(walked, problem, parts, seed, epoch, steps)

    return stepped(replace(problem, stepped_from=False), begun, tol, max_iter, journal)


def walked(
    problem: PartedProblem, parts: StreamedParts[MarginPart], seed: int, epoch: int, steps: FloatArray
) -> tuple[FloatArray]:
    """Take the steps of an epoch."""
    n, total, rng = problem.n_rows, problem.total_cost, np.random.default_rng([seed, epoch])
    done = epoch * n * n_passes(n)
    for _ in range(n_passes(n)):
        for part in parts.held(rng.permutation(parts.n_parts)):
            rows = part.problem(problem.which)
            order = rng.permutation(rows.n_rows)
            fixed = n * rows.cost / total, order, 1.0 / total, float(rows.has_bias), rows.kind
            (steps,) = epoch_of(rows, fixed, done, steps)
            done += len(order)
    return (steps,)
