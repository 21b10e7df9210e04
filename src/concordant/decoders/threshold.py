"""A threshold turns differences of scores into outcomes: which of two is better, or neither."""

from __future__ import annotations

import numpy as np

from concordant.supervision.columns import check_column, check_lengths, check_nonnegative, refuse
from concordant.supervision.labels import check_outcome
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["best_threshold", "outcomes"]

SAME = 1e-10  # share of a size by which others may differ from it and be the same, but for rounding


def outcomes(decision: FloatArray, tau: float) -> IntArray:
    """Give the sign of each decision where its size exceeds tau, else 0.

    >>> outcomes(np.array([-2.0, 0.5, 1.0, 3.0]), 1.0).tolist()
    [-1, 0, 0, 1]
    """
    predicted: IntArray = (np.sign(decision) * (np.abs(decision) > tau)).astype(np.int64)
    return predicted


def best_threshold(decision: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
    """Give the threshold of least error on these pairs: every place where the error changes is tried.

    Between two neighbouring sizes of decisions the error is constant; of all such intervals of least error
    (neighbouring ones joined) the middle of the widest is taken, the lower one of equals. 0 where there is no
    tie: nothing speaks for predicting one. The largest size of all where predicting only ties is best.
    Sizes that differ by a share of 1e-10 are one: many pairs sit right at a hinge's corner, up to rounding,
    and which of them comes first would else decide.

    Parameters
    ----------
    decision
        r(right) - r(left), finite.
    y
        Outcomes: -1, 0 or 1.
    sample_weight
        Weight of each pair's error, >= 0; None: 1.

    Examples
    --------
    >>> best_threshold([-2.0, 0.2, 0.4, 1.0], [-1, 0, 0, 1])
    0.7
    """
    values, outcome = check_column(decision, "decision"), check_outcome(y, "y")
    given = np.ones(len(values)) if sample_weight is None else sample_weight
    weight = check_nonnegative(given, "sample_weight", "pair")
    check_lengths("decision", len(values), y=outcome, sample_weight=weight)
    if (bad := ~np.isfinite(values)).any():
        refuse(bad, values, "decision", "every pair needs a finite decision.")
    if not weight[outcome == 0].any():
        return 0.0
    edges, errors = error_steps(values, outcome, weight)
    least = errors <= errors.min() + 1e-12 * weight.sum()
    starts = np.flatnonzero(least & ~np.r_[False, least[:-1]])
    ends = np.flatnonzero(least & ~np.r_[least[1:], False]) + 1
    low, high = edges[starts], np.append(edges, edges[-1])[ends]  # the last interval has no end of its own
    widest = int(np.argmax(high - low))
    return float(low[widest] + 0.5 * (high[widest] - low[widest]))


def error_steps(decision: FloatArray, y: IntArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give where intervals of thresholds begin (0, then every size), and the weight of errors in each."""
    size = np.abs(decision)
    edges, place = np.unique(np.append(size, 0.0), return_inverse=True)
    apart = np.append(np.diff(edges) > SAME * edges[1:], True)  # from the next one
    edges, place = edges[apart], (np.cumsum(apart) - apart)[place]
    below = np.where(y != 0, weight, 0.0)  # paid at thresholds from the pair's size on
    above = np.where(np.sign(decision) != y, weight, 0.0)  # paid at lower ones
    steps = np.bincount(place[:-1], weights=below - above, minlength=len(edges))
    errors: FloatArray = above.sum() + np.cumsum(steps)
    return edges, errors
