"""Impossibility: a proof that a metric has no standardization, which can be verified and read.

The argument is in docs/certificates.md, "No function of the labels would do".
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from concordant.data.synthetic.distribution import Label
from concordant.exceptions import ConcordantError
from concordant.metrics.metric import Metric
from concordant.theory.exact.exact_labels import ExactLabel, read
from concordant.theory.exact.exact_values import Order, best_orders, every_value
from concordant.theory.search.patterns import (
    Pattern,
    Refutation,
    best_for,
    coarsest,
    compatible,
    every_pattern,
    written_order,
    written_orders,
    written_pattern,
)
from concordant.theory.spaces import every_label, format_label

WIDTH = 110


@dataclass(frozen=True, eq=False)
class Impossibility:
    """A proof that a metric has no standardization on a space of labels.

    Attributes
    ----------
    metric, space, highest
        Metric and label space; `highest` is the highest grade of the space "grades".
    labels, probs
        The distribution at which every pattern is refuted.
    best, value
        The orders that are optimal there, and their expected value.
    contrast
        An order that is optimal and one that is not, each with its expected value.
    refutations
        One refutation for each pattern.
    """

    metric: Metric
    space: str
    highest: int
    labels: tuple[Label, ...]
    probs: tuple[Fraction, ...]
    best: tuple[Order, ...]
    value: Fraction
    contrast: tuple[tuple[Order, Fraction], tuple[Order, Fraction]]
    refutations: tuple[Refutation, ...]

    @property
    def n_items(self) -> int:
        """Number of items of the query."""
        return len(self.labels[0])

    def verify(self) -> bool:
        """Verify the whole proof, from the metric's definition and in exact arithmetic."""
        try:
            return self.labels_hold() and self.values_hold() and self.refutations_hold()
        except ConcordantError:  # labels that the metric cannot read, or no exact values
            return False

    def labels_hold(self) -> bool:
        """True if probabilities are fractions that sum to 1, and all labels are in the space."""
        if not self.labels:
            return False
        space = {read(label) for label in every_label(self.space, self.n_items, self.highest)}
        mixed_in = (each.label for each in self.refutations if each.label is not None)
        return (
            len(self.probs) == len(self.labels)
            and all(isinstance(prob, Fraction) and prob > 0 for prob in self.probs)
            and sum(self.probs) == 1
            and space.issuperset(map(read, itertools.chain(self.labels, mixed_in)))
        )

    def values_hold(self) -> bool:
        """True if the best orders and the values are right."""
        values = every_value(self.metric, self.labels, self.probs)
        (good, most), (bad, less) = self.contrast
        return (
            isinstance(self.value, Fraction)
            and sorted(self.best) == best_orders(self.metric, values)
            and all(values[order] == self.value for order in self.best)
            and values.get(good) == most != less == values.get(bad)
            and good in self.best
        )

    def refutations_hold(self) -> bool:
        """True if every pattern is refuted, provided that the best orders are right."""
        patterns = sorted(each.pattern for each in self.refutations)
        return patterns == sorted(every_pattern(self.n_items)) and all(map(self.refutes, self.refutations))

    def refutes(self, each: Refutation) -> bool:
        """True if the refutation proves that its pattern is impossible."""
        allowed = set(compatible(each.pattern))
        if each.label is None:
            return each.order in allowed and each.order not in self.best
        return allowed.isdisjoint(best_for(self.metric, read(each.label), self.best))

    def to_dict(self) -> dict[str, Any]:
        """Return the proof in words and numbers that JSON can hold; items are counted from 1."""
        return {
            "metric": str(self.metric),
            "labels": self.space,
            "n_items": self.n_items,
            "distribution": {format_label(y): str(p) for y, p in zip(self.labels, self.probs, strict=True)},
            "best": [written_order(order) for order in self.best],
            "value": str(self.value),
            "contrast": {written_order(order): str(value) for order, value in self.contrast},
            "refutations": [
                {"pattern": written_pattern(pattern)}
                | ({} if order is None else {"order": written_order(order)})
                | ({} if label is None else {"label": format_label(label)})
                for pattern, order, label in self.refutations
            ],
        }

    def __str__(self) -> str:
        return "\n".join(
            textwrap.fill(line, WIDTH, subsequent_indent="  " if line.startswith("-") else "")
            for line in (*self.premises(), *self.argument())
        )

    def premises(self) -> Iterator[str]:
        """Write for a person the claim, and the values at the distribution."""
        metric, (good, most), (bad, less) = self.metric, *self.contrast
        space = f"{self.space} 0 to {self.highest}" if self.space == "grades" else self.space
        extreme = "largest" if most > less else "smallest"
        yield f"{metric} on {space} has no standardization r(y), for {self.n_items} items."
        probs = " and ".join(map(str, self.probs))
        yield f"Let y be {' or '.join(map(format_label, self.labels))}, with probability {probs}."
        yield (
            f"E[{metric.name}] is {extreme}, {self.value}, for {written_orders(self.best)}: "
            f"{len(self.best)} of {math.factorial(self.n_items)} orders (braces: in any order)."
        )
        yield (
            f"Equal scores E[r] would allow all orders, but {written_order(good)} has {most} and "
            f"{written_order(bad)} has {less}, a difference of {abs(most - less)}."
        )

    def argument(self) -> Iterator[str]:
        """Write for a person why there is no r."""
        left = [each for each in self.refutations if each.label is not None]
        yield (
            "If sorting by E[r] gives best orders only, however ties are broken, then E[r] ranks the items "
            f"in {len(left)} of {len(self.refutations)} ways: one of these, or one with more ties broken."
        )
        for label, patterns in _group_by_label(left):
            best = best_for(self.metric, read(label), self.best)
            yield (
                f"- {' or '.join(map(written_pattern, patterns))}: mix a little of {format_label(label)} "
                f"into y, and the best orders are only {written_orders(best)}."
            )
        yield (
            "A little changes no strict relation between scores: sorting by the new E[r] gives none of these "
            "best orders. So there is no r."
        )
        yield (
            "Hence no convex symmetric order-preserving loss on a bounded function r of the labels is "
            f"consistent with {self.metric}, if it is affine in r(y) up to a term without scores, as the "
            "squared, the pairwise and the softmax loss are, and its expectation attains its minimum "
            "(Buffoni et al. 2011, converse of Theorem 2)."
        )


def _group_by_label(left: Sequence[Refutation]) -> list[tuple[Label, list[Pattern]]]:
    """Group by label the coarsest patterns that it refutes: others break their ties."""
    groups: dict[ExactLabel, tuple[Label, list[Pattern]]] = {}
    coarsest_patterns = set(coarsest(each.pattern for each in left))
    for pattern, _, label in left:
        if label is not None and pattern in coarsest_patterns:
            groups.setdefault(read(label), (label, []))[1].append(pattern)
    return list(groups.values())
