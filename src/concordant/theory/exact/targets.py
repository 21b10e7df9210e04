"""Targets in exact arithmetic: the standardized labels that a surrogate is given, by their definitions.

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

from concordant.exceptions import LabelError, NoStandardizationError, ParameterError
from concordant.metrics.conditions import check_assumption
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import Label
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import BITS, Number, high, low, rounded, sign, total
from concordant.theory.exact.gains import check_known, gains, ideal, relevance, stopping
from concordant.theory.exact.labels import ExactLabel, read

__all__ = ["expected_targets", "targets", "told"]

Rule: TypeAlias = Callable[[Any, ExactLabel, str | None, int], Sequence[Number]]
"""Metric, label, condition assumed and bits of precision -> one number per item."""


def targets(
    metric: Metric, label: Label | ExactLabel, assume: str | None = None, bits: int = BITS
) -> tuple[Number, ...]:
    """Give one number >= 0 per item: what `metrics.standardization.usable_targets` gives in doubles.

    That is r(y) for every distribution where the metric has one; else the one under the condition assumed,
    or under the metric's first; else the stand-in. All are 0 where the metric is undefined. Of pd on grades
    it is the stand-in: what a label is told as among labels of three or more grades.
    """
    check_assumption(assume)
    return standardized(metric, read(label), assume, bits)


def told(metric: Metric, surrogate: Surrogate, label: Label | ExactLabel) -> tuple[Number, ...]:
    """Give what the surrogate is told of each item: its target, its grade or its position."""
    seen = read(label)
    if surrogate.reads == "targets":
        return targets(metric, seen)
    if surrogate.reads == "positions" and seen.kind == "permutations":
        return tuple(seen.n_items + 1 - grade for grade in seen.grades)
    if surrogate.reads == "grades" and (
        seen.kind == "grades" or (seen.kind == "permutations" and surrogate.ordinal)
    ):
        return seen.grades
    raise LabelError(f"{surrogate.name} reads {surrogate.reads}, not {seen.kind}", "give labels it can read.")


def expected_targets(
    metric: Metric, labels: Sequence[Label | ExactLabel], probs: Sequence[Fraction]
) -> tuple[Number, ...]:
    """Give the mean target of each item."""
    columns = zip(*(targets(metric, label) for label in labels), strict=True)
    return tuple(total(p * t for p, t in zip(probs, column, strict=True)) for column in columns)


@lru_cache(maxsize=2**14)
def standardized(metric: Metric, label: ExactLabel, assume: str | None, bits: int) -> tuple[Number, ...]:
    """Give the targets of a label that was read."""
    if metric.name not in RULES:
        raise ParameterError("metric", str(metric), f"one of {', '.join(RULES)}")
    check_known(metric)
    return tuple(RULES[metric.name](metric, label, assume, bits))


def check_served(metric: Metric, assume: str | None, *known: str) -> None:
    """Refuse a condition under which these labels have no standardization."""
    if assume is not None and assume not in known:
        problem = f"assume={assume!r} does not serve these labels"
        raise NoStandardizationError(str(metric), problem, "leave assume out.")


def divided(values: Sequence[Number], divisor: Number, bits: int = BITS) -> list[Number]:
    """Divide each; 0 where the divisor is."""
    return [rounded(value / divisor, bits) if sign(divisor) else Fraction() for value in values]


def where_mixed(values: Sequence[Number]) -> Sequence[Number]:
    """Give the values if two differ, else 0: no pair counts there."""
    apart = max(map(low, values)) > min(map(high, values))
    return values if apart else [Fraction()] * len(values)


def worth(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Gains: the metric is linear in them; ndcg's over the best sum."""
    del assume
    values = gains(metric, label, bits)
    return divided(values, ideal(metric, label, bits), bits) if metric.name == "ndcg" else values


def shares(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Relevance over what ap divides by."""
    del bits
    rule, cut = metric.convention.ap_denominator, metric.k is not None
    if metric.k != 1 or rule == "uncut":
        check_served(metric, assume, *(() if cut and rule == "found" else ("P_reinforce",)))
    relevant = relevance(metric, label)
    number = sum(relevant, Fraction())
    return divided(relevant, min(number, metric.k) if cut and rule in ("min", "found") else number)


def stops(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Probability of stopping: a standardization where only the first place counts, else a stand-in."""
    if metric.k != 1:
        check_served(metric, assume)
    return stopping(metric, label, bits)


def per_pair(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Relevance over the number of pairs (relevant, irrelevant)."""
    del assume, bits
    relevant = relevance(metric, label)
    return divided(relevant, sum(relevant, Fraction()) * (label.n_items - sum(relevant, Fraction())))


def net(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Of preferences the net weights, raised so that none is negative; of grades the gains, or the grades."""
    if label.kind == "preferences":
        check_served(metric, assume, "low_noise", "P_f")
        balance = [Fraction()] * label.n_items
        for i, j, weight in label.pairs:
            balance[i] += weight
            balance[j] -= weight
        largest = max((weight for *_, weight in label.pairs), default=Fraction())
        level = -min(balance) if assume == "P_f" else label.n_items * largest
        return [level + value for value in balance]
    if metric.name == "wpd":
        return where_mixed(gains(metric, label, bits))
    grades = label.graded(metric)
    if len(set(grades)) > 2:
        check_served(metric, assume)
    return where_mixed(grades)


def from_bottom(metric: Any, label: ExactLabel, assume: str | None, bits: int) -> Sequence[Number]:
    """Count n + 1 - position."""
    del bits
    check_served(metric, assume, "order_preserving")
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
    "auc": per_pair,
    "pd": net,
    "wpd": net,
    "zero_one": from_bottom,
}
