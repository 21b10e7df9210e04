"""Standardizations of one query: definitions, typed naively."""

import itertools
import math

from tests.oracles.metrics import dcg


def r_dcg(grades):
    return [2.0**g - 1 for g in grades]


def r_ndcg(grades, k=None):
    best = max(dcg(grades, list(order), k) for order in itertools.permutations(range(len(grades))))
    return [(2.0**g - 1) / best if best else 0.0 for g in grades]


def r_precision(grades, relevant_from=1):
    return [float(g >= relevant_from) for g in grades]


def r_eru(grades, v=0.0):
    return [max(g - v, 0.0) for g in grades]


def r_auc(grades, relevant_from=1):
    relevant = [float(g >= relevant_from) for g in grades]
    pairs = sum(relevant) * (len(relevant) - sum(relevant))
    return [y / pairs if pairs else 0.0 for y in relevant]


def r_pd(grades):
    """Of at most two different grades."""
    return [float(any(g > other for other in grades)) for g in grades]


def r_wpd(grades):
    return [2.0**g - 1 if len(set(grades)) > 1 else 0.0 for g in grades]


def r_ap(grades, relevant_from=1, most=math.inf):
    relevant = [float(g >= relevant_from) for g in grades]
    return [y / min(sum(relevant), most) if any(relevant) else 0.0 for y in relevant]


def net_weights(a):
    """Of a graph as a square list of lists, a[i][j] = weight of "i preferred to j"."""
    return [sum(a[i][k] - a[k][i] for k in range(len(a))) for i in range(len(a))]


def r_low_noise(a):
    largest = max((weight for row in a for weight in row), default=0.0)
    return [len(a) * largest + net for net in net_weights(a)]


def r_family(f, a):
    """f of the graph, raised by what makes its lowest number 0 if that is negative; 0 without preferences."""
    if not any(weight for row in a for weight in row):
        return [0.0] * len(a)
    values = f(a)
    return [value + max(-min(values), 0) for value in values]


def r_zero_one(positions):
    return [len(positions) + 1.0 - position for position in positions]
