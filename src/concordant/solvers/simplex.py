"""A concave quadratic over the simplex: which planes of a bundle bear the load."""

from __future__ import annotations

import numpy as np

from concordant.types import FloatArray

__all__ = ["best_mixture"]

RIDGE = 1e-13  # of the largest entry: planes may repeat
MOST_CHANGES = 10  # of the active planes, per plane


def best_mixture(H: FloatArray, b: FloatArray, start: FloatArray) -> FloatArray:
    """Give shares >= 0 that add up to 1 and maximise b @ shares - shares @ H @ shares / 2.

    By active sets: the maximum over the shares that are not 0 is a linear system; one share enters or leaves
    at a time. From a good start few changes are needed. Any answer is feasible, so that a bound computed
    from it holds, rounding or not.

    Parameters
    ----------
    H
        Symmetric, no direction of negative curvature.
    b
        One number per share.
    start
        Feasible shares.

    Examples
    --------
    >>> best_mixture(np.eye(3), np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])).round(6).tolist()
    [0.0, 0.5, 0.5]
    """
    shares, active = start.copy(), np.flatnonzero(start > 0.0).tolist()
    ridge = RIDGE * max(float(np.diagonal(H).max()), np.finfo(float).tiny)
    rounding = 1e-12 * (1.0 + float(np.abs(b).max()))
    for _ in range(MOST_CHANGES * len(b)):
        wanted = unconstrained(H, b, active, ridge)
        if (wanted > 0.0).all():
            shares[active] = wanted
            slopes = b - H @ shares
            best = int(np.argmax(slopes))
            if best in active or slopes[best] <= slopes[active].max() + rounding:
                break
            active.append(best)
        else:
            shares[active], leaver = until_one_leaves(shares[active], wanted)
            del active[leaver]
    mixture: FloatArray = shares / shares.sum()
    return mixture


def unconstrained(H: FloatArray, b: FloatArray, active: list[int], ridge: float) -> FloatArray:
    """Best shares of the active planes, of any sign, that add up to 1."""
    n = len(active)
    system, right = np.ones((n + 1, n + 1)), np.ones(n + 1)
    system[:n, :n], right[:n] = H[np.ix_(active, active)], b[active]
    system[n, n] = 0.0
    system.flat[: n * (n + 2) : n + 2] += ridge
    return np.linalg.solve(system, right)[:n].astype(np.float64, copy=False)


def until_one_leaves(shares: FloatArray, wanted: FloatArray) -> tuple[FloatArray, int]:
    """Go from these shares towards the wanted ones until one becomes 0, and say which."""
    falling = wanted <= 0.0
    ratios = np.full(len(shares), np.inf)
    # A share that is 0 and should fall leaves at once, whatever 0/0 would say.
    ratios[falling] = shares[falling] / np.maximum(shares[falling] - wanted[falling], np.finfo(float).tiny)
    leaver = int(np.argmin(ratios))
    moved: FloatArray = np.maximum(shares + ratios[leaver] * (wanted - shares), 0.0)
    moved[leaver] = 0.0
    return moved, leaver
