"""Targets in exact arithmetic: the standardized labels that a surrogate reads, by their definitions.

>>> import numpy as np
>>> from concordant.metrics import metric
>>> targets(metric("ap"), np.array([1.0, 0.0, 1.0]))
(Fraction(1, 2), Fraction(0, 1), Fraction(1, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from concordant._base.validate import list_words
from concordant.data.synthetic.distribution import Label
from concordant.exceptions import LabelError, NoStandardizationError, ParameterError
from concordant.metrics.metric import Metric, check_assumption
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import BITS, Number, high, low, round_outward, sign, total
from concordant.theory.exact.exact_labels import (
    ExactLabel,
    Labels,
    Probs,
    check_library_metric,
    gains,
    ideal,
    read,
    relevance,
    stop_probabilities,
)

Rule: TypeAlias = Callable[[Any, ExactLabel, str | None, int], Sequence[Number]]
"""Metric, label, condition assumed and bits of precision -> one number per item."""


def targets(
    metric: Metric, label: Label | ExactLabel, assume: str | None = None, bits: int = BITS
) -> tuple[Number, ...]:
    """Compute one target >= 0 per item: `metrics.standardization.usable_targets` in exact arithmetic.

    That is r(y) for every distribution where the metric has such a standardization; else the standardization
    under the condition assumed, or under the metric's first condition; else the stand-in. All are 0 where the
    metric is undefined. Of pd on grades it is the stand-in that serves labels of three or more grades.
    """
    check_assumption(assume)
    return _standardized_targets(metric, read(label), assume, bits)


def surrogate_labels(metric: Metric, surrogate: Surrogate, label: Label | ExactLabel) -> tuple[Number, ...]:
    """Return what the surrogate reads of each item: its target, its grade or its position."""
    exact_label = read(label)
    if surrogate.reads == "targets":
        return targets(metric, exact_label)
    if surrogate.reads == "positions" and exact_label.kind == "permutations":
        return tuple(exact_label.n_items + 1 - grade for grade in exact_label.grades)
    has_grades = exact_label.kind == "grades" or (exact_label.kind == "permutations" and surrogate.ordinal)
    if surrogate.reads == "grades" and has_grades:
        return exact_label.grades
    problem = f"{surrogate.name} reads {surrogate.reads}, not {exact_label.kind}"
    raise LabelError(problem, "give labels it can read.")


def expected_targets(metric: Metric, labels: Labels, probs: Probs) -> tuple[Number, ...]:
    """Compute the expected target of each item."""
    columns = zip(*(targets(metric, label) for label in labels), strict=True)
    return tuple(total(p * t for p, t in zip(probs, column, strict=True)) for column in columns)


@lru_cache(maxsize=2**14)
def _standardized_targets(
    metric: Metric, label: ExactLabel, assume: str | None, bits: int
) -> tuple[Number, ...]:
    if metric.name not in RULES:
        raise ParameterError("metric", str(metric), list_words(RULES))
    check_library_metric(metric)
    return tuple(RULES[metric.name](metric, label, assume, bits))


def _check_served(metric: Metric, assume: str | None, *conditions: str) -> None:
    if assume is not None and assume not in conditions:
        problem = f"assume={assume!r} does not serve these labels"
        raise NoStandardizationError(str(metric), problem, "leave assume out.")


def _divide_each(values: Sequence[Number], divisor: Number, bits: int = BITS) -> list[Number]:
    """Divide each value; 0 where the divisor is 0."""
    return [round_outward(value / divisor, bits) if sign(divisor) else Fraction() for value in values]


def _where_mixed(values: Sequence[Number]) -> Sequence[Number]:
    """Return the values if two differ, else zeros: no pair counts then."""
    apart = max(map(low, values)) > min(map(high, values))
    return values if apart else [Fraction()] * len(values)


def worth(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Targets of additive metrics: the gains; for ndcg, over the best sum."""
    del assume
    values = gains(metric, label, bits)
    return _divide_each(values, ideal(metric, label, bits), bits) if metric.name == "ndcg" else values


def shares(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Targets of ap: relevance over the denominator of its convention."""
    del bits
    rule, cut = metric.convention.ap_denominator, metric.k is not None
    if metric.k != 1 or rule == "uncut":
        _check_served(metric, assume, *(() if cut and rule == "found" else ("P_reinforce",)))
    relevant = relevance(metric, label)
    number = sum(relevant, Fraction())
    return _divide_each(relevant, min(number, metric.k) if cut and rule in ("min", "found") else number)


def stops(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Targets of rr and err: the probability of stopping; a stand-in unless only position 1 counts."""
    if metric.k != 1:
        _check_served(metric, assume)
    return stop_probabilities(metric, label, bits)


def _per_pair(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Targets of auc: relevance over the number of pairs (relevant, irrelevant)."""
    del assume, bits
    relevant = relevance(metric, label)
    return _divide_each(relevant, sum(relevant, Fraction()) * (label.n_items - sum(relevant, Fraction())))


def net(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Targets of pd and wpd: net weights of preferences, raised to be >= 0; else gains (wpd) or grades."""
    if label.kind == "preferences":
        _check_served(metric, assume, "low_noise", "P_f")
        balance = [Fraction()] * label.n_items
        for i, j, weight in label.pairs:
            balance[i] += weight
            balance[j] -= weight
        largest = max((weight for *_, weight in label.pairs), default=Fraction())
        level = -min(balance) if assume == "P_f" else label.n_items * largest
        return [level + value for value in balance]
    if metric.name == "wpd":
        return _where_mixed(gains(metric, label, bits))
    grades = label.graded(metric)
    if len(set(grades)) > 2:
        _check_served(metric, assume)
    return _where_mixed(grades)


def _from_bottom(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Targets of zero_one: n + 1 - position."""
    del bits
    _check_served(metric, assume, "order_preserving")
    if label.kind != "permutations":
        raise ParameterError("label", label.kind, f"a permutation for {metric}")
    return label.grades


RULES: Mapping[str, Rule] = {
    "dcg": worth,
    "ndcg": worth,
    "p": worth,
    "eru": worth,
    "ap": shares,
    "rr": stops,
    "err": stops,
    "auc": _per_pair,
    "pd": net,
    "wpd": net,
    "zero_one": _from_bottom,
}


# Targets of pair scores in exact arithmetic: y_i y_j / sum(y) of ap, a_ij - a_ji of pd.

Matrix = list[list[Fraction]]


def pair_targets(metric: Metric, label: Label | ExactLabel) -> Matrix:
    """Compute the target of each pair under one label, for ap and pd.

    >>> import numpy as np
    >>> from concordant.metrics import metric
    >>> [[str(entry) for entry in row] for row in pair_targets(metric("ap"), np.array([1.0, 0.0, 1.0]))]
    [['1/2', '0', '1/2'], ['0', '0', '0'], ['1/2', '0', '1/2']]
    """
    if metric.name not in ("ap", "pd"):
        raise ParameterError("metric", str(metric), "ap or pd for scores of pairs")
    check_library_metric(metric)
    exact_label = read(label)
    items = range(exact_label.n_items)
    if metric.name == "ap":
        relevant = relevance(metric, exact_label)
        count = sum(relevant) or Fraction(1)
        return [[relevant[i] * relevant[j] / count for j in items] for i in items]
    if exact_label.kind == "preferences":
        net = [[Fraction(0) for _ in items] for _ in items]
        for better, worse, weight in exact_label.pairs:
            net[better][worse] += weight
            net[worse][better] -= weight
        return net
    grades = exact_label.graded(metric)
    return [[Fraction((grades[i] > grades[j]) - (grades[i] < grades[j])) for j in items] for i in items]


def expected_pair_targets(metric: Metric, labels: Sequence[Label], probs: Probs) -> Matrix:
    """Compute the expected target of each pair."""
    tables = [pair_targets(metric, label) for label in labels]
    items = range(len(tables[0]))
    return [
        [sum((p * table[i][j] for p, table in zip(probs, tables, strict=True)), Fraction()) for j in items]
        for i in items
    ]
