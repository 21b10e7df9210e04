"""Gains, discounts and relevance of one query in exact arithmetic, as a metric's convention says."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from concordant.exceptions import GradeError, ParameterError
from concordant.metrics.parse import METRICS
from concordant.theory.exact.enclosure import Number, exact, log2, power2, rounded, sign, total
from concordant.theory.exact.labels import ExactLabel, fraction

__all__ = ["check_known", "discounted", "discounts", "gains", "ideal", "relevance", "stopping"]

NAMED = "one with a name: a function of the caller's has no exact values"


def check_known(metric: Any) -> None:
    """Refuse a metric that is not of the package's own classes: one that inherits may be another metric."""
    if type(metric) is not METRICS.get(metric.name):
        own = f"of a class of concordant, not {type(metric).__name__}: another class may be another metric"
        raise ParameterError("metric", str(metric), own)


def relevance(metric: Any, label: ExactLabel) -> list[Fraction]:
    """Give 1 for a relevant item, 0 for another."""
    least = fraction(metric.convention.relevant_from)
    return [Fraction(grade >= least) for grade in label.graded(metric)]


def gains(metric: Any, label: ExactLabel, bits: int) -> list[Number]:
    """Give what each item is worth: max(y - v, 0) of eru, relevance of p, else the convention's gain."""
    grades = label.graded(metric)
    if metric.name == "eru":
        return [max(grade - fraction(metric.v), Fraction()) for grade in grades]
    if metric.name == "p":
        return list(relevance(metric, label))
    if callable(metric.convention.gain):
        raise ParameterError("gain", metric.convention.gain, NAMED)
    if metric.convention.gain == "linear":
        return list(grades)
    return [exact(power2(grade, bits) - 1) for grade in grades]


def discounts(metric: Any, n_items: int, bits: int) -> list[Number]:
    """Give what a gain counts at each place; 0 beyond the cutoff."""
    within = n_items if metric.k is None else min(metric.k, n_items)
    seen = [discount(metric, place, n_items, bits) for place in range(1, within + 1)]
    return seen + [Fraction()] * (n_items - within)


def discount(metric: Any, place: int, n_items: int, bits: int) -> Number:
    """Give what a gain counts at this place: 1/log2(1 + place), or as the metric says."""
    if metric.name == "p":
        short = metric.convention.precision_denominator == "min"
        return Fraction(1, min(metric.k, n_items) if short else metric.k)
    if metric.name == "eru":
        return exact(power2((1 - place) / (fraction(metric.w) - 1), bits))
    rule = metric.convention.discount
    if callable(rule):
        raise ParameterError("discount", rule, NAMED)
    return rounded(1 / log2(max(place + (rule == "log2"), 2), bits), bits)


def discounted(worth: Sequence[Number], weights: Sequence[Number]) -> Number:
    """Sum of gain times discount over the places."""
    return total(gain * weight for gain, weight in zip(worth, weights, strict=True))


def ideal(metric: Any, label: ExactLabel, bits: int) -> Number:
    """Best sum of gain times discount: the highest grades first, as gains rise with the grade."""
    worth, grades = gains(metric, label, bits), label.grades
    order = sorted(range(label.n_items), key=lambda item: -grades[item])
    return discounted([worth[item] for item in order], discounts(metric, label.n_items, bits))


def stopping(metric: Any, label: ExactLabel, bits: int) -> list[Number]:
    """Give the probability that a user of rr or err stops at each item."""
    if metric.name == "rr":
        return list(relevance(metric, label))
    grades, highest = label.graded(metric), metric.convention.max_grade
    if highest == "data":
        raise ParameterError("max_grade", highest, "a number: the highest grade is that of no single label")
    chances: list[Number] = list(grades)
    if highest != "probability":
        scale = exact(power2(-fraction(highest), bits))
        chances = [exact((power2(grade, bits) - 1) * scale) for grade in grades]
    for item, chance in enumerate(chances):
        if sign(1 - chance) == -1:
            hint = "set max_grade in the convention."
            raise GradeError(float(grades[item]), f"item {item}", "gives no probability", hint)
    return chances
