"""What an order is worth under one label, by each metric's definition, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from concordant.exceptions import LabelError
from concordant.theory.exact.enclosure import Number, exact, rounded, sign, total
from concordant.theory.exact.gains import discounted, discounts, gains, ideal, relevance, stopping
from concordant.theory.exact.labels import ExactLabel

__all__ = ["FORMULAS", "Order", "preferred"]

Order: TypeAlias = tuple[int, ...]
"""Items, best first, counted from 0."""

Formula: TypeAlias = Callable[[Any, ExactLabel, Order, int], Number | None]
"""Metric, label, order and bits of precision -> value; None where the metric is undefined."""


def additive(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Sum of gain times discount."""
    worth = gains(metric, label, bits)
    if not any(sign(gain) for gain in worth):
        return None
    return discounted([worth[item] for item in order], discounts(metric, label.n_items, bits))


def normalised(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Sum of gain times discount, over that of the best order."""
    value = additive(metric, label, order, bits)
    if value is None or (metric.convention.short_list == "zero" and label.n_items < (metric.k or 0)):
        return None if value is None else Fraction()
    return rounded(value / ideal(metric, label, bits), bits)


def average_precision(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Sum over the relevant items of (relevant at or above)/place, over what the convention divides by."""
    del bits
    relevant, rule = relevance(metric, label), metric.convention.ap_denominator
    within = label.n_items if metric.k is None or rule == "uncut" else metric.k
    if not any(relevant):
        return None
    found, value = Fraction(), Fraction()
    for place, item in enumerate(order[:within], start=1):
        found += relevant[item]
        value += relevant[item] * found / place
    number = sum(relevant, Fraction())
    divisor = {"found": found, "min": min(number, within)}.get(rule, number)
    return value / divisor if divisor else Fraction()


def cascade(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Mean of 1/place over where the user stops."""
    stops = stopping(metric, label, bits)
    if not any(sign(stop) for stop in stops):
        return None
    within = label.n_items if metric.k is None else metric.k
    value: Number = Fraction()
    reaches: Number = Fraction(1)
    for place, item in enumerate(order[:within], start=1):
        value = value + reaches * stops[item] / place
        reaches = reaches * (1 - stops[item])
    return exact(value)


def preferred(metric: Any, label: ExactLabel, bits: int) -> list[tuple[int, int, Number]]:
    """Give (better, worse, weight) of each preference; grades prefer by 1 (pd) or by their gains (wpd)."""
    if label.kind == "preferences":
        return list(label.pairs)
    grades, items = label.graded(metric), range(label.n_items)
    pairs = [(i, j) for i in items for j in items if grades[i] > grades[j]]
    if metric.name == "pd":
        return [(i, j, Fraction(1)) for i, j in pairs]
    worth = gains(metric, label, bits)
    return [(i, j, exact(worth[i] - worth[j])) for i, j in pairs]


def disagreement(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Weight of the preferences whose better item stands below."""
    place = {item: number for number, item in enumerate(order)}
    pairs = preferred(metric, label, bits)
    return total(weight for i, j, weight in pairs if place[i] > place[j]) if pairs else None


def area(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """Share of the pairs (relevant, irrelevant) in the right order."""
    del bits
    relevant = relevance(metric, label)
    pairs = sum(relevant) * (label.n_items - sum(relevant))
    right = sum(relevant[i] * (1 - relevant[j]) for n, i in enumerate(order) for j in order[n + 1 :])
    return Fraction(right, pairs) if pairs else None


def differs(metric: Any, label: ExactLabel, order: Order, bits: int) -> Number | None:
    """1 unless the order is the observed one."""
    del bits
    if label.kind != "permutations":
        raise LabelError(f"{metric} reads permutations, not {label.kind}", "pass Permutations.")
    return Fraction(order != label.order)


FORMULAS: Mapping[str, Formula] = {
    "dcg": additive,
    "ndcg": normalised,
    "p": additive,
    "eru": additive,
    "ap": average_precision,
    "rr": cascade,
    "err": cascade,
    "pd": disagreement,
    "wpd": disagreement,
    "auc": area,
    "zero_one": differs,
}
