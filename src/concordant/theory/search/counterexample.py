"""Counterexample: a label distribution on which a combination fails, in exact numbers to check by hand."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from concordant import decoders
from concordant.exceptions import ParameterError
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.surrogates.pairwise import Preorder
from concordant.theory.combination import Combination
from concordant.theory.exact.enclosure import Number, sign, text
from concordant.theory.exact.labels import read
from concordant.theory.exact.pair_targets import expected_pair_targets
from concordant.theory.exact.pairs import expected_pairs
from concordant.theory.exact.stationary import UNITS, Pinned, is_minimiser, pinned
from concordant.theory.exact.targets import expected_targets
from concordant.theory.exact.values import Order, best_value, compatible_orders, mean_value, regret
from concordant.theory.kinds import PairSquared, described
from concordant.theory.search.expected import read_by
from concordant.theory.search.hunt import MOST_LABELS, Candidate, Finding
from concordant.theory.search.shrink import shrunk
from concordant.theory.search.trial import Trial
from concordant.theory.spaces import written

__all__ = ["Counterexample", "first_verified"]

PLACES = "places"  # unit of scores that are decoded places, negated
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
        """Check it from scratch, in exact arithmetic: probabilities, minimiser, and what is lost."""
        proper = sum(self.probs) == 1 and all(prob > 0 for prob in self.probs)
        return proper and self.minimises() and sign(self.regret) == 1

    def minimises(self) -> bool:
        """Tell whether the scores minimise the expected surrogate; of pairs, whether they are decoded."""
        one = self.combination
        if isinstance(one.surrogate, PairSquared):
            return tuple(self.scores) == decoded_places(one, self.labels, self.probs)
        return is_minimiser(one.metric, one.surrogate, self.labels, self.probs, self.scores, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Give what is needed to check it as plain values."""
        return {
            "labels": [written(label) for label in self.labels],
            "probabilities": [str(prob) for prob in self.probs],
            "scores": [text(score) for score in self.scores],
            "unit": self.unit,
            "unique": self.unique,
            "decoded": written_orders(self.decoded),
            "value": text(self.value),
            "best": written_orders(self.best),
            "best_value": text(self.best_value),
            "regret": text(self.regret),
            "however_ties_are_broken": self.certain,
        }

    def __repr__(self) -> str:
        mixture = " + ".join(f"{p} {written(y)}" for p, y in zip(self.probs, self.labels, strict=True))
        return f"Counterexample({self.combination}: {mixture}, regret {text(self.regret)})"

    def __str__(self) -> str:
        widest = max(len(written(label)) for label in self.labels)
        rows = zip(self.labels, self.probs, strict=True)
        return "\n".join(
            [
                f"{self.n_items} items, numbered from 1; the label is",
                *(f"  {written(label):<{widest}}  with probability {prob}" for label, prob in rows),
                *self.summed_up(),
                textwrap.fill(self.minimum(), 110),
                *self.told(),
                f"Lost: {text(self.regret)}{'' if self.certain else ', on average over the ties'}.",
            ]
        )

    def summed_up(self) -> list[str]:
        """Say what the surrogate is told on average, where that is all it depends on."""
        one, labels = self.combination, self.labels
        if isinstance(one.surrogate, Preorder):
            weights = expected_pairs(one.metric, one.surrogate, [read(label) for label in labels], self.probs)
            terms = (f"{text(w)} phi(s_{i + 1} - s_{j + 1})" for (i, j), w in sorted(weights.items()))
            return [textwrap.fill(f"The expected loss is {' + '.join(terms)}.", 110)]
        if one.surrogate.reads != "targets":
            return []
        means = expected_targets(one.metric, labels, self.probs)
        return [f"The expected targets are {', '.join(map(text, means))}."]

    def minimum(self) -> str:
        """Say where the minimum is, and how that is seen."""
        listed = ", ".join(text(score) for score in self.scores)
        if self.unit == PLACES:
            return f"Expected pair targets, decoded by {self.combination.decoder}: {self.reason}"
        only = "only " if self.unique else ""
        where = f"is least {only}at {UNITS[self.unit]} = {listed}"
        alone = " (or those plus a constant)" if self.unique and self.unit == "scores" else ""
        return f"The expected {described(self.combination.surrogate)} loss {where}{alone}: {self.reason}."

    def told(self) -> list[str]:
        """Say what the decoded and the best order are worth."""
        name, way = str(self.combination.metric), "It" if self.unit == PLACES else "Sorting"
        return [
            f"{way} gives {listing(self.decoded)}: expected {name} {text(self.value)}.",
            f"Best is {listing(self.best)}: expected {name} {text(self.best_value)}.",
        ]


def written_orders(orders: Iterable[Order]) -> list[str]:
    """Write orders, items counted from 1."""
    return [">".join(str(item + 1) for item in order) for order in orders]


def listing(orders: Sequence[Order], most: int = 4) -> str:
    """Write a few orders, and how many more there are."""
    shown = ", ".join(written_orders(orders[:most]))
    return shown if len(orders) <= most else f"{shown} and {len(orders) - most} more"


def decoded_places(
    one: Combination, labels: Sequence[Label], probs: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """Give the places of the decoded order, negated, from the exact expectations of the pair targets."""
    u = expected_pair_targets(one.metric, labels, probs)
    decode = decoders.average_precision if one.metric.name == "ap" else decoders.feedback_arc
    order = decode([[float(entry) for entry in row] for row in u], method=one.decoder)
    return tuple(Fraction(-int(place)) for place in order.positions)


def first_verified(trial: Trial, finding: Finding) -> Counterexample | None:
    """Shrink what was found until a mixture stands in exact arithmetic; None where none does.

    One whose minimiser is proven to be the only one comes first.
    """
    spare = None
    for source in few_of_each_size(finding.candidates, SOURCES):
        if spare is not None and len(source.chosen) > MOST_LABELS:
            break
        for candidate in few_of_each_size(shrunk(trial, source), ATTEMPTS):
            try:
                found = made_exact(trial, candidate)
                verified = found is not None and found.verify()
            except ParameterError:  # a convention that has no exact values
                return None
            if verified and found is not None and found.unique:
                return found
            spare = spare or (found if verified else None)
    return spare


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
        places = decoded_places(one, labels, probs)
        return Counterexample(one, labels, probs, places, PLACES, True, described_pairs(one, labels, probs))
    if not told_alike(trial, candidate):
        return None
    found: Pinned | None = pinned(one.metric, one.surrogate, labels, probs, np.array(candidate.scores))
    if found is None:
        return None
    return Counterexample(one, labels, found.probs, found.scores, found.unit, found.unique, found.reason)


def told_alike(trial: Trial, candidate: Candidate) -> bool:
    """Tell whether these labels alone would be told to the surrogate as they are among all labels.

    They are not where pd is read from grades, and no label has three of them.
    """
    labels = [trial.labels[number] for number in candidate.chosen]
    return bool((read_by(trial.one, labels) == trial.table[list(candidate.chosen)]).all())


def described_pairs(one: Combination, labels: Sequence[Label], probs: Sequence[Fraction]) -> str:
    """Write the expected pair targets."""
    rows = expected_pair_targets(one.metric, labels, probs)
    return "[" + "; ".join(" ".join(str(entry) for entry in row) for row in rows) + "]"
