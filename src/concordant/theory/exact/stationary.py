"""Minimisers of expected surrogates in exact arithmetic: candidates near scores in doubles, and proofs.

>>> import numpy as np
>>> from concordant.metrics import metric
>>> from concordant.surrogates import Preorder
>>> labels, probs = (np.array([3.0, 1.0, 0.0]), np.array([3.0, 4.0, 4.0])), (Fraction(1, 2), Fraction(1, 2))
>>> minimiser = exact_minimiser(metric("ndcg"), Preorder(), labels, probs, [0.66, 1.33, 0.0])
>>> minimiser.unique, [str(score) for score in minimiser.scores]
(True, ['2/3', '4/3', '0'])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from concordant.exceptions import LengthMismatchError, ParameterError
from concordant.metrics.metric import Metric
from concordant.surrogates.listwise import PlackettLuce, Softmax
from concordant.surrogates.margins import EXPONENTIAL, LOGISTIC, Margin
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.pointwise import PENALTIES, Duchi, Squared
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import Number, fractions, high, low, sign, total
from concordant.theory.exact.exact_labels import ExactLabel, Labels, Probs, fraction, read
from concordant.theory.exact.exact_targets import expected_targets, surrogate_labels
from concordant.theory.exact.exact_values import regret
from concordant.theory.exact.linear_equations import nearest, transpose
from concordant.theory.exact.pair_losses import Quadratic, expected_pairs, is_strongly_connected, label_pairs
from concordant.theory.exact.polyhedral import (
    corner_candidates,
    expected_terms,
    is_only_minimiser,
    is_polyhedral,
)
from concordant.types import ArrayLike, FloatArray

# Losses whose derivatives are rational functions of the weights x_i = exp(s_i), in exact arithmetic.

FARTHEST = 30.0  # scores further apart are on their way to infinity
APART = 1e-6  # scores nearer than this may be equal
DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 50, 100, 1000, 10**4, 10**5, 10**6)


def _is_rational(surrogate: Any) -> bool:
    kind = type(surrogate)
    if kind in (Pairwise, Preorder):
        return type(surrogate.margin) is Margin and surrogate.margin.kind in (LOGISTIC, EXPONENTIAL)
    return kind in (Softmax, PlackettLuce)


def derivatives(
    metric: Metric, surrogate: Surrogate, label: ExactLabel, x: Sequence[Fraction]
) -> list[Number]:
    """Compute the derivative of the loss under one label in each score, at s = log x."""
    if type(surrogate) is Softmax:
        return _softmax(surrogate_labels(metric, surrogate, label), x)
    if type(surrogate) is PlackettLuce:
        return _plackett_luce(label, x)
    return _pair_derivatives(metric, surrogate, label, x)


def _softmax(targets: Sequence[Number], x: Sequence[Fraction]) -> list[Number]:
    """Derivatives of the softmax loss: the sum of the targets times the share of x, less the target."""
    whole, weight = sum(x, Fraction()), sum(targets, Fraction())
    return [weight * (share / whole) - target for share, target in zip(x, targets, strict=True)]


def _plackett_luce(label: ExactLabel, x: Sequence[Fraction]) -> list[Number]:
    """Derivatives of Plackett-Luce: items are drawn in the observed order, each by its share of x."""
    grad: list[Number] = [Fraction(-1)] * len(x)
    left = list(label.order)
    while left:
        whole = sum((x[item] for item in left), Fraction())
        for item in left:
            grad[item] = grad[item] + x[item] / whole
        left.pop(0)
    return grad


def _pair_derivatives(
    metric: Metric, surrogate: Any, label: ExactLabel, x: Sequence[Fraction]
) -> list[Number]:
    """Derivatives of pair losses: phi' is - x_j/(x_i + x_j) for logistic, - x_j/x_i for exponential."""
    grad: list[Number] = [Fraction()] * len(x)
    logistic = surrogate.margin.kind == LOGISTIC
    for (i, j), weight in label_pairs(metric, surrogate, label).items():
        slope = -weight * (x[j] / (x[i] + x[j] if logistic else x[i]))
        grad[i], grad[j] = grad[i] + slope, grad[j] - slope
    return grad


class ExpectedLoss(NamedTuple):
    """The expectation of a surrogate over labels, each of positive probability."""

    metric: Metric
    surrogate: Any
    labels: tuple[ExactLabel, ...]
    probs: tuple[Fraction, ...]

    def mean_targets(self) -> list[Fraction]:
        """Compute the expected targets, where they are rational."""
        return fractions(expected_targets(self.metric, self.labels, self.probs))


def _is_strictly_convex(problem: ExpectedLoss) -> bool:
    """True if the expected loss is strictly convex in score differences."""
    metric, surrogate, labels, _ = problem
    n = labels[0].n_items
    if type(surrogate) is PlackettLuce:
        return True  # the first choice is among all items
    if type(surrogate) is Softmax:
        label_targets = (surrogate_labels(metric, surrogate, label) for label in labels)
        return any(sign(target) == 1 for targets in label_targets for target in targets)
    pairs = expected_pairs(*problem)
    return is_strongly_connected({edge for i, j in pairs for edge in ((i, j), (j, i))}, n)


def _repair_probabilities(
    problem: ExpectedLoss, near: FloatArray
) -> Iterator[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """Yield probabilities > 0 near these, and weights x near exp(near) that make all derivatives exactly 0.

    The derivatives are linear in the probabilities: x is rounded, from short fractions on, and the nearest
    probabilities solve linear equations.
    """
    if float(np.ptp(near)) > FARTHEST:
        return
    metric, surrogate, labels, probs = problem
    tried = set[tuple[Fraction, ...]]()
    for most in DENOMINATORS:
        x = tuple(Fraction(float(value)).limit_denominator(most) for value in np.exp(near - near.min()))
        if x in tried or not _same_order(x, near):
            continue
        tried.add(x)
        columns = [fractions(derivatives(metric, surrogate, label, x)) for label in labels]
        rows = [*transpose(columns), [Fraction(1)] * len(labels)]
        nearest_probs = nearest(rows, [Fraction()] * len(x) + [Fraction(1)], probs)
        if nearest_probs is not None and all(sign(prob) == 1 for prob in nearest_probs):
            yield tuple(fractions(nearest_probs)), x


def _same_order(numbers: Sequence[Number], near: FloatArray) -> bool:
    """True if the numbers keep the order of scores that differ."""
    items = range(len(numbers))
    apart = [(i, j) for i in items for j in items if near[i] - near[j] > APART]
    return all(low(numbers[i]) > high(numbers[j]) for i, j in apart)


# Expected surrogates in exact arithmetic: candidates for their minimisers, and proofs.

ZERO = "there all derivatives of the expected loss are 0, and it is convex"
CURVED = "there all derivatives of the expected loss are 0, and it is strictly convex"
STRICT = f"{CURVED} in score differences"


class MinimiserVerdict(NamedTuple):
    """Proof that scores are a minimiser: whether it is the only one, and how a person checks it."""

    unique: bool
    reason: str


Candidate: TypeAlias = tuple[tuple[Fraction, ...], tuple[Number, ...], str]
"""Probabilities, numbers by item, and their unit."""


class MinimiserForm(Protocol):
    """Finds and proves minimisers of a kind of surrogate."""

    def candidates(self, problem: ExpectedLoss, near: FloatArray) -> Iterator[Candidate]:
        """Yield candidates for minimisers near these scores."""

    def verdict(self, problem: ExpectedLoss, scores: Sequence[Number], unit: str) -> MinimiserVerdict | None:
        """Prove that scores of this unit are a minimiser; None where they are not known to be."""


@dataclass(frozen=True)
class _TargetForm:
    """Losses minimised where `rate` times the scores are the expected targets, up to what they leave free.

    The derivatives are, for squared losses, s_i - E[r_i] twice, less their mean if centred; for a linear loss
    with a penalty, nu * penalty'(s_i) - E[r_i]; for the pairwise exponential loss, with x = exp(s), sums over
    j of (E[r_j] x_i^2 - E[r_i] x_j^2)/(x_i x_j).
    """

    unit: str
    reason: str
    rate: Fraction = Fraction(1)
    free: str = ""  # "constant" or "factor": other scores, which differ by that, minimise the loss too

    def candidates(self, problem: ExpectedLoss, near: FloatArray) -> Iterator[Candidate]:
        del near
        yield problem.probs, tuple(mean / self.rate for mean in problem.mean_targets()), self.unit

    def verdict(self, problem: ExpectedLoss, scores: Sequence[Number], unit: str) -> MinimiserVerdict | None:
        numbers, means = fractions(scores), problem.mean_targets()
        if unit != self.unit or (self.free == "factor" and min(*numbers, *means) <= 0):
            return None
        pairs = zip(numbers, means, strict=True)
        gaps = {s / mean if self.free == "factor" else self.rate * s - mean for s, mean in pairs}
        if len(gaps) > 1 or not (self.free or gaps == {0}):
            return None
        return MinimiserVerdict(unique=True, reason=self.reason)


def _target_form(surrogate: Any) -> _TargetForm | None:
    """Return the form of a loss whose minimisers are the expected targets; None for other losses."""
    kind, margin = type(surrogate), getattr(surrogate, "margin", None)
    if kind is Squared:
        level = "constant" if surrogate.centred else ""
        how = f", up to a constant: {STRICT}" if surrogate.centred else f": {CURVED}"
        return _TargetForm("scores", f"the scores are the expected targets{how}", free=level)
    if kind is Duchi and surrogate.penalty in PENALTIES.values():
        nu, is_square = fraction(surrogate.nu), surrogate.penalty.name == "square"
        unit, slope = ("scores", "2 nu s_i") if is_square else ("slopes", "nu times the slope of the penalty")
        reason = f"{slope} is the expected target of each item: {CURVED}"
        return _TargetForm(unit, reason, rate=2 * nu if is_square else nu)
    if kind is Pairwise and type(margin) is Margin and margin.kind == EXPONENTIAL:
        reason = f"exp(2 s_i) are the expected targets, up to a factor: {STRICT}"
        return _TargetForm("squared weights", reason, free="factor")
    return None


class _RationalForm:
    """Losses whose derivatives are rational functions of the weights x = exp(s)."""

    def candidates(self, problem: ExpectedLoss, near: FloatArray) -> Iterator[Candidate]:
        """Yield the expected targets if the surrogate reads them; else move probabilities to rational x."""
        if problem.surrogate.reads == "targets":
            yield problem.probs, tuple(problem.mean_targets()), "weights"
            return
        for probs, x in _repair_probabilities(problem, near):
            yield probs, x, "weights"

    def verdict(self, problem: ExpectedLoss, scores: Sequence[Number], unit: str) -> MinimiserVerdict | None:
        x = fractions(scores)
        if unit != "weights" or min(x) <= 0:
            return None
        rows = [derivatives(problem.metric, problem.surrogate, label, x) for label in problem.labels]
        columns = zip(*rows, strict=True)
        means = [total(p * d for p, d in zip(problem.probs, column, strict=True)) for column in columns]
        if any(sign(mean) != 0 for mean in means):
            return None
        unique = _is_strictly_convex(problem)
        reason = f"the scores are the logarithms of these weights: {STRICT if unique else ZERO}"
        return MinimiserVerdict(unique, reason)


class _QuadraticForm:
    """Pair losses with piecewise quadratic margins: the derivatives are linear within the pieces."""

    def candidates(self, problem: ExpectedLoss, near: FloatArray) -> Iterator[Candidate]:
        """Yield solutions of derivatives of 0 within the pieces; the lowest score is 0."""
        pieces, weights = self.parts(problem)
        for scores in pieces.stationary(weights, near):
            yield problem.probs, tuple(score - min(scores) for score in scores), "scores"

    def verdict(self, problem: ExpectedLoss, scores: Sequence[Number], unit: str) -> MinimiserVerdict | None:
        pieces, weights = self.parts(problem)
        exact_scores = fractions(scores)
        if unit != "scores" or any(sign(entry) != 0 for entry in pieces.gradient(weights, exact_scores)):
            return None
        unique = pieces.unique(weights, exact_scores)
        only = "; pairs on curved pieces tie all items together, so that no other scores do" if unique else ""
        return MinimiserVerdict(unique, ZERO + only)

    def parts(self, problem: ExpectedLoss) -> tuple[Quadratic, dict[tuple[int, int], Fraction]]:
        """Return the margin, and the weights of the pairs, where they are rational."""
        pieces = Quadratic.from_margin(problem.surrogate.margin)
        pairs = expected_pairs(*problem)
        weights = dict(zip(pairs, fractions(pairs.values()), strict=True))
        return pieces, weights  # type: ignore[return-value]  # used only for margins with pieces


class _CornerForm:
    """Piecewise linear losses."""

    def candidates(self, problem: ExpectedLoss, near: FloatArray) -> Iterator[Candidate]:
        """Yield points where pieces meet; the lowest score is 0 where scores are rational."""
        for corner in corner_candidates(expected_terms(*problem), near):
            try:
                numbers = fractions(corner)
                scores: tuple[Number, ...] = tuple(number - min(numbers) for number in numbers)
            except ParameterError:
                scores = tuple(corner)
            yield problem.probs, scores, "scores"

    def verdict(self, problem: ExpectedLoss, scores: Sequence[Number], unit: str) -> MinimiserVerdict | None:
        unique = is_only_minimiser(expected_terms(*problem), scores) if unit == "scores" else None
        if unique is None:
            return None
        only = " even if the loss is tilted a little, so that no other scores do" if unique else ""
        reason = f"there slopes of the flat pieces that meet, averaged within each term, cancel{only}"
        return MinimiserVerdict(unique, f"{reason}; the loss is convex")


def _minimiser_form(surrogate: Any) -> MinimiserForm | None:
    """Return the way to prove minimisers of this surrogate; None where no way is known.

    Losses are recognised by their classes and numbers, never by a name: a subclass may be another loss.
    """
    compared = type(surrogate) in (Pairwise, Preorder)
    form_rules: list[tuple[bool, MinimiserForm]] = [
        (is_polyhedral(surrogate), _CornerForm()),
        (_is_rational(surrogate), _RationalForm()),
        (compared and Quadratic.from_margin(surrogate.margin) is not None, _QuadraticForm()),
    ]
    return _target_form(surrogate) or next((form for holds, form in form_rules if holds), None)


UNITS = {  # units of the numbers of a minimiser; all rise with the score
    "scores": "scores s_i",
    "weights": "weights exp(s_i)",
    "squared weights": "squared weights exp(2 s_i)",
    "slopes": "slopes of the penalty at s_i",
}


@dataclass(frozen=True)
class ExactMinimiser:
    """Scores that minimise an expected surrogate, exactly."""

    probs: tuple[Fraction, ...]  # those of the call, or others near them for which there are exact scores
    scores: tuple[Number, ...]  # one number per item, of the order of the scores
    unit: str  # of the numbers: a name of `UNITS`
    unique: bool  # proven: no other minimiser, up to adding a constant to all scores
    reason: str  # how a person checks the proof


def exact_minimiser(
    metric: Metric, surrogate: Surrogate, labels: Labels, probs: Probs, near: ArrayLike
) -> ExactMinimiser | None:
    """Find an exact minimiser of the expected surrogate near scores in doubles; None if none is proven.

    Where the loss is transcendental (Plackett and Luce; preorder with logistic or exponential margins) the
    probabilities move a little, so that rational weights minimise it: to the first, from short fractions on,
    for which sorting by the scores is suboptimal by the metric, if there are such.

    Parameters
    ----------
    metric
        The surrogate reads its targets, unless it reads the labels themselves.
    surrogate
        The surrogate whose expectation is minimised.
    labels, probs
        Labels of one query, and their probabilities.
    near
        Scores near the minimiser; the proof does not rest on them.
    """
    form, scores = _minimiser_form(surrogate), np.asarray(near, dtype=np.float64)
    problem, positions = _pose_problem(metric, surrogate, labels, probs)
    if form is None or scores.shape != (problem.labels[0].n_items,) or not np.isfinite(scores).all():
        return None
    minimiser = None
    try:
        for moved, numbers, unit in form.candidates(problem, scores):
            verdict = form.verdict(problem._replace(probs=moved), numbers, unit)
            if verdict is None or not (verdict.unique or _same_order(numbers, scores)):
                continue  # among many minimisers, only those that sort like the scores passed will do
            prob_at = dict(zip(positions, moved, strict=True))
            label_probs = tuple(prob_at.get(position, Fraction()) for position in range(len(probs)))
            minimiser = ExactMinimiser(label_probs, numbers, unit, *verdict)
            if moved == problem.probs or sign(regret(metric, problem.labels, moved, numbers)) == 1:
                return minimiser
    except ParameterError:  # an irrational number, or a user's function
        return None
    return minimiser


def verdict_of(
    metric: Metric,
    surrogate: Surrogate,
    labels: Labels,
    probs: Probs,
    scores: Sequence[Number],
    unit: str = "scores",
) -> MinimiserVerdict | None:
    """Prove that numbers of this unit minimise the expected surrogate; None where no proof is known."""
    form = _minimiser_form(surrogate)
    problem, _ = _pose_problem(metric, surrogate, labels, probs)
    if len(scores) != problem.labels[0].n_items:
        raise LengthMismatchError("scores", len(scores), problem.labels[0].n_items, "the label")
    try:
        return None if form is None else form.verdict(problem, tuple(scores), unit)
    except ParameterError:
        return None


def _pose_problem(
    metric: Metric, surrogate: Surrogate, labels: Labels, probs: Probs
) -> tuple[ExpectedLoss, list[int]]:
    """Build the problem on the labels of positive probability, and return their positions."""
    if len(labels) != len(probs):
        raise LengthMismatchError("probs", len(probs), len(labels), "labels")
    if not all(isinstance(prob, (Fraction, int)) for prob in probs):
        raise ParameterError("probs", probs, "fractions")
    if sum(probs) != 1 or min(probs) < 0:
        raise ParameterError("probs", [str(prob) for prob in probs], "fractions >= 0 that add up to 1")
    positions = [position for position, prob in enumerate(probs) if prob]
    exact_labels = tuple(read(labels[position]) for position in positions)
    if len({label.n_items for label in exact_labels}) != 1:
        raise ParameterError.because(
            f"Labels must have the same number of items, got {[label.n_items for label in exact_labels]}."
        )
    label_probs = tuple(Fraction(probs[position]) for position in positions)
    return ExpectedLoss(metric, surrogate, exact_labels, label_probs), positions
