"""Where a fit of a comparer is written down."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from concordant.comparer.data import Data
from concordant.comparer.recipe import Recipe
from concordant.solvers.checkpoint import Checkpoint, checked_folder, spelled
from concordant.solvers.journal import Journal

if TYPE_CHECKING:
    from concordant.comparer.comparer import Comparer

__all__ = ["journal_of"]


def journal_of(model: Comparer, recipe: Recipe, data: Data) -> AbstractContextManager[Journal | None]:
    """Give the journal of a fit, if there is to be one."""
    if (folder := checked_folder(model.checkpoint)) is None:
        return nullcontext()
    kernel = vars(recipe.kernel)
    told = {name: spelled(value) for name, value in (vars(recipe) | kernel).items() if name != "kernel"}
    told["kernel"] = told.pop("name")
    told |= {"estimator": type(model).__name__, "calibration": str(int(model.calibration))}
    return Journal(Checkpoint(folder, told, data.digest(recipe.kernel if callable(model.kernel) else None)))
