"""The search for a label distribution on which a combination fails: mixtures, then ascent.

Mixtures are of few labels, with probabilities that are small whole numbers over their sum: what is found can
be written down, and checked by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concordant.theory.search.expected import Mixtures
from concordant.theory.search.trial import Outcomes, Trial, joined
from concordant.types import FloatArray, IntArray

__all__ = [
    "LOST",
    "MOST_LABELS",
    "Candidate",
    "Finding",
    "Tables",
    "candidate",
    "dense",
    "hunt",
    "sparse",
]

LOST = 1e-6  # of the spread of the values: a regret above it is no rounding error
MOST_LABELS = 4  # of a sparse mixture
MOST_PARTS = 6  # largest whole number that a probability is made of
MANY_LABELS, MANY_PARTS = 12, 1000  # of a dense mixture
CLIMBERS = 24  # mixtures that ascend together
BLOCK = 2000  # dense mixtures drawn together
KEPT = 300  # mixtures that are remembered


class Tables(NamedTuple):
    """Mixtures as whole numbers: label `chosen[b, k]` has `counts[b, k]` parts of the sum of row b."""

    chosen: IntArray
    counts: IntArray

    @property
    def mixtures(self) -> Mixtures:
        """With probabilities."""
        return Mixtures(self.chosen, self.counts / self.counts.sum(axis=1, keepdims=True))

    def take(self, rows: Any) -> Tables:
        """Some of them."""
        return Tables(self.chosen[rows], self.counts[rows])


@dataclass(frozen=True)
class Candidate:
    """A mixture that fails, in floating point.

    Attributes
    ----------
    chosen, counts
        Numbers of its labels, and their parts.
    regret, certain
        What is lost, and whether it is however ties are broken.
    scores
        The minimiser.
    """

    chosen: tuple[int, ...]
    counts: tuple[int, ...]
    regret: float
    certain: bool
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Finding:
    """What a search saw.

    Attributes
    ----------
    tried
        Distributions whose minimiser was decoded.
    worst
        Largest regret among them; 0 where there is none beyond rounding.
    unsettled
        How many were left out, since no minimiser was found.
    candidates
        Those that fail, the largest regret first.
    """

    tried: int
    worst: float
    unsettled: int
    candidates: tuple[Candidate, ...] = ()

    def and_also(self, other: Finding) -> Finding:
        """Give both together; own candidates come first."""
        counts = self.tried + other.tried, max(self.worst, other.worst), self.unsettled + other.unsettled
        return Finding(*counts, self.candidates + other.candidates)


def sparse(n_labels: int, times: int, rng: np.random.Generator) -> Tables:
    """Draw mixtures of one to four labels, with small whole numbers as odds."""
    chosen = rng.integers(0, n_labels, (times, MOST_LABELS))
    present = np.arange(MOST_LABELS) < rng.integers(1, MOST_LABELS + 1, times)[:, None]
    return Tables(chosen, np.where(present, rng.integers(1, MOST_PARTS + 1, chosen.shape), 0))


def dense(n_labels: int, times: int, rng: np.random.Generator) -> Tables:
    """Draw mixtures of up to twelve labels, with odds that are nearly equal, uneven or very uneven."""
    chosen = np.argsort(rng.random((times, n_labels)), axis=1)[:, :MANY_LABELS]
    weights = rng.gamma(rng.choice([0.1, 1.0, 10.0], (times, 1)), size=chosen.shape)
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    counts = np.ceil(MANY_PARTS * shares - 0.5).astype(np.int64)
    counts[counts.sum(axis=1) == 0, 0] = 1
    return Tables(chosen, counts)


def hunt(trial: Trial, budget: int, rng: np.random.Generator) -> Finding:
    """Look for mixtures with regret: every label alone, sparse and dense mixtures, ascent from the worst.

    Parameters
    ----------
    trial
        What is tried.
    budget
        Distributions to look at, at least: half of them sparse, a quarter dense, a quarter met in ascent.
    rng
        Random numbers.
    """
    n_labels = len(trial.labels)
    few, many = Log(trial, MOST_LABELS), Log(trial, min(MANY_LABELS, n_labels))
    one_of_each = np.arange(n_labels)[:, None].repeat(MOST_LABELS, axis=1)
    few.note(Tables(one_of_each, np.eye(1, MOST_LABELS, dtype=int).repeat(n_labels, axis=0)))
    few.note(sparse(n_labels, max(budget // 2, CLIMBERS), rng))
    for first in range(0, max(budget // 4, 1), BLOCK):  # a draw among all labels, so not all at once
        many.note(dense(n_labels, min(max(budget // 4, 1) - first, BLOCK), rng))
    while few.seen + many.seen < budget:
        few.note(neighbours(few.tables.take(slice(CLIMBERS)), n_labels, rng))
    return few.finding().and_also(many.finding())


class Log:
    """What was tried, and the worst of it."""

    def __init__(self, trial: Trial, width: int) -> None:
        self.trial, self.tried, self.unsettled = trial, 0, 0
        self.tables = Tables(np.empty((0, width), dtype=np.int64), np.empty((0, width), dtype=np.int64))
        nothing, nowhere = np.empty(0), np.empty((0, trial.n_items))
        self.outcomes = Outcomes(nothing, nothing, nowhere, np.empty(0, dtype=bool))

    def note(self, tables: Tables) -> None:
        """Try mixtures; keep the worst few hundred of all."""
        found = self.trial.outcomes(tables.mixtures)
        self.tried += int(found.settled.sum())
        self.unsettled += int((~found.settled).sum())
        both = Tables(*(np.concatenate(pair) for pair in zip(self.tables, tables, strict=True)))
        outcomes = joined((self.outcomes, found))
        kept = np.lexsort((-outcomes.regrets.round(9), ~outcomes.settled))[:KEPT]
        self.tables, self.outcomes = both.take(kept), outcomes.take(kept)

    @property
    def seen(self) -> int:
        """Mixtures looked at."""
        return self.tried + self.unsettled

    def finding(self) -> Finding:
        """Those that fail."""
        regrets, least, scores, settled = self.outcomes
        lost = settled & (regrets > LOST * self.trial.spread)
        certain = least > LOST * self.trial.spread
        rows = zip(*(part[lost] for part in (*self.tables, regrets, scores, certain)), strict=True)
        worst = float(regrets[lost].max(initial=0.0))
        return Finding(self.tried, worst, self.unsettled, tuple(candidate(*row) for row in rows))


def candidate(
    chosen: IntArray, counts: IntArray, regret: float, scores: FloatArray, certain: bool
) -> Candidate:
    """Put equal labels together and drop those without a part."""
    parts: dict[int, int] = {}
    for label, count in zip(chosen.tolist(), counts.tolist(), strict=True):
        if count:
            parts[label] = parts.get(label, 0) + count
    divisor = int(np.gcd.reduce(list(parts.values())))
    shares = tuple(count // divisor for count in parts.values())
    return Candidate(tuple(parts), shares, float(regret), bool(certain), tuple(scores.tolist()))


def neighbours(tables: Tables, n_labels: int, rng: np.random.Generator) -> Tables:
    """Change a label, or a part of the odds, of each mixture; several times over."""
    times = 8
    chosen, counts = (np.repeat(part, times, axis=0) for part in tables)
    rows = np.arange(len(chosen))
    place = rng.integers(0, chosen.shape[1], len(rows))
    swap = rng.random(len(rows)) < 0.5
    chosen[rows[swap], place[swap]] = rng.integers(0, n_labels, swap.sum())
    moved = np.maximum(counts[rows, place] + rng.integers(-2, 3, len(rows)), 0)
    counts[rows, place] = np.where(swap, np.maximum(counts[rows, place], 1), moved)
    counts[counts.sum(axis=1) == 0, 0] = 1
    return Tables(chosen, counts)
