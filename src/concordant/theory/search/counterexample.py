"""Counterexample: a label distribution on which a combination fails, in exact numbers to check by hand."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from concordant.exceptions import ConcordantError
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.theory.combination import Combination, misfit
from concordant.theory.exact.enclosure import Enclosure, Number, sign, text
from concordant.theory.exact.pair_targets import expected_pair_targets
from concordant.theory.exact.stationary import pinned, verdict_of
from concordant.theory.exact.values import Order, best_value, compatible_orders, mean_value, regret
from concordant.theory.kinds import PairSquared
from concordant.theory.search.checking import is_distribution, told_alike
from concordant.theory.search.hunt import MOST_LABELS, Candidate, Finding
from concordant.theory.search.pair_decoding import decoded_places
from concordant.theory.search.patterns import written_order
from concordant.theory.search.sentences import PLACES, sentences
from concordant.theory.search.shrink import shrunk
from concordant.theory.search.trial import Trial
from concordant.theory.spaces import written

__all__ = ["Counterexample", "first_verified"]

WIDTH = 110
ATTEMPTS = 12  # mixtures of each number of labels that are pinned, at most, for each that was found
SOURCES = 2  # found mixtures of each number of labels that are shrunk, at most


@dataclass(frozen=True, eq=False, repr=False)
class Counterexample:
    """Labels and probabilities for which the minimiser of the expected surrogate, decoded, is not optimal.

    Attributes
    ----------
    combination
        What fails.
    labels, probs
        The distribution: labels of one query, and their probabilities as fractions.
    scores, unit
        The minimiser, one number per item; what the numbers are (`theory.exact.stationary.UNITS`).
    unique
        Whether it is proven that there is no other minimiser, up to a constant.
    reason
        How it is seen to be one.
    """

    combination: Combination
    labels: tuple[Label, ...]
    probs: tuple[Fraction, ...]
    scores: tuple[Number, ...]
    unit: str
    unique: bool
    reason: str

    @property
    def n_items(self) -> int:
        """Items of the query."""
        return len(self.scores)

    @property
    def decoded(self) -> list[Order]:
        """Orders that the scores allow, best item first, items counted from 0."""
        return compatible_orders(self.scores)

    @property
    def best(self) -> tuple[Order, ...]:
        """The best orders."""
        return best_value(self.combination.metric, self.labels, self.probs)[0]

    @property
    def best_value(self) -> Number:
        """Expected metric of the best orders."""
        return best_value(self.combination.metric, self.labels, self.probs)[1]

    @property
    def value(self) -> Number:
        """Expected metric of what is decoded: the mean over the orders that the scores allow."""
        return mean_value(self.combination.metric, self.labels, self.probs, self.scores)

    @property
    def regret(self) -> Number:
        """What is lost, above 0."""
        return regret(self.combination.metric, self.labels, self.probs, self.scores)

    @property
    def certain(self) -> bool:
        """Whether it is lost however ties are broken."""
        return not set(self.decoded) & set(self.best)

    def distribution(self) -> LabelDistribution:
        """Give the labels and probabilities, in doubles."""
        probs = np.array([[float(prob) for prob in self.probs]])
        return LabelDistribution(self.labels, probs, Queries.from_sizes([self.n_items]))

    def verify(self) -> bool:
        """Check it from scratch, in exact arithmetic: labels, probabilities, minimiser, and what is lost.

        False where anything is not as it is said to be, or not known to be. Labels are of the combination's
        space (grades whole, preferences of weight 1 and without a cycle), and the library tells the surrogate
        of them what is reckoned with. What is lost is averaged over ties, whatever the metric's convention.
        """
        try:
            return self.well_formed() and self.minimises() and sign(self.regret) == 1
        except ConcordantError:
            return False

    def well_formed(self) -> bool:
        """Tell whether it is a distribution of labels that the combination reads, and scores of its items."""
        one = self.combination
        return (
            not misfit(one)
            and is_distribution(one, self.labels, self.probs)
            and len(self.scores) == len(self.labels[0])
            and all(isinstance(score, (Fraction, int, Enclosure)) for score in self.scores)
            and told_alike(one, self.labels)
        )

    def minimises(self) -> bool:
        """Tell whether the scores minimise the expected surrogate; of pairs, whether they are decoded."""
        one, given = self.combination, (self.labels, self.probs)
        if isinstance(one.surrogate, PairSquared):
            own = type(one.surrogate) is PairSquared and self.unit == PLACES
            return own and tuple(self.scores) == decoded_places(one, *given)
        found = verdict_of(one.metric, one.surrogate, *given, self.scores, self.unit)
        return found is not None and (found.unique or not self.unique)

    def to_dict(self) -> dict[str, Any]:
        """Give what is needed to check it as plain values."""
        return {
            "labels": [written(label) for label in self.labels],
            "probabilities": [str(prob) for prob in self.probs],
            "scores": [text(score) for score in self.scores],
            "unit": self.unit,
            "unique": self.unique,
            "decoded": [written_order(order) for order in self.decoded],
            "value": text(self.value),
            "best": [written_order(order) for order in self.best],
            "best_value": text(self.best_value),
            "regret": text(self.regret),
            "however_ties_are_broken": self.certain,
        }

    def __repr__(self) -> str:
        mixture = " + ".join(f"{p} {written(y)}" for p, y in zip(self.probs, self.labels, strict=True))
        return f"Counterexample({self.combination}: {mixture}, regret {text(self.regret)})"

    def __str__(self) -> str:
        rows = (textwrap.fill(line, WIDTH, subsequent_indent=indent(line)) for line in self.lines())
        return "\n".join(rows)

    def lines(self) -> list[str]:
        """Give what is to be said, one sentence or label each, however long."""
        return list(sentences(self))


def indent(line: str) -> str:
    """Give the spaces with which a line begins."""
    return line[: len(line) - len(line.lstrip())]


def first_verified(trial: Trial, finding: Finding) -> Counterexample | None:
    """Shrink what was found until a mixture stands in exact arithmetic; None where none does.

    One whose minimiser is proven to be the only one comes first.
    """
    spare = None
    if not has_exact_values(trial):
        return None
    for source in few_of_each_size(finding.candidates, SOURCES):
        if spare is not None and len(source.chosen) > MOST_LABELS:
            break
        for candidate in few_of_each_size(shrunk(trial, source), ATTEMPTS):
            found = made_exact(trial, candidate)
            if found is None or not found.verify():
                continue
            if found.unique:
                return found
            spare = spare or found
    return spare


def has_exact_values(trial: Trial) -> bool:
    """Tell whether the metric has: not by functions of the caller's, nor as a class of the caller's."""
    try:
        best_value(trial.one.metric, trial.labels[-1:], (Fraction(1),))
    except ConcordantError:
        return False
    return True


def few_of_each_size(candidates: Iterable[Candidate], most: int) -> Iterator[Candidate]:
    """Pass on the first few mixtures of each number of labels: some losses need more labels to be exact."""
    seen: Counter[int] = Counter()
    for candidate in candidates:
        seen[len(candidate.chosen)] += 1
        if seen[len(candidate.chosen)] <= most:
            yield candidate


def made_exact(trial: Trial, candidate: Candidate) -> Counterexample | None:
    """Give the candidate with an exact minimiser, where there is one in closed form."""
    one, parts = trial.one, sum(candidate.counts)
    labels = tuple(trial.labels[number] for number in candidate.chosen)
    probs = tuple(Fraction(count, parts) for count in candidate.counts)
    if isinstance(one.surrogate, PairSquared):
        places, reason = decoded_places(one, labels, probs), described_pairs(one, labels, probs)
        return None if places is None else Counterexample(one, labels, probs, places, PLACES, True, reason)
    if not told_alike(one, labels):
        return None
    found = pinned(one.metric, one.surrogate, labels, probs, np.array(candidate.scores))
    if found is None:
        return None
    return Counterexample(one, labels, found.probs, found.scores, found.unit, found.unique, found.reason)


def described_pairs(one: Combination, labels: Sequence[Label], probs: Sequence[Fraction]) -> str:
    """Write the expected pair targets."""
    rows = expected_pair_targets(one.metric, labels, probs)
    return "[" + "; ".join(" ".join(str(entry) for entry in row) for row in rows) + "]"
