"""Metrics in exact arithmetic, from their definitions: the value of an order, the best one, and regret.

>>> import numpy as np
>>> from concordant.metrics import metric
>>> intents = (np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0]))
>>> half, together, apart = (Fraction(1, 2), Fraction(1, 2)), (0, 1, 2, 3), (0, 2, 1, 3)
>>> ap = metric("ap")
>>> expected_value(ap, intents, half, apart) - expected_value(ap, intents, half, together)
Fraction(-1, 24)
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from concordant.exceptions import LengthMismatchError, ParameterError
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import Label
from concordant.theory.exact.enclosure import BITS, Enclosure, Number, exact, high, low, sign, total
from concordant.theory.exact.formulas import FORMULAS, Order
from concordant.theory.exact.gains import check_known
from concordant.theory.exact.labels import ExactLabel, fraction, read

__all__ = [
    "Order",
    "best_orders",
    "best_value",
    "compatible_orders",
    "every_value",
    "expected_value",
    "mean_value",
    "order_value",
    "regret",
]

MAX_ITEMS = 7  # 7! = 5,040 orders: the most that are looked at one by one
PRECISIONS = (BITS, 4 * BITS)  # tried in turn until a sign is certain


def order_value(metric: Metric, label: Label | ExactLabel, order: Sequence[int], bits: int = BITS) -> Number:
    """Give the metric of an order; where the label leaves it undefined, 0 or what the convention fills in.

    Parameters
    ----------
    metric
        One of rankings. A gain or discount that is a function has no exact value, nor has a metric of the
        caller's own class: ParameterError.
    label
        The label of one query.
    order
        All items, best first, counted from 0.
    bits
        Of precision, where logarithms or roots enter.
    """
    seen = read(label)
    if sorted(order) != list(range(seen.n_items)):
        raise ParameterError("order", tuple(order), f"each of the items 0 to {seen.n_items - 1} once")
    return valued(metric, seen, tuple(int(item) for item in order), bits)


@lru_cache(maxsize=2**15)
def valued(metric: Metric, label: ExactLabel, order: Order, bits: int) -> Number:
    """Give the value of a checked order."""
    if metric.name not in FORMULAS:
        raise ParameterError("metric", str(metric), f"one of {', '.join(FORMULAS)}")
    check_known(metric)
    value = FORMULAS[metric.name](metric, label, order, bits)
    if value is not None:
        return value
    filled = metric.normalised and not isinstance(metric.empty_rule, str)
    return fraction(float(metric.empty_rule)) if filled else Fraction()


def expected_value(
    metric: Metric,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[Fraction],
    order: Sequence[int],
    bits: int = BITS,
) -> Number:
    """Give the expected metric of an order, under labels with these probabilities."""
    if len(labels) != len(probs):
        raise LengthMismatchError("probs", len(probs), len(labels), "labels")
    return total(
        prob * order_value(metric, label, order, bits)
        for label, prob in zip(labels, probs, strict=True)
        if prob
    )


def compatible_orders(scores: Sequence[Number]) -> list[Order]:
    """Give all orders in which no score stands above one that is known to be higher.

    >>> compatible_orders([Fraction(1), Fraction(2), Fraction(1)])
    [(1, 0, 2), (1, 2, 0)]
    """
    check_size(len(scores))
    items = range(len(scores))
    higher = {(i, j) for i in items for j in items if low(scores[i]) > high(scores[j])}
    orders = itertools.permutations(items)
    return [
        order for order in orders if higher.isdisjoint((j, i) for i, j in itertools.combinations(order, 2))
    ]


def check_size(n_items: int) -> None:
    """Refuse queries with too many orders."""
    if n_items > MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"at most {MAX_ITEMS}: all orders are looked at")


def mean_value(
    metric: Metric,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[Fraction],
    scores: Sequence[Number],
    bits: int = BITS,
) -> Number:
    """Give the expected metric of sorting by scores: the mean over all orders that exact ones allow.

    Where enclosed scores leave open which is higher, it is somewhere between the values of these orders.
    """
    orders = compatible_orders(scores)
    values = [expected_value(metric, labels, probs, order, bits) for order in orders]
    if any(isinstance(score, Enclosure) for score in scores):
        return exact(Enclosure(min(map(low, values)), max(map(high, values))))
    return exact(total(values) / Fraction(len(orders)))


def best_value(
    metric: Metric, labels: Sequence[Label | ExactLabel], probs: Sequence[Fraction], bits: int = BITS
) -> tuple[tuple[Order, ...], Number]:
    """Give the orders that are not proven worse than another, and the best expected value.

    Without irrational numbers these are exactly the best orders.
    """
    values = every_value(metric, labels, probs, bits)
    orders, way = best_orders(metric, values), 1 if metric.greater_is_better else -1
    known = [exact(way * values[order]) for order in orders]
    best = Enclosure(max(map(low, known)), max(map(high, known)))
    return tuple(orders), exact(way * best)


def best_orders(metric: Metric, values: Mapping[Order, Number]) -> list[Order]:
    """Give the orders that are not proven worse than another: where values are fractions, the best."""
    way = 1 if metric.greater_is_better else -1
    least = max(low(way * value) for value in values.values())
    return sorted(order for order, value in values.items() if high(way * value) >= least)


def every_value(
    metric: Metric, labels: Sequence[Label | ExactLabel], probs: Sequence[Fraction], bits: int = BITS
) -> dict[Order, Number]:
    """Give the expected value of every order."""
    n_items = read(labels[0]).n_items
    check_size(n_items)
    seen = tuple(read(label) for label in labels)
    orders = itertools.permutations(range(n_items))
    return {order: expected_value(metric, seen, probs, order, bits) for order in orders}


def regret(
    metric: Metric,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[Fraction],
    scores: Sequence[Number],
) -> Number:
    """Give how much worse than the best order it is to sort by exact scores; never negative.

    A sign of 1 proves it worse. It is refined until the sign is certain, or given as it is where that needs
    more than 256 bits.

    >>> import numpy as np
    >>> from concordant.metrics import metric
    >>> labels, probs = (np.array([1.0, 0.0]), np.array([0.0, 1.0])), (Fraction(3, 4), Fraction(1, 4))
    >>> regret(metric("p@1"), labels, probs, [Fraction(1), Fraction(2)])
    Fraction(1, 2)
    """
    orders = set(compatible_orders(scores))
    gap: Number = Fraction()
    for bits in PRECISIONS:
        best, value = best_value(metric, labels, probs, bits)
        if orders == set(best) and len(best) == 1:
            return Fraction()
        gap = value - mean_value(metric, labels, probs, scores, bits)
        gap = gap if metric.greater_is_better else -gap
        if sign(gap) is not None:
            break
    return exact(Enclosure(max(low(gap), Fraction()), high(gap)))
