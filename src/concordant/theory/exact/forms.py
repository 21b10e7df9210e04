"""Expected surrogates in exact arithmetic: candidates for their minimisers, and what proves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.surrogates.margins import EXPONENTIAL, Margin
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.pointwise import PENALTIES, Duchi, Squared
from concordant.theory.exact.enclosure import Number, fractions, sign, total
from concordant.theory.exact.labels import ExactLabel, fraction
from concordant.theory.exact.multipliers import minimal
from concordant.theory.exact.pairs import Quadratic, expected_pairs
from concordant.theory.exact.pieces import expected_terms, polyhedral
from concordant.theory.exact.polyhedral import corners
from concordant.theory.exact.rational import derivatives, only_one, rational, repaired
from concordant.theory.exact.targets import expected_targets
from concordant.types import FloatArray

__all__ = ["Candidate", "Form", "Problem", "Verdict", "form_of"]

ZERO = "there all derivatives of the expected loss are 0, and it is convex"
CURVED = "there all derivatives of the expected loss are 0, and it is strictly convex"
STRICT = f"{CURVED} in score differences"


class Problem(NamedTuple):
    """What is minimised: a surrogate's expectation over labels, each of which is possible."""

    metric: Metric
    surrogate: Any
    labels: tuple[ExactLabel, ...]
    probs: tuple[Fraction, ...]

    def mean_targets(self) -> list[Fraction]:
        """Expected targets, where they are rational."""
        return fractions(expected_targets(self.metric, self.labels, self.probs))


class Verdict(NamedTuple):
    """Scores are a minimiser: whether it is proven to be the only one, and how a person checks it."""

    unique: bool
    reason: str


Candidate: TypeAlias = tuple[tuple[Fraction, ...], tuple[Number, ...], str]
"""Probabilities, numbers by item, and their unit."""


class Form(Protocol):
    """How minimisers of a kind of surrogate are found and proven."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """Give what may be a minimiser near these scores."""

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """Give the proof that scores of this unit are a minimiser; None where they are not known to be."""


class Squares:
    """Squared loss: the scores are the expected targets, up to a constant if it is centred."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """The expected targets."""
        del near
        yield problem.probs, tuple(problem.mean_targets()), "scores"

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """Half the derivative is s_i - E[r_i], less its mean if centred."""
        apart = [s - mean for s, mean in zip(fractions(scores), problem.mean_targets(), strict=True)]
        level = sum(apart, Fraction()) / len(apart) if problem.surrogate.centred else Fraction()
        if unit != "scores" or any(entry != level for entry in apart):
            return None
        how = f", up to a constant: {STRICT}" if problem.surrogate.centred else f": {CURVED}"
        return Verdict(unique=True, reason=f"the scores are the expected targets{how}")


class Penalised:
    """Linear loss with a penalty: nu * penalty'(s_i) is the expected target."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """Slopes of the penalty; scores themselves where it is the square."""
        del near
        unit, rate = self.unit_and_rate(problem)
        yield problem.probs, tuple(mean / rate for mean in problem.mean_targets()), unit

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """The derivative is nu * penalty'(s_i) - E[r_i]."""
        own, rate = self.unit_and_rate(problem)
        pairs = zip(fractions(scores), problem.mean_targets(), strict=True)
        if unit != own or any(rate * s != mean for s, mean in pairs):
            return None
        slope = "2 nu s_i" if unit == "scores" else "nu times the slope of the penalty"
        return Verdict(unique=True, reason=f"{slope} is the expected target of each item: {CURVED}")

    def unit_and_rate(self, problem: Problem) -> tuple[str, Fraction]:
        """Give the unit of the numbers, and what turns them into expected targets."""
        nu = fraction(problem.surrogate.nu)
        return ("scores", 2 * nu) if problem.surrogate.penalty.name == "square" else ("slopes", nu)


class ExponentialPairs:
    """Pairwise exponential loss: exp(2 s_i) are the expected targets, up to a factor."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """The expected targets."""
        del near
        yield problem.probs, tuple(problem.mean_targets()), "squared weights"

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """With x = exp(s), derivative i is the sum over j of (E[r_j] x_i^2 - E[r_i] x_j^2)/(x_i x_j)."""
        squares, means = fractions(scores), problem.mean_targets()
        if unit != "squared weights" or min(*squares, *means) <= 0:
            return None
        if len({square / mean for square, mean in zip(squares, means, strict=True)}) > 1:
            return None
        return Verdict(unique=True, reason=f"exp(2 s_i) are the expected targets, up to a factor: {STRICT}")


class Rational:
    """Losses whose derivatives are rational functions of the weights x = exp(s)."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """The expected targets, where they are read; else probabilities are moved until x is rational."""
        if problem.surrogate.reads == "targets":
            yield problem.probs, tuple(problem.mean_targets()), "weights"
            return
        for probs, x in repaired(*problem, near):
            yield probs, x, "weights"

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """Derivatives of 0 at s = log x."""
        x = fractions(scores)
        if unit != "weights" or min(x) <= 0:
            return None
        rows = [derivatives(problem.metric, problem.surrogate, label, x) for label in problem.labels]
        columns = zip(*rows, strict=True)
        means = [total(p * d for p, d in zip(problem.probs, column, strict=True)) for column in columns]
        if any(sign(mean) != 0 for mean in means):
            return None
        unique = only_one(*problem)
        return Verdict(
            unique, f"the scores are the logarithms of these weights: {STRICT if unique else ZERO}"
        )


class QuadraticPairs:
    """Pairs with margins of quadratic pieces: the derivatives are linear within the pieces."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """Solve for derivatives of 0 within the pieces; the lowest score is 0."""
        pieces, weights = self.parts(problem)
        for scores in pieces.stationary(weights, near):
            yield problem.probs, tuple(score - min(scores) for score in scores), "scores"

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """Derivatives of 0."""
        pieces, weights = self.parts(problem)
        seen = fractions(scores)
        if unit != "scores" or any(sign(entry) != 0 for entry in pieces.gradient(weights, seen)):
            return None
        unique = pieces.unique(weights, seen)
        only = "; pairs on curved pieces tie all items together, so that no other scores do" if unique else ""
        return Verdict(unique, ZERO + only)

    def parts(self, problem: Problem) -> tuple[Quadratic, dict[tuple[int, int], Fraction]]:
        """Give the margin, and the weights of the pairs, where they are rational."""
        pieces = Quadratic.of(problem.surrogate.margin)
        pairs = expected_pairs(*problem)
        weights = dict(zip(pairs, fractions(pairs.values()), strict=True))
        return pieces, weights  # type: ignore[return-value]  # asked only where there are pieces


class Corners:
    """Losses of flat pieces."""

    def candidates(self, problem: Problem, near: FloatArray) -> Iterator[Candidate]:
        """Points where pieces meet; the lowest score is 0 where scores are rational."""
        for found in corners(expected_terms(*problem), near):
            try:
                scores: tuple[Number, ...] = tuple(
                    score - min(fractions(found)) for score in fractions(found)
                )
            except ParameterError:
                scores = tuple(found)
            yield problem.probs, scores, "scores"

    def verdict(self, problem: Problem, scores: Sequence[Number], unit: str) -> Verdict | None:
        """Slopes that cancel."""
        unique = minimal(expected_terms(*problem), scores) if unit == "scores" else None
        if unique is None:
            return None
        only = " even if the loss is tilted a little, so that no other scores do" if unique else ""
        reason = f"there slopes of the flat pieces that meet, averaged within each term, cancel{only}"
        return Verdict(unique, f"{reason}; the loss is convex")


def form_of(surrogate: Any) -> Form | None:
    """Give how minimisers of this surrogate are proven; None where no way is known.

    Losses are told by their classes and numbers, never by a name: what inherits may be another loss.
    """
    kind, margin = type(surrogate), getattr(surrogate, "margin", None)
    exponential = type(margin) is Margin and margin.kind == EXPONENTIAL
    compared = kind in (Pairwise, Preorder) and Quadratic.of(margin) is not None
    known: list[tuple[bool, Form]] = [
        (polyhedral(surrogate), Corners()),
        (kind is Squared, Squares()),
        (kind is Duchi and surrogate.penalty in PENALTIES.values(), Penalised()),
        (kind is Pairwise and exponential, ExponentialPairs()),
        (rational(surrogate), Rational()),
        (compared, QuadraticPairs()),
    ]
    return next((form for holds, form in known if holds), None)
