"""Proof, by enumeration, that a metric has no standardization: no r(y) whose mean ranks well for all labels.

A function r of the labels is a *standardization* if, for every distribution D of the labels, every order
compatible with the scores E_D[r] (sorted, ties in any order) is optimal for D. Where none exists, no convex
symmetric order-preserving loss on any function of the labels is consistent: Buffoni et al. (2011), converse
of Theorem 2. (Its proof takes E[loss] to be symmetric in items of equal E[r], as it is for losses affine in
r up to a term without scores: the squared, the pairwise and the softmax loss.) One D suffices to prove it.

How E_D[r] ranks the items is one of finitely many *patterns* of strict relations and ties. A pattern is
*refuted* at D in one of two ways.

1. An order compatible with it is not optimal for D. Then scores of this pattern contradict the definition
   at D itself.
2. For some label z, no order compatible with it is in L(D, z), which holds the orders that are best for z
   among those optimal for D. Consider the distributions D' = (1 - e) D + e z for small e > 0.

   - The value of an order under D' is (1 - e) times that under D, plus e times that under z. Orders are
     finitely many: once e is small, one that is not optimal for D stays behind those that are, and among
     these the value under z decides. So the orders optimal for D' are exactly L(D, z).
   - The scores (1 - e) E_D[r] + e r(z) tend to E_D[r]: once e is small, the strict relations of the pattern
     still hold, while ties may have been broken. So every order compatible with the scores at D' is
     compatible with the pattern. There is at least one, and it is not in L(D, z), hence not optimal for D',
     which contradicts the definition at D'.

Nothing is assumed of r. If every pattern is refuted at one D, no r exists. Equal scores, which allow every
order, can be refuted only in the first way: some two orders differ in value. In the example of Buffoni et
al. (Theorem 3), which follows, the second way does what their Lemma 4 does.

>>> proof = impossibility("ap")
>>> print(proof)
ap on binary has no standardization r(y), for 4 items.
Let y be (1,1,0,0) or (0,0,1,1), with probability 1/2 and 1/2.
E[ap] is largest, 17/24, for {1,2}>{3,4} or {3,4}>{1,2}: 8 of 24 orders (braces: in any order).
Equal scores E[r] would allow all orders, but 1>2>3>4 has 17/24 and 1>3>2>4 has 2/3, a difference of 1/24.
If sorting by E[r] gives best orders only, however ties are broken, then E[r] ranks the items in 18 of 75
ways: one of these, or one with more ties broken.
- {3,4}>{1,2}: mix a little of (1,0,0,0) into y, and the best orders are only 1>2>{3,4}.
- {1,2}>{3,4}: mix a little of (0,0,1,0) into y, and the best orders are only 3>4>{1,2}.
A little changes no strict relation between scores: sorting by the new E[r] gives none of these best orders.
So there is no r, and no convex symmetric order-preserving loss on any function of the labels is consistent
with ap (Buffoni et al. 2011, Theorem 2).
>>> proof.verify()
True
>>> impossibility("p@2") is None  # 1 for relevant items, 0 for others, is a standardization
True
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.synthetic.distribution import Label
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.exact.enclosure import low
from concordant.theory.exact.labels import ExactLabel, read
from concordant.theory.exact.values import Order
from concordant.theory.search.mixing import Mixed, ruling_out, table
from concordant.theory.search.patterns import (
    Pattern,
    Refutation,
    best_for,
    coarsest,
    compatible,
    every_pattern,
    expected_values,
    optimal,
    refutations,
    written_orders,
    written_pattern,
)
from concordant.theory.spaces import SPACES, every_label, spaces_of, written

__all__ = ["Impossibility", "impossibility"]

PLAINEST = ("preferences", "permutations", "binary")  # label spaces, the one to look at first standing first
MAX_ITEMS = 5  # 541 patterns
WIDTH = 110


@dataclass(frozen=True, eq=False)
class Impossibility:
    """A proof that a metric has no standardization on a space of labels.

    Attributes
    ----------
    metric, space, highest
        Of what; `highest` is the highest grade of the space "grades".
    labels, probs
        The distribution at which every pattern is refuted.
    best, value
        The orders that are optimal there, and their expected value.
    contrast
        An order that is optimal and one that is not, each with its expected value.
    refutations
        One for each pattern.
    """

    metric: str
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
        """Check the whole proof anew, from the metric's definition and in exact arithmetic."""
        return self.labels_hold() and self.values_hold() and self.refutations_hold()

    def labels_hold(self) -> bool:
        """Tell whether probabilities are fractions that sum to 1, and all labels are of the space."""
        space = {read(label) for label in every_label(self.space, self.n_items, self.highest)}
        mixed_in = (each.label for each in self.refutations if each.label is not None)
        return (
            len(self.probs) == len(self.labels)
            and all(isinstance(prob, Fraction) and prob > 0 for prob in self.probs)
            and sum(self.probs) == 1
            and space.issuperset(map(read, itertools.chain(self.labels, mixed_in)))
        )

    def values_hold(self) -> bool:
        """Tell whether the best orders are these, and the values right."""
        metric = read_metric(self.metric)
        values = expected_values(metric, self.labels, self.probs)
        (good, most), (bad, less) = self.contrast
        return (
            isinstance(self.value, Fraction)
            and sorted(self.best) == optimal(metric, values)
            and all(values[order] == self.value for order in self.best)
            and values.get(good) == most != less == values.get(bad)
            and good in self.best
        )

    def refutations_hold(self) -> bool:
        """Tell whether every pattern is refuted; the best orders are right."""
        patterns = sorted(each.pattern for each in self.refutations)
        return patterns == sorted(every_pattern(self.n_items)) and all(map(self.refutes, self.refutations))

    def refutes(self, each: Refutation) -> bool:
        """Tell whether a pattern is refuted by what is said of it."""
        allowed = set(compatible(each.pattern))
        if each.label is None:
            return each.order in allowed and each.order not in self.best
        return allowed.isdisjoint(best_for(read_metric(self.metric), read(each.label), self.best))

    def to_dict(self) -> dict[str, Any]:
        """Give the proof in words and numbers that JSON can hold; items are counted from 1."""
        return {
            "metric": self.metric,
            "labels": self.space,
            "n_items": self.n_items,
            "distribution": {written(y): str(p) for y, p in zip(self.labels, self.probs, strict=True)},
            "best": [written_orders([order]) for order in self.best],
            "value": str(self.value),
            "contrast": {written_orders([order]): str(value) for order, value in self.contrast},
            "refutations": [
                {"pattern": written_pattern(pattern)}
                | ({} if order is None else {"order": written_orders([order])})
                | ({} if label is None else {"label": written(label)})
                for pattern, order, label in self.refutations
            ],
        }

    def __str__(self) -> str:
        return "\n".join(
            textwrap.fill(line, WIDTH, subsequent_indent="  " if line.startswith("-") else "")
            for line in (*self.premises(), *self.argument())
        )

    def premises(self) -> Iterator[str]:
        """Write for a person what is claimed, and what is computed at the distribution."""
        metric, (good, most), (bad, less) = read_metric(self.metric), *self.contrast
        space = f"{self.space} 0 to {self.highest}" if self.space == "grades" else self.space
        extreme = "largest" if most > less else "smallest"
        yield f"{metric} on {space} has no standardization r(y), for {self.n_items} items."
        probs = " and ".join(map(str, self.probs))
        yield f"Let y be {' or '.join(map(written, self.labels))}, with probability {probs}."
        yield (
            f"E[{metric.name}] is {extreme}, {self.value}, for {written_orders(self.best)}: "
            f"{len(self.best)} of {math.factorial(self.n_items)} orders (braces: in any order)."
        )
        yield (
            f"Equal scores E[r] would allow all orders, but {written_orders([good])} has {most} and "
            f"{written_orders([bad])} has {less}, a difference of {abs(most - less)}."
        )

    def argument(self) -> Iterator[str]:
        """Write for a person why there is no r."""
        metric = read_metric(self.metric)
        left = [each for each in self.refutations if each.label is not None]
        yield (
            "If sorting by E[r] gives best orders only, however ties are broken, then E[r] ranks the items "
            f"in {len(left)} of {len(self.refutations)} ways: one of these, or one with more ties broken."
        )
        for label, patterns in grouped(left):
            yield (
                f"- {' or '.join(map(written_pattern, patterns))}: mix a little of {written(label)} into y, "
                f"and the best orders are only {written_orders(best_for(metric, read(label), self.best))}."
            )
        yield (
            "A little changes no strict relation between scores: sorting by the new E[r] gives none of these "
            "best orders. So there is no r, and no convex symmetric order-preserving loss on any function of "
            f"the labels is consistent with {metric} (Buffoni et al. 2011, Theorem 2)."
        )


def grouped(left: Sequence[Refutation]) -> list[tuple[Label, list[Pattern]]]:
    """Give the labels that refute, each with the coarsest patterns: others break their ties."""
    groups: dict[ExactLabel, tuple[Label, list[Pattern]]] = {}
    kept = set(coarsest(each.pattern for each in left))
    for pattern, _, label in left:
        if label is not None and pattern in kept:
            groups.setdefault(read(label), (label, []))[1].append(pattern)
    return list(groups.values())


def impossibility(
    metric: Metric | str, labels: str = "auto", n_items: int = 4, highest: int = 1
) -> Impossibility | None:
    """Look for a proof that a metric has no standardization; None if none is found, which proves nothing.

    Irrational values (of dcg, ndcg, most eru) are out of reach: bounds do not prove that two orders tie.

    Parameters
    ----------
    metric
        A metric of rankings, or its name.
    labels
        A space of labels that the metric reads: "binary", "grades", "preferences" or "permutations"; "auto":
        preferences for pd and wpd, permutations for zero_one, binary for all others.
    n_items
        Number of items, 2 to 5.
    highest
        Highest grade, of "grades".

    Examples
    --------
    >>> proof = impossibility("err[max_grade=1]")
    >>> (good, most), (bad, less) = proof.contrast
    >>> most - less
    Fraction(1, 48)
    """
    chosen = read_metric(metric)
    check_counts(n_items=n_items, highest=highest)
    if not 2 <= n_items <= MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"2 to {MAX_ITEMS}")
    known = table(chosen, every_label(space := check_space(chosen, labels), n_items, highest))
    mixed = ruling_out(known)
    return None if mixed is None else written_down(chosen, space, highest, mixed, known.labels)


def check_space(metric: Metric, labels: str) -> str:
    """Give the space of labels that is meant, which the metric has to read."""
    if not (spaces := spaces_of(metric)):
        raise ParameterError("metric", str(metric), "one of rankings")
    if labels == "auto":
        return next(name for name in PLAINEST if name in spaces)
    if not isinstance(labels, str) or labels not in SPACES:
        raise UnknownNameError("label space", labels, ["auto", *SPACES])
    if labels not in spaces:
        raise ParameterError("labels", labels, f"what {metric.name} reads: {' or '.join(spaces)}")
    return labels


def written_down(
    metric: Metric, space: str, highest: int, mixed: Mixed, labels: Sequence[Label]
) -> Impossibility:
    """Give the proof at a distribution that refutes every pattern."""
    values = expected_values(metric, *mixed)
    best = optimal(metric, values)
    good, bad = best[0], min(values.keys() - best)
    return Impossibility(
        metric=str(metric),
        space=space,
        highest=highest,
        labels=mixed.labels,
        probs=mixed.probs,
        best=tuple(best),
        value=low(values[good]),
        contrast=((good, low(values[good])), (bad, low(values[bad]))),
        refutations=tuple(refutations(metric, best, labels)),
    )
