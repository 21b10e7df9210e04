"""The model behind `Comparer.partial_fit`: a fixed feature map, and weights learned on it pair by pair."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concordant.comparisons.calibration import OutcomeCurve, fit_curve
from concordant.comparisons.comparer_recipe import Recipe
from concordant.comparisons.gram_kernel import NystroemMap
from concordant.comparisons.machine import Machine, Weights
from concordant.comparisons.machines.online_machine import OnlineState, learn, ranking, weights
from concordant.comparisons.training_pairs import Scaling
from concordant.exceptions import ParameterError
from concordant.types import FloatArray, IntArray

# Outcome probabilities for a ranking function that is learned from a stream.


def online_curve(state: OnlineState) -> OutcomeCurve:
    """Fit the calibration curve to the scores of pairs before they were learned.

    Every pair is held out from the weights that score it, so none is set aside. Later pairs count more, as in
    the average of the weights. Scores are binned, each bin as the mean of its scores, so that the state has a
    constant size. Before the first pair each outcome has the same probability.

    Examples
    --------
    >>> from concordant.comparisons.machines.online_machine import learn
    >>> online_curve(OnlineState.start(1))([5.0]).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    >>> pairs = np.random.default_rng(0).normal(size=(1000, 2, 1))
    >>> gap = pairs[:, 1, 0] - pairs[:, 0, 0]
    >>> state = learn(OnlineState.start(1), pairs, np.where(np.abs(gap) > 1.0, np.sign(gap), 0))
    >>> online_curve(state)([-2.0, 0.0, 2.0]).argmax(axis=1).tolist()
    [0, 1, 2]
    """
    counts, sums = state.history[:, 0], state.history[:, 1]
    if not counts.any():
        return OutcomeCurve(0.0, float(np.log(2.0)))
    kind, bin_number = np.nonzero(counts)
    weight = counts[kind, bin_number]
    y = np.where(kind == 0, 1, 0)
    curve = fit_curve(sums[kind, bin_number] / weight, y, state.count * (weight / weight.sum()))
    w, bias = weights(state)
    unit = -bias if ranking(w, bias)[1] else 1.0  # without a threshold scores are decisions
    return OutcomeCurve(curve.slope * unit, curve.cut)


@dataclass(frozen=True, eq=False)
class Stream:
    """State of `partial_fit` between calls; its size is constant."""

    asked: Recipe  # the parameters of the call
    recipe: Recipe  # those resolved for the features that vary
    state: OnlineState  # weights and running moments
    scaling: Scaling  # of the first call, for a kernel; the identity for a linear machine: its state scales
    features: NystroemMap | None  # of the kernel; None for a linear machine

    @classmethod
    def start(cls, pairs: FloatArray, recipe: Recipe) -> Stream:
        """Start a stream; the first pairs fix the scaling and the landmarks of a kernel."""
        if recipe.method != "compare" or recipe.formulation != "qp":
            raise ParameterError.because(
                "partial_fit needs method='compare' and formulation='qp', got "
                f"method={recipe.method!r} and formulation={recipe.formulation!r}."
            )
        p = pairs.shape[2]
        if not np.isfinite(recipe.C):
            raise ParameterError("C", recipe.C, "finite for partial_fit")
        if recipe.kernel.name == "linear":
            scaling = Scaling(np.zeros(p), np.ones(p), np.ones(p, bool))
            return cls(recipe, recipe, OnlineState.start(p), scaling, None)
        scaling = Scaling.from_pairs(pairs, np.ones(len(pairs)))
        if not scaling.kept.any():
            raise ParameterError.because(
                f"No feature varies in the {len(pairs)} pairs of the first partial_fit call, which sets the "
                "scaling and the landmarks. Pass more pairs in that call."
            )
        asked, recipe = recipe, recipe.resolve_gamma(int(scaling.kept.sum()))
        items = scaling(pairs).reshape(-1, int(scaling.kept.sum()))
        rng = np.random.default_rng(recipe.seed)
        features = NystroemMap.from_items(recipe.kernel, items, recipe.n_components, rng)
        state = OnlineState.start(features.whiten.shape[1], scaled=False)
        return cls(asked, recipe, state, scaling, features)

    def learn(self, pairs: FloatArray, y: IntArray) -> None:
        """Take one step per pair."""
        if self.features is not None:
            sides = [self.features(self.scaling(pairs[:, side])) for side in (0, 1)]
            pairs = np.stack(sides, axis=1)
        learn(self.state, pairs, y, C=self.recipe.C, loss=self.recipe.loss)

    def curve(self) -> OutcomeCurve:
        """Return the current calibration curve."""
        return online_curve(self.state)

    def machine(self) -> Machine:
        """Return the current ranking function and its threshold."""
        average_weights, bias = weights(self.state)
        w, threshold = ranking(average_weights, bias)
        scorer = Weights(w) if self.features is None else self.features.scorer(w)
        fields = "compare", "online", bias, math.nan, math.nan, "", False
        return Machine(scorer, threshold, *fields)
