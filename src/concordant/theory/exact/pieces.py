"""Losses with corners in exact arithmetic: sums of weight * max over pieces of constant + slope . scores."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from concordant.metrics.metric import Metric
from concordant.surrogates.margins import Margin
from concordant.surrogates.margins import hinge as plain_hinge
from concordant.surrogates.orders import ListwiseHinge
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.position import PositionHinge
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import BITS, Enclosure, Number, exact, high, low
from concordant.theory.exact.formulas import Order
from concordant.theory.exact.gains import check_known, gains
from concordant.theory.exact.labels import ExactLabel, fraction
from concordant.theory.exact.pairs import label_pairs
from concordant.theory.exact.targets import targets, told
from concordant.theory.exact.values import order_value

__all__ = ["Piece", "Pieces", "Term", "expected_terms", "label_terms", "polyhedral"]


class Piece(NamedTuple):
    """The function constant + slope . scores."""

    constant: Number
    slope: tuple[Fraction, ...]


Pieces: TypeAlias = tuple[Piece, ...]


class Term(NamedTuple):
    """A weight times the largest of the pieces."""

    weight: Number
    pieces: Pieces


def polyhedral(surrogate: Any) -> bool:
    """Tell whether the loss is made of flat pieces that are listed here."""
    kind = type(surrogate)
    if kind in (Pairwise, Preorder):
        return type(surrogate.margin) is Margin and surrogate.margin.code == plain_hinge.code
    if kind is ListwiseHinge:
        return surrogate.mode in ("max", "sum")
    return kind is PositionHinge


def expected_terms(
    metric: Metric, surrogate: Surrogate, labels: Sequence[ExactLabel], probs: Sequence[Fraction]
) -> list[Term]:
    """Give the terms of the expected loss."""
    weights: dict[Pieces, Number] = defaultdict(Fraction)
    for label, prob in zip(labels, probs, strict=True):
        for weight, pieces in label_terms(metric, surrogate, label) if prob else ():
            weights[pieces] = exact(weights[pieces] + prob * weight)
    return [Term(weight, pieces) for pieces, weight in weights.items()]


@lru_cache(maxsize=2**13)
def label_terms(metric: Metric, surrogate: Surrogate, label: ExactLabel) -> tuple[Term, ...]:
    """Give the terms of the loss under one label."""
    if type(surrogate) is PositionHinge:
        return position_terms(metric, surrogate, label)
    if type(surrogate) is ListwiseHinge:
        return order_terms(surrogate, label)
    pairs = label_pairs(metric, surrogate, label)
    return tuple(Term(weight, hinge(label.n_items, i, j, Fraction(1))) for (i, j), weight in pairs.items())


def hinge(n_items: int, i: int, j: int, margin: Fraction) -> Pieces:
    """max(0, margin - (s_i - s_j))."""
    slope = [Fraction()] * n_items
    slope[i], slope[j] = Fraction(-1), Fraction(1)
    return Piece(Fraction(), (Fraction(),) * n_items), Piece(margin, tuple(slope))


def position_terms(metric: Metric, surrogate: Any, label: ExactLabel) -> tuple[Term, ...]:
    """max(0, m/y_i - m/y_j - (s_i - s_j)) for rank labels y_i < y_j, of m levels, 1 the best."""
    grades = told(metric, surrogate, label)
    levels = sorted({fraction(grade) for grade in grades}, reverse=True)  # type: ignore[arg-type]
    ranks = [Fraction(1 + levels.index(grade)) for grade in grades]  # type: ignore[arg-type]
    n, m = label.n_items, len(levels)
    pairs = [(i, j) for i in range(n) for j in range(n) if ranks[i] < ranks[j]]
    counts = {"sum": 1, "pairs": len(pairs), "all_pairs": n * (n - 1) // 2}
    share = Fraction(1, max(counts[surrogate.reduction], 1))
    return tuple(Term(share, hinge(n, i, j, m / ranks[i] - m / ranks[j])) for i, j in pairs)


def order_terms(surrogate: Any, label: ExactLabel) -> tuple[Term, ...]:
    """Orders that invert labels: what they lose, less what F is smaller there than where labels allow.

    F is 2/(n(n - 1)) times the sum over pairs of different labels of the score above less that below.
    """
    levels, n = order_levels(surrogate.metric, label), label.n_items
    lean = {order: leaning(order, levels) for order in itertools.permutations(range(n))}
    gold = tuple(sorted(range(n), key=lambda item: -levels[item]))
    wrong = [o for o in lean if any(levels[i] < levels[j] for i, j in itertools.pairwise(o))]
    nothing = Piece(Fraction(), (Fraction(),) * n)
    largest = {nothing.slope: nothing.constant}
    terms = []
    for order in wrong:
        slope = tuple(
            Fraction(2, n * (n - 1)) * (a - b) for a, b in zip(lean[order], lean[gold], strict=True)
        )
        lost = loss(surrogate.metric, label, order, gold)
        terms.append(Term(Fraction(1), (nothing, Piece(lost, slope))))
        largest[slope] = larger(lost, largest.get(slope, lost))
    if surrogate.mode == "sum":
        return tuple(terms)
    return (Term(Fraction(1), tuple(Piece(constant, slope) for slope, constant in largest.items())),)


def larger(one: Number, two: Number) -> Number:
    """Give the larger of two numbers."""
    return exact(Enclosure(max(low(one), low(two)), max(high(one), high(two))))


def order_levels(metric: Any, label: ExactLabel) -> list[Fraction]:
    """Number the labels as the metric tells them apart: by gains, relevance or targets."""
    check_known(metric)
    seen = (
        targets(metric, label)
        if metric.name not in ("dcg", "ndcg", "eru", "p")
        else gains(metric, label, BITS)
    )
    if metric.name == "ndcg" and metric.convention.short_list == "zero" and label.n_items < (metric.k or 0):
        return [Fraction()] * label.n_items
    ranked = {value: rank for rank, value in enumerate(sorted(set(seen), key=high))}
    return [Fraction(ranked[value]) for value in seen]


def leaning(order: Order, levels: Sequence[Fraction]) -> list[int]:
    """Give, by item, the items of other labels below it less those above it."""
    lean = [0] * len(order)
    for above, below in itertools.combinations(order, 2):
        if levels[above] != levels[below]:
            lean[above], lean[below] = lean[above] + 1, lean[below] - 1
    return lean


def loss(metric: Any, label: ExactLabel, order: Order, gold: Order) -> Number:
    """Give what an order loses against one that the labels allow."""
    gap = order_value(metric, label, gold) - order_value(metric, label, order)
    return exact(gap if metric.greater_is_better else -gap)
