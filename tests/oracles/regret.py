"""Exact regret on a known distribution: definitions, typed naively."""

import itertools
import math


def expected_over_labels(value, labels, probs, order):
    """Mean over labels of `value(label, order)`; a label that leaves it undefined (None) adds nothing."""
    return math.fsum(p * (value(label, order) or 0.0) for label, p in zip(labels, probs, strict=True))


def best_expected(value, labels, probs, n, *, greater=True):
    """Best mean over labels that any order of n items attains."""
    orders = itertools.permutations(range(n))
    values = [expected_over_labels(value, labels, probs, list(order)) for order in orders]
    return max(values) if greater else min(values)


def plackett_luce(scores, order):
    """Probability of drawing this order, one item after another, proportionally to exp(score)."""
    value, rest = 1.0, list(order)
    while rest:
        value *= math.exp(scores[rest[0]]) / math.fsum(math.exp(scores[i]) for i in rest)
        rest.pop(0)
    return value


def mallows_weight(scores, order, theta):
    """exp(-theta * number of pairs that stand against the scores)."""
    wrong = sum(scores[a] < scores[b] for a, b in itertools.combinations(order, 2))
    return math.exp(-theta * wrong)
