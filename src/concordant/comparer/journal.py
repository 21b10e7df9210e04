"""Where a fit of a comparer is written down."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from concordant.comparer.recipe import Recipe
from concordant.solvers.checkpoint import Checkpoint, checked_folder, digest, spelled
from concordant.solvers.journal import Journal
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.comparer.comparer import Comparer

__all__ = ["journal_of"]

KERNEL_ROWS = 50  # items whose values tell a user's kernel from another


def journal_of(
    model: Comparer, recipe: Recipe, pairs: FloatArray, y: IntArray, weight: FloatArray
) -> AbstractContextManager[Journal | None]:
    """Give the journal of a fit, if there is to be one."""
    if (folder := checked_folder(model.checkpoint)) is None:
        return nullcontext()
    kernel = vars(recipe.kernel)
    told = {name: spelled(value) for name, value in (vars(recipe) | kernel).items() if name != "kernel"}
    told["kernel"] = told.pop("name")
    told |= {"estimator": type(model).__name__, "calibration": str(int(model.calibration))}
    few = pairs[:KERNEL_ROWS, 0]
    sample = recipe.kernel(few, few) if callable(model.kernel) else None
    return Journal(Checkpoint(folder, told, digest(pairs, y, weight, sample)))
