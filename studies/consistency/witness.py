"""Witnesses of inconsistency: label distributions on which a surrogate's best is not the metric's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant import Metric, Queries, synthetic
from concordant import metric as read_metric
from concordant._internals import check_counts, one_blas_thread
from concordant.exceptions import ParameterError
from concordant.surrogates import Surrogate
from concordant.surrogates import surrogate as read_surrogate
from concordant.theory.regret import bayes
from studies.consistency.minimiser import FLAT, least_gap, minimiser


@dataclass(frozen=True, eq=False)
class Witness:
    """A distribution, and the least regret that the minimisers of some surrogates have on it.

    Attributes
    ----------
    distribution
        One query, its items from the best to the worst.
    regret
        Every surrogate searched for has at least this regret; -1 if no distribution met the separation.
    """

    distribution: synthetic.LabelDistribution
    regret: float


def search(
    metric: Metric | str,
    surrogates: Iterable[Surrogate | str],
    *,
    n_items: int = 3,
    n_outcomes: int = 2,
    highest: int = 4,
    parts: int = 10,
    separation: float = 0.03,
    restarts: int = 20,
    steps: int = 200,
    seed: int = 0,
) -> Witness:
    """Look for the distribution on which the surrogate with the least regret has the most.

    Hill climbing from random starts: a step changes one or two grades or moves a part of the probability, and
    is kept unless it is worse. Equal arguments give equal answers.

    Parameters
    ----------
    metric
        The metric whose regret counts.
    surrogates
        All of them have to fail: smooth surrogates of grades or targets, or their names.
    n_items, n_outcomes, highest
        Size of the query, number of label vectors, highest grade.
    parts
        Probabilities are whole multiples of 1/parts.
    separation
        Least difference between two optimal scores, which are also this far above 0, and between two scores
        of a minimiser: no result rests on a near tie, and samples decide soon.
    restarts, steps
        Starts, and steps from each.
    seed
        Of the random numbers.

    Examples
    --------
    On two items, gains of different size mislead the preorder loss that is weighted by them.

    >>> from concordant.surrogates import Preorder
    >>> found = search("ndcg", [Preorder("gain")], n_items=2, restarts=4, steps=60)
    >>> [label.tolist() for label in found.distribution.labels], found.distribution.probs[0].tolist()
    ([[1.0, 0.0], [2.0, 4.0]], [0.9, 0.1])
    >>> round(found.regret, 4)
    0.3059
    """
    check_counts(n_items=n_items - 1, n_outcomes=n_outcomes, highest=highest, restarts=restarts, parts=parts)
    if parts < n_outcomes:
        raise ParameterError("parts", parts, f"at least n_outcomes={n_outcomes}")
    kinds = tuple(map(read_surrogate, surrogates))
    if not kinds:
        raise ParameterError("surrogates", kinds, "at least one surrogate")
    target_metric, rng = read_metric(metric), np.random.default_rng(seed)
    best, best_value = None, -math.inf
    with one_blas_thread():
        for _ in range(restarts):
            table = Candidate(
                rng.integers(0, highest + 1, (n_outcomes, n_items)),
                rng.multinomial(parts - n_outcomes, np.full(n_outcomes, 1 / n_outcomes)) + 1,
            )
            value = table.worth(target_metric, kinds, separation, -math.inf)
            for _ in range(steps):
                other = table.neighbour(rng, highest)
                reached = other.worth(target_metric, kinds, separation, value)
                if reached >= value:
                    table, value = other, reached
            if best is None or value > best_value:
                best, best_value = table, value
    return Witness((best or table).distribution(target_metric), best_value)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A candidate: one row of grades an outcome, and how many parts of the probability it has."""

    grades: Any
    counts: Any

    def neighbour(self, rng: np.random.Generator, highest: int) -> Candidate:
        """Change a grade or two, or move a part of the probability."""
        grades, counts = self.grades.copy(), self.counts.copy()
        giver, taker = rng.integers(0, len(counts), 2)
        if rng.random() < 0.4 and counts[giver] > 1:
            counts[giver] -= 1
            counts[taker] += 1
            return Candidate(grades, counts)
        for _ in range(rng.integers(1, 3)):
            grades.ravel()[rng.integers(0, grades.size)] = rng.integers(0, highest + 1)
        return Candidate(grades, counts)

    def distribution(self, metric: Metric | None = None) -> synthetic.LabelDistribution:
        """Return the distribution; for a metric, items from the best to the worst and outcomes in order."""
        grades, counts = self.grades, self.counts
        if metric is not None:
            grades = grades[:, np.argsort(-bayes(metric, self.distribution()).scores, kind="stable")]
            order = np.lexsort(grades.T[::-1])
            grades, counts = grades[order], counts[order]
        labels = tuple(grades.astype(np.float64))
        queries = Queries.from_sizes([grades.shape[1]])
        return synthetic.LabelDistribution(labels, counts[None, :] / counts.sum(), queries)

    def worth(
        self, metric: Metric, surrogates: Iterable[Surrogate], separation: float, enough: float
    ) -> float:
        """Least regret of the surrogates, or any number below `enough` if it is certainly below that.

        -1 where the best order, or that of a minimiser, rests on less than the separation.
        """
        distribution = self.distribution()
        optimal = bayes(metric, distribution).scores
        if optimal.min() < separation or least_gap(optimal) < separation:
            return -1.0
        worth = math.inf
        for surrogate in surrogates:
            optimum = minimiser(metric, surrogate, distribution)
            if optimum.gap < separation or optimum.curvature < FLAT:
                return -1.0
            worth = min(worth, optimum.regret)
            if worth < enough:
                break
        return worth
