"""Machines for pairs with ties: thresholds, the family of equation 15, margins by enumeration."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog

# ---------------------------------------------------------------- thresholds of ranking machines


def threshold_errors(decision, y, threshold):
    """Pairs predicted wrong: a tie up to the threshold, else the sign."""
    wrong = 0
    for d, outcome in zip(decision, y, strict=True):
        predicted = 0 if abs(d) <= threshold else math.copysign(1, d)
        wrong += predicted != outcome
    return wrong


def published_threshold(decision, y):
    """The published choice among the sizes and 100 values: the middle of the best, or the one off the end."""
    sizes = [abs(d) for d in decision]
    if max(sizes) == 0:
        return 0.0
    low, high = min(s for s in sizes if s > 0), max(sizes)
    inside = [low * (high / low) ** (step / 99) for step in range(1, 99)]
    tried = sorted([*sizes, low, *inside, high])
    errors = [threshold_errors(decision, y, t) for t in tried]
    best = [t for t, e in zip(tried, errors, strict=True) if e == min(errors)]
    if errors[0] == min(errors):
        return best[-1]
    if errors[-1] == min(errors):
        return best[0]
    return best[len(best) // 2]


def machine_rows(pairs, y):
    """The flipped data of equation 8: rows (left, right, label)."""
    rows = []
    for (left, right), outcome in zip(pairs, y, strict=True):
        if outcome == 0:
            rows += [(left, right, -1), (right, left, -1)]
        else:
            rows.append((left, right, 1) if outcome > 0 else (right, left, 1))
    return rows


def pair_kernel(a, b, gamma):
    """Inner product of the differences of two rows, for exp(-gamma d^2)."""
    k = lambda x, z: math.exp(-gamma * sum((p - q) ** 2 for p, q in zip(x, z, strict=True)))  # noqa: E731
    return k(a[1], b[1]) - k(a[1], b[0]) - k(a[0], b[1]) + k(a[0], b[0])


# ---------------------------------------------------------------- the comparison family (equation 15)


def hinge_at(margin, loss):
    """Loss of a margin."""
    if loss == "logistic":
        return np.logaddexp(0.0, -margin)
    slack = np.maximum(1.0 - margin, 0.0)
    return slack**2 if loss == "squared_hinge" else slack


def comparison_objective(u, bias, pairs, y, C, method, loss="hinge"):
    """Table 2 of the paper: which rows each method trains on, and whether there is a bias."""
    total = 0.5 * float(u @ u)
    for (left, right), outcome in zip(pairs, y, strict=True):
        g = float(u @ (right - left))
        if outcome:
            weight = {"compare": 1, "rank": 1, "rank2": 2}[method]
            b = bias if method == "compare" else 0.0
            total += C * weight * float(hinge_at(b + outcome * g, loss))
        elif method == "compare":
            total += C * float(hinge_at(-(bias + g), loss) + hinge_at(-(bias - g), loss))
        elif method == "rank2":
            total += C * float(hinge_at(g, loss) + hinge_at(-g, loss))
    return total


# ---------------------------------------------------------------- margins of separable pairs, by enumeration


def margin_rows(differences, y):
    """Rows and limits of row @ (w, mu) >= limit: the linear program of the widest margin."""
    rows, limits = [], []
    for d, label in zip(np.asarray(differences, dtype=float), y, strict=True):
        if label:
            rows.append([*(label * d), -1.0])
            limits.append(1.0)
        else:
            rows += [[*d, -1.0], [*-d, -1.0]]
            limits += [-1.0, -1.0]
    return np.array(rows), np.array(limits)


def tight_sets(n_rows, most):
    """All sets of up to so many rows."""
    for size in range(1, most + 1):
        yield from (list(some) for some in itertools.combinations(range(n_rows), size))


def widest_margin(differences, y):
    """Largest mu over every point at which some rows are tight and none is broken; -1 at w = 0 will do."""
    rows, limits = margin_rows(differences, y)
    best = -1.0
    for some in tight_sets(len(rows), rows.shape[1]):
        point = np.linalg.lstsq(rows[some], limits[some], rcond=None)[0]
        if (rows @ point >= limits - 1e-9).all():
            best = max(best, point[-1])
    return best


def shortest_separator(differences, y):
    """Shortest u and its bias, over all sets of tight rows of bias + u @ d >= 1, <= -1 on ties both ways."""
    rows, _ = margin_rows(differences, y)
    signs = np.array([sign for label in y for sign in ([1.0] if label else [-1.0, -1.0])])
    rows = np.column_stack((rows[:, :-1], signs))  # the rows of ties stand both ways round already
    p, best = rows.shape[1] - 1, None
    for some in tight_sets(len(rows), p + 1):
        k = len(some)
        system = np.zeros((p + 1 + k, p + 1 + k))
        system[:p, :p] = np.eye(p)
        system[: p + 1, p + 1 :], system[p + 1 :, : p + 1] = -rows[some].T, rows[some]
        point = np.linalg.lstsq(system, np.r_[np.zeros(p + 1), np.ones(k)], rcond=None)[0][: p + 1]
        is_feasible = (rows @ point >= 1 - 1e-9).all()
        if is_feasible and (best is None or np.linalg.norm(point[:p]) < np.linalg.norm(best[:p])):
            best = point
    return best[:p], best[p]


def soft_margin(basis, y, costs, nu):
    """Least value of the linear program with slack, its absolute values written as variables of their own."""
    basis, (n, K) = np.asarray(basis, dtype=float), np.shape(basis)
    rows, limits = [], []  # of the variables a, sizes, mu, slack

    def at_most(limit, **parts):
        row = {"a": np.zeros(K), "sizes": np.zeros(K), "mu": 0.0, "slack": np.zeros(n)} | parts
        rows.append(np.r_[row["a"], row["sizes"], row["mu"], row["slack"]])
        limits.append(limit)

    for k in range(K):
        at_most(0.0, a=np.eye(K)[k], sizes=-np.eye(K)[k])
        at_most(0.0, a=-np.eye(K)[k], sizes=-np.eye(K)[k])
    for i, label in enumerate(y):
        for sign in (label,) if label else (-1, 1):
            at_most(-1.0 if label else 1.0, a=-sign * basis[i], mu=1.0, slack=-np.eye(n)[i])
    objective = np.r_[np.zeros(K), np.ones(K), -nu, costs]
    bounds = [(None, None)] * K + [(0, None)] * K + [(0, 1)] + [(0, None)] * n
    return linprog(objective, np.array(rows), limits, bounds=bounds).fun
