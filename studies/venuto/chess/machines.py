"""Comparison machines on chess games: parameters by splits in time; whether the hinge uses its features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from concordant import Comparer
from concordant._internals import Kernel, NystroemMap, Scaling, fit_margin
from concordant.evaluation import TimeShares
from concordant.metrics import comparison_roc
from concordant.types import BoolArray, FloatArray, IntArray
from studies.venuto.chess.data import Season
from studies.venuto.chess.models import Answer, Model, features_of

COSTS = tuple(10.0**power for power in range(-12, 1, 2))  # of the hinge, by hundreds as in the paper
SMOOTH_COSTS = tuple(10.0**power for power in range(-6, 3))
DEGREES = (1, 2, 3, 4)
WIDTHS = (0.01, 0.1, 1.0, 10.0)  # the paper has the last three
LANDMARKS = 200
FOLDS = 3  # on which probabilities are calibrated
TOL, KERNEL_TOL = 1e-6, 1e-3  # of search and training alike; the second is the `Comparer`'s with landmarks


@dataclass(frozen=True)
class KernelChoice:
    """Parameters of a machine, and the mean area they reached in the search."""

    kernel: Kernel
    C: float
    validation: float


def _kernels(kernel: str, n_features: int) -> Iterator[Kernel]:
    if kernel == "poly":
        yield from (Kernel("poly", 1.0 / n_features, degree) for degree in DEGREES)
    elif kernel == "rbf":
        yield from (Kernel("rbf", gamma) for gamma in WIDTHS)
    else:
        yield Kernel("linear")


def machine(season: Season, model: Model, seed: int, tol: float = TOL) -> Answer:
    """Choose the parameters on January to March, then train on January to April."""
    pairs, y, linear = features_of(season, model.features), season.y, model.kernel == "linear"
    tol = tol if linear else max(tol, KERNEL_TOL)
    best = _search(pairs[season.search], y[season.search], season, model, seed, tol)
    comparer = Comparer(
        model.kernel,
        C=best.C,
        gamma=best.kernel.gamma,
        degree=best.kernel.degree,
        loss=model.loss,
        n_components=LANDMARKS,
        approximation="nystroem",
        calibration=FOLDS,
        tol=tol,
        random_state=seed,
    )
    comparer.fit(pairs[season.train], y[season.train])
    asked = pairs[season.test]
    return Answer(
        comparer.decision_function(asked),
        comparer.predict_proba(asked),
        comparer.predict(asked),
        best.C,
        float(best.kernel.degree) if model.kernel == "poly" else math.nan,
        math.nan if linear else best.kernel.gamma,
        best.validation,
        linear and model.loss == "hinge" and _collapses_in_training(pairs[season.train], y[season.train]),
    )


def _search(
    pairs: FloatArray, y: IntArray, season: Season, model: Model, seed: int, tol: float
) -> KernelChoice:
    """Find the kernel and the cost of largest mean area over the time splits; the first of equals."""
    costs = COSTS if model.loss == "hinge" else SMOOTH_COSTS
    tried: dict[Kernel, list[list[float]]] = {kernel: [] for kernel in _kernels(model.kernel, pairs.shape[2])}
    for fitted, held_out in TimeShares(time=season.days[season.search]).split(pairs):
        scaled = Scaling.from_pairs(pairs[fitted], np.ones(len(fitted)))(pairs)
        for kernel, areas in tried.items():
            differences = _map_differences(scaled, fitted, kernel, seed)
            turned = differences[fitted] * _signs(y[fitted])
            directions = _directions(turned, y[fitted] == 0, model.loss, costs, tol)
            areas.append([comparison_roc(y[held_out], differences[held_out] @ w).area for w in directions])
    means = {kernel: np.mean(areas, axis=0) for kernel, areas in tried.items()}
    best = max(means, key=lambda kernel: means[kernel].max())
    cheapest = int(np.argmax(means[best]))
    return KernelChoice(best, costs[cheapest], float(means[best][cheapest]))


def _map_differences(scaled: FloatArray, fitted: IntArray, kernel: Kernel, seed: int) -> FloatArray:
    """Right less left in the space of the kernel, of all pairs; landmarks are training items."""
    if kernel.name == "linear":
        return scaled[:, 1] - scaled[:, 0]
    items = scaled[fitted].reshape(-1, scaled.shape[2])
    return NystroemMap.from_items(kernel, items, LANDMARKS, np.random.default_rng(seed)).differences(scaled)


def _signs(y: IntArray) -> FloatArray:
    """Column of factors that turn differences so that right is better."""
    return np.where(y < 0, -1.0, 1.0)[:, None]


def _directions(
    turned: FloatArray, is_tie: BoolArray, loss: str, costs: tuple[float, ...], tol: float
) -> Iterator[FloatArray]:
    """Yield the direction of the machine of each cost, smallest first; a fit begins where the last ended."""
    start = None
    for C in costs:
        solution = fit_margin(turned, is_tie, C=C, loss=loss, tol=tol, start=start)
        start = solution.w, solution.bias
        yield solution.w


def area_at(season: Season, model: Model, C: float, tol: float) -> float:
    """Test area of a linear machine, trained to a tolerance."""
    pairs, y = features_of(season, model.features), season.y
    scaled = Scaling.from_pairs(pairs[season.train], np.ones(len(season.train)))(pairs)
    differences, fitted = scaled[:, 1] - scaled[:, 0], season.train
    turned = differences[fitted] * _signs(y[fitted])
    solution = fit_margin(turned, y[fitted] == 0, C=C, loss=model.loss, tol=tol)
    return comparison_roc(y[season.test], differences[season.test] @ solution.w).area


def _collapses_in_training(pairs: FloatArray, y: IntArray) -> bool:
    """True if the optimum of the hinge on these pairs, scaled, has no weights."""
    scaled = Scaling.from_pairs(pairs, np.ones(len(pairs)))(pairs)
    return hinge_collapses((scaled[:, 1] - scaled[:, 0]) * _signs(y), y == 0)


def hinge_collapses(turned: FloatArray, is_tie: BoolArray) -> bool:
    """Check if w = 0 with bias -1 minimises the linear machine's hinge objective, for every C.

    There a difference pulls with its full weight, and the two copies of a tie with shares a and b of it, any
    between 0 and 1: the point is optimal if shares exist by which all pulls cancel, sum(a + b) = number of
    differences and sum((a - b) * tie) = sum of the differences. C multiplies both sides. A linear program.

    >>> hinge_collapses(np.array([[1.0], [2.0], [2.0]]), np.array([False, True, True]))
    True
    >>> hinge_collapses(np.array([[1.0], [0.1], [0.1]]), np.array([False, True, True]))
    False
    """
    from scipy.optimize import linprog

    ties, pull = turned[is_tie], turned[~is_tie].sum(axis=0)
    if not len(ties):
        return False
    pulls = np.block([[np.ones(2 * len(ties))], [ties.T, -ties.T]])
    totals = np.r_[float(np.sum(~is_tie)), pull]
    program = linprog(np.zeros(pulls.shape[1]), A_eq=pulls, b_eq=totals, bounds=(0.0, 1.0), method="highs")
    return bool(program.status == 0)
