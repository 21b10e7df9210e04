"""Metrics in exact arithmetic, from their definitions: the value of an order, the best order, and regret.

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
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from concordant._base.validate import list_words
from concordant.data.synthetic.distribution import Label
from concordant.exceptions import LabelError, LengthMismatchError, ParameterError
from concordant.metrics.metric import Metric
from concordant.theory.exact.enclosure import (
    BITS,
    Enclosure,
    Number,
    exact,
    high,
    low,
    round_outward,
    sign,
    total,
)
from concordant.theory.exact.exact_labels import (
    ExactLabel,
    Labels,
    Probs,
    check_library_metric,
    discounts,
    fraction,
    gains,
    ideal,
    read,
    relevance,
    stop_probabilities,
    sum_discounted,
)

# The value of an order under one label, by each metric's definition, in exact arithmetic.

Order: TypeAlias = tuple[int, ...]
"""Items, best first, counted from 0."""

Formula: TypeAlias = Callable[[Any, ExactLabel, Order, int], Number | None]
"""Metric, label, order and bits of precision -> value; None where the metric is undefined."""


def additive(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Value of dcg, p and eru: the sum of gain times discount."""
    worth = gains(metric, label, bits)
    if not any(sign(gain) for gain in worth):
        return None
    return sum_discounted([worth[item] for item in order], discounts(metric, label.n_items, bits))


def _normalised(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Value of ndcg: the sum of gain times discount, over that of the best order."""
    value = additive(metric, label, order, bits)
    if value is None or (metric.convention.short_list == "zero" and label.n_items < (metric.k or 0)):
        return None if value is None else Fraction()
    return round_outward(value / ideal(metric, label, bits), bits)


def average_precision(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Sum of (relevant items at or above)/position over relevant items, over the convention's denominator."""
    del bits
    relevant, rule = relevance(metric, label), metric.convention.ap_denominator
    within = label.n_items if metric.k is None or rule == "uncut" else metric.k
    if not any(relevant):
        return None
    relevant_so_far, value = Fraction(), Fraction()
    for position, item in enumerate(order[:within], start=1):
        relevant_so_far += relevant[item]
        value += relevant[item] * relevant_so_far / position
    number = sum(relevant, Fraction())
    divisor = {"found": relevant_so_far, "min": min(number, within)}.get(rule, number)
    return value / divisor if divisor else Fraction()


def _cascade(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Value of rr and err: the mean of 1/position over where the user stops."""
    stops = stop_probabilities(metric, label, bits)
    if not any(sign(stop) for stop in stops):
        return None
    within = label.n_items if metric.k is None else metric.k
    value: Number = Fraction()
    reaches: Number = Fraction(1)
    for position, item in enumerate(order[:within], start=1):
        value = value + reaches * stops[item] / position
        reaches = reaches * (1 - stops[item])
    return exact(value)


def _preference_pairs(metric: Any, label: ExactLabel, bits: int) -> list[tuple[int, int, Number]]:
    """Return (better, worse, weight) of each preference; grades weigh 1 (pd) or their gains (wpd)."""
    if label.kind == "preferences":
        return list(label.pairs)
    grades, items = label.graded(metric), range(label.n_items)
    pairs = [(i, j) for i in items for j in items if grades[i] > grades[j]]
    if metric.name == "pd":
        return [(i, j, Fraction(1)) for i, j in pairs]
    worth = gains(metric, label, bits)
    return [(i, j, exact(worth[i] - worth[j])) for i, j in pairs]


def disagreement(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Value of pd and wpd: the weight of the preferences whose better item stands below."""
    position = {item: number for number, item in enumerate(order)}
    pairs = _preference_pairs(metric, label, bits)
    return total(weight for i, j, weight in pairs if position[i] > position[j]) if pairs else None


def area(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Value of auc: the share of the pairs (relevant, irrelevant) in the right order."""
    del bits
    relevant = relevance(metric, label)
    pairs = sum(relevant) * (label.n_items - sum(relevant))
    right = sum(relevant[i] * (1 - relevant[j]) for n, i in enumerate(order) for j in order[n + 1 :])
    return Fraction(right, pairs) if pairs else None


def _order_differs(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Value of zero_one: 1 unless the order is the observed order."""
    del bits
    if label.kind != "permutations":
        raise LabelError(f"{metric} reads permutations, not {label.kind}", "pass Permutations.")
    return Fraction(order != label.order)


FORMULAS: Mapping[str, Formula] = {
    "dcg": additive,
    "ndcg": _normalised,
    "p": additive,
    "eru": additive,
    "ap": average_precision,
    "rr": _cascade,
    "err": _cascade,
    "pd": disagreement,
    "wpd": disagreement,
    "auc": area,
    "zero_one": _order_differs,
}


MAX_ITEMS = 7  # 7! = 5,040 orders: the most that are enumerated
PRECISIONS = (BITS, 4 * BITS)  # tried in turn until a sign is certain


def order_value(metric: Metric, label: Label | ExactLabel, order: Sequence[int], bits: int = BITS) -> Number:
    """Compute the metric of an order; where the label leaves it undefined, 0 or the convention's value.

    Parameters
    ----------
    metric
        A metric of rankings. ParameterError if its gain or discount is a function, or if it is of a user's
        class: these have no exact values.
    label
        The label of one query.
    order
        All items, best first, counted from 0.
    bits
        Bits of precision, where logarithms or roots enter.
    """
    exact_label = read(label)
    if sorted(order) != list(range(exact_label.n_items)):
        raise ParameterError("order", tuple(order), f"a permutation of 0 to {exact_label.n_items - 1}")
    return _checked_value(metric, exact_label, tuple(int(item) for item in order), bits)


@lru_cache(maxsize=2**15)
def _checked_value(metric: Metric, label: ExactLabel, order: Order, bits: int) -> Number:
    if metric.name not in FORMULAS:
        raise ParameterError("metric", str(metric), list_words(FORMULAS))
    check_library_metric(metric)
    value = FORMULAS[metric.name](metric, label, order, bits)
    if value is not None:
        return value
    filled = metric.normalised and not isinstance(metric.empty_rule, str)
    return fraction(float(metric.empty_rule)) if filled else Fraction()


def expected_value(
    metric: Metric, labels: Labels, probs: Probs, order: Sequence[int], bits: int = BITS
) -> Number:
    """Compute the expected metric of an order, under labels with these probabilities."""
    if len(labels) != len(probs):
        raise LengthMismatchError("probs", len(probs), len(labels), "labels")
    cases = zip(labels, probs, strict=True)
    return total(prob * order_value(metric, label, order, bits) for label, prob in cases if prob)


def compatible_orders(scores: Sequence[Number]) -> list[Order]:
    """Return all orders in which no score stands above a score that is known to be higher.

    >>> compatible_orders([Fraction(1), Fraction(2), Fraction(1)])
    [(1, 0, 2), (1, 2, 0)]
    """
    _check_size(len(scores))
    items = range(len(scores))
    higher = {(i, j) for i in items for j in items if low(scores[i]) > high(scores[j])}
    orders = itertools.permutations(items)
    return [
        order for order in orders if higher.isdisjoint((j, i) for i, j in itertools.combinations(order, 2))
    ]


def _check_size(n_items: int) -> None:
    if n_items > MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"at most {MAX_ITEMS}")


def mean_value(
    metric: Metric, labels: Labels, probs: Probs, scores: Sequence[Number], bits: int = BITS
) -> Number:
    """Compute the expected metric of sorting by scores: the mean over all orders that exact scores allow.

    Where enclosed scores leave open which is higher, the result lies between the values of these orders.
    """
    orders = compatible_orders(scores)
    values = [expected_value(metric, labels, probs, order, bits) for order in orders]
    if any(isinstance(score, Enclosure) for score in scores):
        return exact(Enclosure(min(map(low, values)), max(map(high, values))))
    return exact(total(values) / Fraction(len(orders)))


def best_value(
    metric: Metric, labels: Labels, probs: Probs, bits: int = BITS
) -> tuple[tuple[Order, ...], Number]:
    """Return the orders that are not proven worse than another, and the best expected value.

    Without irrational numbers these are exactly the best orders.
    """
    values = every_value(metric, labels, probs, bits)
    orders, way = best_orders(metric, values), 1 if metric.greater_is_better else -1
    signed_values = [exact(way * values[order]) for order in orders]
    best = Enclosure(max(map(low, signed_values)), max(map(high, signed_values)))
    return tuple(orders), exact(way * best)


def best_orders(metric: Metric, values: Mapping[Order, Number]) -> list[Order]:
    """Return the orders that are not proven worse than another: where values are fractions, the best."""
    way = 1 if metric.greater_is_better else -1
    least = max(low(way * value) for value in values.values())
    return sorted(order for order, value in values.items() if high(way * value) >= least)


def every_value(metric: Metric, labels: Labels, probs: Probs, bits: int = BITS) -> dict[Order, Number]:
    """Compute the expected value of every order."""
    n_items = read(labels[0]).n_items
    _check_size(n_items)
    exact_labels = tuple(read(label) for label in labels)
    orders = itertools.permutations(range(n_items))
    return {order: expected_value(metric, exact_labels, probs, order, bits) for order in orders}


def regret(metric: Metric, labels: Labels, probs: Probs, scores: Sequence[Number]) -> Number:
    """Compute the regret of sorting by exact scores, compared with the best order; never negative.

    A sign of 1 proves a regret. Precision is raised until the sign is certain, up to 256 bits.

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
