"""Boosted trees side by side: the boosters' own ranking objectives, and surrogates consistent for the metric.

Everyone grows as many trees, of as many leaves and at the same rate, on the same folds; each library keeps
its own regularisation, ours has that of `BoostedRanker`. For each metric the shape and the number of trees
are those that are best for this metric on the validation queries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from concordant.evaluation.reproduction import buffoni
from concordant.evaluation.reproduction.boosting_methods import (
    LIBRARIES,
    OURS,
    PEERS,
    Boosted,
    Linear,
    Method,
    default_of,
)
from concordant.evaluation.reproduction.boosting_results import (
    CHOSEN,
    Reproduction,
    Row,
    Study,
    default_row,
)
from concordant.evaluation.reproduction.boosting_runs import METRICS, Run, Spot, run_or_read
from concordant.evaluation.reproduction.boosting_trees import Parts, Plan, Shape, need
from concordant.exceptions import UnknownNameError
from concordant.supervision import datasets
from concordant.supervision.synthetic.items import check_counts

__all__ = ["DATA", "PLAN", "QUICK", "SHAPES", "methods", "n_steps", "reproduce", "rows"]

DATA = ("mq2008", "mq2007", "ohsumed")
SHAPES = (Shape(15), Shape(7))
PLAN, QUICK = Plan(400, 10), Plan(50, 10)


@dataclass(frozen=True)
class Task:
    """One training: what, on which fold, and where the result is kept."""

    spot: Spot
    method: Method
    shape: Shape
    plan: Plan
    folder: str | None
    cache: Path | None


def rows(metric: str) -> tuple[Row, ...]:
    """Give the rows of a metric's table: what each side chooses on validation queries, then single methods.

    >>> [row.name for row in rows("ap")][:2]
    ['concordant, chosen', 'peers, chosen']
    """
    defaults: dict[str, Method] = {"linear": Linear(metric)}
    defaults |= {library: default_of(metric, library) for library in LIBRARIES}
    first, second = CHOSEN
    return (
        Row(first, "ours", tuple(one.name for one in ours(metric)), single=False),
        Row(second, "peers", tuple(peer.name for peer in PEERS), single=False),
        *(Row(peer.name, "peers", (peer.name,)) for peer in PEERS),
        *(Row(default_row(kind), "ours", (one.name,)) for kind, one in defaults.items()),
    )


def boosted(metric: str) -> tuple[Boosted, ...]:
    """Give our trees for a metric, the defaults of each booster among them."""
    defaults = (default_of(metric, library) for library in LIBRARIES)
    return tuple(dict.fromkeys((*defaults, *(Boosted(metric, *one) for one in OURS))))


def ours(metric: str) -> tuple[Method, ...]:
    """Give all of our rankers for a metric."""
    return (Linear(metric), *boosted(metric))


def methods(metrics: Iterable[str]) -> tuple[Method, ...]:
    """Give all that is trained for these metrics."""
    return (*PEERS, *(one for metric in metrics for one in ours(metric)))


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
) -> Study:
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
    found = checked(names, metrics, folder, quick=quick)
    check_counts(jobs=jobs)
    plan = plan_of(trees, quick=quick)
    if cache is not None:
        Path(cache).mkdir(parents=True, exist_ok=True)
    asked = tuple(tasks(found, metrics, plan, folder, cache, quick=quick))
    runs = list(finished(asked, jobs, step))
    sets = tuple(together(name, metrics, [one for one in runs if one.spot.data == name]) for name in found)
    return Study(sets, tuple(metrics), plan, shapes_of(quick=quick), quick)


def checked(
    names: Sequence[str], metrics: Sequence[str], folder: str | os.PathLike[str] | None, *, quick: bool
) -> tuple[str, ...]:
    """Give the datasets to be read, once all names and libraries are known to be there."""
    for kind, given, known in (("data", names, DATA), ("metric", metrics, tuple(METRICS))):
        for name in given:
            if name not in known:
                raise UnknownNameError(kind, name, known)
    for library in LIBRARIES:
        need(library)
    found = dict.fromkeys(buffoni.found(name, folder)[1] for name in names)
    return tuple(found)[:1] if quick else tuple(found)


def plan_of(trees: int | None, *, quick: bool) -> Plan:
    """Give how many trees are grown, and the stages.

    >>> plan_of(None, quick=False), plan_of(25, quick=False)
    (Plan(trees=400, every=10), Plan(trees=20, every=10))
    """
    usual = QUICK if quick else PLAN
    if trees is None:
        return usual
    check_counts(trees=trees)
    every = min(usual.every, trees)
    return Plan(trees - trees % every, every)


def shapes_of(*, quick: bool) -> tuple[Shape, ...]:
    """Give the shapes to choose from."""
    return SHAPES[:1] if quick else SHAPES


def tasks(
    found: Iterable[str],
    metrics: Sequence[str],
    plan: Plan,
    folder: str | os.PathLike[str] | None,
    cache: str | os.PathLike[str] | None,
    *,
    quick: bool,
) -> Iterator[Task]:
    """Give all trainings, fold by fold."""
    places = None if folder is None else os.fspath(folder), None if cache is None else Path(cache)
    for data in found:
        for fold in range(1, buffoni.folds_of(data, quick=quick) + 1):
            for method in methods(metrics):
                shapes = shapes_of(quick=quick)
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
    """How often `reproduce` calls its `step`: once for each training."""
    found = checked(names, metrics, folder, quick=quick)
    return sum(1 for _ in tasks(found, metrics, plan_of(None, quick=quick), folder, None, quick=quick))


def finished(asked: Sequence[Task], jobs: int, step: Callable[[str], None]) -> Iterator[Run]:
    """Give the runs as they are done."""
    for run in map(done, asked) if jobs == 1 else shared(asked, jobs):
        spot = run.spot
        step(f"{spot.data}, fold {spot.fold}: {spot.method}")
        yield run


def shared(asked: Sequence[Task], jobs: int) -> Iterator[Run]:
    """Give the runs of several processes; none is left behind where the work is broken off."""
    # New processes, not copies of this one: threads of the boosters do not survive being copied.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: list[Future[Run]] = [pool.submit(done, task) for task in asked]
        try:
            for one in as_completed(waiting):
                yield one.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def done(task: Task) -> Run:
    """Do one training, or read its result."""
    parts = parts_of(task.spot.data, task.spot.fold, task.folder)
    with one_thread():
        return run_or_read(task.spot, task.method, task.shape, parts, task.plan, task.cache)


@lru_cache(maxsize=1)
def parts_of(data: str, fold: int, folder: str | None) -> Parts:
    """Read a fold; the last one is kept, since many trainings follow one another on it."""
    return Parts.of(datasets.load(data, fold=fold, folder=folder))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep our kernels to one thread, as the boosters are."""
    before = os.environ.get("CONCORDANT_THREADS")
    os.environ["CONCORDANT_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["CONCORDANT_THREADS"]
        else:
            os.environ["CONCORDANT_THREADS"] = before


def together(data: str, metrics: Sequence[str], runs: Sequence[Run]) -> Reproduction:
    """Put the runs of a set together: those of each method, fold by fold."""
    kept: dict[tuple[str, int], list[Run]] = {}
    order: Mapping[str, int] = {str(shape): place for place, shape in enumerate(("", *SHAPES))}
    for run in sorted(runs, key=lambda one: (one.spot.fold, order[one.spot.shape])):
        kept.setdefault((run.spot.method, run.spot.fold), []).append(run)
    return Reproduction(data, {metric: rows(metric) for metric in metrics}, kept)
