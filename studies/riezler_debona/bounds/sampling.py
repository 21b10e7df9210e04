"""Samples of queries from a known distribution, and inequalities compared with what is measured on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concordant.theory.bounds import Bound
from concordant.types import FloatArray
from studies.riezler_debona.bounds.problems import Problem

DELTA = 0.05
CERTAIN = 4.0  # standard errors beyond which an estimate is not above a bound by chance


@dataclass(frozen=True)
class Check:
    """An inequality, and what was measured.

    Attributes
    ----------
    loss, inequality
        What it is about; `inequality` reads "measured <= bound".
    measured, error
        A mean over the draws and its standard error, or the 1 - delta quantile (error 0).
    bound
        The right-hand side.
    exceeded
        Draws above the bound, where each draw is compared; else None.
    wrong
        Whether the right-hand side is known to be wrong.
    broken
        Whether the measurements contradict it: a mean more than 4 standard errors above the bound, or more
        than a share delta of the draws above it.
    """

    loss: str
    inequality: str
    measured: float
    error: float
    bound: float
    exceeded: int | None
    wrong: bool
    broken: bool

    @property
    def slack(self) -> float:
        """Bound over measured value; NaN where that is not above 0."""
        return self.bound / self.measured if self.measured > 0.0 else math.nan


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws of n queries, and what is measured on them."""

    n: int
    draws: int
    rng: np.random.Generator

    def counts(self, probs: FloatArray) -> FloatArray:
        """Count the draws of each query, one row per sample."""
        return self.rng.multinomial(self.n, probs, size=self.draws).astype(np.float64)

    def signs(self, probs: FloatArray) -> FloatArray:
        """Sum of the random signs of each query in a draw, divided by n."""
        counts = self.counts(probs)
        signs: FloatArray = (2.0 * self.rng.binomial(counts.astype(np.int64), 0.5) - counts) / self.n
        return signs

    def averages(self, problem: Problem, values: FloatArray) -> FloatArray:
        """Rademacher average of a loss (1/n, no absolute values), by draw.

        The loss is taken less its value at w = 0: that changes no mean, and makes it more precise.
        """
        suprema: FloatArray = (self.signs(problem.probs) @ problem.centred(values)).max(axis=1)
        return suprema

    def absolute(self, problem: Problem, values: FloatArray) -> FloatArray:
        """Rademacher average (2/n, absolute values) of a loss less its value at w = 0, by draw."""
        suprema: FloatArray = 2 * np.abs(self.signs(problem.probs) @ problem.centred(values)).max(axis=1)
        return suprema

    def deviations(self, problem: Problem, risk: FloatArray, empirical: FloatArray) -> FloatArray:
        """Largest risk less empirical loss over all w, by draw."""
        means = self.counts(problem.probs) @ empirical / self.n
        suprema: FloatArray = (problem.probs @ risk - means).max(axis=1)
        return suprema

    def noise(self, values: FloatArray) -> float:
        """Standard error of the mean."""
        return float(values.std()) / math.sqrt(max(self.draws - 1, 1))

    def mean(
        self,
        loss: str,
        inequality: str,
        values: FloatArray,
        bound: float,
        *,
        noise: float = 0.0,
        wrong: bool = False,
    ) -> Check:
        """Compare a mean with its bound, which has a standard error too where it was measured."""
        measured, error = float(values.mean()), math.hypot(self.noise(values), noise)
        broken = measured - CERTAIN * error > bound
        return Check(loss, inequality, measured, error, bound, None, wrong, broken)

    def quantile(
        self, loss: str, inequality: str, values: FloatArray, bound: Bound, *, wrong: bool = False
    ) -> Check:
        """Compare every draw with the excess of a bound."""
        exceeded = int((values > bound.excess).sum())
        measured = float(np.quantile(values, 1.0 - DELTA))
        broken = exceeded > DELTA * self.draws
        return Check(loss, inequality, measured, 0.0, bound.excess, exceeded, wrong, broken)
