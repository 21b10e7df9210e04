"""What must be true of a distribution of labels before anything is proven at it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.synthetic.distribution import Label
from concordant.theory.combination import Combination
from concordant.theory.exact.enclosure import low
from concordant.theory.exact.labels import read
from concordant.theory.exact.targets import told
from concordant.theory.kinds import PairSquared
from concordant.theory.search.expected import read_by
from concordant.theory.search.pair_decoding import forward

__all__ = ["belongs", "is_distribution", "told_alike"]

ROUNDED = 1e-9  # doubles that are nearer than this share are equal


def is_distribution(one: Combination, labels: Sequence[Label], probs: Sequence[Fraction]) -> bool:
    """Tell whether labels of the combination's space, all of as many items, have these probabilities > 0."""
    fractions = all(isinstance(prob, (Fraction, int)) and prob > 0 for prob in probs)
    return (
        len(labels) == len(probs)
        and fractions
        and sum(probs) == 1
        and all(belongs(label, one.space) for label in labels)
        and len({len(label) for label in labels}) == 1
    )


def belongs(label: Any, space: str) -> bool:
    """Tell whether a label is of a space: grades are whole, preferences weigh 1 and have no cycle.

    >>> grades = np.array([2.0, 0.0])
    >>> belongs(grades, "grades"), belongs(grades, "binary"), belongs(grades / 4, "grades")
    (True, False, False)
    >>> belongs(Preferences([0, 1], [1, 0], 2), "preferences")
    False
    """
    if isinstance(label, Preferences):
        pairs = read(label).pairs
        acyclic = forward([(i, j) for i, j, _ in pairs], len(label)) is not None
        return space == "preferences" and acyclic and all(weight == 1 for *_, weight in pairs)
    if isinstance(label, Permutations):
        return space == "permutations" and sorted(label.positions) == list(range(1, len(label) + 1))
    if space not in ("binary", "grades") or not isinstance(label, np.ndarray):
        return False
    if label.ndim != 1 or not label.size or label.dtype.kind not in "biuf" or not np.isfinite(label).all():
        return False
    if space == "binary":
        return set(label.tolist()) <= {0, 1}
    return bool((label == abs(np.rint(label))).all())


def told_alike(one: Combination, labels: Sequence[Label]) -> bool:
    """Tell whether the library, given these labels and no others, tells the surrogate what is reckoned with.

    It does not where pd is read from grades and no label has three of them: it then tells 0 and 1.
    """
    if isinstance(one.surrogate, PairSquared):
        return True  # of pairs each label is told by itself
    surrogate = one.surrogate
    exact = [[float(low(number)) for number in told(one.metric, surrogate, label)] for label in labels]
    return bool(np.allclose(read_by(one, list(labels)), exact, rtol=ROUNDED, atol=0.0))
