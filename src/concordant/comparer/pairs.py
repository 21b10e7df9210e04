"""Training pairs, as what turns them into a machine sees them: in memory, or in parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from concordant.comparer.recipe import Recipe
from concordant.comparer.scaling import Scaling
from concordant.decoders.threshold import best_threshold
from concordant.solvers.journal import Journal
from concordant.solvers.margin import MarginSolution, fit_margin
from concordant.solvers.online import sgd_logistic
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["SGD_TOL", "Features", "Pairs", "RowFeatures", "Scorer", "Training", "decisions"]

SGD_TOL = 1e-4  # change of the objective in an epoch

Scorer = Callable[[FloatArray], FloatArray]
"""Scores of scaled items."""


def decisions(scaling: Scaling, scorer: Scorer, pairs: FloatArray) -> FloatArray:
    """r(right) - r(left)."""
    right, left = (scorer(scaling(pairs[:, side])) for side in (1, 0))
    return right - left


class Features(Protocol):
    """Differences of explicit features, on which a machine is trained in the primal."""

    @property
    def total_weight(self) -> float:
        """Of all pairs."""

    def fitted(self, recipe: Recipe, journal: Journal | None) -> MarginSolution:
        """Minimise the objective by the recipe's solver."""

    def furthest(self, w: FloatArray) -> float:
        """Size of the largest decision."""


class Training(Protocol):
    """Pairs of weight above 0.

    Attributes
    ----------
    scaling
        Of their features.
    has_ties, has_others
        Whether there are ties, and others.
    """

    @property
    def scaling(self) -> Scaling:
        """Of their features."""

    @property
    def has_ties(self) -> bool:
        """Whether there are ties."""

    @property
    def has_others(self) -> bool:
        """Whether there are other pairs than ties."""

    def features(self) -> Features:
        """Give the differences of scaled features."""

    def best_threshold(self, scorer: Scorer) -> float:
        """Give the threshold of least error."""


@dataclass(frozen=True, eq=False)
class RowFeatures:
    """Differences in memory: right - left, turned so that right is better."""

    differences: FloatArray
    tie: BoolArray
    weight: FloatArray

    @property
    def total_weight(self) -> float:
        """Of all pairs."""
        return float(self.weight.sum())

    def fitted(self, recipe: Recipe, journal: Journal | None) -> MarginSolution:
        """Minimise the objective by the recipe's solver."""
        what: dict[str, Any] = {"C": recipe.C, "method": recipe.method, "sample_weight": self.weight}
        what["journal"] = journal
        if recipe.solver == "sgd":
            what |= {"tol": max(recipe.tol, SGD_TOL), "seed": recipe.seed}
            return sgd_logistic(self.differences, self.tie, **what)
        what |= {"loss": recipe.loss, "tol": recipe.tol, "max_iter": recipe.max_iter}
        return fit_margin(self.differences, self.tie, **what)

    def furthest(self, w: FloatArray) -> float:
        """Size of the largest decision."""
        return float(np.abs(self.differences @ w).max())


@dataclass(frozen=True, eq=False)
class Pairs:
    """Training pairs in memory: as given, scaled on demand."""

    given: FloatArray
    y: IntArray
    weight: FloatArray
    scaling: Scaling

    @classmethod
    def of(cls, given: FloatArray, y: IntArray, weight: FloatArray) -> Pairs:
        """Leave out what has no weight, and measure the rest."""
        used = weight > 0.0
        if not used.all():
            given, y, weight = given[used], y[used], weight[used]
        return cls(given, y, weight, Scaling.of(given, weight))

    @property
    def tie(self) -> BoolArray:
        """Which are ties."""
        ties: BoolArray = self.y == 0
        return ties

    @property
    def has_ties(self) -> bool:
        """Whether there are ties."""
        return bool(self.tie.any())

    @property
    def has_others(self) -> bool:
        """Whether there are other pairs than ties."""
        return not self.tie.all()

    def turned(self) -> FloatArray:
        """Both sides' scaled features, turned so that right is better."""
        scaled = self.scaling(self.given)
        return np.where((self.y < 0)[:, None, None], scaled[:, ::-1], scaled)

    def features(self) -> RowFeatures:
        """Give the differences of scaled features."""
        return RowFeatures(self.scaling.differences(self.given, self.y), self.tie, self.weight)

    def best_threshold(self, scorer: Scorer) -> float:
        """Give the threshold of least error."""
        return best_threshold(decisions(self.scaling, scorer, self.given), self.y, self.weight)
