"""Trial: test a combination on label distributions of a few items, by enumerating orders.

>>> from concordant.theory.combination import combination
>>> trial = Trial(combination("ap", "squared"), n_items=4)
>>> uneven = trial.mixtures([[(1, 1, 0, 0), (0, 0, 1, 1), (0, 0, 1, 0)]], [[3, 3, 1]])
>>> trial.outcomes(uneven).regrets.round(4).tolist()
[0.0238]
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label, LabelDistribution
from concordant.metrics.standardization import usable_targets
from concordant.surrogates.surrogate import Loss, Surrogate
from concordant.theory.combination import Combination
from concordant.theory.kinds import PairSquared
from concordant.theory.lowrank import every_order
from concordant.theory.noise_conditions import net_means, pair_means
from concordant.theory.regret import values_of_scores
from concordant.theory.search.pair_decoding import places_in_doubles
from concordant.theory.spaces import every_label, format_label
from concordant.types import BoolArray, FloatArray, IntArray

# Expected surrogates of many label distributions at once, and the scores that minimise them.
#
# A mixture puts weight on a few of the labels of a query; a kernel call evaluates hundreds of mixtures.

ROUNDS = (10, 20, 40)  # Newton steps per round; each round continues with the mixtures that are left
FARTHEST = 1.0  # largest change of a score in the first step; doubled with each further step
DAMPING = 1e-10  # of the largest curvature: the least curvature of a step
HALVINGS = 40
TINY = 1e-300
FLAT = 1e-10  # a gradient below this share of the first counts as 0
SETTLED = 1e-6  # and a gradient below this share is near enough


class Mixtures(NamedTuple):
    """Label distributions: mixture b has label `label_indices[b, k]` with probability `probs[b, k]`."""

    label_indices: IntArray
    probs: FloatArray

    def __len__(self) -> int:
        return len(self.label_indices)

    def take(self, rows: Any) -> Mixtures:
        """Select rows."""
        return Mixtures(self.label_indices[rows], self.probs[rows])

    def mean(self, table: FloatArray) -> FloatArray:
        """Expectation of a table with one entry per label."""
        weighted: FloatArray = np.einsum("bk,bk...->b...", self.probs, table[self.label_indices])
        return weighted


class Minima(NamedTuple):
    """Results of a minimisation: scores of mean 0, the value there, and whether the gradient vanished."""

    scores: FloatArray
    values: FloatArray
    settled: BoolArray


def read_surrogate_labels(combination: Combination, labels: list[Label]) -> FloatArray:
    """Return what the surrogate reads of each label: targets, grades or positions; one label per row."""
    n_items = len(labels[0])
    if isinstance(labels[0], np.ndarray):  # as one data set, so that queries are read alike
        stacked: Any = labels
        queries, grades = Queries.from_sizes(np.full(len(labels), n_items)), np.concatenate(stacked)
        if combination.surrogate.reads == "targets":
            grades = usable_targets(combination.metric, combination.metric.read_labels(grades), queries)[0]
        return np.asarray(grades, dtype=np.float64).reshape(-1, n_items)
    queries = Queries.from_sizes([n_items])
    return np.stack([_read_surrogate_label(combination, label, queries) for label in labels])


def _read_surrogate_label(combination: Combination, label: Label, queries: Queries) -> FloatArray:
    """Return what the surrogate reads of preferences, or of an order."""
    if combination.surrogate.reads == "targets":
        return usable_targets(combination.metric, combination.metric.read_labels(label), queries)[0]
    order: Any = label
    graded = combination.surrogate.reads == "grades"
    return order.grades(queries) if graded else np.asarray(order.grouped(queries), dtype=np.float64)


class ExpectedLosses:
    """Expected surrogate of each mixture: every label of every mixture is a weighted query."""

    def __init__(self, surrogate: Surrogate, table: FloatArray, mixtures: Mixtures) -> None:
        n_items = table.shape[1]
        self.shape = *mixtures.label_indices.shape, n_items
        rows = table[mixtures.label_indices].reshape(-1)
        offsets = np.arange(mixtures.label_indices.size + 1) * n_items
        self.loss: Loss = surrogate.bind(rows, offsets, np.repeat(mixtures.probs.ravel(), n_items))

    def tiled(self, scores: FloatArray) -> FloatArray:
        """Repeat the scores of a mixture for each of its labels."""
        return np.broadcast_to(scores[:, None, :], self.shape).reshape(-1)

    def summed(self, rows: FloatArray) -> FloatArray:
        """Sum over the labels of a mixture, by item."""
        total: FloatArray = rows.reshape(self.shape).sum(axis=1)
        return total

    def value_and_grad(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value of each mixture, and its gradient."""
        values, grad = self.loss.value_and_grad(self.tiled(scores))
        return values.reshape(self.shape[:2]).sum(axis=1), self.summed(grad)

    def hessian(self, scores: FloatArray) -> FloatArray:
        """Return the (generalised) second derivatives of each mixture."""
        tiled = self.tiled(scores)
        columns = [
            self.summed(self.loss.hessian_product(tiled, self.tiled(np.broadcast_to(unit, scores.shape))))
            for unit in np.eye(self.shape[2])
        ]
        return np.stack(columns, axis=-1)


def minimisers(surrogate: Surrogate, table: FloatArray, mixtures: Mixtures) -> Minima:
    """Minimise each expected surrogate, by damped Newton steps from scores 0; the surrogate is smooth.

    Where the least value is only approached (a score goes to minus infinity), the scores are far out; where
    there are many minimisers, the scores are any of them.

    `table` is what the surrogate reads, one label per row: see `read_surrogate_labels`.
    """
    scores, values = np.zeros((len(mixtures), table.shape[1])), np.zeros(len(mixtures))
    settled, left = np.zeros(len(mixtures), dtype=bool), np.arange(len(mixtures))
    steepest = _steepness(ExpectedLosses(surrogate, table, mixtures), scores)
    for most in ROUNDS:  # slow mixtures continue without the others
        if left.size:
            expected = ExpectedLosses(surrogate, table, mixtures.take(left))
            newton_results = _newton_steps(expected, scores[left], steepest[left], most)
            scores[left], values[left], settled[left], done = newton_results
            left = left[~done]
    return Minima(scores - scores.mean(axis=1, keepdims=True), values, settled)


def _steepness(expected: ExpectedLosses, scores: FloatArray) -> FloatArray:
    """Scale of each mixture against which a gradient counts as small."""
    values, grad = expected.value_and_grad(scores)
    measure: FloatArray = np.maximum(np.abs(grad).max(axis=1), 1e-3 * np.abs(values)) + TINY
    return measure


def _newton_steps(
    expected: ExpectedLosses, scores: FloatArray, steepest: FloatArray, most: int
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Take Newton steps; return the scores, their values, and which have settled or do not move any more."""
    values, grad = expected.value_and_grad(scores)
    done = np.zeros(len(scores), dtype=bool)
    for taken in range(most):
        done |= np.abs(grad).max(axis=1) <= FLAT * steepest
        if done.all():
            break
        step = _newton_step(expected.hessian(scores), grad, steepest, FARTHEST * 2.0**taken)
        scores, values, grad, advanced = _line_search(expected, scores, step, values, grad)
        done |= ~advanced
    return scores, values, np.abs(grad).max(axis=1) <= SETTLED * steepest, done


def _newton_step(hessian: FloatArray, grad: FloatArray, steepest: FloatArray, farthest: float) -> FloatArray:
    """Return the damped Newton step, in which no score moves by more than `farthest`."""
    bends, ways = np.linalg.eigh(hessian)
    least = DAMPING * np.maximum(bends[:, -1], 1e-6 * steepest)[:, None]
    step = -np.einsum("bij,bj->bi", ways, np.einsum("bij,bi->bj", ways, grad) / np.maximum(bends, least))
    longest = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(step * np.minimum(1.0, farthest / np.maximum(longest, TINY)))


def _line_search(
    expected: ExpectedLosses, scores: FloatArray, step: FloatArray, values: FloatArray, grad: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Halve the step of each mixture until its loss falls, or the slope along the step has vanished."""
    slope = np.einsum("bi,bi->b", grad, step)
    size = np.ones(len(scores))
    advanced = np.zeros(len(scores), dtype=bool)
    best, best_values, best_grad = scores, values, grad
    for _ in range(HALVINGS):
        trial = scores + size[:, None] * step
        trial_values, slopes = expected.value_and_grad(trial)
        along = np.abs(np.einsum("bi,bi->b", slopes, step))
        # Near the least value differences drown in rounding: there the slope decides.
        better = (trial_values <= values + 1e-4 * size * slope) | (
            (trial_values <= values + 1e-13 * np.abs(values)) & (along <= 0.9 * np.abs(slope))
        )
        fresh = better & ~advanced
        best = np.where(fresh[:, None], trial, best)
        best_values = np.where(fresh, trial_values, best_values)
        best_grad = np.where(fresh[:, None], slopes, best_grad)
        advanced |= better
        if advanced.all():
            break
        size = np.where(advanced, size, size / 2.0)
    return best, best_values, best_grad, advanced


TIED = 1e-7  # scores nearer than this share of their largest difference count as equal
NOISE = 1e-9  # and so do scores nearer than this share of the largest difference of all mixtures
BLOCK = 4000  # mixtures evaluated together


class Outcomes(NamedTuple):
    """Regret and minimiser of each mixture.

    Attributes
    ----------
    regrets, least
        Regret of the decoded minimiser, mean over the orders that its scores allow; and regret of the best of
        these orders: above 0, there is regret however ties are broken.
    scores, settled
        The minimiser, and whether the minimisation has converged to it.
    """

    regrets: FloatArray
    least: FloatArray
    scores: FloatArray
    settled: BoolArray

    def take(self, rows: Any) -> Outcomes:
        """Select rows."""
        return Outcomes(self.regrets[rows], self.least[rows], self.scores[rows], self.settled[rows])


def concatenate_outcomes(parts: Iterable[Outcomes]) -> Outcomes:
    """Concatenate outcomes, in order."""
    columns: Any = zip(*parts, strict=True)
    return Outcomes(*(np.concatenate(column) for column in columns))


class Trial:
    """All labels and all orders of a few items, on which mixtures of the labels are tried.

    Parameters
    ----------
    combination
        The combination.
    n_items
        Items of the query; all their orders are looked at.
    highest
        Highest grade, on grades.

    Attributes
    ----------
    labels, orders
        All labels of the space, and all orders, best first.
    values
        Value of each order (columns) under each label (rows); high is good, 0 where undefined.
    """

    def __init__(self, combination: Combination, n_items: int = 4, highest: int = 2) -> None:
        self.combination, self.n_items = combination, n_items
        self.labels = every_label(combination.space, n_items, highest)
        self.orders = every_order(n_items)
        self.values = np.stack([self.order_values(number) for number in range(len(self.labels))])

    def order_values(self, number: int) -> FloatArray:
        """Return the value of every order under a label: each order is a query."""
        metric, scores = self.combination.metric, -np.argsort(self.orders, axis=1).astype(np.float64)
        values = values_of_scores(metric, self.labels[number], np.arange(self.n_items), scores)
        return values if metric.greater_is_better else -values

    @functools.cached_property
    def table(self) -> FloatArray:
        """What the surrogate reads of each label: a row of numbers, or a matrix of pairs."""
        if not isinstance(self.combination.surrogate, PairSquared):
            return read_surrogate_labels(self.combination, self.labels)
        single = Queries.from_sizes([self.n_items])
        certain = (LabelDistribution((label,), np.ones((1, 1)), single) for label in self.labels)
        metric = self.combination.metric
        means = (pair_means(sure, metric) if metric.name == "ap" else net_means(sure) for sure in certain)
        return np.stack([matrix for (matrix,) in means])

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Index of each label, by its text."""
        return {format_label(label): number for number, label in enumerate(self.labels)}

    @functools.cached_property
    def spread(self) -> float:
        """Largest difference between two orders: the unit of regret; 0 where no order matters."""
        return float(np.ptp(self.values, axis=1).max(initial=0.0))

    @property
    def quick(self) -> bool:
        """True if minimisers of many mixtures are computed together."""
        return isinstance(self.combination.surrogate, PairSquared) or self.combination.surrogate.smooth

    def mixtures(self, labels: Sequence[Sequence[Any]], counts: Sequence[Sequence[int]]) -> Mixtures:
        """Read mixtures of labels, all of the same length; counts are integers, the odds of the labels."""
        label_indices = [
            [self.numbers[format_label(_grades_as_array(label))] for label in row] for row in labels
        ]
        shares = np.asarray(counts, dtype=np.float64)
        return Mixtures(np.array(label_indices), shares / shares.sum(axis=1, keepdims=True))

    def outcomes(self, mixtures: Mixtures) -> Outcomes:
        """Minimise, decode and compare with the best order, mixture by mixture."""
        return concatenate_outcomes(self.block(mixtures.take(rows)) for rows in _blocks(len(mixtures)))

    def block(self, mixtures: Mixtures) -> Outcomes:
        """Return the outcomes of a block of mixtures."""
        reached = self.minimise(mixtures)
        values = mixtures.mean(self.values)
        allowed, best = self.allowed(reached.scores), values.max(axis=1)
        mean = (values * allowed).sum(axis=1) / allowed.sum(axis=1)
        least = best - np.where(allowed, values, -np.inf).max(axis=1)
        return Outcomes(best - mean, least, reached.scores, reached.settled)

    def allowed(self, scores: FloatArray) -> BoolArray:
        """Mask of the orders that the scores allow."""
        apart = np.ptp(scores, axis=1)
        slack = np.maximum(TIED * apart, NOISE * apart.max(initial=0.0))[:, None, None]
        is_allowed: BoolArray = (np.diff(scores[:, self.orders], axis=2) <= slack).all(axis=2)
        return is_allowed

    def minimise(self, mixtures: Mixtures) -> Minima:
        """Minimise the expected surrogate; for pairs, the scores are minus the ranks of the decoded order."""
        surrogate = self.combination.surrogate
        if isinstance(surrogate, PairSquared):
            return self.decode(mixtures)
        if surrogate.smooth:
            return minimisers(surrogate, self.table, mixtures)
        return self.vertices(surrogate, mixtures)

    def vertices(self, surrogate: Surrogate, mixtures: Mixtures) -> Minima:
        """Minimise losses with corners, by linear programs."""
        from concordant.theory.exact.polyhedral import polyhedral_minimiser

        scores = np.zeros((len(mixtures), self.n_items))
        settled = np.zeros(len(mixtures), dtype=bool)
        for row, (label_indices, probs) in enumerate(zip(*mixtures, strict=True)):
            labels = tuple(self.labels[number] for number in label_indices)
            minimiser = polyhedral_minimiser(self.combination.metric, surrogate, labels, tuple(probs))
            if minimiser is not None:
                scores[row], settled[row] = minimiser, True
        return Minima(scores, np.full(len(mixtures), np.nan), settled)

    def decode(self, mixtures: Mixtures) -> Minima:
        """Return the negated ranks of the items in the decoded order of the expected pair targets."""
        ranks = [places_in_doubles(self.combination, u) for u in mixtures.mean(self.table)]
        scores = -np.stack(ranks).astype(np.float64)
        return Minima(scores, np.zeros(len(scores)), np.ones(len(scores), dtype=bool))


def _grades_as_array(label: Any) -> Any:
    return np.asarray(label, dtype=np.float64) if isinstance(label, (tuple, list)) else label


def _blocks(count: int) -> Iterator[slice]:
    """Cut mixtures into blocks; a single empty block if there are none."""
    return (slice(first, first + BLOCK) for first in range(0, max(count, 1), BLOCK))
