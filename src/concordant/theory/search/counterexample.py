"""Counterexample: a label distribution on which a combination fails, in exact numbers to check by hand."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from concordant.data.labels import Permutations, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label, LabelDistribution
from concordant.exceptions import ConcordantError
from concordant.surrogates.pairwise import Preorder
from concordant.surrogates.pointwise import Duchi, Squared
from concordant.theory.combination import Combination, misfit
from concordant.theory.exact.enclosure import Enclosure, Number, low, sign, text
from concordant.theory.exact.exact_labels import read
from concordant.theory.exact.exact_targets import expected_pair_targets, expected_targets, surrogate_labels
from concordant.theory.exact.exact_values import Order, best_value, compatible_orders, mean_value, regret
from concordant.theory.exact.pair_losses import expected_pairs
from concordant.theory.exact.stationary import UNITS, exact_minimiser, verdict_of
from concordant.theory.kinds import PairSquared, SurrogateLike, format_surrogate
from concordant.theory.search.hunt import MOST_LABELS, Candidate, Finding, shrink
from concordant.theory.search.pair_decoding import decoded_places, forward
from concordant.theory.search.patterns import written_order
from concordant.theory.search.trial import Trial, read_surrogate_labels
from concordant.theory.spaces import format_label

# Requirements on a distribution of labels before anything is proven at it.

ROUNDED = 1e-9  # doubles that are nearer than this share are equal


def _is_distribution(combination: Combination, labels: Sequence[Label], probs: Sequence[Fraction]) -> bool:
    """True if labels of the combination's space, of equal length, have probabilities > 0 that sum to 1."""
    fractions = all(isinstance(prob, (Fraction, int)) and prob > 0 for prob in probs)
    return (
        len(labels) == len(probs)
        and fractions
        and sum(probs) == 1
        and all(is_in_space(label, combination.space) for label in labels)
        and len({len(label) for label in labels}) == 1
    )


def is_in_space(label: Any, space: str) -> bool:
    """True if a label is in a space: grades are whole; preferences weigh 1 and have no cycle.

    >>> grades = np.array([2.0, 0.0])
    >>> is_in_space(grades, "grades"), is_in_space(grades, "binary"), is_in_space(grades / 4, "grades")
    (True, False, False)
    >>> is_in_space(Preferences([0, 1], [1, 0], 2), "preferences")
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


def surrogate_labels_match(combination: Combination, labels: Sequence[Label]) -> bool:
    """True if the library passes the surrogate the exact surrogate labels, given these labels and no others.

    It does not where pd is read from grades and no label has three of them: it then passes 0 and 1.
    """
    if isinstance(combination.surrogate, PairSquared):
        return True  # pair targets are computed from each label separately
    surrogate = combination.surrogate
    exact = [
        [float(low(number)) for number in surrogate_labels(combination.metric, surrogate, label)]
        for label in labels
    ]
    return bool(np.allclose(read_surrogate_labels(combination, list(labels)), exact, rtol=ROUNDED, atol=0.0))


# A counterexample in words: the expected targets, the minimum, the decoded order and its regret.

PLACES = "places"  # unit of scores that are decoded ranks, negated
SHOWN = 4  # orders


def _sentences(example: Counterexample) -> Iterator[str]:
    """Yield the sentences, and one line for each label."""
    widest = max(len(format_label(label)) for label in example.labels)
    yield f"{example.n_items} items, numbered from 1; the label is"
    for label, prob in zip(example.labels, example.probs, strict=True):
        yield f"  {format_label(label):<{widest}}  with probability {prob}"
    yield from _describe_expectation(example)
    yield _describe_minimum(example)
    name, way = str(example.combination.metric), "It" if example.unit == PLACES else "Sorting"
    yield f"{way} gives {_format_orders(example.decoded)}: expected {name} {text(example.value)}."
    yield f"Best is {_format_orders(example.best)}: expected {name} {text(example.best_value)}."
    yield f"Lost: {text(example.regret)}{_describe_ties(example)}."


def _describe_expectation(example: Counterexample) -> Iterator[str]:
    """Describe the expected targets or pair weights, if the expected loss depends on nothing else."""
    combination, labels = example.combination, example.labels
    if type(combination.surrogate) is Preorder:
        weights = expected_pairs(
            combination.metric, combination.surrogate, [read(label) for label in labels], example.probs
        )
        terms = (f"{text(w)} phi(s_{i + 1} - s_{j + 1})" for (i, j), w in sorted(weights.items()))
        yield f"The expected loss is {' + '.join(terms)}."
    elif combination.surrogate.reads == "targets":
        means = expected_targets(combination.metric, labels, example.probs)
        yield f"The expected targets are {', '.join(map(text, means))}."


def _describe_minimum(example: Counterexample) -> str:
    surrogate = example.combination.surrogate
    if example.unit == PLACES:
        return f"Expected pair targets, decoded by {example.combination.decoder}: {example.reason}"
    listed = ", ".join(text(score) for score in example.scores)
    only, others = ("only ", format_equivalents(surrogate, example.unit)) if example.unique else ("", "")
    where = f"is least {only}at {UNITS[example.unit]} = {listed}{others}"
    return f"The expected {format_surrogate(surrogate)} loss {where}: {example.reason}."


def format_equivalents(surrogate: SurrogateLike, unit: str) -> str:
    """Describe the other scores of the same minimum: most losses ignore a constant added to all scores.

    >>> format_equivalents(Squared(), "scores"), format_equivalents(Squared(centred=False), "scores")
    (' (or those plus a constant)', '')
    """
    if isinstance(surrogate, Duchi) or (isinstance(surrogate, Squared) and not surrogate.centred):
        return ""
    return " (or those plus a constant)" if unit == "scores" else " (or those times a factor)"


def _describe_ties(example: Counterexample) -> str:
    """Note that the regret is a mean over ties, whatever the convention; empty if ties do not matter."""
    if example.certain:
        return ""
    ties = example.combination.metric.convention.ties
    whatever = "" if ties == "expected" else f" (the convention, ties={ties}, is not applied)"
    return f", on average over the ties{whatever}"


def _format_orders(orders: Sequence[Order]) -> str:
    shown = ", ".join(map(written_order, orders[:SHOWN]))
    return shown if len(orders) <= SHOWN else f"{shown} and {len(orders) - SHOWN} more"


WIDTH = 110
ATTEMPTS = 12  # shrunk mixtures of each number of labels that are made exact, at most, for each source
SOURCES = 2  # failing mixtures of each number of labels that are shrunk, at most


@dataclass(frozen=True, eq=False, repr=False)
class Counterexample:
    """Labels and probabilities for which the decoded minimiser of the expected surrogate is not optimal.

    Attributes
    ----------
    combination
        The combination that fails.
    labels, probs
        The distribution: labels of a query, and their probabilities as fractions.
    scores, unit
        The minimiser, one number per item, and its unit (`theory.exact.stationary.UNITS`).
    unique
        True if it is proven that there is no other minimiser, up to a constant.
    reason
        Why the scores are a minimiser.
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
        """Number of items of the query."""
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
        """Expected metric of the decoded orders: the mean over the orders that the scores allow."""
        return mean_value(self.combination.metric, self.labels, self.probs, self.scores)

    @property
    def regret(self) -> Number:
        """Expected metric lost, above 0."""
        return regret(self.combination.metric, self.labels, self.probs, self.scores)

    @property
    def certain(self) -> bool:
        """True if there is regret however ties are broken."""
        return not set(self.decoded) & set(self.best)

    def distribution(self) -> LabelDistribution:
        """Return the labels and probabilities, in doubles."""
        probs = np.array([[float(prob) for prob in self.probs]])
        return LabelDistribution(self.labels, probs, Queries.from_sizes([self.n_items]))

    def verify(self) -> bool:
        """Verify the counterexample from scratch, in exact arithmetic: distribution, minimiser and regret.

        False if anything stated is wrong, or cannot be proven. Labels must be in the combination's space
        (grades whole, preferences of weight 1 and without a cycle), and the library must pass the surrogate
        the labels of the exact computation. Regret is averaged over ties, whatever the metric's convention.
        """
        try:
            return self.well_formed() and self.minimises() and sign(self.regret) == 1
        except ConcordantError:
            return False

    def well_formed(self) -> bool:
        """True if it is a distribution of labels that the combination reads, and scores of its items."""
        combination = self.combination
        return (
            not misfit(combination)
            and _is_distribution(combination, self.labels, self.probs)
            and len(self.scores) == len(self.labels[0])
            and all(isinstance(score, (Fraction, int, Enclosure)) for score in self.scores)
            and surrogate_labels_match(combination, self.labels)
        )

    def minimises(self) -> bool:
        """True if the scores minimise the expected surrogate; of pairs, if they are the decoded ranks."""
        combination, distribution = self.combination, (self.labels, self.probs)
        if isinstance(combination.surrogate, PairSquared):
            is_decoded = type(combination.surrogate) is PairSquared and self.unit == PLACES
            return is_decoded and tuple(self.scores) == decoded_places(combination, *distribution)
        verdict = verdict_of(combination.metric, combination.surrogate, *distribution, self.scores, self.unit)
        return verdict is not None and (verdict.unique or not self.unique)

    def to_dict(self) -> dict[str, Any]:
        """Return everything needed to check the counterexample, as plain values."""
        return {
            "labels": [format_label(label) for label in self.labels],
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
        mixture = " + ".join(f"{p} {format_label(y)}" for p, y in zip(self.probs, self.labels, strict=True))
        return f"Counterexample({self.combination}: {mixture}, regret {text(self.regret)})"

    def __str__(self) -> str:
        rows = (textwrap.fill(line, WIDTH, subsequent_indent=_indent(line)) for line in self.lines())
        return "\n".join(rows)

    def lines(self) -> list[str]:
        """Return one line per sentence or label, however long."""
        return list(_sentences(self))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def find_counterexample(trial: Trial, finding: Finding) -> Counterexample | None:
    """Shrink the failing mixtures until one is verified in exact arithmetic; None if none is.

    A mixture whose minimiser is proven to be unique comes first.
    """
    spare = None
    if not _has_exact_values(trial):
        return None
    for source in _few_per_size(finding.candidates, SOURCES):
        if spare is not None and len(source.label_indices) > MOST_LABELS:
            break
        for candidate in _few_per_size(shrink(trial, source), ATTEMPTS):
            counterexample = _exact_counterexample(trial, candidate)
            if counterexample is None or not counterexample.verify():
                continue
            if counterexample.unique:
                return counterexample
            spare = spare or counterexample
    return spare


def _has_exact_values(trial: Trial) -> bool:
    """True unless the metric uses functions of the caller's, or is a class of the caller's."""
    try:
        best_value(trial.combination.metric, trial.labels[-1:], (Fraction(1),))
    except ConcordantError:
        return False
    return True


def _few_per_size(candidates: Iterable[Candidate], most: int) -> Iterator[Candidate]:
    """Yield the first few mixtures of each number of labels: some losses need more labels to be exact."""
    n_passed: Counter[int] = Counter()
    for candidate in candidates:
        n_passed[len(candidate.label_indices)] += 1
        if n_passed[len(candidate.label_indices)] <= most:
            yield candidate


def _exact_counterexample(trial: Trial, candidate: Candidate) -> Counterexample | None:
    """Build the counterexample with an exact minimiser, if there is one in closed form."""
    combination, parts = trial.combination, sum(candidate.counts)
    labels = tuple(trial.labels[number] for number in candidate.label_indices)
    probs = tuple(Fraction(count, parts) for count in candidate.counts)
    if isinstance(combination.surrogate, PairSquared):
        places = decoded_places(combination, labels, probs)
        if places is None:
            return None
        reason = _format_pair_targets(combination, labels, probs)
        return Counterexample(combination, labels, probs, places, PLACES, True, reason)
    if not surrogate_labels_match(combination, labels):
        return None
    minimiser = exact_minimiser(
        combination.metric, combination.surrogate, labels, probs, np.array(candidate.scores)
    )
    return None if minimiser is None else Counterexample(combination, labels, **vars(minimiser))


def _format_pair_targets(combination: Combination, labels: Sequence[Label], probs: Sequence[Fraction]) -> str:
    rows = expected_pair_targets(combination.metric, labels, probs)
    return "[" + "; ".join(" ".join(str(entry) for entry in row) for row in rows) + "]"
