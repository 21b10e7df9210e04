"""Objective of a linear ranker: definitions, typed naively."""

import itertools

import numpy as np
from scipy.optimize import minimize


def linear_objective(w, X, queries, loss, alpha, scale=1.0):
    """Value, gradient and Hessian of: sum of loss(X w / scale, targets, weights) + alpha/2 |w|^2.

    `queries` holds (rows, targets, weights) of each query; the loss is a `Local` one.
    """
    features = np.asarray(X, dtype=np.longdouble) / scale
    value, grad, hessian = alpha / 2 * (w @ w), alpha * w, alpha * np.eye(len(w))
    for rows, targets, weights in queries:
        if len(rows):
            block = features[rows]
            part = loss(block @ w, targets, weights)
            value, grad = value + part.value, grad + block.T @ part.grad
            hessian = hessian + block.T @ part.hessian @ block
    return np.float64(value), np.float64(grad), np.float64(hessian)


def hinge_dual(X, queries, alpha):
    """Largest value of the dual of the pairwise hinge: no w is below it.

    Of sum over i, j of target_i weight_i max(0, 1 - (s_i - s_j)) + alpha/2 |w|^2, the dual is the largest
    sum of a_ij - |sum of a_ij (x_i - x_j)|^2 / 2 alpha, with 0 <= a_ij <= target_i weight_i.
    """
    differences, most = [], []
    for rows, targets, weights in queries:
        for i, j in itertools.product(range(len(rows)), repeat=2):
            differences.append(X[rows[i]] - X[rows[j]])
            most.append(targets[i] * weights[i])
    differences = np.array(differences)

    def value(a):
        w = differences.T @ a / alpha
        return alpha / 2 * (w @ w) - a.sum(), differences @ w - 1

    options = {"maxiter": 5000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-10}
    solution = minimize(
        value,
        np.zeros(len(most)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, x) for x in most],
        options=options,
    )
    return -solution.fun
