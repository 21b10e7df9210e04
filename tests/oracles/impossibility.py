"""No standardization exists: definitions, typed naively."""

import itertools
from fractions import Fraction

from tests.oracles.metrics import compatible_orders
from tests.oracles.regret import expected_over_labels


def weak_orders(n):
    """All rankings of n items with ties, as scores 0, 1, ... without gaps."""
    vectors = itertools.product(range(n), repeat=n)
    return [scores for scores in vectors if set(scores) == set(range(len(set(scores))))]


def best_orders(orders, worth):
    """The orders of the largest worth."""
    values = [worth(list(order)) for order in orders]
    return {order for order, value in zip(orders, values, strict=True) if value >= max(values) - 1e-9}


def surviving_patterns(value, space, labels, probs, *, greater=True):
    """How E r may rank the items at a distribution, as far as it and a little of one more label tell.

    All orders that the ranking allows are best; and for each label z of the space some way to break ties
    allows only orders that are best for z among those.
    """
    n, way = len(labels[0]), 1 if greater else -1
    orders, patterns = list(itertools.permutations(range(n))), weak_orders(n)
    best = best_orders(orders, lambda order: way * expected_over_labels(value, labels, probs, order))
    allowed = {scores: {tuple(order) for order in compatible_orders(scores)} for scores in patterns}
    after = [best_orders(sorted(best), lambda order: way * (value(z, order) or 0.0)) for z in space]  # noqa: B023

    def breaks_ties(finer, scores):
        pairs = itertools.permutations(range(n), 2)
        return all(finer[i] > finer[j] for i, j in pairs if scores[i] > scores[j])

    def survives(scores):
        finer = [other for other in patterns if breaks_ties(other, scores)]
        return allowed[scores] <= best and all(any(allowed[f] <= left for f in finer) for left in after)

    return [scores for scores in patterns if survives(scores)]


def misleads(value, space, probs, r, share, *, greater=True):
    """True if sorting by E r may be suboptimal at a distribution, or with a share of one label mixed in.

    `probs` and `r` have one entry per label of the space.
    """
    n, way = len(space[0]), 1 if greater else -1
    orders = list(itertools.permutations(range(n)))
    mixed = [[(1 - share) * p + share * (k == z) for k, p in enumerate(probs)] for z in range(len(space))]
    for weights in [probs, *mixed]:
        best = best_orders(orders, lambda order: way * expected_over_labels(value, space, weights, order))  # noqa: B023
        scores = [sum(p * row[i] for p, row in zip(weights, r, strict=True)) for i in range(n)]
        if not {tuple(order) for order in compatible_orders(scores)} <= best:
            return True
    return False


def tipping_shares(first, second):
    """The p in (0, 1) at which lines p * one + (1 - p) * other of different slope are both the highest."""
    lines = list(zip(first, second, strict=True))
    shares = set()
    for (a, b), (c, d) in itertools.combinations(lines, 2):
        if a - b != c - d:
            p = Fraction(d - b, (a - b) - (c - d))
            if 0 < p < 1 and p * a + (1 - p) * b == max(p * x + (1 - p) * y for x, y in lines):
                shares.add(p)
    return sorted(shares)
