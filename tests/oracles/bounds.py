"""Bounds on expected losses: definitions, typed naively."""

import math

import numpy as np

from tests.oracles.surrogates import softmax_loss, squared_loss


def pair_moments(X, weights):
    """Sum of the weights of pairs of different items, and of weight times squared distance."""
    pairs = [(i, j) for i in range(len(X)) for j in range(len(X)) if i != j]
    total = sum(weights[i][j] for i, j in pairs)
    return total, sum(weights[i][j] * ((X[i] - X[j]) ** 2).sum() for i, j in pairs)


def softmax_bound(lists, w, B, delta):
    """Mean softmax loss of lists (X, targets), and the terms of the bound on its expectation, B fixed before.

    Longest gradient over the corners of the simplex; no loss rises by more than B times its steepest slope.
    """
    n, log = len(lists), math.log(2 / delta)
    losses, amounts, highest = [], [], []
    for X, a in lists:
        away = X - X.mean(axis=0)
        scatter, m, mass = (away**2).sum(), len(a), a.sum()
        corners = max(np.linalg.norm(mass * corner - a) for corner in np.eye(m))
        at_zero = np.linalg.norm(mass / m - a)
        bent = mass / 2 * B * math.sqrt(scatter)
        amounts.append(min(corners, at_zero + bent) * math.sqrt(scatter))
        widest = min(2 * np.linalg.norm(away, axis=1).max(), math.sqrt(2 * scatter))
        slope = min(amounts[-1], mass * widest, (at_zero + bent / 2) * math.sqrt(scatter))
        highest.append(mass * math.log(m) + B * slope)
        losses.append(float(softmax_loss(X @ w, a, np.ones(m)).value))
    complexity = 2 * math.sqrt(2) * B / n * math.sqrt(sum(z**2 for z in amounts))
    estimate = 2 * math.sqrt(2) * B / n * max(amounts) * math.sqrt(2 * log)
    return sum(losses) / n, complexity, estimate, max(highest) * math.sqrt(log / (2 * n))


def squared_bound(lists, w, B, delta):
    """The same of the centred squared loss."""
    n, log = len(lists), math.log(3 / delta)
    losses, linear, square, highest = [], [], [], []
    for X, a in lists:
        scatter, off = ((X - X.mean(axis=0)) ** 2).sum(), np.linalg.norm(a - a.mean())
        linear.append(2 * off * math.sqrt(scatter))
        square.append(B * scatter)
        highest.append((off + B * math.sqrt(scatter)) ** 2)
        losses.append(float(squared_loss(X @ w, a, np.ones(len(a))).value))
    complexity = B / n * sum(math.sqrt(sum(z**2 for z in part)) for part in (linear, square))
    estimate = B / n * (max(linear) + max(square)) * math.sqrt(2 * log)
    return sum(losses) / n, complexity, estimate, max(highest) * math.sqrt(log / (2 * n))
