"""Online solver of the comparison family: one stochastic step per pair, in constant memory.

The objective is that of `primal_newton.py` with method "compare", by default with logistic loss:
log(1 + exp(-(b + g))) for a difference, log(1 + exp(b + g)) + log(1 + exp(b - g)) for a tie. A hinge needs
its margin of 1, without which u = 0 would cost nothing; logistic loss has a slope everywhere, and with
margin 0 it is minus the logarithm of a likelihood: that of a cumulative logit with cut -b, but for a term
-log(1 - exp(2 b)) per tie.

Ranking: r = -w/b with threshold 1 where b < 0. Where b >= 0 (no ties, or few), no tie is ever predicted:
r = w, threshold 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from concordant._base.validate import check_counts, check_lengths, check_number
from concordant.comparisons.machines.machine_parts import MachineProblem
from concordant.comparisons.machines.machine_rows import RowProblem
from concordant.comparisons.machines.primal_newton import LOSSES, MarginSolution, build_problem, value_and_gap
from concordant.data.check import check_pairs
from concordant.data.labels import check_outcome
from concordant.exceptions import EmptyDataError, UnknownNameError
from concordant.solvers.checkpoint import Journal, recall_or_run
from concordant.types import ArrayLike, BoolArray, FloatArray

FEWEST = 1_000  # steps in an epoch
NO_BIAS = -1e-100  # a bias above this cannot be divided by


@dataclass(eq=False)
class OnlineState:
    """State after the pairs so far: plain arrays, whose size depends only on the number of features.

    Attributes
    ----------
    count
        Number of pairs so far.
    scaled
        True if features are divided by their spread so far. Those of a kernel's map are not: the
        regularisation depends on their sizes.
    mean, square
        Of each feature over both sides of all pairs: the mean, and the sum of squares about it.
    widest
        Largest variance that each feature has had.
    current, fisher
        Weights of the last step in the units of the features, the bias last; and sums of squared slopes.
    average
        Weights for prediction: the average of the weights after each step, later steps counting more.
    history
        Decisions on pairs before they were learned: sums of weights (0) and of weights times decisions (1) in
        bins, of differences (0, with the sign that makes right the better side) and of ties (1, their sizes).
    """

    count: int
    scaled: bool
    mean: FloatArray
    square: FloatArray
    widest: FloatArray
    current: FloatArray
    fisher: FloatArray
    average: FloatArray
    history: FloatArray

    @classmethod
    def start(cls, n_features: int, *, scaled: bool = True) -> OnlineState:
        """Return the state before the first pair.

        >>> OnlineState.start(2).average.tolist()
        [0.0, 0.0, 0.0]
        """
        from concordant.comparisons.machines.machine_kernels import BINS

        check_counts(n_features=n_features)
        per_feature, joint = np.zeros((3, n_features)), np.zeros((3, n_features + 1))
        arrays = [*(row.copy() for part in (per_feature, joint) for row in part), np.zeros((2, 2, BINS))]
        return cls(0, scaled, *arrays)

    @property
    def n_features(self) -> int:
        """Number of features of an item."""
        return len(self.mean)


def learn(
    state: OnlineState, pairs: ArrayLike, y: ArrayLike, *, C: float = 1.0, loss: str = "logistic"
) -> OnlineState:
    """Learn pairs one after the other; the state is updated in place and returned.

    The time per pair is proportional to the number of features and independent of the number of earlier
    pairs; many calls with one pair each give the same bits as one call with all. If the state is scaled,
    features are divided by their spread so far, over both sides of all pairs: their units do not matter, and
    constant features get no weight. With more pairs the weights tend to the minimum of 1/2 u.u + C * sum of
    losses over the pairs so far (u in scaled features); order matters, so shuffle a table before learning it.

    Parameters
    ----------
    state
        From `OnlineState.start`, or an earlier call.
    pairs
        Features of both sides, (n, 2, p).
    y
        Outcomes: -1 the left is better, +1 the right is better, 0 a tie.
    C
        Cost of a unit of loss; the same in every call.
    loss
        "logistic", "hinge" or "squared_hinge".

    References
    ----------
    Polyak and Juditsky (1992) and Shamir and Zhang (2013) for the averaging; Ross, Mineiro and Langford
    (2013) for steps that do not depend on units.

    Examples
    --------
    >>> state = learn(OnlineState.start(1), [[[1.0], [3.0]], [[2.0], [2.1]]], [1, 0])
    >>> w, bias = weights(state)
    >>> state.count, bool(w[0] > 0)
    (2, True)
    """
    from concordant.comparisons.machines.machine_kernels import learn_pairs

    if loss not in LOSSES:
        raise UnknownNameError("loss", loss, LOSSES)
    cost = check_number("C", C, above=0.0)
    rows, outcome = check_pairs(pairs, state.n_features), check_outcome(y, "y")
    check_lengths("pairs", len(rows), y=outcome)
    moments, steps = (state.mean, state.square, state.widest), (state.current, state.fisher, state.average)
    learn_pairs(rows, outcome, cost, LOSSES[loss], state.count, state.scaled, *moments, *steps, state.history)
    state.count += len(outcome)
    return state


def weights(state: OnlineState) -> tuple[FloatArray, float]:
    """Weights w in the units of the features, and the bias b."""
    return state.average[:-1].copy(), float(state.average[-1])


def ranking(w: FloatArray, bias: float) -> tuple[FloatArray, float]:
    """Weights of the ranking function r(x) = x @ weights, and its threshold.

    >>> ranking(np.array([3.0]), -1.5), ranking(np.array([3.0]), 0.5)
    ((array([2.]), 1.0), (array([3.]), 0.0))
    """
    return (w / -bias, 1.0) if bias < NO_BIAS else (w, 0.0)


def sgd_logistic(
    differences: FloatArray,
    is_tie: BoolArray,
    *,
    C: float,
    method: str = "compare",
    sample_weight: FloatArray | None = None,
    tol: float = 1e-4,
    max_iter: int = 50,
    seed: int = 0,
    journal: Journal | None = None,
) -> MarginSolution:
    """Minimise the logistic objective of `primal_newton.py` by stochastic gradient, the weights averaged.

    Takes one step per pair, in random order; after each epoch (one pass over the pairs, or as many as make
    1,000 steps) the objective is evaluated at the average. Converged: an epoch changed it by less than `tol`
    times its value. That proves nothing: `gap` bounds the distance from the optimum, usually loosely.
    `n_iter` counts epochs. A journal records the state after each. Otherwise as `fit_margin`.

    Examples
    --------
    >>> from concordant.comparisons.machines.primal_newton import fit_margin
    >>> rng = np.random.default_rng(0)
    >>> d, is_tie = rng.normal(size=(1000, 3)) + 0.5, rng.random(1000) < 0.3
    >>> found, best = sgd_logistic(d, is_tie, C=1.0), fit_margin(d, is_tie, C=1.0, loss="logistic")
    >>> found.converged, bool(found.value < 1.001 * best.value)
    (True, True)
    """
    problem = build_problem(
        differences, is_tie, check_number("C", C, above=0.0), method, "logistic", sample_weight
    )
    if not len(problem.cost):
        raise EmptyDataError("differences")
    return sgd_over_rows(problem, tol, max_iter, seed, journal)


def sgd_over_rows(
    problem: RowProblem, tol: float, max_iter: int = 50, seed: int = 0, journal: Journal | None = None
) -> MarginSolution:
    """Run `sgd_logistic` on rows of nonzero cost."""
    n, total, rng = problem.n_rows, problem.total_cost, np.random.default_rng(seed)
    shares = n * problem.cost / total

    def start_epoch(epoch: int, steps: FloatArray) -> Callable[[], tuple[FloatArray]]:
        order = np.concatenate([rng.permutation(n) for _ in range(n_passes(n))])
        fixed = shares, order, 1.0 / total, float(problem.has_bias), problem.kind
        return partial(run_epoch, problem, fixed, epoch * len(order), steps)

    return run_epochs(MachineProblem.from_rows(problem), start_epoch, tol, max_iter, journal)


def n_passes(n_rows: int) -> int:
    """Number of passes over the pairs in an epoch."""
    return math.ceil(FEWEST / n_rows)


def run_epochs(
    problem: MachineProblem,
    start_epoch: Callable[[int, FloatArray], Callable[[], tuple[FloatArray]]],
    tol: float,
    max_iter: int,
    journal: Journal | None,
) -> MarginSolution:
    """Run epochs until one changes little; `start_epoch(epoch, steps)` returns a function that runs one."""
    steps = np.zeros((3, problem.n_features + 1))
    best = solution(problem, steps[2], 0)
    for epoch in range(max_iter):
        (steps,), _ = recall_or_run(journal, "epoch", (epoch, steps), start_epoch(epoch, steps))
        candidate = solution(problem, steps[2], epoch + 1)
        settled = abs(best.value - candidate.value) <= tol * candidate.value
        best = candidate if candidate.value <= best.value else best
        if settled:
            return replace(best, n_iter=epoch + 1, converged=True)
    return best


def run_epoch(
    problem: RowProblem, fixed: tuple[Any, Any, float, float, int], first: int, steps: FloatArray
) -> tuple[FloatArray]:
    """Take the steps of an epoch; return the state after them."""
    from concordant.comparisons.machines.machine_kernels import walk

    after = steps.copy()
    walk(problem.rows, problem.tie, *fixed, first, after[0], after[1], after[2])
    return (after,)


def solution(problem: MachineProblem, joint: FloatArray, n_iter: int) -> MarginSolution:
    """Evaluate the objective and its duality gap."""
    w, bias = joint[:-1].copy(), float(joint[-1])
    value, gap = value_and_gap(problem, problem.look(w, bias, 0.0))
    return MarginSolution(w, bias, value, gap, n_iter, converged=False)
