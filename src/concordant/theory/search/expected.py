"""Expected surrogates of many label distributions at once, and the scores that minimise them.

A mixture puts weight on a few of the labels of a query; hundreds of mixtures are one call of a kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from concordant.metrics.standardization import usable_targets
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label
from concordant.surrogates.surrogate import Loss, Surrogate
from concordant.theory.combination import Combination
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["Mixtures", "Reached", "minimisers", "read_by"]

ROUNDS = (10, 20, 40)  # Newton steps; after each round the mixtures that are left
FARTHEST = 1.0  # the first step moves no score by more, each further one by twice as much
DAMPING = 1e-10  # of the largest curvature: the least that a step reckons with
HALVINGS = 40
TINY = 1e-300
FLAT = 1e-10  # a gradient below this share of the first one is none
SETTLED = 1e-6  # and one below this is near enough


class Mixtures(NamedTuple):
    """Label distributions: mixture b has label `chosen[b, k]` with probability `probs[b, k]`."""

    chosen: IntArray
    probs: FloatArray

    def __len__(self) -> int:
        return len(self.chosen)

    def take(self, rows: Any) -> Mixtures:
        """Some of them."""
        return Mixtures(self.chosen[rows], self.probs[rows])

    def mean(self, table: FloatArray) -> FloatArray:
        """Expectation of what a table says of each label."""
        weighted: FloatArray = np.einsum("bk,bk...->b...", self.probs, table[self.chosen])
        return weighted


class Reached(NamedTuple):
    """Where a minimisation ended: scores of mean 0, the value there, and whether the gradient vanished."""

    scores: FloatArray
    values: FloatArray
    settled: BoolArray


def read_by(one: Combination, labels: list[Label]) -> FloatArray:
    """Give what the surrogate is told of each label: targets, grades or positions; one label a row."""
    n_items = len(labels[0])
    if isinstance(labels[0], np.ndarray):  # as one set of data, whose queries are told alike
        stacked: Any = labels
        queries, grades = Queries.from_sizes(np.full(len(labels), n_items)), np.concatenate(stacked)
        if one.surrogate.reads == "targets":
            grades = usable_targets(one.metric, one.metric.read_labels(grades), queries)[0]
        return np.asarray(grades, dtype=np.float64).reshape(-1, n_items)
    queries = Queries.from_sizes([n_items])
    return np.stack([told(one, label, queries) for label in labels])


def told(one: Combination, label: Label, queries: Queries) -> FloatArray:
    """Give what the surrogate is told of preferences, or of an order."""
    if one.surrogate.reads == "targets":
        return usable_targets(one.metric, one.metric.read_labels(label), queries)[0]
    order: Any = label
    graded = one.surrogate.reads == "grades"
    return order.grades(queries) if graded else np.asarray(order.grouped(queries), dtype=np.float64)


class ExpectedLosses:
    """The expected surrogate of each mixture: every label of every mixture is a query, weighted."""

    def __init__(self, surrogate: Surrogate, table: FloatArray, mixtures: Mixtures) -> None:
        n_items = table.shape[1]
        self.shape = *mixtures.chosen.shape, n_items
        rows = table[mixtures.chosen].reshape(-1)
        offsets = np.arange(mixtures.chosen.size + 1) * n_items
        self.loss: Loss = surrogate.bind(rows, offsets, np.repeat(mixtures.probs.ravel(), n_items))

    def tiled(self, scores: FloatArray) -> FloatArray:
        """The scores of a mixture, once for each of its labels."""
        return np.broadcast_to(scores[:, None, :], self.shape).reshape(-1)

    def summed(self, rows: FloatArray) -> FloatArray:
        """Add up what the labels of a mixture say of each item."""
        total: FloatArray = rows.reshape(self.shape).sum(axis=1)
        return total

    def value_and_grad(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value of each mixture, and its gradient."""
        values, grad = self.loss.value_and_grad(self.tiled(scores))
        return values.reshape(self.shape[:2]).sum(axis=1), self.summed(grad)

    def hessian(self, scores: FloatArray) -> FloatArray:
        """(Generalised) second derivatives of each mixture."""
        tiled = self.tiled(scores)
        columns = [
            self.summed(self.loss.hessian_product(tiled, self.tiled(np.broadcast_to(unit, scores.shape))))
            for unit in np.eye(self.shape[2])
        ]
        return np.stack(columns, axis=-1)


def minimisers(surrogate: Surrogate, table: FloatArray, mixtures: Mixtures) -> Reached:
    """Minimise each expected surrogate, by damped Newton steps from scores 0; the surrogate is smooth.

    Where the least value is only approached (a score goes to minus infinity), the scores are far out, and
    where minimisers are many, they are one of them.

    Parameters
    ----------
    surrogate
        What is minimised.
    table
        What it is told of each label, one a row: see `read_by`.
    mixtures
        Distributions of the labels.
    """
    scores, values = np.zeros((len(mixtures), table.shape[1])), np.zeros(len(mixtures))
    settled, left = np.zeros(len(mixtures), dtype=bool), np.arange(len(mixtures))
    steepest = steepness(ExpectedLosses(surrogate, table, mixtures), scores)
    for most in ROUNDS:  # those that take long go on alone
        if left.size:
            expected = ExpectedLosses(surrogate, table, mixtures.take(left))
            found = stepped(expected, scores[left], steepest[left], most)
            scores[left], values[left], settled[left], done = found
            left = left[~done]
    return Reached(scores - scores.mean(axis=1, keepdims=True), values, settled)


def steepness(expected: ExpectedLosses, scores: FloatArray) -> FloatArray:
    """Give the measure of what is a small gradient, for each mixture."""
    values, grad = expected.value_and_grad(scores)
    measure: FloatArray = np.maximum(np.abs(grad).max(axis=1), 1e-3 * np.abs(values)) + TINY
    return measure


def stepped(
    expected: ExpectedLosses, scores: FloatArray, steepest: FloatArray, most: int
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Take Newton steps: the scores, their values, and which have settled, or do not move any more."""
    values, grad = expected.value_and_grad(scores)
    done = np.zeros(len(scores), dtype=bool)
    for taken in range(most):
        done |= np.abs(grad).max(axis=1) <= FLAT * steepest
        if done.all():
            break
        step = newton_step(expected.hessian(scores), grad, steepest, FARTHEST * 2.0**taken)
        scores, values, grad, advanced = searched(expected, scores, step, values, grad)
        done |= ~advanced
    return scores, values, np.abs(grad).max(axis=1) <= SETTLED * steepest, done


def newton_step(hessian: FloatArray, grad: FloatArray, steepest: FloatArray, farthest: float) -> FloatArray:
    """Give the damped Newton step, no score moved by more than `farthest`."""
    bends, ways = np.linalg.eigh(hessian)
    least = DAMPING * np.maximum(bends[:, -1], 1e-6 * steepest)[:, None]
    step = -np.einsum("bij,bj->bi", ways, np.einsum("bij,bi->bj", ways, grad) / np.maximum(bends, least))
    longest = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(step * np.minimum(1.0, farthest / np.maximum(longest, TINY)))


def searched(
    expected: ExpectedLosses, scores: FloatArray, step: FloatArray, values: FloatArray, grad: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Halve the step of each mixture until its loss falls, or the slope along the step has vanished."""
    slope = np.einsum("bi,bi->b", grad, step)
    size = np.ones(len(scores))
    advanced = np.zeros(len(scores), dtype=bool)
    best, best_values, best_grad = scores, values, grad
    for _ in range(HALVINGS):
        trial = scores + size[:, None] * step
        found, slopes = expected.value_and_grad(trial)
        along = np.abs(np.einsum("bi,bi->b", slopes, step))
        # Near the least value differences drown in rounding: there the slope decides.
        better = (found <= values + 1e-4 * size * slope) | (
            (found <= values + 1e-13 * np.abs(values)) & (along <= 0.9 * np.abs(slope))
        )
        fresh = better & ~advanced
        best = np.where(fresh[:, None], trial, best)
        best_values = np.where(fresh, found, best_values)
        best_grad = np.where(fresh[:, None], slopes, best_grad)
        advanced |= better
        if advanced.all():
            break
        size = np.where(advanced, size, size / 2.0)
    return best, best_values, best_grad, advanced
