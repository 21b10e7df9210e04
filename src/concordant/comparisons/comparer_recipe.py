"""Recipe: the checked parameters of a `Comparer`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from concordant._base.validate import INT32_MAX, check_number, check_whole
from concordant.comparisons.gram_kernel import Kernel
from concordant.comparisons.machines.primal_newton import LOSSES, METHODS
from concordant.exceptions import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant.comparisons.comparer import Comparer

CHOICES = {
    "method": tuple(METHODS),
    "formulation": ("qp", "lp"),
    "loss": tuple(LOSSES),
    "approximation": ("auto", "exact", "nystroem"),
    "solver": ("auto", "sgd"),
}
COUNTS = {"n_components": 1, "max_iter": 1, "calibration": 0}
LARGEST_SEED = 2**32 - 1  # of scikit-learn's folds
LARGEST_COST = 1e100
IN_PARTS = " for scans and Dask arrays"


@dataclass(frozen=True)
class Recipe:
    """Checked parameters of a `Comparer`; `scale_gamma`: gamma is one over the number of varying features."""

    kernel: Kernel
    scale_gamma: bool
    C: float
    method: str
    formulation: str
    loss: str
    approximation: str
    solver: str
    n_components: int
    nu: float
    tol: float
    max_iter: int
    seed: int

    def resolve_gamma(self, n_features: int) -> Recipe:
        """Resolve gamma="scale" for this number of varying features."""
        if not self.scale_gamma:
            return self
        return replace(self, kernel=replace(self.kernel, gamma=1.0 / max(n_features, 1)), scale_gamma=False)


def read_recipe(model: Comparer) -> Recipe:
    """Check the parameters of a model, each alone and all together."""
    for name, allowed in CHOICES.items():
        if not isinstance(getattr(model, name), str) or getattr(model, name) not in allowed:
            raise UnknownNameError(name, getattr(model, name), allowed)
    plain = (model.method, model.loss) == ("compare", "hinge")
    if model.formulation == "lp" and not plain:
        raise ParameterError.because(
            "formulation='lp' needs method='compare' and loss='hinge'. Use formulation='qp'."
        )
    if not (isinstance(model.C, Real) and math.inf <= model.C):
        hint = "Use C=inf for a hard margin."
        check_number("C", model.C, above=0.0, most=LARGEST_COST, hint=hint)
    if model.solver == "sgd" and (model.loss, model.formulation) != ("logistic", "qp"):
        raise ParameterError.because(
            "solver='sgd' needs loss='logistic' and formulation='qp'. Use solver='auto'."
        )
    if math.inf <= model.C and not plain:
        raise ParameterError.because(
            "C=inf needs method='compare' and loss='hinge'. Use a finite C, such as 1e6."
        )
    check_number("tol", model.tol, above=0.0, most=1.0)
    check_number("nu", model.nu, least=0.0)
    for name, least in COUNTS.items():
        check_whole(name, getattr(model, name), least, INT32_MAX)
    check_whole("random_state", model.random_state, 0, LARGEST_SEED)
    if model.calibration == 1:
        raise ParameterError("calibration", 1, "0 (none) or at least 2 folds")
    scale = isinstance(model.gamma, str) and model.gamma == "scale"
    gamma: Any = 1.0 if scale else model.gamma
    kernel = Kernel(model.kernel, gamma, model.degree, model.coef0)
    how = model.method, model.formulation, model.loss, model.approximation, model.solver, model.n_components
    limits = model.nu, model.tol, model.max_iter, model.random_state
    return Recipe(kernel, scale, float(model.C), *how, *limits)


def trains_in_parts(recipe: Recipe) -> bool:
    """True if the machine can be trained on pairs in parts."""
    return recipe.kernel.name == "linear" and recipe.formulation == "qp" and math.isfinite(recipe.C)


def error_in_parts(recipe: Recipe) -> ParameterError:
    """Return the error for a machine that cannot be trained on pairs in parts."""
    if recipe.kernel.name != "linear":
        return ParameterError("kernel", recipe.kernel.name, f"'linear'{IN_PARTS}")
    if recipe.formulation != "qp":
        return ParameterError("formulation", recipe.formulation, f"'qp'{IN_PARTS}")
    return ParameterError("C", recipe.C, f"finite{IN_PARTS}", hint="Try C=1e6.")
