"""Figures 4 and 5 of "Support vector comparison machines": the comparison machine against ranking machines.

Venuto, Hocking, Sphanurattana and Sugiyama report lower test error of `compare` than of `rank` and `rank2`.
Their baselines learned the threshold on inputs that had been scaled twice. Here they do so ("published") and,
beside it, on inputs scaled once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import Event

import numpy as np

from concordant._segments import n_threads, one_blas_thread
from concordant.decoders.threshold import outcomes
from concordant.evaluation.reproduction.svmcompare_data import SIMULATED, Split, load, published_values
from concordant.evaluation.reproduction.svmcompare_grid import (
    METHODS,
    Fit,
    Machine,
    Scale,
    fits,
    thresholds,
)
from concordant.evaluation.reproduction.svmcompare_points import ERROR, Point, Study
from concordant.exceptions import ParameterError
from concordant.metrics.comparison import comparison_roc
from concordant.types import FloatArray, IntArray

__all__ = ["AREAS", "PAIRS", "SEEDS", "SHARES", "SIZES", "areas", "errors"]

SIZES = (50, 100, 200, 400, 800)
SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
SEEDS = 4
PAIRS = 400  # of each set, where the share of ties varies
LEAST = 4  # pairs of a set: with fewer there may be no tie, or no difference
AREAS: Mapping[str, str] = {"area": "error", "area, unsigned": "ignored"}  # -> how inversions count
TRUTH = "truth"

Step = Callable[[str], None]
Cell = tuple[str, int, float, int]


def errors(
    data: Sequence[str],
    *,
    sizes: Sequence[int] = SIZES,
    seeds: int = SEEDS,
    folder: str | os.PathLike[str] | None = None,
    step: Step = lambda _: None,
) -> Study:
    """Test error against the number of pairs, half of them ties: Figure 4.

    Parameters
    ----------
    data
        Of "l2", "l1", "linf", "sushi". The first four seeds of l2 are the paper's own splits.
    sizes
        Pairs of the training, of the validation and of the test set.
    seeds
        Splits of each size; those of l1 and linf are drawn from pools of their own.
    folder
        Folder of the datasets, as for `datasets.load`.
    step
        Called with what was done, once a split.
    """
    check_sizes(*sizes)
    cells = [(name, n, 0.5, seed) for name in data for n in sizes for seed in range(1, seeds + 1)]
    return Study(run(cells, error_points, folder, step), published_values(folder))


def areas(
    data: Sequence[str],
    *,
    shares: Sequence[float] = SHARES,
    n: int = PAIRS,
    seeds: int = SEEDS,
    folder: str | os.PathLike[str] | None = None,
    step: Step = lambda _: None,
) -> Study:
    """Area under the ROC curve against the share of ties, n pairs in each set: Figure 5.

    Models are chosen by the area on the validation pairs, for each version of the area on its own.
    Parameters as for `errors`.
    """
    check_sizes(n)
    if bad := [share for share in shares if not 0.0 < round(share * n) < n]:
        raise ParameterError("shares", bad[0], "between 0 and 1, with a tie and a difference among n pairs")
    cells = [(name, n, share, seed) for name in data for share in shares for seed in range(1, seeds + 1)]
    return Study(run(cells, area_points, folder, step))


def check_sizes(*sizes: int) -> None:
    """Refuse sets too small to have ties and differences."""
    if bad := [n for n in sizes if n < LEAST]:
        raise ParameterError("n", bad[0], f"at least {LEAST} pairs")


def run(
    cells: Sequence[Cell],
    work: Callable[..., list[Point]],
    folder: str | os.PathLike[str] | None,
    step: Step,
) -> tuple[Point, ...]:
    """Do all splits, on all cores: libsvm and the kernels leave Python alone while they compute."""
    pool = cache(partial(load, folder=folder))
    splits = [
        (pool(name, seed=seed) if name in SIMULATED else pool(name)).split(n, tie_share, seed)
        for name, n, tie_share, seed in cells
    ]
    stop, points = Event(), list[Point]()
    with one_blas_thread(), ThreadPoolExecutor(n_threads()) as threads:
        try:
            done = threads.map(partial(work, stop=stop), cells, splits)
            for (name, n, tie_share, seed), found in zip(cells, done, strict=True):
                points += found
                step(f"{name}: {n} pairs, {tie_share:.0%} ties, split {seed}")
        finally:
            stop.set()  # after an error, or Ctrl-C, work that is under way ends with its next machine
    return tuple(points)


def until(stop: Event, found: Iterable[Fit]) -> Iterator[Fit]:
    """Give fits until nobody waits for them any more."""
    for fit in found:
        if stop.is_set():
            return
        yield fit


def error_points(cell: Cell, split: Split, stop: Event) -> list[Point]:
    """Choose each method by its validation error, the first of the best; give its test error."""
    scale, y = Scale.of(split.train.points), split.train.y
    twice = scale(split.train.points)  # scaled once more on the way into the kernel
    best: dict[str, tuple[float, Machine, float]] = {}
    for fit in until(stop, fits(split.train, (split.validation.points, twice))):
        for method, threshold in thresholds(fit, y).items():
            error = float(np.mean(outcomes(fit.others[0], threshold) != split.validation.y))
            if method not in best or error < best[method][0]:
                best[method] = error, fit.machine, threshold
    found = []
    for method, (error, machine, threshold) in best.items():
        wrong = outcomes(machine.decision(split.test.points), threshold) != split.test.y
        found.append(
            Point(*cell, ERROR, method, machine.setting.gamma, machine.setting.C, error, float(wrong.mean()))
        )
    return [*truth(cell, split, ERROR), *found]


def area_points(cell: Cell, split: Split, stop: Event) -> list[Point]:
    """Choose each method by its validation area, the first of the best; give its test area."""
    best: dict[tuple[str, str], tuple[float, Machine]] = {}
    for fit in until(stop, fits(split.train, (split.validation.points,))):
        for measure in AREAS:
            area = value(measure, split.validation.y, fit.others[0])
            place = measure, fit.machine.setting.method
            if place not in best or area > best[place][0]:
                best[place] = area, fit.machine
    found = []
    for measure in AREAS:
        found += truth(cell, split, measure)
        for method in METHODS:
            area, machine = best[measure, method]
            test = value(measure, split.test.y, machine.decision(split.test.points))
            found.append(Point(*cell, measure, method, machine.setting.gamma, machine.setting.C, area, test))
    return found


def truth(cell: Cell, split: Split, measure: str) -> list[Point]:
    """Give what the true ranking function reaches; nothing where it is not known."""
    if not split.truth:
        return []
    parts = (split.validation.y, split.truth["validation"]), (split.test.y, split.truth["test"])
    return [
        Point(*cell, measure, TRUTH, float("nan"), float("nan"), *(value(measure, *part) for part in parts))
    ]


def value(measure: str, y: IntArray, decision: FloatArray) -> float:
    """Give an area, or the error at threshold 1."""
    if measure == ERROR:
        return float(np.mean(outcomes(decision, 1.0) != y))
    return comparison_roc(y, decision, inversions=AREAS[measure]).area
