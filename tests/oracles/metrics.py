"""Metrics of one query: definitions, typed naively."""

import itertools
import math


def compatible_orders(scores):
    """All orders of the retrieved items (score > -inf) in which no score rises."""
    values = sorted({s for s in scores if s > -math.inf}, reverse=True)
    groups = [[i for i, s in enumerate(scores) if s == value] for value in values]
    for pieces in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [item for piece in pieces for item in piece]


def expected(value_of_order, scores):
    """Mean of a function of the order over all orders compatible with the scores."""
    values = [value_of_order(order) for order in compatible_orders(scores)]
    return math.fsum(values) / len(values)


def gain(grade, kind="exp2"):
    return 2.0**grade - 1 if kind == "exp2" else grade


def discount(position, kind="log2"):
    if kind == "log2":
        return 1 / math.log2(1 + position)
    return 1.0 if position == 1 else 1 / math.log2(position)


def dcg(grades, order, k=None, kind="exp2", discount_kind="log2"):
    places = order[: k or len(order)]
    return sum(gain(grades[i], kind) * discount(p, discount_kind) for p, i in enumerate(places, 1))


def ndcg(grades, order, k=None, kind="exp2", discount_kind="log2"):
    best = max(range(len(grades)), key=lambda i: grades[i])
    if gain(grades[best], kind) == 0:
        return None
    ideal = sorted(range(len(grades)), key=lambda i: -grades[i])
    return dcg(grades, order, k, kind, discount_kind) / dcg(grades, ideal, k, kind, discount_kind)


def err(grades, order, k=None, max_grade=4):
    value, reach = 0.0, 1.0
    for position, i in enumerate(order[: k or len(order)], 1):
        stop = (2.0 ** grades[i] - 1) / 2.0**max_grade
        value += reach * stop / position
        reach *= 1 - stop
    return value


def precision(grades, order, k, relevant_from=1, denominator="k"):
    hits = sum(grades[i] >= relevant_from for i in order[:k])
    return hits / (k if denominator == "k" else min(k, len(grades)))


def ap(grades, order, k=None, relevant_from=1, denominator="relevant"):
    relevant = sum(g >= relevant_from for g in grades)
    if relevant == 0:
        return None
    cut = len(order) if k is None or denominator == "uncut" else k
    hits, total = 0, 0.0
    for position, i in enumerate(order[:cut], 1):
        if grades[i] >= relevant_from:
            hits += 1
            total += hits / position
    if denominator == "found":
        return total / hits if hits else 0.0
    if denominator == "min":
        return total / min(relevant, cut)
    return total / relevant


def rr(grades, order, k=None, relevant_from=1):
    for position, i in enumerate(order[: k or len(order)], 1):
        if grades[i] >= relevant_from:
            return 1 / position
    return 0.0


def eru(grades, order, v=0.0, w=5.0, k=None):
    places = enumerate(order[: k or len(order)], 1)
    return sum(max(grades[i] - v, 0) * 2 ** ((1 - p) / (w - 1)) for p, i in places)


def pd(weight, order):
    """`weight(i, j)`: what is paid when i, preferred, stands below j."""
    return sum(weight(i, j) for p, j in enumerate(order) for i in order[p + 1 :])


def auc(grades, order, relevant_from=1):
    relevant = [i for i in order if grades[i] >= relevant_from]
    rest = [i for i in order if grades[i] < relevant_from]
    if not relevant or not rest:
        return None
    return sum(order.index(i) < order.index(j) for i in relevant for j in rest) / (len(relevant) * len(rest))


def zero_one(positions, order):
    return float([positions[i] for i in order] != sorted(positions))
