"""Fits of one problem at penalty after penalty, each scored on held-out rows; what is known is not redone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from concordant.metrics.metric import Metric
from concordant.rankers.base import mean_score
from concordant.rankers.folds import Rows
from concordant.rankers.linear import LinearRanker
from concordant.rankers.training import Problem
from concordant.scorers import LinearScorer
from concordant.solvers import Solution
from concordant.solvers.journal import Journal, asked
from concordant.types import FloatArray

__all__ = ["Path", "Try", "final"]


class Try(NamedTuple):
    """What is fitted at each penalty, and the held-out rows on which it is scored."""

    problem: Problem
    held: Rows


@dataclass(eq=False)
class Path:
    """Scores and solutions of one try, from the largest penalty to the smallest.

    Attributes
    ----------
    ranker, metric
        What is fitted, and the score.
    make
        Gives the try; it is asked only where a fit is missing.
    journal, name
        Where each score and solution is written down, and what this try is called there.
    """

    ranker: LinearRanker
    metric: Metric
    make: Callable[[], Try]
    journal: Journal | None
    name: str

    @cached_property
    def made(self) -> Try:
        """The try."""
        return self.make()

    def along(self, alphas: FloatArray) -> Iterator[tuple[float, Solution]]:
        """Solve at each penalty, beginning where the last one ended."""
        w: FloatArray | None = None
        for number, alpha in enumerate(alphas):
            value, solution = self.remembered(f"{self.name}-{number}", float(alpha), w)
            w = solution.w
            yield value, solution

    def remembered(self, name: str, alpha: float, w: FloatArray | None) -> tuple[float, Solution]:
        """Give score and solution from the journal, or find them; interrupted fits are not written down."""
        if self.journal is None:
            return self.found(alpha, w, None)
        step = asked(name, (alpha, () if w is None else w))
        if (known := self.journal.recall(step)) is not None:
            self.journal.forget(name)  # a kill may have left it
            return float(known[0]), Solution.of(known[1], known[2].tolist(), known[3].tolist())
        with self.journal.within(name) as own:
            value, solution = self.found(alpha, w, own)
        if solution.stopped_by != "interrupt":
            self.journal.append(step, (value, *solution.numbers))
            self.journal.forget(name)
        return value, solution

    def found(self, alpha: float, w: FloatArray | None, journal: Journal | None) -> tuple[float, Solution]:
        """Fit and score."""
        problem, held = self.made
        start = np.zeros(len(problem.scale)) if w is None else w
        solution = self.ranker.solved(problem, alpha, start, journal)
        scores = LinearScorer(held.X).all_scores(solution.w / problem.scale)
        return mean_score(self.metric, held.y, scores, held.qid, held.query_weight), solution


def final(ranker: LinearRanker, whole: Problem, alpha: float, journal: Journal | None, name: str) -> Solution:
    """Fit all rows at the penalty chosen."""
    with nullcontext() if journal is None else journal.within(name) as own:
        return ranker.solved(whole, alpha, np.zeros(len(whole.scale)), own)
