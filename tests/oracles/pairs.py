"""Pairs of items, all of them at once: definitions, typed naively."""

import itertools
import math

import numpy as np


def pair_row(groups, left, right, mean):
    """Features of one pair, group after group, feature after feature."""
    p = range(len(left))
    two = list(itertools.combinations(p, 2))
    columns = {
        "sum": [left[a] + right[a] for a in p],
        "product": [left[a] * right[a] for a in p],
        "absdiff": [abs(left[a] - right[a]) for a in p],
        "level": [mean[a] for a in p],
        "cross": [left[a] * right[b] + left[b] * right[a] for a, b in two],
        "difference": [left[a] - right[a] for a in p],
        "signed_square": [(left[a] - right[a]) * abs(left[a] - right[a]) for a in p],
        "context": [(left[a] - right[a]) * mean[a] for a in p],
        "signed_cross": [left[a] * right[b] - left[b] * right[a] for a, b in two],
    }
    return [value for name in groups for value in columns[name]]


def item_row(groups, item, mean):
    """Features of one item: its own, their squares, the means, the products of two, as far as groups say."""
    products = [item[a] * item[b] for a, b in itertools.combinations(range(len(item)), 2)]
    more = (list(mean) if "level" in groups else []) + (products if "cross" in groups else [])
    return [*item, *(value**2 for value in item), *more]


def shared_relevance(y, i, j):
    """y_i y_j / sum(y) of labels 0 and 1; 0 where none is relevant."""
    return y[i] * y[j] / max(sum(y), 1)


def net_weight(preferences, i, j):
    """Weight for i over j less that for j over i; (better, worse, weight) each."""
    signs = {(i, j): 1.0, (j, i): -1.0}
    return sum(weight * signs.get((better, worse), 0.0) for better, worse, weight in preferences)


def pair_table(X, queries, groups, target, shares, weights):
    """Features, targets and weights of all pairs, the later row left; `queries` are lists of rows."""
    rows, targets, counts = [], [], []
    for query, share in zip(queries, shares, strict=True):
        mean = [sum(X[i][a] for i in query) / len(query) for a in range(len(X[0]))] if query else []
        for i, j in itertools.combinations(range(len(query)), 2):
            left, right = query[j], query[i]
            rows.append(pair_row(groups, X[left], X[right], mean))
            targets.append(target(left, right))
            counts.append(share * weights[left] * weights[right] / math.comb(len(query), 2))
    return np.array(rows), np.array(targets), np.array(counts)


def weighted_ridge(rows, targets, counts, alpha, *, intercept, fit_scale):
    """Least squares with alpha/2 |w|^2 on scaled features, as one long system; weights and intercept.

    Columns are divided by their lengths, so that none is lost beside a longer one; constant ones are left
    out.
    """
    share = counts / counts.sum()
    means, level = (share @ rows, share @ targets) if intercept else (0 * rows[0], 0.0)
    spread = np.sqrt(share @ (rows - means) ** 2)
    varies = spread > 1e-9 * abs(means)
    scale = np.where(fit_scale & varies, spread, 1.0)
    roots = np.sqrt(counts)
    table = (rows - means) / scale * varies * roots[:, None]
    system = np.vstack((table, np.sqrt(alpha / 2) * np.eye(len(scale))))
    lengths = np.linalg.norm(system, axis=0)
    lengths[lengths == 0] = 1.0
    solution = np.linalg.lstsq(system / lengths, np.r_[(targets - level) * roots, 0 * scale], rcond=None)[0]
    coef = solution / lengths / scale
    return coef, level - means @ coef
