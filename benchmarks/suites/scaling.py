"""Linear rankers on 1, 2 and 4 worker processes of one machine: time, bytes, and a model of both."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import concordant as cc
from benchmarks.shared import wire
from benchmarks.shared.parquet_sets import FEATURES, GB, drawn
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import threads, watched
from benchmarks.suites.scaling_model import Cost, Machine, coefficients, extrapolated, residuals
from benchmarks.suites.scaling_runs import (
    CUT,
    EMPTY,
    METRIC,
    STRONG,
    WEAK,
    Gradient,
    Measurements,
    empty_scan,
    gradient,
    rates,
    timed,
)
from benchmarks.suites.scaling_tables import (
    bytes_of,
    empties,
    limits,
    parts_of,
    same_model,
    strong,
    tasks_of,
    weak,
)
from concordant._base.segments import n_threads
from concordant.scale.cluster import local_cluster
from concordant.scale.scan.scan import Scan

WORKERS = (1, 2, 4)
PART = 64 << 20


@dataclass(frozen=True)
class Size:
    """Extent of the measurements."""

    workers: tuple[int, ...] = WORKERS
    strong: int = 20  # parts
    weak: int = 8  # parts a worker
    cuts: tuple[int, ...] = (4 << 20, 16 << 20, 256 << 20)
    empties: tuple[int, ...] = (1, 8, 64, 512)
    part: int = PART
    times: int = 15
    share: float = 0.5  # of MSLR-WEB10K, for the machine's limit
    seconds: float = 3.0


QUICK = Size((1,), 2, 1, (), (1, 9), 1 << 18, 1, 0.002, 0.01)


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    size = QUICK if quick else Size()
    measurements = Measurements()
    for n in size.workers:
        measurements.rates[n] = rates(n, size.share, size.seconds) if not quick else (1.0, 1.0)
    with drawn(size.strong * size.part, row_group=size.part) as (path, _):
        _in_memory(measurements, path, size)
        _streamed(measurements, path, size)
        for n_workers in watched(size.workers, "workers"):
            _on_workers(measurements, n_workers, path, size, quick=quick)
    clusters = [gradient for gradient in measurements.gradients if gradient.workers]
    cost = Cost.fit(clusters, {n: both[1] * GB for n, both in measurements.rates.items()})
    here = measurements.rates[max(n for n in measurements.rates if n <= 2)][1] * GB
    machines = [Machine("as this one", n_threads(), here), Machine("16 cores, 100 GB/s", 16, 100 * GB)]
    return [
        *(table(measurements) for table in (limits, strong, weak, tasks_of, bytes_of, empties, parts_of)),
        coefficients(cost),
        residuals(cost, clusters),
        extrapolated(cost, machines),
        same_model(measurements),
    ]


# ---------------------------------------------------------------- what is run


def _in_memory(measurements: Measurements, path: Path, size: Size) -> None:
    """The plain fit: all rows in one array."""
    rows = list(cc.scan_parquet(path))
    X, y = np.concatenate([part.X for part in rows]), np.concatenate([part.y for part in rows])
    qid = np.concatenate([np.repeat(part.queries.ids, part.queries.sizes) for part in rows])
    del rows
    for number in sorted({1, n_threads()}):
        with threads(number):
            model = cc.LinearRanker(METRIC)
            goal = model.problem(model.checked_parameters(), X, y, qid).objective(model.alpha)
            seconds = median(timed(partial(goal.value_and_grad, np.full(FEATURES, 0.01)), size.times))
            measurements.gradients.append(
                Gradient(f"in memory, {number} threads", 0, len(y), 1, seconds, {}, {})
            )
    _fitted(measurements, "in memory", X, y, qid=qid)


def _streamed(measurements: Measurements, path: Path, size: Size) -> None:
    """Read at each pass."""
    scan = cc.scan_parquet(path)
    measurements.gradients.append(gradient("streamed from disk", scan, None, 0, max(size.times // 3, 1)))
    _fitted(measurements, "streamed from disk", scan)


def _fitted(measurements: Measurements, name: str, *arguments: Any, **named: Any) -> None:
    """A whole fit."""
    start = time.perf_counter()
    model = cc.LinearRanker(METRIC).fit(*arguments, **named)
    measurements.fits.append((name, time.perf_counter() - start, model.coef_))


def _on_workers(measurements: Measurements, n: int, path: Path, size: Size, *, quick: bool) -> None:
    """Measure everything on so many workers."""
    with _cluster(n, quick=quick) as client:
        scan = cc.scan_parquet(path)

        def measured(kind: str, scan: Scan) -> None:
            measurements.gradients.append(gradient(kind, scan, client, n, size.times))

        _fitted(measurements, f"{n} workers", scan, client=client)
        measured(STRONG, scan)
        with drawn(n * size.weak * size.part, row_group=size.part) as (other_path, _):
            measured(WEAK, cc.scan_parquet(other_path))
        for n_parts in size.empties:
            measured(EMPTY, empty_scan(n_parts))
        for part in size.cuts if n == 2 else ():
            with drawn(size.strong * size.part, row_group=part) as (other_path, _):
                measured(CUT, cc.scan_parquet(other_path, memory=max(8 * part, PART)))


@contextmanager
def _cluster(n_workers: int, *, quick: bool) -> Iterator[Any]:
    """Client whose processes all count what they write; a quick run's workers are threads."""
    if quick:
        from distributed import Client

        with Client(
            n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as client:
            yield client
        return
    with local_cluster(n_workers) as client:
        client.wait_for_workers(n_workers, timeout=120)
        wire.count_on_cluster(client)
        yield client
