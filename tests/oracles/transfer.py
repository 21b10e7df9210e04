"""Regret transfer: definitions, typed naively."""

import itertools

import numpy as np

from tests.oracles.metrics import expected
from tests.oracles.surrogates import phi


def linear_regret(targets, discounts, scores):
    """What sorting loses of the sum of targets * discount of the place, in the mean over tied orders."""

    def worth(order):
        return sum(targets[i] * c for i, c in zip(order, discounts, strict=True))

    best = max(map(worth, itertools.permutations(range(len(targets)))))
    return best - expected(worth, scores)


def largest_square(vectors):
    """The largest squared distance between two vectors."""
    table = np.array(list(vectors))
    return max(((table - row) ** 2).sum(axis=1).max() for row in table)


def rows_of(places):
    """What AP pays for y_i y_j / sum(y), i >= j, in an order that gives the items these places."""
    return [1 / max(places[i], places[j]) for i in range(len(places)) for j in range(i + 1)]


def inversions_of(places):
    """What PD pays for a_ij - a_ji, i < j."""
    return [float(places[i] > places[j]) for i in range(len(places)) for j in range(i + 1, len(places))]


def times_log(x, y):
    """x log y, 0 where x is."""
    return np.where(x > 0, x * np.log(np.where(x > 0, y, 1.0)), 0.0)


def least_softmax(targets):
    """The entropy of a row's targets; the infimum of its cross entropy."""
    a = np.asarray(targets, dtype=float)
    return -times_log(a, a / np.maximum(a.sum(axis=-1, keepdims=True), 1e-300)).sum(axis=-1)


def least_logistic(targets):
    """Each pair by itself at its best, and each item against itself."""
    a = np.asarray(targets, dtype=float)
    both = a[..., :, None] + a[..., None, :]
    return -times_log(a[..., :, None], a[..., :, None] / np.maximum(both, 1e-300)).sum(axis=(-1, -2))


def least_exponential(targets):
    """By Cauchy and Schwarz: sum of a_i / p_i over probabilities p."""
    return np.sqrt(np.asarray(targets, dtype=float)).sum(axis=-1) ** 2


def least_flat(targets, name, h=0.5):
    """The least pairwise loss of each row of targets, by damped Newton steps; and the largest slope left."""
    a = np.asarray(targets, dtype=float)
    scores, size = np.zeros_like(a), np.maximum(a.sum(axis=1), 1e-300)
    eye = np.eye(a.shape[1])

    def local(s):
        value, slope, bend = (
            np.asarray(a[:, :, None] * x, dtype=float) for x in phi(name, s[:, :, None] - s[:, None, :], h)
        )
        bend = bend + bend.transpose(0, 2, 1)
        return value.sum(axis=(1, 2)), slope.sum(axis=2) - slope.sum(axis=1), bend

    value, grad, bend = local(scores)
    for _ in range(200):
        if (abs(grad).max(axis=1) <= 1e-12 * size).all():
            break
        hessian = eye * bend.sum(axis=2)[:, :, None] - bend + 1e-9 * size[:, None, None] * eye
        step = -np.linalg.solve(hessian, grad[..., None])[..., 0]
        step /= np.maximum(abs(step).max(axis=1, keepdims=True), 1.0)
        share = np.ones(len(a))
        for _ in range(30):
            moved = local(scores + share[:, None] * step)
            worse = moved[0] > value + 1e-4 * share * (grad * step).sum(axis=1) + 1e-15 * size
            if not worse.any():
                break
            share = np.where(worse, share / 2, share)
        scores = scores + share[:, None] * step
        value, grad, bend = local(scores)
    return value, float((abs(grad).max(axis=1) / size).max())


def is_low_noise(d):
    """Along positive preferences, d_ij >= d_ik + d_kj."""
    triples = itertools.permutations(range(len(d)), 3)
    return all(d[i][j] >= d[i][k] + d[k][j] for i, j, k in triples if d[i][k] > 0 and d[k][j] > 0)
