"""The model behind `partial_fit`: a fixed map of features, and what is learned on it pair by pair."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concordant.comparer.calibration import OutcomeCurve
from concordant.comparer.machine import Machine, Weights
from concordant.comparer.online import online_curve
from concordant.comparer.recipe import Recipe
from concordant.comparer.scaling import Scaling
from concordant.exceptions import ParameterError
from concordant.scorers.kernel import NystroemMap
from concordant.solvers.online import OnlineState, learn, ranking, weights
from concordant.types import FloatArray, IntArray

__all__ = ["Stream"]


@dataclass(frozen=True, eq=False)
class Stream:
    """What `partial_fit` keeps between calls; its size does not grow.

    Attributes
    ----------
    asked, recipe
        The parameters as given, and for the features that vary.
    state
        Weights and what belongs to them.
    scaling
        Of a linear machine none, since the state scales by what it has seen; of a kernel that of the first
        call.
    features
        The kernel's map, None of a linear machine.
    """

    asked: Recipe
    recipe: Recipe
    state: OnlineState
    scaling: Scaling
    features: NystroemMap | None

    @classmethod
    def start(cls, pairs: FloatArray, recipe: Recipe) -> Stream:
        """Fix what does not change any more, by the first pairs."""
        if recipe.method != "compare" or recipe.formulation != "qp":
            allowed = "called with method 'compare' and formulation 'qp'"
            raise ParameterError("partial_fit", (recipe.method, recipe.formulation), allowed)
        p = pairs.shape[2]
        if not np.isfinite(recipe.C):
            raise ParameterError("C", recipe.C, "finite in partial_fit")
        if recipe.kernel.name == "linear":
            scaling = Scaling(np.zeros(p), np.ones(p), np.ones(p, bool))
            return cls(recipe, recipe, OnlineState.start(p), scaling, None)
        scaling = Scaling.of(pairs, np.ones(len(pairs)))
        if not scaling.kept.any():
            allowed = "such that features vary in the first call, which fixes scaling and landmarks"
            raise ParameterError("pairs", pairs.shape, allowed)
        asked, recipe = recipe, recipe.on(int(scaling.kept.sum()))
        items = scaling(pairs).reshape(-1, int(scaling.kept.sum()))
        rng = np.random.default_rng(recipe.seed)
        features = NystroemMap.of(recipe.kernel, items, recipe.n_components, rng)
        return cls(
            asked, recipe, OnlineState.start(features.whiten.shape[1], scaled=False), scaling, features
        )

    def learn(self, pairs: FloatArray, y: IntArray) -> None:
        """Take one step per pair."""
        if self.features is not None:
            sides = [self.features(self.scaling(pairs[:, side])) for side in (0, 1)]
            pairs = np.stack(sides, axis=1)
        learn(self.state, pairs, y, C=self.recipe.C, loss=self.recipe.loss)

    def curve(self) -> OutcomeCurve:
        """Give the calibration as it stands now."""
        return online_curve(self.state)

    def machine(self) -> Machine:
        """Give the ranking function as it stands now."""
        found, bias = weights(self.state)
        w, threshold = ranking(found, bias)
        scorer = Weights(w) if self.features is None else self.features.scorer(w)
        how = "compare", "online", bias, math.nan, math.nan, "", False
        return Machine(scorer, threshold, *how)
