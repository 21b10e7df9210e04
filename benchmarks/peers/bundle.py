"""Other solvers on the planes of our bundle: without a distance, and with a plain one."""

import importlib
import math
from typing import Any
from unittest.mock import patch

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.solvers import LinearObjective, Solution, bundle
from concordant.solvers.bundle import Planes
from concordant.solvers.precondition import Preconditioner
from concordant.solvers.solution import Callback, SolverTrace

bundle_module = importlib.import_module("concordant.solvers.bundle")  # the package's `bundle` is the function


def one_slack(
    objective: LinearObjective, w: np.ndarray, *, tol: float, max_iter: int, callback: Callback
) -> Solution:
    """Cutting planes as in SVMstruct (one slack) and BMRM: the next weights minimise the model itself."""
    watch = SolverTrace(objective, w, tol, callback)
    planes = Planes(objective.n_features, objective.alpha)
    with one_blas_thread():
        for _ in range(max_iter):
            value, grad = objective.value_and_grad(w)
            planes.add(w, value, grad)
            watch.bound = max(watch.bound, planes.lower_bound())
            watch.see(w, value, grad, math.inf)
            if watch.step():
                break
            w = -planes.shares @ planes.slopes / planes.alpha
            planes.drop_idle()
    return watch.solution()


def plain_distance(objective: LinearObjective, w: np.ndarray, **options: Any) -> Solution:
    """Our bundle, but for the distance, which is that of the weights."""

    def ones(goal: LinearObjective) -> Preconditioner:
        return Preconditioner(np.ones(goal.n_features))

    with patch.object(bundle_module, "whitening", ones):
        return bundle(objective, w, **options)
