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

from concordant._internals import n_threads, one_blas_thread, outcomes
from concordant.exceptions import ParameterError
from concordant.metrics import comparison_roc
from concordant.types import FloatArray, IntArray
from studies.venuto.svmcompare.data import Split, is_simulated, load, published_values
from studies.venuto.svmcompare.grid import METHODS, Fit, Machine, Scale, fits, thresholds
from studies.venuto.svmcompare.results import ERROR, SplitPoint, SplitStudy

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
) -> SplitStudy:
    """Test error against the number of pairs, half of them ties: Figure 4.

    Parameters
    ----------
    data
        Of "l2", "l1", "linf", "sushi". The first four seeds of l2 are the paper's own splits, where its
        published pool is on this machine; else l2 is simulated.
    sizes
        Pairs of the training, of the validation and of the test set.
    seeds
        Splits of each size; those of simulated data are drawn from pools of their own.
    folder
        Folder of the datasets, as for `datasets.load`.
    step
        Called with what was done, once a split.
    """
    _check_sizes(*sizes)
    cells = [(name, n, 0.5, seed) for name in data for n in sizes for seed in range(1, seeds + 1)]
    drawn = simulated(data, folder)
    paper = {} if "l2" in drawn else published_values(folder)
    return SplitStudy(run(cells, _error_points, folder, step), paper, drawn)


def areas(
    data: Sequence[str],
    *,
    shares: Sequence[float] = SHARES,
    n: int = PAIRS,
    seeds: int = SEEDS,
    folder: str | os.PathLike[str] | None = None,
    step: Step = lambda _: None,
) -> SplitStudy:
    """Area under the ROC curve against the share of ties, n pairs in each set: Figure 5.

    Models are chosen by the area on the validation pairs, for each version of the area on its own.
    Parameters as for `errors`.
    """
    _check_sizes(n)
    if bad := [share for share in shares if not 0.0 < round(share * n) < n]:
        raise ParameterError("shares", bad[0], "between 0 and 1, with a tie and a difference among n pairs")
    cells = [(name, n, share, seed) for name in data for share in shares for seed in range(1, seeds + 1)]
    return SplitStudy(run(cells, _area_points, folder, step), simulated=simulated(data, folder))


def simulated(data: Sequence[str], folder: str | os.PathLike[str] | None) -> tuple[str, ...]:
    """Return the names of the pools that are drawn, in order."""
    return tuple(name for name in dict.fromkeys(data) if is_simulated(name, folder))


def _check_sizes(*sizes: int) -> None:
    """Raise for sets too small to have ties and differences."""
    if bad := [n for n in sizes if n < LEAST]:
        raise ParameterError("n", bad[0], f"at least {LEAST} pairs")


def run(
    cells: Sequence[Cell],
    work: Callable[..., list[SplitPoint]],
    folder: str | os.PathLike[str] | None,
    step: Step,
) -> tuple[SplitPoint, ...]:
    """Do all splits, on all cores: libsvm and the kernels leave Python alone while they compute."""
    pool = cache(partial(load, folder=folder))
    drawn = simulated([name for name, *_ in cells], folder)
    splits = [
        (pool(name, seed=seed) if name in drawn else pool(name)).split(n, tie_share, seed)
        for name, n, tie_share, seed in cells
    ]
    stop, points = Event(), list[SplitPoint]()
    with one_blas_thread(), ThreadPoolExecutor(n_threads()) as threads:
        try:
            done = threads.map(partial(work, stop=stop), cells, splits)
            for (name, n, tie_share, seed), cell_points in zip(cells, done, strict=True):
                points += cell_points
                step(f"{name}: {n} pairs, {tie_share:.0%} ties, split {seed}")
        finally:
            stop.set()  # after an error, or Ctrl-C, work that is under way ends with its next machine
    return tuple(points)


def _until(stop: Event, fitted: Iterable[Fit]) -> Iterator[Fit]:
    """Yield fits until the event is set."""
    for fit in fitted:
        if stop.is_set():
            return
        yield fit


def _error_points(cell: Cell, split: Split, stop: Event) -> list[SplitPoint]:
    """Choose each method by its validation error, the first of the best; give its test error."""
    scale, y = Scale.from_points(split.train.points), split.train.y
    twice = scale(split.train.points)  # scaled once more on the way into the kernel
    best: dict[str, tuple[float, Machine, float]] = {}
    for fit in _until(stop, fits(split.train, (split.validation.points, twice))):
        for method, threshold in thresholds(fit, y).items():
            error = float(np.mean(outcomes(fit.others[0], threshold) != split.validation.y))
            if method not in best or error < best[method][0]:
                best[method] = error, fit.machine, threshold
    points = []
    for method, (error, machine, threshold) in best.items():
        wrong = outcomes(machine.decision(split.test.points), threshold) != split.test.y
        points.append(
            SplitPoint(
                *cell, ERROR, method, machine.setting.gamma, machine.setting.C, error, float(wrong.mean())
            )
        )
    return [*truth(cell, split, ERROR), *points]


def _area_points(cell: Cell, split: Split, stop: Event) -> list[SplitPoint]:
    """Choose each method by its validation area, the first of the best; give its test area."""
    best: dict[tuple[str, str], tuple[float, Machine]] = {}
    for fit in _until(stop, fits(split.train, (split.validation.points,))):
        for measure in AREAS:
            area = _measure(measure, split.validation.y, fit.others[0])
            key = measure, fit.machine.setting.method
            if key not in best or area > best[key][0]:
                best[key] = area, fit.machine
    points = []
    for measure in AREAS:
        points += truth(cell, split, measure)
        for method in METHODS:
            area, machine = best[measure, method]
            test = _measure(measure, split.test.y, machine.decision(split.test.points))
            points.append(
                SplitPoint(*cell, measure, method, machine.setting.gamma, machine.setting.C, area, test)
            )
    return points


def truth(cell: Cell, split: Split, measure: str) -> list[SplitPoint]:
    """Measure the true ranking function; nothing where it is unknown."""
    if not split.truth:
        return []
    parts = (split.validation.y, split.truth["validation"]), (split.test.y, split.truth["test"])
    return [
        SplitPoint(
            *cell, measure, TRUTH, float("nan"), float("nan"), *(_measure(measure, *part) for part in parts)
        )
    ]


def _measure(measure: str, y: IntArray, decision: FloatArray) -> float:
    """Area, or error at threshold 1."""
    if measure == ERROR:
        return float(np.mean(outcomes(decision, 1.0) != y))
    return comparison_roc(y, decision, inversions=AREAS[measure]).area
