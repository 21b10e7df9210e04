"""Threshold that turns differences of scores into outcomes: which of two is better, or neither."""

from __future__ import annotations

import numpy as np

from concordant._base.validate import (
    check_column,
    check_lengths,
    check_nonnegative,
    refuse,
    refuse_misaligned,
)
from concordant.data.labels import check_outcome
from concordant.types import ArrayLike, FloatArray, IntArray

SAME = 1e-10  # relative difference up to which two sizes count as equal, because of rounding


def outcomes(decision: FloatArray, tau: float) -> IntArray:
    """Return the sign of each decision where its size exceeds tau, else 0.

    >>> outcomes(np.array([-2.0, 0.5, 1.0, 3.0]), 1.0).tolist()
    [-1, 0, 0, 1]
    """
    return (np.sign(decision) * (np.abs(decision) > tau)).astype(np.int64)


def best_threshold(decision: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
    """Find the threshold of least error on these pairs, among all intervals on which the error is constant.

    Between two neighbouring sizes of decisions the error is constant; of all such intervals of least error
    (adjacent ones merged) the middle of the widest is used, the lowest of equally wide ones. 0 if there is no
    tie: there is no reason to predict one. The largest size of all if predicting only ties is best. Sizes
    within a relative 1e-10 count as equal: many pairs are exactly at a hinge's corner, up to rounding, and
    their order would otherwise decide.

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
    refuse_misaligned(decision=decision, y=y, sample_weight=sample_weight)
    values, outcome = check_column(decision, "decision"), check_outcome(y, "y")
    raw_weight = np.ones(len(values)) if sample_weight is None else sample_weight
    weight = check_nonnegative(raw_weight, "sample_weight", "pair")
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
    """Starts of the intervals of thresholds (0, then every size), and the weight of errors in each."""
    size = np.abs(decision)
    edges, edge_number = np.unique(np.append(size, 0.0), return_inverse=True)
    apart = np.append(np.diff(edges) > SAME * edges[1:], True)  # from the next one
    edges, edge_number = edges[apart], (np.cumsum(apart) - apart)[edge_number]
    below = np.where(y != 0, weight, 0.0)  # paid at thresholds from the pair's size on
    above = np.where(np.sign(decision) != y, weight, 0.0)  # paid at lower ones
    steps = np.bincount(edge_number[:-1], weights=below - above, minlength=len(edges))
    errors: FloatArray = above.sum() + np.cumsum(steps)
    return edges, errors
