"""What is trained, and how: the parameters of a `Comparer`, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from concordant._numbers import as_double, is_whole, whole_numbers
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.scorers.kernel import Kernel
from concordant.solvers.margin import LOSSES, METHODS

if TYPE_CHECKING:
    from concordant.comparer.comparer import Comparer

__all__ = ["Recipe", "read_recipe", "refused_in_parts"]

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
IN_PARTS = " for scans and Dask arrays, whose pairs are never all in one place"


@dataclass(frozen=True)
class Recipe:
    """The parameters of `Comparer`; `scale_gamma`: gamma is one over the number of features that vary."""

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

    def on(self, n_features: int) -> Recipe:
        """Give the recipe for so many features that vary."""
        if not self.scale_gamma:
            return self
        return replace(self, kernel=replace(self.kernel, gamma=1.0 / max(n_features, 1)), scale_gamma=False)


def read_recipe(model: Comparer) -> Recipe:
    """Check the parameters, alone and together."""
    for name, allowed in CHOICES.items():
        if not isinstance(getattr(model, name), str) or getattr(model, name) not in allowed:
            raise UnknownNameError(name, getattr(model, name), allowed)
    plain = (model.method, model.loss) == ("compare", "hinge")
    if model.formulation == "lp" and not plain:
        raise ParameterError("formulation", "lp", "'qp' unless method is 'compare' and loss 'hinge'")
    check_real("C", model.C, 0.0, math.inf, "above 0; inf: a hard margin")
    if LARGEST_COST < model.C < math.inf:
        raise ParameterError("C", model.C, f"at most {LARGEST_COST:g}, or inf: a hard margin")
    if model.solver == "sgd" and (model.loss, model.formulation) != ("logistic", "qp"):
        raise ParameterError("solver", "sgd", "'auto' unless loss is 'logistic' and formulation 'qp'")
    if math.inf <= model.C and not plain:
        raise ParameterError("C", model.C, "finite unless method is 'compare' and loss 'hinge'")
    check_real("tol", model.tol, 0.0, 1.0, "above 0 and at most 1")
    check_real("nu", model.nu, -math.ulp(0.0), math.nextafter(math.inf, 0.0), "finite and >= 0")
    for name, least in COUNTS.items():
        check_whole(name, getattr(model, name), least)
    if not is_whole(model.random_state, 0, LARGEST_SEED):
        raise ParameterError("random_state", model.random_state, whole_numbers(0, LARGEST_SEED))
    if model.calibration == 1:
        raise ParameterError("calibration", 1, "0 (none), or at least 2 folds")
    scale = isinstance(model.gamma, str) and model.gamma == "scale"
    gamma: Any = 1.0 if scale else model.gamma
    kernel = Kernel(model.kernel, gamma, model.degree, model.coef0)
    how = model.method, model.formulation, model.loss, model.approximation, model.solver, model.n_components
    limits = model.nu, model.tol, model.max_iter, model.random_state
    return Recipe(kernel, scale, float(model.C), *how, *limits)


def refused_in_parts(recipe: Recipe) -> ParameterError | None:
    """Give the error where a machine cannot be trained on pairs in parts; None where it can."""
    if recipe.kernel.name != "linear":
        return ParameterError("kernel", recipe.kernel.name, f"'linear'{IN_PARTS}")
    if recipe.formulation != "qp":
        return ParameterError("formulation", recipe.formulation, f"'qp'{IN_PARTS}")
    if not math.isfinite(recipe.C):
        return ParameterError("C", recipe.C, f"finite{IN_PARTS}; try 1e6")
    return None


def check_real(name: str, value: Any, above: float, most: float, allowed: str) -> None:
    """Refuse what is no number in (above, most]."""
    if not above < as_double(value) <= most:
        raise ParameterError(name, value, allowed)


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number, or out of range."""
    if not is_whole(value, least):
        raise ParameterError(name, value, whole_numbers(least))
