"""Minimisers of expected surrogates in exact arithmetic: pinned near scores found in doubles, and checked.

>>> import numpy as np
>>> from concordant.metrics import metric
>>> from concordant.surrogates import Preorder
>>> labels, probs = (np.array([3.0, 1.0, 0.0]), np.array([3.0, 4.0, 4.0])), (Fraction(1, 2), Fraction(1, 2))
>>> found = pinned(metric("ndcg"), Preorder(), labels, probs, [0.66, 1.33, 0.0])
>>> found.unique, [str(score) for score in found.scores]
(True, ['2/3', '4/3', '0'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from concordant.exceptions import LengthMismatchError, ParameterError
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import Label
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import Number, sign
from concordant.theory.exact.forms import Problem, Verdict, form_of
from concordant.theory.exact.labels import ExactLabel, read
from concordant.theory.exact.rational import same_order
from concordant.theory.exact.values import regret
from concordant.types import ArrayLike

__all__ = ["UNITS", "Pinned", "is_minimiser", "pinned", "verdict_of"]

UNITS = {  # what the numbers of a minimiser are; all rise with the score
    "scores": "scores s_i",
    "weights": "weights exp(s_i)",
    "squared weights": "squared weights exp(2 s_i)",
    "slopes": "slopes of the penalty at s_i",
}


@dataclass(frozen=True)
class Pinned:
    """Scores that minimise an expected surrogate, exactly.

    Attributes
    ----------
    probs
        Probabilities of the labels: those asked for, or others near them for which there are exact scores.
    scores
        One number per item, of the order of the scores.
    unit
        What the numbers are: a name of `UNITS`.
    unique
        Whether it is proven that there is no other minimiser, up to adding a constant to all scores.
    reason
        How a person checks it.
    """

    probs: tuple[Fraction, ...]
    scores: tuple[Number, ...]
    unit: str
    unique: bool
    reason: str


def pinned(
    metric: Metric,
    surrogate: Surrogate,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[Fraction],
    near: ArrayLike,
) -> Pinned | None:
    """Give an exact minimiser of the expected surrogate near scores found in doubles; None if none is proven.

    Where the loss is transcendental (Plackett and Luce; preorder with logistic or exponential margins) the
    probabilities move a little, so that rational weights minimise it: to the first, from short fractions on,
    for which sorting by the scores is suboptimal by the metric, if there are such.

    Parameters
    ----------
    metric
        Its targets are what the surrogate reads, unless it reads the labels themselves.
    surrogate
        What is minimised.
    labels, probs
        Labels of one query, and their probabilities.
    near
        Scores near the minimiser; nothing that is proven rests on them.
    """
    form, scores = form_of(surrogate), np.asarray(near, dtype=np.float64)
    problem, places = posed(metric, surrogate, labels, probs)
    if form is None or scores.shape != (problem.labels[0].n_items,) or not np.isfinite(scores).all():
        return None
    found = None
    try:
        for moved, numbers, unit in form.candidates(problem, scores):
            verdict = form.verdict(problem._replace(probs=moved), numbers, unit)
            if verdict is None or not (verdict.unique or same_order(numbers, scores)):
                continue  # of many minimisers one is wanted that sorts as the given scores do
            found = Pinned(spread(moved, places, len(probs)), numbers, unit, *verdict)
            if moved == problem.probs or sign(regret(metric, problem.labels, moved, numbers)) == 1:
                return found
    except ParameterError:  # something is irrational, or a function of the caller's
        return None
    return found


def is_minimiser(
    metric: Metric,
    surrogate: Surrogate,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[Fraction],
    scores: Sequence[Number],
    unit: str = "scores",
) -> bool:
    """Tell whether numbers of this unit are proven, from the definitions, to minimise the expected surrogate.

    False where they do not, or where no proof is known.
    """
    return verdict_of(metric, surrogate, labels, probs, scores, unit) is not None


def verdict_of(
    metric: Metric,
    surrogate: Surrogate,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[Fraction],
    scores: Sequence[Number],
    unit: str = "scores",
) -> Verdict | None:
    """Give the proof that numbers of this unit minimise the expected surrogate; None where none is known."""
    form = form_of(surrogate)
    problem, _ = posed(metric, surrogate, labels, probs)
    if len(scores) != problem.labels[0].n_items:
        raise LengthMismatchError("scores", len(scores), problem.labels[0].n_items, "the label")
    try:
        return None if form is None else form.verdict(problem, tuple(scores), unit)
    except ParameterError:
        return None


def posed(
    metric: Metric, surrogate: Surrogate, labels: Sequence[Label | ExactLabel], probs: Sequence[Fraction]
) -> tuple[Problem, list[int]]:
    """Give the problem on the labels that are possible, and which those are."""
    if len(labels) != len(probs):
        raise LengthMismatchError("probs", len(probs), len(labels), "labels")
    if not all(isinstance(prob, (Fraction, int)) for prob in probs):
        raise ParameterError("probs", probs, "fractions")
    if sum(probs) != 1 or min(probs) < 0:
        raise ParameterError("probs", [str(prob) for prob in probs], "fractions >= 0 that add up to 1")
    places = [place for place, prob in enumerate(probs) if prob]
    seen = tuple(read(labels[place]) for place in places)
    if len({label.n_items for label in seen}) != 1:
        raise ParameterError("labels", [label.n_items for label in seen], "of as many items")
    return Problem(metric, surrogate, seen, tuple(Fraction(probs[place]) for place in places)), places


def spread(probs: Sequence[Fraction], places: Sequence[int], n_labels: int) -> tuple[Fraction, ...]:
    """Give every label its probability, 0 to those that are not possible."""
    given = dict(zip(places, probs, strict=True))
    return tuple(given.get(place, Fraction()) for place in range(n_labels))
