"""Targets of scores of pairs, in exact arithmetic: y_i y_j / sum(y) of ap, a_ij - a_ji of pd."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import Label
from concordant.theory.exact.gains import check_known, relevance
from concordant.theory.exact.labels import ExactLabel, read

__all__ = ["expected_pair_targets", "pair_targets"]

Matrix = list[list[Fraction]]


def pair_targets(metric: Metric, label: Label | ExactLabel) -> Matrix:
    """Give the target of each pair under one label, for ap and pd.

    >>> import numpy as np
    >>> from concordant.metrics import metric
    >>> [[str(entry) for entry in row] for row in pair_targets(metric("ap"), np.array([1.0, 0.0, 1.0]))]
    [['1/2', '0', '1/2'], ['0', '0', '0'], ['1/2', '0', '1/2']]
    """
    if metric.name not in ("ap", "pd"):
        raise ParameterError("metric", str(metric), "ap or pd, which scores of pairs serve")
    check_known(metric)
    seen = read(label)
    items = range(seen.n_items)
    if metric.name == "ap":
        relevant = relevance(metric, seen)
        count = sum(relevant) or Fraction(1)
        return [[relevant[i] * relevant[j] / count for j in items] for i in items]
    if seen.kind == "preferences":
        net = [[Fraction(0) for _ in items] for _ in items]
        for better, worse, weight in seen.pairs:
            net[better][worse] += weight
            net[worse][better] -= weight
        return net
    grades = seen.graded(metric)
    return [[Fraction((grades[i] > grades[j]) - (grades[i] < grades[j])) for j in items] for i in items]


def expected_pair_targets(metric: Metric, labels: Sequence[Label], probs: Sequence[Fraction]) -> Matrix:
    """Give the expectation of each pair's target."""
    tables = [pair_targets(metric, label) for label in labels]
    items = range(len(tables[0]))
    return [
        [sum((p * table[i][j] for p, table in zip(probs, tables, strict=True)), Fraction()) for j in items]
        for i in items
    ]
