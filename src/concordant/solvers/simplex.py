"""A concave quadratic over the simplex: which planes of a bundle bear the load."""

from __future__ import annotations

import numpy as np

from concordant.types import FloatArray

__all__ = ["best_mixture"]

EPSILON = float(np.finfo(float).eps)
RIDGE = 1e-13  # of a curvature: planes may repeat
ROUNDING = 1e-14  # of a slope: no reason to let another plane in
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
    alone = b - 0.5 * np.diagonal(H)
    start, reached = start / start.sum(), float(start @ (b - 0.5 * (H @ start)))
    if not reached > alone.max():
        start, reached = np.eye(len(b))[np.argmax(alone)], float(alone.max())
    room = float(b.max()) - reached  # the maximum is above by no more
    if not room > EPSILON * abs(float(b.max())):
        return start
    # In units of the room, and of each plane's own curvature: one steep plane does not drown the others.
    units = 1.0 / np.sqrt(1.0 + np.diagonal(H) / room)
    round_H, low = units[:, None] * (H / room) * units, (b - b.max()) / room * units
    shares = climbed(round_H, low, units, start / units) * units
    mixture: FloatArray = shares / shares.sum()
    return mixture


def climbed(H: FloatArray, b: FloatArray, units: FloatArray, shares: FloatArray) -> FloatArray:
    """Let shares enter and leave, one at a time, as long as this pays; units @ shares stays 1."""
    active, reached = np.flatnonzero(shares > 0.0).tolist(), -np.inf
    for _ in range(MOST_CHANGES * len(b)):
        wanted, level = unconstrained(H, b, units, active)
        if (wanted > 0.0).all():
            shares[active] = wanted
            value = float(b @ shares - 0.5 * shares @ (H @ shares))
            if not value > reached:  # rounding: it would go round in circles
                break
            reached, slopes = value, b - H @ shares - level * units
            slopes[active] = 0.0
            best = int(np.argmax(slopes))
            if slopes[best] <= ROUNDING:
                break
            active.append(best)
        else:
            shares[active], leaver = until_one_leaves(shares[active], wanted)
            del active[leaver]
    return shares


def unconstrained(
    H: FloatArray, b: FloatArray, units: FloatArray, active: list[int]
) -> tuple[FloatArray, float]:
    """Best shares of the active planes, of any sign, with units @ shares = 1; and what a unit is worth."""
    n = len(active)
    system, right = np.zeros((n + 1, n + 1)), np.ones(n + 1)
    system[:n, :n], right[:n] = H[np.ix_(active, active)], b[active]
    system[n, :n] = system[:n, n] = units[active]
    system.flat[: n * (n + 2) : n + 2] += RIDGE
    solved = np.linalg.solve(system, right).astype(np.float64, copy=False)
    return solved[:n], float(solved[n])


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
