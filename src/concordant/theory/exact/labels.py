"""Labels of one query as fractions: what the exact formulas read.

>>> read(np.array([0.0, 0.1])).grades
(Fraction(0, 1), Fraction(1, 10))
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from concordant.exceptions import LabelError, ParameterError
from concordant.supervision.labels import Grades, Permutations, Preferences
from concordant.supervision.synthetic.distribution import Label

__all__ = ["ExactLabel", "fraction", "read"]


@dataclass(frozen=True)
class ExactLabel:
    """A label of one query; equal labels are equal, and can be kept in tables.

    Attributes
    ----------
    kind
        "grades", "preferences" or "permutations".
    n_items
        Number of items.
    grades
        Grade of each item; of a permutation n + 1 - position; of preferences empty.
    pairs
        (better, worse, weight) of preferences, each pair once, with a weight > 0; else empty.
    """

    kind: str
    n_items: int
    grades: tuple[Fraction, ...] = ()
    pairs: tuple[tuple[int, int, Fraction], ...] = ()

    def graded(self, reader: object) -> tuple[Fraction, ...]:
        """Give the grades, of labels that are grades."""
        if self.kind != "grades":
            raise LabelError(f"{reader} reads grades, not {self.kind}", "pass one grade per item.")
        return self.grades

    @property
    def order(self) -> tuple[int, ...]:
        """Items of a permutation, best first."""
        return tuple(sorted(range(self.n_items), key=lambda item: -self.grades[item]))


def fraction(number: float | Fraction) -> Fraction:
    """Give a number of the caller's as the shortest decimal that names it: 0.1 means 1/10.

    >>> fraction(0.1), fraction(2.0)
    (Fraction(1, 10), Fraction(2, 1))
    """
    return number if isinstance(number, Fraction) else Fraction(repr(float(number)))


def read(label: Label | Grades | ExactLabel) -> ExactLabel:
    """Give the label of one query as fractions."""
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
