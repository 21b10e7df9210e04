"""Surrogates of one query: definitions, typed naively."""

from typing import NamedTuple

import numpy as np


class Local(NamedTuple):
    """A loss at one point, in extended precision.

    `size`, `sizes` and `bulk` are sums of |terms|, in place of the sums of terms that value, gradient and
    Hessian are: rounding errors are small relative to them, not to what is left after terms cancel.
    """

    value: float
    grad: np.ndarray
    hessian: np.ndarray
    size: float
    sizes: np.ndarray
    bulk: np.ndarray


def phi(name, t, h=0.5):
    """Value, slope and curvature of a margin at t, elementwise; where they jump, as to the right of t."""
    t = np.asarray(t, dtype=np.longdouble)
    if name == "squared_hinge":
        return np.maximum(1 - t, 0) ** 2, -2 * np.maximum(1 - t, 0), 2.0 * (t < 1)
    if name == "hinge":
        return np.maximum(1 - t, 0), -1.0 * (t < 1), 0.0 * t
    if name == "huber_hinge":
        h = np.longdouble(h)
        pieces = [t >= 1 + h, t >= 1 - h, t < 1 - h]
        value = np.select(pieces, [0 * t, (1 + h - t) ** 2 / (4 * h), 1 - t])
        slope = np.select(pieces, [0 * t, -(1 + h - t) / (2 * h), 0 * t - 1])
        return value, slope, np.select(pieces, [0 * t, 0 * t + 1 / (2 * h), 0 * t])
    with np.errstate(over="ignore"):
        power = np.exp(-t)
        if name == "exponential":
            return power, -power, power
        return np.logaddexp(0, -t), -1 / (1 + np.exp(t)), 1 / ((1 + power) * (1 + np.exp(t)))


def pair_loss(scores, weights, name, h=0.5):
    """Sum over i, j of weights[i][j] * phi(s_i - s_j)."""
    s = np.array(scores, dtype=np.longdouble)
    t = s[:, None] - s[None, :]
    counts = np.where(weights > 0, weights, 0)
    # The term of a pair that does not count is left out: it may be infinite.
    value, slope, curvature = (counts * np.where(counts > 0, x, 0) for x in phi(name, t, h))
    bent = curvature + curvature.T
    hessian = np.diag(bent.sum(axis=1)) - bent
    # An item against itself is a constant, but its slope may be added and subtracted; and so may, where a
    # window slides over sorted scores, the largest curvature of every pair.
    most = {"squared_hinge": 2, "huber_hinge": 1 / (2 * h)}.get(name)
    passing = bent if most is None else most * (counts + counts.T)
    sizes, bulk = -slope.sum(axis=1) - slope.sum(axis=0), np.diag(passing.sum(axis=1)) + passing
    return Local(value.sum(), slope.sum(axis=1) - slope.sum(axis=0), hessian, value.sum(), sizes, bulk)


def pairwise_loss(scores, targets, weights, name, h=0.5, *, normalize=False):
    n = len(scores)
    per_item = np.array(targets, dtype=np.longdouble) * weights / (max(n * (n - 1), 1) if normalize else 1)
    return pair_loss(scores, np.outer(per_item, np.ones(n)), name, h)


def preorder_loss(scores, grades, weights, weighting, name, h=0.5):
    y = np.array(grades, dtype=np.longdouble)
    above = y[:, None] > y[None, :]
    per_pair = {
        "unit": 1.0,
        "pairs": 1 / max(above.sum(), 1),
        "gain": (2 ** y[:, None] - 2 ** y[None, :]) / max(above.sum(), 1),
    }[weighting]
    return pair_loss(scores, np.array(weights)[:, None] * np.where(above, per_pair, 0), name, h)


def choice(scores, weight):
    """Weight times -log of the probability that the first item is chosen, proportionally to exp(score)."""
    s = np.array(scores, dtype=np.longdouble)
    p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    first = np.arange(len(s)) == 0
    value = weight * np.logaddexp(0, np.logaddexp.reduce(s[1:] - s[0]))
    hessian = weight * (np.diag(p) - np.outer(p, p))
    bulk = weight * (np.diag(p) + p[:, None])  # a mean is subtracted that has the digits of the largest entry
    return Local(value, weight * (p - first), hessian, value, weight * (p + first), bulk)


def first_choices(scores, sets, weights):
    """Sum over sets of items, each with its first chosen."""
    n = len(scores)
    total = Local(*(np.zeros(shape, np.longdouble) for shape in ((), n, (n, n)) * 2))
    for items, weight in zip(sets, weights, strict=True):
        part = choice([scores[i] for i in items], weight)
        for whole, piece in zip(total, part, strict=True):
            whole[np.ix_(*[items] * whole.ndim)] += piece
    return total


def softmax_loss(scores, targets, weights):
    n = len(scores)
    sets = [[i, *(j for j in range(n) if j != i)] for i in range(n)]
    return first_choices(scores, sets, [a * w for a, w in zip(targets, weights, strict=True)])


def plackett_luce_loss(scores, positions, weights):
    order = sorted(range(len(scores)), key=lambda i: positions[i])
    return first_choices(scores, [order[k:] for k in range(len(order))], [weights[i] for i in order])


def squared_loss(scores, targets, weights, *, centred=True):
    """Sum of weights * (d - mean d)^2, the mean by the same weights; plain: of weights * d^2."""
    w = np.array(weights, dtype=np.longdouble)
    d = np.array(scores, dtype=np.longdouble) - targets
    share = w / w.sum() if centred and w.sum() > 0 else 0 * w
    off, hessian = d - (share * d).sum(), 2 * (np.diag(w) - np.outer(w, share))
    size = abs(np.array(scores)) + abs(np.array(targets)) if not centred else abs(d) + (share * abs(d)).sum()
    bulk = 2 * (np.diag(w) + np.outer(w, share))
    return Local((w * off**2).sum(), 2 * w * off, hessian, (w * size**2).sum(), 2 * w * size, bulk)


def penalty(name, z):
    """Value, slope and curvature."""
    z = np.array(z, dtype=np.longdouble)
    if name == "square":
        return z**2, 2 * z, 0 * z + 2
    if name == "cosh":
        return np.cosh(z), np.sinh(z), np.cosh(z)
    return z**2 + z**4, 2 * z + 4 * z**3, 2 + 12 * z**2


def duchi_loss(scores, targets, weights, name, nu=1.0):
    """Sum of weights * (nu * penalty(s) - target * s)."""
    value, slope, curvature = penalty(name, scores)
    linear, w = np.array(targets, dtype=np.longdouble) * scores, np.array(weights, dtype=np.longdouble)
    sizes = w * (nu * abs(slope) + abs(np.array(targets)))
    hessian = np.diag(w * nu * curvature)
    size = (w * (nu * value + abs(linear))).sum()
    return Local((w * (nu * value - linear)).sum(), w * (nu * slope - targets), hessian, size, sizes, hessian)
