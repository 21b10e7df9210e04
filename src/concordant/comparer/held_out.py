"""Calibration of a machine: decisions of pairs that were held out, in the machine's own unit."""

from __future__ import annotations

from itertools import count

import numpy as np

from concordant.comparer.calibration import OutcomeCurve, fit_curve, held_out_decisions
from concordant.comparer.data import Data
from concordant.comparer.machine import Machine
from concordant.comparer.recipe import Recipe
from concordant.comparer.scaling import Scaling
from concordant.solvers.journal import Journal, asked
from concordant.types import FloatArray, IntArray

__all__ = ["calibrated"]


def calibrated(
    data: Data, recipe: Recipe, fitted: tuple[Scaling, Machine], n_folds: int, journal: Journal | None = None
) -> OutcomeCurve:
    """Fit the curve to decisions of pairs that were held out.

    Machines of different folds measure in different units (of their thresholds, where they have one): their
    decisions are brought to that of the fitted machine by the root mean square on the pairs that each was
    trained on. Weights are scaled to a mean of 1, so that the curve's prior stays one pair. Decisions of a
    fold are written to the journal, and read there.
    """
    y, weight = data.y, data.weight
    size = spread(data.decisions(fitted), weight)

    def found(trained: IntArray, held: IntArray, journal: Journal | None) -> FloatArray:
        if not weight[trained].any():
            return np.zeros(len(held))
        model = data.train(recipe, journal, (trained, held))
        own = spread(data.decisions(model, trained), weight[trained])
        return data.decisions(model, held) * (size / own if own > 0.0 else 1.0)

    numbers = count()

    def decide(trained: IntArray, held: IntArray) -> FloatArray:
        if journal is None:
            return found(trained, held, None)
        name, step = f"fold-{next(numbers)}", asked("fold", (trained, held))
        if (known := journal.recall(step)) is None:
            with journal.within(name) as own:
                known = [found(trained, held, own)]
            journal.append(step, known)
        journal.forget(name)
        return known[0]

    given = held_out_decisions(decide, y, n_folds, recipe.seed)
    return fit_curve(given, y, weight * (np.count_nonzero(weight) / weight.sum()))


def spread(decision: FloatArray, weight: FloatArray) -> float:
    """Root mean square, of any size."""
    largest = float(np.abs(decision).max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    return largest * float(np.sqrt(np.average((decision / largest) ** 2, weights=weight)))
