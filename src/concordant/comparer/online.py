"""Probabilities of outcomes for a ranking function that is learned from a stream."""

from __future__ import annotations

import numpy as np

from concordant.comparer.calibration import OutcomeCurve, fit_curve
from concordant.solvers.online import OnlineState, ranking, weights

__all__ = ["online_curve"]


def online_curve(state: OnlineState) -> OutcomeCurve:
    """Curve fitted to the scores of pairs before they were learned; of decisions by `ranking`.

    Every pair is held out from the weights that score it, so none is set aside. Later pairs count more, as in
    the average of the weights. Scores are kept in bins, each as the mean of those in it: what the state holds
    does not grow. Before the first pair nothing is known: each outcome has the same probability.

    Examples
    --------
    >>> from concordant.solvers.online import learn
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
    kind, place = np.nonzero(counts)
    weight = counts[kind, place]
    y = np.where(kind == 0, 1, 0)
    curve = fit_curve(sums[kind, place] / weight, y, state.count * (weight / weight.sum()))
    w, bias = weights(state)
    unit = -bias if ranking(w, bias)[1] else 1.0  # without a threshold scores are decisions
    return OutcomeCurve(curve.slope * unit, curve.cut)
