"""Search for a label distribution on which a combination fails: random mixtures, then ascent.

Mixtures are of few labels, with probabilities that are small whole numbers over their sum, so that a failing
mixture can be written down, and checked by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from concordant.data.labels import Permutations, Preferences
from concordant.data.synthetic.distribution import Label
from concordant.theory.kinds import PairSquared
from concordant.theory.search.trial import Mixtures, Outcomes, Trial, concatenate_outcomes
from concordant.theory.spaces import format_label
from concordant.types import FloatArray, IntArray

LOST = 1e-6  # of the spread of the values: a regret above it is no rounding error
MOST_LABELS = 4  # of a sparse mixture
MOST_PARTS = 6  # largest odds of a label in a sparse mixture
MANY_LABELS, MANY_PARTS = 12, 1000  # of a dense mixture
CLIMBERS = 24  # mixtures that ascend together
BLOCK = 2000  # dense mixtures drawn together
KEPT = 300  # mixtures that are remembered


class Tables(NamedTuple):
    """Mixtures as whole numbers: label `label_indices[b, k]` has `counts[b, k]` parts of the sum of row b."""

    label_indices: IntArray
    counts: IntArray

    @property
    def mixtures(self) -> Mixtures:
        """Mixtures with probabilities."""
        return Mixtures(self.label_indices, self.counts / self.counts.sum(axis=1, keepdims=True))

    def take(self, rows: Any) -> Tables:
        """Select rows."""
        return Tables(self.label_indices[rows], self.counts[rows])


@dataclass(frozen=True)
class Candidate:
    """A mixture that fails, in floating point.

    Attributes
    ----------
    label_indices, counts
        Indices of its labels, and their parts.
    regret, certain
        Expected metric lost, and whether it is lost however ties are broken.
    scores
        The minimiser.
    """

    label_indices: tuple[int, ...]
    counts: tuple[int, ...]
    regret: float
    certain: bool
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Finding:
    """Results of a search.

    Attributes
    ----------
    tried
        Distributions whose minimiser was decoded.
    worst
        Largest regret among them; 0 where there is none beyond rounding.
    unsettled
        Distributions left out, since no minimiser was found.
    candidates
        Failing mixtures, the largest regret first.
    """

    tried: int
    worst: float
    unsettled: int
    candidates: tuple[Candidate, ...] = ()

    def merge(self, other: Finding) -> Finding:
        """Merge two findings; the candidates of this one come first."""
        counts = self.tried + other.tried, max(self.worst, other.worst), self.unsettled + other.unsettled
        return Finding(*counts, self.candidates + other.candidates)


def sparse(n_labels: int, times: int, rng: np.random.Generator) -> Tables:
    """Draw mixtures of one to four labels, with small whole numbers as odds."""
    label_indices = rng.integers(0, n_labels, (times, MOST_LABELS))
    present = np.arange(MOST_LABELS) < rng.integers(1, MOST_LABELS + 1, times)[:, None]
    return Tables(label_indices, np.where(present, rng.integers(1, MOST_PARTS + 1, label_indices.shape), 0))


def dense(n_labels: int, times: int, rng: np.random.Generator) -> Tables:
    """Draw mixtures of up to twelve labels, with odds that are nearly equal, uneven or very uneven."""
    label_indices = np.argsort(rng.random((times, n_labels)), axis=1)[:, :MANY_LABELS]
    weights = rng.gamma(rng.choice([0.1, 1.0, 10.0], (times, 1)), size=label_indices.shape)
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    counts = np.ceil(MANY_PARTS * shares - 0.5).astype(np.int64)
    counts[counts.sum(axis=1) == 0, 0] = 1
    return Tables(label_indices, counts)


def hunt(trial: Trial, budget: int, rng: np.random.Generator) -> Finding:
    """Search for mixtures with regret: every label alone, sparse and dense mixtures, ascent from the worst.

    Parameters
    ----------
    trial
        The combination on all labels and orders of a few items.
    budget
        Distributions to try, at least: half of them sparse, a quarter dense, a quarter met in ascent.
    rng
        Random numbers.
    """
    n_labels = len(trial.labels)
    few, many = SearchLog(trial, MOST_LABELS), SearchLog(trial, min(MANY_LABELS, n_labels))
    one_of_each = np.arange(n_labels)[:, None].repeat(MOST_LABELS, axis=1)
    few.note(Tables(one_of_each, np.eye(1, MOST_LABELS, dtype=int).repeat(n_labels, axis=0)))
    few.note(sparse(n_labels, max(budget // 2, CLIMBERS), rng))
    for first in range(0, max(budget // 4, 1), BLOCK):  # a draw among all labels, so not all at once
        many.note(dense(n_labels, min(max(budget // 4, 1) - first, BLOCK), rng))
    while few.n_mixtures + many.n_mixtures < budget:
        few.note(_neighbours(few.tables.take(slice(CLIMBERS)), n_labels, rng))
    return few.finding().merge(many.finding())


class SearchLog:
    """Counts of the mixtures tried, and the worst of them."""

    def __init__(self, trial: Trial, width: int) -> None:
        self.trial, self.tried, self.unsettled = trial, 0, 0
        self.tables = Tables(np.empty((0, width), dtype=np.int64), np.empty((0, width), dtype=np.int64))
        nothing, nowhere = np.empty(0), np.empty((0, trial.n_items))
        self.outcomes = Outcomes(nothing, nothing, nowhere, np.empty(0, dtype=bool))

    def note(self, tables: Tables) -> None:
        """Try mixtures; remember the worst few hundred of all."""
        new_outcomes = self.trial.outcomes(tables.mixtures)
        self.tried += int(new_outcomes.settled.sum())
        self.unsettled += int((~new_outcomes.settled).sum())
        both = Tables(*(np.concatenate(pair) for pair in zip(self.tables, tables, strict=True)))
        outcomes = concatenate_outcomes((self.outcomes, new_outcomes))
        worst_rows = np.lexsort((-outcomes.regrets.round(9), ~outcomes.settled))[:KEPT]
        self.tables, self.outcomes = both.take(worst_rows), outcomes.take(worst_rows)

    @property
    def n_mixtures(self) -> int:
        """Number of mixtures tried."""
        return self.tried + self.unsettled

    def finding(self) -> Finding:
        """Return the counts and the mixtures that fail."""
        regrets, least, scores, settled = self.outcomes
        lost = settled & (regrets > LOST * self.trial.spread)
        certain = least > LOST * self.trial.spread
        rows = zip(*(part[lost] for part in (*self.tables, regrets, scores, certain)), strict=True)
        worst = float(regrets[lost].max(initial=0.0))
        return Finding(self.tried, worst, self.unsettled, tuple(_build_candidate(*row) for row in rows))


def _build_candidate(
    label_indices: IntArray, counts: IntArray, regret: float, scores: FloatArray, certain: bool
) -> Candidate:
    """Put equal labels together and drop those without a part."""
    parts: dict[int, int] = {}
    for label, count in zip(label_indices.tolist(), counts.tolist(), strict=True):
        if count:
            parts[label] = parts.get(label, 0) + count
    divisor = int(np.gcd.reduce(list(parts.values())))
    shares = tuple(count // divisor for count in parts.values())
    return Candidate(tuple(parts), shares, float(regret), bool(certain), tuple(scores.tolist()))


def _neighbours(tables: Tables, n_labels: int, rng: np.random.Generator) -> Tables:
    """Change a label, or a part of the odds, of each mixture; several times over."""
    times = 8
    label_indices, counts = (np.repeat(part, times, axis=0) for part in tables)
    rows = np.arange(len(label_indices))
    column = rng.integers(0, label_indices.shape[1], len(rows))
    swap = rng.random(len(rows)) < 0.5
    label_indices[rows[swap], column[swap]] = rng.integers(0, n_labels, swap.sum())
    moved = np.maximum(counts[rows, column] + rng.integers(-2, 3, len(rows)), 0)
    counts[rows, column] = np.where(swap, np.maximum(counts[rows, column], 1), moved)
    counts[counts.sum(axis=1) == 0, 0] = 1
    return Tables(label_indices, counts)


# Shrinking: the simplest mixtures that fail, derived from a failing mixture.

DENOMINATORS = range(1, 11)  # of the probabilities that are tried
REGROUPED = 2000  # sparse mixtures that are drawn where no single label can be dropped

Options: TypeAlias = list[tuple[tuple[int, ...], tuple[int, ...]]]
"""Mixtures: indices of labels, and their parts."""


def shrink(trial: Trial, source: Candidate) -> Iterator[Candidate]:
    """Yield mixtures of the same labels, or of fewer and smaller ones, that fail too; the simplest first."""
    least_regret = LOST * trial.spread
    few = prune(trial, source, least_regret)
    options = (
        list(_simpler_mixtures(_lighten(trial, few, least_regret).label_indices))
        if len(few.label_indices) <= MOST_LABELS
        else []
    )
    failing = _find_failing(trial, options, max(least_regret, source.regret / 100.0))
    # Regret however ties are broken convinces more than regret on average over them. Regrets are rounded and
    # items renumbered, so that the last digits of a machine do not decide which mixture is shown.
    named = [_renumber(trial, candidate) for candidate in failing]
    named.sort(
        key=lambda candidate: (
            not candidate.certain,
            len(candidate.label_indices),
            sum(candidate.counts),
            -round(candidate.regret, 9),
            candidate.label_indices,
        )
    )
    yield from dict.fromkeys(named)
    yield source


def _renumber(trial: Trial, candidate: Candidate) -> Candidate:
    """Renumber the items so that the labels of the mixture, the likeliest first, have the least indices.

    Metrics and surrogates do not depend on how items are numbered; decoders of pairs break ties by it.
    """
    if isinstance(trial.combination.surrogate, PairSquared):
        return candidate
    options = []
    for order in itertools.permutations(range(trial.n_items)):
        numbers = [
            trial.numbers[format_label(_rename_items(trial.labels[label], order))]
            for label in candidate.label_indices
        ]
        parts = sorted(zip((-count for count in candidate.counts), numbers, strict=True))
        options.append((parts, tuple(round(candidate.scores[item], 12) for item in order)))
    parts, scores = min(options)
    label_indices, counts = tuple(number for _, number in parts), tuple(-count for count, _ in parts)
    return Candidate(label_indices, counts, candidate.regret, candidate.certain, scores)


def _rename_items(label: Label, order: tuple[int, ...]) -> Label:
    """Return the label with item order[k] as item k."""
    rows = np.array(order)
    return label.take(rows) if isinstance(label, (Preferences, Permutations)) else label[rows]


def _find_failing(trial: Trial, options: Options, least_regret: float) -> list[Candidate]:
    if not options:
        return []
    outcomes = trial.outcomes(_pad_options(options).mixtures)
    lost = outcomes.settled & (outcomes.regrets > least_regret)
    certain = outcomes.least > LOST * trial.spread
    return [
        _build_candidate(np.array(options[row][0]), np.array(options[row][1]), regret, scores, sure)
        for row, regret, scores, sure in zip(
            np.flatnonzero(lost), outcomes.regrets[lost], outcomes.scores[lost], certain[lost], strict=True
        )
    ]


def prune(trial: Trial, candidate: Candidate, least_regret: float) -> Candidate:
    """Drop labels as long as the rest fails and more than a few are left."""
    while len(candidate.label_indices) > MOST_LABELS:
        options = [
            (without(candidate.label_indices, k), without(candidate.counts, k))
            for k in range(len(candidate.label_indices))
        ]
        left = _find_failing(trial, options, least_regret) or _regroup(trial, candidate, least_regret)
        if not left:
            break
        candidate = max(left, key=lambda weaker: weaker.regret)
    return candidate


def _regroup(trial: Trial, candidate: Candidate, least_regret: float) -> list[Candidate]:
    """Return sparse mixtures of the same labels that fail."""
    drawn = sparse(len(candidate.label_indices), REGROUPED, np.random.default_rng(0))
    tables = Tables(np.array(candidate.label_indices)[drawn.label_indices], drawn.counts)
    options = [
        (tuple(label_indices), tuple(counts))
        for label_indices, counts in zip(*map(np.ndarray.tolist, tables), strict=True)
    ]
    return _find_failing(trial, options, least_regret)


def without(parts: tuple[int, ...], position: int) -> tuple[int, ...]:
    """Drop the entry at a position."""
    return (*parts[:position], *parts[position + 1 :])


def _simpler_mixtures(label_indices: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield every choice among the labels, with all odds of small denominators."""
    for size in range(1, len(label_indices) + 1):
        for subset in itertools.combinations(label_indices, size):
            for parts in DENOMINATORS:
                for cuts in itertools.combinations(range(1, parts), size - 1):
                    counts = tuple(np.diff((0, *cuts, parts)).tolist())
                    if np.gcd.reduce(counts) == 1:
                        yield subset, counts


def _pad_options(options: Options) -> Tables:
    """Pad the rows to equal length, with labels of no part."""
    width = max(len(label_indices) for label_indices, _ in options)
    fill = [(width - len(label_indices)) for label_indices, _ in options]
    label_indices = [(*row, *([0] * gap)) for (row, _), gap in zip(options, fill, strict=True)]
    counts = [(*row, *([0] * gap)) for (_, row), gap in zip(options, fill, strict=True)]
    return Tables(np.array(label_indices), np.array(counts))


def _lighten(trial: Trial, candidate: Candidate, least_regret: float) -> Candidate:
    """Replace labels by smaller ones, as long as the mixture fails."""
    sizes = [_label_size(label) for label in trial.labels]
    while True:
        options = [
            ((*candidate.label_indices[:k], label, *candidate.label_indices[k + 1 :]), candidate.counts)
            for k, old in enumerate(candidate.label_indices)
            for label, size in enumerate(sizes)
            if size < sizes[old]
        ]
        left = _find_failing(trial, options, max(least_regret, candidate.regret / 4.0))
        if not left:
            return candidate
        candidate = min(
            left, key=lambda option: (sum(sizes[label] for label in option.label_indices), -option.regret)
        )


def _label_size(label: Label) -> float:
    """Size of a label: the sum of its grades, or the number of its preferences."""
    if isinstance(label, Preferences):
        return float(len(label.better))
    return 0.0 if isinstance(label, Permutations) else float(label.sum())
