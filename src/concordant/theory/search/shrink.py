"""Shrinking: of a mixture that fails, the simplest ones that do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.synthetic.distribution import Label
from concordant.theory.kinds import PairSquared
from concordant.theory.search.hunt import LOST, MOST_LABELS, Candidate, Tables, candidate, sparse
from concordant.theory.search.trial import Trial
from concordant.theory.spaces import written

__all__ = ["shrunk"]

DENOMINATORS = range(1, 11)  # of the probabilities that are tried
REGROUPED = 2000  # sparse mixtures that are drawn where no single label can be dropped

Options: TypeAlias = list[tuple[tuple[int, ...], tuple[int, ...]]]
"""Mixtures: numbers of labels, and their parts."""


def shrunk(trial: Trial, found: Candidate) -> Iterator[Candidate]:
    """Give mixtures of the same labels, or fewer and smaller ones, that fail too; the simplest first."""
    wanted = LOST * trial.spread
    few = pruned(trial, found, wanted)
    options = list(simpler(lightened(trial, few, wanted).chosen)) if len(few.chosen) <= MOST_LABELS else []
    kept = failing(trial, options, max(wanted, found.regret / 100.0))
    # What is lost whatever the ties convinces more than what is lost on average over them. Rounded, and with
    # items numbered in one way, so that the last digits of a machine do not decide which one is shown.
    named = [renumbered(trial, one) for one in kept]
    named.sort(
        key=lambda one: (not one.certain, len(one.chosen), sum(one.counts), -round(one.regret, 9), one.chosen)
    )
    yield from dict.fromkeys(named)
    yield found


def renumbered(trial: Trial, one: Candidate) -> Candidate:
    """Give the same mixture with its items numbered so that its labels, the likeliest first, come first.

    Metrics and surrogates do not see how items are numbered; decoders of pairs break ties by it.
    """
    if isinstance(trial.one.surrogate, PairSquared):
        return one
    options = []
    for order in itertools.permutations(range(trial.n_items)):
        numbers = [trial.numbers[written(renamed(trial.labels[label], order))] for label in one.chosen]
        parts = sorted(zip((-count for count in one.counts), numbers, strict=True))
        options.append((parts, tuple(round(one.scores[item], 12) for item in order)))
    parts, scores = min(options)
    chosen, counts = tuple(number for _, number in parts), tuple(-count for count, _ in parts)
    return Candidate(chosen, counts, one.regret, one.certain, scores)


def renamed(label: Label, order: tuple[int, ...]) -> Label:
    """Give what a label says with item order[k] as item k."""
    rows = np.array(order)
    return label.take(rows) if isinstance(label, (Preferences, Permutations)) else label[rows]


def failing(trial: Trial, options: Options, wanted: float) -> list[Candidate]:
    """Give the mixtures that lose more than is wanted."""
    if not options:
        return []
    outcomes = trial.outcomes(padded(options).mixtures)
    lost = outcomes.settled & (outcomes.regrets > wanted)
    certain = outcomes.least > LOST * trial.spread
    return [
        candidate(np.array(options[row][0]), np.array(options[row][1]), regret, scores, sure)
        for row, regret, scores, sure in zip(
            np.flatnonzero(lost), outcomes.regrets[lost], outcomes.scores[lost], certain[lost], strict=True
        )
    ]


def pruned(trial: Trial, found: Candidate, wanted: float) -> Candidate:
    """Drop labels, as long as the rest fails and there are more than a few."""
    while len(found.chosen) > MOST_LABELS:
        options = [(without(found.chosen, k), without(found.counts, k)) for k in range(len(found.chosen))]
        left = failing(trial, options, wanted) or regrouped(trial, found, wanted)
        if not left:
            break
        found = max(left, key=lambda one: one.regret)
    return found


def regrouped(trial: Trial, found: Candidate, wanted: float) -> list[Candidate]:
    """Give sparse mixtures of the same labels that fail."""
    drawn = sparse(len(found.chosen), REGROUPED, np.random.default_rng(0))
    tables = Tables(np.array(found.chosen)[drawn.chosen], drawn.counts)
    options = [
        (tuple(chosen), tuple(counts)) for chosen, counts in zip(*map(np.ndarray.tolist, tables), strict=True)
    ]
    return failing(trial, options, wanted)


def without(parts: tuple[int, ...], place: int) -> tuple[int, ...]:
    """All but one."""
    return (*parts[:place], *parts[place + 1 :])


def simpler(chosen: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Give every choice among the labels, with all odds of small denominators."""
    for size in range(1, len(chosen) + 1):
        for kept in itertools.combinations(chosen, size):
            for parts in DENOMINATORS:
                for cuts in itertools.combinations(range(1, parts), size - 1):
                    counts = tuple(np.diff((0, *cuts, parts)).tolist())
                    if np.gcd.reduce(counts) == 1:
                        yield kept, counts


def padded(options: Options) -> Tables:
    """Make the rows equally long, with labels of no part."""
    width = max(len(chosen) for chosen, _ in options)
    fill = [(width - len(chosen)) for chosen, _ in options]
    chosen = [(*one, *([0] * gap)) for (one, _), gap in zip(options, fill, strict=True)]
    counts = [(*one, *([0] * gap)) for (_, one), gap in zip(options, fill, strict=True)]
    return Tables(np.array(chosen), np.array(counts))


def lightened(trial: Trial, found: Candidate, wanted: float) -> Candidate:
    """Replace labels by smaller ones, as long as the mixture fails."""
    sizes = [size_of(label) for label in trial.labels]
    while True:
        options = [
            ((*found.chosen[:k], label, *found.chosen[k + 1 :]), found.counts)
            for k, old in enumerate(found.chosen)
            for label, size in enumerate(sizes)
            if size < sizes[old]
        ]
        left = failing(trial, options, max(wanted, found.regret / 4.0))
        if not left:
            return found
        found = min(left, key=lambda one: (sum(sizes[label] for label in one.chosen), -one.regret))


def size_of(label: Label) -> float:
    """How much a label says: the sum of its grades, the number of its preferences."""
    if isinstance(label, Preferences):
        return float(len(label.better))
    return 0.0 if isinstance(label, Permutations) else float(label.sum())
