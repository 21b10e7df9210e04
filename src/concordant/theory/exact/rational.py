"""Losses whose derivatives are rational functions of the weights x_i = exp(s_i), in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from concordant.metrics.metric import Metric
from concordant.surrogates.listwise import PlackettLuce, Softmax
from concordant.surrogates.margins import EXPONENTIAL, LOGISTIC, Margin
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import Number, fractions, high, low, sign
from concordant.theory.exact.labels import ExactLabel
from concordant.theory.exact.linear import nearest, transposed
from concordant.theory.exact.pairs import connected, expected_pairs, label_pairs
from concordant.theory.exact.targets import told
from concordant.types import FloatArray

__all__ = ["derivatives", "only_one", "rational", "repaired", "same_order"]

FARTHEST = 30.0  # scores further apart are on their way to infinity
APART = 1e-6  # scores nearer than this may be equal
DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 50, 100, 1000, 10**4, 10**5, 10**6)


def rational(surrogate: Any) -> bool:
    """Tell whether the derivatives are rational functions of x."""
    kind = type(surrogate)
    if kind in (Pairwise, Preorder):
        return type(surrogate.margin) is Margin and surrogate.margin.kind in (LOGISTIC, EXPONENTIAL)
    return kind in (Softmax, PlackettLuce)


def derivatives(
    metric: Metric, surrogate: Surrogate, label: ExactLabel, x: Sequence[Fraction]
) -> list[Number]:
    """Give the derivative of the loss under one label in each score, at s = log x."""
    if type(surrogate) is Softmax:
        return softmax(told(metric, surrogate, label), x)
    if type(surrogate) is PlackettLuce:
        return plackett_luce(label, x)
    return of_pairs(metric, surrogate, label, x)


def softmax(targets: Sequence[Number], x: Sequence[Fraction]) -> list[Number]:
    """- sum of targets * log softmax: the sum of the targets times the share of x, less the target."""
    whole = sum(x, Fraction())
    return [
        sum(targets, Fraction()) * (share / whole) - target for share, target in zip(x, targets, strict=True)
    ]


def plackett_luce(label: ExactLabel, x: Sequence[Fraction]) -> list[Number]:
    """Items are chosen in the observed order, each with the share of its x among those left."""
    grad: list[Number] = [Fraction(-1)] * len(x)
    left = list(label.order)
    while left:
        whole = sum((x[item] for item in left), Fraction())
        for item in left:
            grad[item] = grad[item] + x[item] / whole
        left.pop(0)
    return grad


def of_pairs(metric: Metric, surrogate: Any, label: ExactLabel, x: Sequence[Fraction]) -> list[Number]:
    """The slope of phi is - x_j/(x_i + x_j) for the logistic margin, - x_j/x_i for the exponential one."""
    grad: list[Number] = [Fraction()] * len(x)
    logistic = surrogate.margin.kind == LOGISTIC
    for (i, j), weight in label_pairs(metric, surrogate, label).items():
        slope = -weight * (x[j] / (x[i] + x[j] if logistic else x[i]))
        grad[i], grad[j] = grad[i] + slope, grad[j] - slope
    return grad


def only_one(
    metric: Metric, surrogate: Surrogate, labels: Sequence[ExactLabel], probs: Sequence[Fraction]
) -> bool:
    """Tell whether the expected loss is strictly convex in score differences."""
    n = labels[0].n_items
    if type(surrogate) is PlackettLuce:
        return True  # the first choice is among all items
    if type(surrogate) is Softmax:
        return any(sign(target) == 1 for label in labels for target in told(metric, surrogate, label))
    pairs = expected_pairs(metric, surrogate, labels, probs)
    return connected({edge for i, j in pairs for edge in ((i, j), (j, i))}, n)


def repaired(
    metric: Metric,
    surrogate: Surrogate,
    labels: Sequence[ExactLabel],
    probs: Sequence[Fraction],
    near: FloatArray,
) -> Iterator[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """Give probabilities > 0 near these, and weights x near exp(near) at which all derivatives are exactly 0.

    The derivatives are linear in the probabilities: x is rounded, from short fractions on, and the nearest
    probabilities are found by solving.
    """
    if float(np.ptp(near)) > FARTHEST:
        return
    tried = set[tuple[Fraction, ...]]()
    for most in DENOMINATORS:
        x = tuple(Fraction(float(value)).limit_denominator(most) for value in np.exp(near - near.min()))
        if x in tried or not same_order(x, near):
            continue
        tried.add(x)
        columns = [fractions(derivatives(metric, surrogate, label, x)) for label in labels]
        rows = [*transposed(columns), [Fraction(1)] * len(labels)]
        found = nearest(rows, [Fraction()] * len(x) + [Fraction(1)], probs)
        if found is not None and all(sign(prob) == 1 for prob in found):
            yield tuple(fractions(found)), x


def same_order(numbers: Sequence[Number], near: FloatArray) -> bool:
    """Tell whether numbers keep the order of scores that differ."""
    items = range(len(numbers))
    apart = [(i, j) for i in items for j in items if near[i] - near[j] > APART]
    return all(low(numbers[i]) > high(numbers[j]) for i, j in apart)
