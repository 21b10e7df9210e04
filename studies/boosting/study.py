"""Boosted trees side by side: the boosters' own ranking objectives, and surrogates consistent for the metric.

Everyone grows as many trees, of as many leaves and at the same rate, on the same folds; each library keeps
its own regularisation, ours has that of `BoostedRanker`. For each metric the shape and the number of trees
are those that are best for this metric on the validation queries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from benchmarks.shared.timing import threads
from concordant import datasets
from concordant._internals import check_counts
from concordant.exceptions import UnknownNameError
from studies.boosting.methods import LIBRARIES, OURS, PEERS, Boosted, Linear, TrainingMethod, default_trees
from studies.boosting.results import CHOSEN, BoostingSet, BoostingStudy, Row, default_row
from studies.boosting.runs import METRICS, Run, Spot, run_or_read
from studies.boosting.trees import Parts, Plan, Shape, need
from studies.buffoni import study as buffoni

DATA = ("mq2008", "mq2007", "ohsumed")
SHAPES = (Shape(15), Shape(7))
PLAN, QUICK = Plan(400, 10), Plan(50, 10)


@dataclass(frozen=True)
class Task:
    """One training: what, on which fold, and where the result is kept."""

    spot: Spot
    method: TrainingMethod
    shape: Shape
    plan: Plan
    folder: str | None
    cache: Path | None


def rows(metric: str) -> tuple[Row, ...]:
    """Rows of a metric's table: what each side chooses on validation queries, then single methods.

    >>> [row.name for row in rows("ap")][:2]
    ['concordant, chosen', 'peers, chosen']
    """
    defaults: dict[str, TrainingMethod] = {"linear": Linear(metric)}
    defaults |= {library: default_trees(metric, library) for library in LIBRARIES}
    first, second = CHOSEN
    return (
        Row(first, "ours", tuple(method.name for method in ours(metric)), single=False),
        Row(second, "peers", tuple(peer.name for peer in PEERS), single=False),
        *(Row(peer.name, "peers", (peer.name,)) for peer in PEERS),
        *(Row(default_row(kind), "ours", (method.name,)) for kind, method in defaults.items()),
    )


def boosted(metric: str) -> tuple[Boosted, ...]:
    """Return our trees for a metric, the defaults of each booster among them."""
    defaults = (default_trees(metric, library) for library in LIBRARIES)
    return tuple(dict.fromkeys((*defaults, *(Boosted(metric, *setting) for setting in OURS))))


def ours(metric: str) -> tuple[TrainingMethod, ...]:
    """Return all of our rankers for a metric."""
    return (Linear(metric), *boosted(metric))


def _methods(metrics: Iterable[str]) -> tuple[TrainingMethod, ...]:
    return (*PEERS, *(method for metric in metrics for method in ours(metric)))


def reproduce(
    names: Sequence[str] = DATA,
    metrics: Sequence[str] = tuple(METRICS),
    *,
    trees: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    quick: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> BoostingStudy:
    """Train every method on every fold, choose on validation queries, test and compare.

    Parameters
    ----------
    names
        "mq2007" (the full set, else the part of it that is called mq2007-partial), "mq2008", "ohsumed".
    metrics
        Some of `METRICS`: what ours are trained for, and what everyone is measured by.
    trees
        Trees that are grown at most; None: 400, or 50 of a quick look.
    folder
        Folder of the datasets, as for `datasets.load`.
    cache
        Folder for the results of each training, made where it is not there; those that it holds are read.
    jobs
        Trainings at a time, each on one thread.
    quick
        The first set, the first fold, one shape and few trees only.
    step
        Called after each training with what it was.

    Raises
    ------
    UnknownNameError
        If no set, or no metric, of the experiment has this name.
    DatasetNotFoundError
        If its files are missing; the message says where to get them.
    MissingExtraError
        If a booster is not installed.

    Examples
    --------
    >>> reproduce(["mq2009"])
    Traceback (most recent call last):
    concordant.exceptions.UnknownNameError: unknown data 'mq2009'. Did you mean 'mq2008'?
    ...
    """
    dataset_names = _check_names(names, metrics, folder, quick=quick)
    check_counts(jobs=jobs)
    plan = _plan(trees, quick=quick)
    if cache is not None:
        Path(cache).mkdir(parents=True, exist_ok=True)
    asked = tuple(tasks(dataset_names, metrics, plan, folder, cache, quick=quick))
    runs = list(_iter_runs(asked, jobs, step))
    sets = tuple(
        _group_runs(name, metrics, [run for run in runs if run.spot.data == name]) for name in dataset_names
    )
    return BoostingStudy(sets, tuple(metrics), plan, _shapes(quick=quick), quick)


def _check_names(
    names: Sequence[str], metrics: Sequence[str], folder: str | os.PathLike[str] | None, *, quick: bool
) -> tuple[str, ...]:
    """Check names and libraries, and return the datasets to read."""
    for kind, requested, allowed in (("data", names, DATA), ("metric", metrics, tuple(METRICS))):
        for name in requested:
            if name not in allowed:
                raise UnknownNameError(kind, name, allowed)
    for library in LIBRARIES:
        need(library)
    datasets_here = dict.fromkeys(buffoni.find_dataset(name, folder)[1] for name in names)
    return tuple(datasets_here)[:1] if quick else tuple(datasets_here)


def _plan(trees: int | None, *, quick: bool) -> Plan:
    """Numbers of trees and of stages.

    >>> _plan(None, quick=False), _plan(25, quick=False)
    (Plan(trees=400, every=10), Plan(trees=20, every=10))
    """
    usual = QUICK if quick else PLAN
    if trees is None:
        return usual
    check_counts(trees=trees)
    every = min(usual.every, trees)
    return Plan(trees - trees % every, every)


def _shapes(*, quick: bool) -> tuple[Shape, ...]:
    return SHAPES[:1] if quick else SHAPES


def tasks(
    dataset_names: Iterable[str],
    metrics: Sequence[str],
    plan: Plan,
    folder: str | os.PathLike[str] | None,
    cache: str | os.PathLike[str] | None,
    *,
    quick: bool,
) -> Iterator[Task]:
    """Yield all trainings, fold by fold."""
    places = None if folder is None else os.fspath(folder), None if cache is None else Path(cache)
    for data in dataset_names:
        for fold in range(1, buffoni.folds_of(data, quick=quick) + 1):
            for method in _methods(metrics):
                shapes = _shapes(quick=quick)
                for shape in shapes if method.shaped else shapes[:1]:
                    spot = Spot(data, fold, method.name, str(shape) if method.shaped else "")
                    yield Task(spot, method, shape, plan, *places)


def n_steps(
    names: Sequence[str] = DATA,
    metrics: Sequence[str] = tuple(METRICS),
    *,
    folder: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> int:
    """Number of trainings, after each of which `reproduce` calls its `step`."""
    dataset_names = _check_names(names, metrics, folder, quick=quick)
    return sum(1 for _ in tasks(dataset_names, metrics, _plan(None, quick=quick), folder, None, quick=quick))


def _iter_runs(asked: Sequence[Task], jobs: int, step: Callable[[str], None]) -> Iterator[Run]:
    """Yield the runs as they end."""
    for run in map(_run_task, asked) if jobs == 1 else _iter_process_runs(asked, jobs):
        spot = run.spot
        step(f"{spot.data}, fold {spot.fold}: {spot.method}")
        yield run


def _iter_process_runs(asked: Sequence[Task], jobs: int) -> Iterator[Run]:
    """Yield the runs of several processes; an interruption leaves no process behind."""
    # New processes, not copies of this one: threads of the boosters do not survive being copied.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: list[Future[Run]] = [pool.submit(_run_task, task) for task in asked]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _run_task(task: Task) -> Run:
    """Do one training, or read its result."""
    parts = _load_parts(task.spot.data, task.spot.fold, task.folder)
    with threads(1):  # as the boosters
        return run_or_read(task.spot, task.method, task.shape, parts, task.plan, task.cache)


@lru_cache(maxsize=1)
def _load_parts(data: str, fold: int, folder: str | None) -> Parts:
    """Read a fold; the last one is kept, since many trainings follow one another on it."""
    return Parts.from_fold(datasets.load(data, fold=fold, folder=folder))


def _group_runs(data: str, metrics: Sequence[str], runs: Sequence[Run]) -> BoostingSet:
    """Put the runs of a set together: those of each method, fold by fold."""
    runs_by_method: dict[tuple[str, int], list[Run]] = {}
    order: Mapping[str, int] = {str(shape): number for number, shape in enumerate(("", *SHAPES))}
    for run in sorted(runs, key=lambda run: (run.spot.fold, order[run.spot.shape])):
        runs_by_method.setdefault((run.spot.method, run.spot.fold), []).append(run)
    return BoostingSet(data, {metric: rows(metric) for metric in metrics}, runs_by_method)
