"""The chance of a tie by Davidson's model, where ratings foretell points only."""

from __future__ import annotations

import math

import numpy as np

from concordant.types import FloatArray

__all__ = ["davidson", "fit_tie"]


def fit_tie(votes: FloatArray, ties: FloatArray, sizes: FloatArray) -> float:
    """Give the nu >= 0 that makes so many ties among votes of such foretold differences most likely.

    At a difference d in the logarithm of the odds a tie has probability p / (1 + p), where p is
    nu * sqrt(s * (1 - s)) = nu / (2 cosh(d / 2)). Levels count at their means: nu moves by about a millionth.
    """
    from scipy.optimize import brentq

    total, tied = float(votes.sum()), float(ties.sum())
    if tied <= 0.0 or tied >= total:
        return 0.0 if tied <= 0.0 else math.inf
    seen = np.flatnonzero(votes)
    heights = 0.5 / np.cosh(np.minimum(0.5 * sizes[seen] / votes[seen], 300.0))

    def surplus(log_nu: float) -> float:
        return float(votes[seen] @ (1.0 / (1.0 + math.exp(-log_nu) / heights))) - tied

    odds = math.log(tied / (total - tied))  # the root, if all heights were 1
    ends = odds - math.log(heights.max()) - 1e-9, odds - math.log(heights.min()) + 1e-9
    return math.exp(brentq(surplus, *ends, xtol=1e-12))


def davidson(shares: FloatArray, nu: float) -> FloatArray:
    """Give probabilities in proportion to s, nu * sqrt(s * (1 - s)) and 1 - s: shape (n, 3).

    >>> davidson(np.array([0.5, 0.8]), 1.0).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.571, 0.286, 0.143]]
    """
    if math.isinf(nu):
        return np.tile([0.0, 1.0, 0.0], (len(shares), 1))
    tie = nu * np.sqrt(shares * (1.0 - shares))
    return np.stack((shares, tie, 1.0 - shares), axis=1) / (1.0 + tie)[:, None]
