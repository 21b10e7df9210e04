"""Labels of one query as fractions, for the exact formulas.

>>> read(np.array([0.0, 0.1])).grades
(Fraction(0, 1), Fraction(1, 10))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from concordant.data.labels import Grades, Permutations, Preferences
from concordant.data.synthetic.distribution import Label
from concordant.exceptions import GradeError, LabelError, ParameterError
from concordant.metrics.parse import METRICS
from concordant.theory.exact.enclosure import Number, exact, log2, power2, round_outward, sign, total


@dataclass(frozen=True)
class ExactLabel:
    """A label of one query; equal labels are equal, and can be kept in tables."""

    kind: str  # "grades", "preferences" or "permutations"
    n_items: int
    grades: tuple[Fraction, ...] = ()  # of each item; of a permutation n + 1 - position; of preferences empty
    # (better, worse, weight) of preferences, each pair once, with a weight > 0; else empty
    pairs: tuple[tuple[int, int, Fraction], ...] = ()

    def graded(self, reader: object) -> tuple[Fraction, ...]:
        """Return the grades; raise if the label is not of grades."""
        if self.kind != "grades":
            raise LabelError(f"{reader} reads grades, not {self.kind}", "pass one grade per item.")
        return self.grades

    @property
    def order(self) -> tuple[int, ...]:
        """Items of a permutation, best first."""
        return tuple(sorted(range(self.n_items), key=lambda item: -self.grades[item]))


Labels: TypeAlias = Sequence[Label | ExactLabel]
"""The labels that one query may have."""

Probs: TypeAlias = Sequence[Fraction]
"""Their probabilities."""


def fraction(number: float | Fraction) -> Fraction:
    """Read a float as the shortest decimal that names it: 0.1 means 1/10.

    >>> fraction(0.1), fraction(2.0)
    (Fraction(1, 10), Fraction(2, 1))
    """
    return number if isinstance(number, Fraction) else Fraction(repr(float(number)))


def read(label: Label | Grades | ExactLabel) -> ExactLabel:
    """Read the label of one query as fractions."""
    if isinstance(label, ExactLabel):
        return label
    if isinstance(label, Preferences):
        weights: Counter[tuple[int, int]] = Counter()
        for i, j, weight in zip(label.better, label.worse, label.weights, strict=True):
            weights[int(i), int(j)] += fraction(weight)  # type: ignore[assignment]
        pairs = tuple((i, j, Fraction(weight)) for (i, j), weight in sorted(weights.items()) if weight)
        return ExactLabel("preferences", label.n_rows, pairs=pairs)
    if isinstance(label, Permutations):
        positions = [int(position) for position in label.positions]
        if sorted(positions) != list(range(1, len(positions) + 1)):
            raise LabelError(f"positions {positions} are not 1..{len(positions)}", "rank one query, no ties.")
        grades = tuple(Fraction(len(positions) + 1 - position) for position in positions)
        return ExactLabel("permutations", len(positions), grades)
    values = np.asarray(label.values if isinstance(label, Grades) else label, dtype=np.float64)
    if values.ndim != 1 or not (np.isfinite(values) & (values >= 0)).all():
        raise ParameterError("label", label, "one finite grade >= 0 per item")
    return ExactLabel("grades", len(values), tuple(fraction(value) for value in values))


# Gains, discounts and relevance of one query in exact arithmetic, by a metric's convention.

NAMED = "a name, not a function, for exact values"


def check_library_metric(metric: Any) -> None:
    """Raise if a metric is not of a class of this package: a subclass may be another metric."""
    if type(metric) is not METRICS.get(metric.name):
        raise ParameterError.because(
            f"Exact values need a metric class of concordant, got {metric} of class {type(metric).__name__}."
        )


def relevance(metric: Any, label: ExactLabel) -> list[Fraction]:
    """Return 1 for relevant items, 0 for others."""
    least = fraction(metric.convention.relevant_from)
    return [Fraction(grade >= least) for grade in label.graded(metric)]


def gains(metric: Any, label: ExactLabel, bits: int) -> list[Number]:
    """Return the gain of each item: max(y - v, 0) of eru, relevance of p, else the convention's gain."""
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
    """Return the discount of each position; 0 beyond the cutoff."""
    within = n_items if metric.k is None else min(metric.k, n_items)
    top_discounts = [discount(metric, position, n_items, bits) for position in range(1, within + 1)]
    return top_discounts + [Fraction()] * (n_items - within)


def discount(metric: Any, position: int, n_items: int, bits: int) -> Number:
    """Return the discount of a position: 1/log2(1 + position), or the metric's rule."""
    if metric.name == "p":
        short = metric.convention.precision_denominator == "min"
        return Fraction(1, min(metric.k, n_items) if short else metric.k)
    if metric.name == "eru":
        return exact(power2((1 - position) / (fraction(metric.w) - 1), bits))
    rule = metric.convention.discount
    if callable(rule):
        raise ParameterError("discount", rule, NAMED)
    return round_outward(1 / log2(max(position + (rule == "log2"), 2), bits), bits)


def sum_discounted(worth: Sequence[Number], weights: Sequence[Number]) -> Number:
    """Sum gain times discount over the positions."""
    return total(gain * weight for gain, weight in zip(worth, weights, strict=True))


def ideal(metric: Any, label: ExactLabel, bits: int) -> Number:
    """Return the best sum of gain times discount: highest grades first, as gains rise with the grade."""
    worth, grades = gains(metric, label, bits), label.grades
    order = sorted(range(label.n_items), key=lambda item: -grades[item])
    return sum_discounted([worth[item] for item in order], discounts(metric, label.n_items, bits))


def stop_probabilities(metric: Any, label: ExactLabel, bits: int) -> list[Number]:
    """Return the probability that a user of rr or err stops at each item."""
    if metric.name == "rr":
        return list(relevance(metric, label))
    grades, highest = label.graded(metric), metric.convention.max_grade
    if highest == "data":
        raise ParameterError("max_grade", highest, "a number for exact values")
    chances: list[Number] = list(grades)
    if highest != "probability":
        scale = exact(power2(-fraction(highest), bits))
        chances = [exact((power2(grade, bits) - 1) * scale) for grade in grades]
    for item, chance in enumerate(chances):
        if sign(1 - chance) == -1:
            hint = "set max_grade in the convention."
            raise GradeError(float(grades[item]), f"item {item}", "gives no probability", hint)
    return chances
