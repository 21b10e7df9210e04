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
from benchmarks import wire
from benchmarks.parquet_sets import FEATURES, GB, drawn
from benchmarks.scaling_model import Cost, Machine, coefficients, extrapolated, residuals
from benchmarks.scaling_runs import (
    CUT,
    EMPTY,
    METRIC,
    STRONG,
    WEAK,
    Gradient,
    Seen,
    empty_scan,
    gradient,
    rates,
    timed,
)
from benchmarks.scaling_tables import (
    bytes_of,
    empties,
    limits,
    parts_of,
    same_model,
    strong,
    tasks_of,
    weak,
)
from benchmarks.tables import Table
from benchmarks.timing import threads, watched
from concordant._segments import n_threads
from concordant.solvers.partitioned.local import local_cluster
from concordant.supervision.scans.scan import Scan

WORKERS = (1, 2, 4)
PART = 64 << 20


@dataclass(frozen=True)
class Size:
    """How much is measured."""

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
    seen = Seen()
    for n in size.workers:
        seen.rates[n] = rates(n, size.share, size.seconds) if not quick else (1.0, 1.0)
    with drawn(size.strong * size.part, row_group=size.part) as (path, _):
        in_memory(seen, path, size)
        streamed(seen, path, size)
        for n_workers in watched(size.workers, "workers"):
            on_workers(seen, n_workers, path, size, quick=quick)
    clusters = [one for one in seen.gradients if one.workers]
    cost = Cost.of(clusters, {n: both[1] * GB for n, both in seen.rates.items()})
    here = seen.rates[max(n for n in seen.rates if n <= 2)][1] * GB
    machines = [Machine("as this one", n_threads(), here), Machine("16 cores, 100 GB/s", 16, 100 * GB)]
    return [
        limits(seen), strong(seen), weak(seen), tasks_of(seen), bytes_of(seen), empties(seen), parts_of(seen),
        coefficients(cost), residuals(cost, clusters), extrapolated(cost, machines), same_model(seen),
    ]  # fmt: skip


# ---------------------------------------------------------------- what is run


def in_memory(seen: Seen, path: Path, size: Size) -> None:
    """The plain fit: all rows in one array."""
    rows = list(cc.scan_parquet(path))
    X, y = np.concatenate([one.X for one in rows]), np.concatenate([one.y for one in rows])
    qid = np.concatenate([np.repeat(one.queries.ids, one.queries.sizes) for one in rows])
    del rows
    for number in sorted({1, n_threads()}):
        with threads(number):
            model = cc.LinearRanker(METRIC)
            goal = model.problem(model.checked_parameters(), X, y, qid).objective(model.alpha)
            seconds = median(timed(partial(goal.value_and_grad, np.full(FEATURES, 0.01)), size.times))
            seen.gradients.append(Gradient(f"in memory, {number} threads", 0, len(y), 1, seconds, {}, {}))
    fitted(seen, "in memory", X, y, qid=qid)


def streamed(seen: Seen, path: Path, size: Size) -> None:
    """Read at each pass."""
    scan = cc.scan_parquet(path)
    seen.gradients.append(gradient("streamed from disk", scan, None, 0, max(size.times // 3, 1)))
    fitted(seen, "streamed from disk", scan)


def fitted(seen: Seen, name: str, *given: Any, **named: Any) -> None:
    """A whole fit."""
    start = time.perf_counter()
    model = cc.LinearRanker(METRIC).fit(*given, **named)
    seen.fits.append((name, time.perf_counter() - start, model.coef_))


def on_workers(seen: Seen, n: int, path: Path, size: Size, *, quick: bool) -> None:
    """All that is measured on so many workers."""
    with cluster(n, quick=quick) as client:
        scan = cc.scan_parquet(path)

        def measured(kind: str, scan: Scan) -> None:
            seen.gradients.append(gradient(kind, scan, client, n, size.times))

        fitted(seen, f"{n} workers", scan, client=client)
        measured(STRONG, scan)
        with drawn(n * size.weak * size.part, row_group=size.part) as (own, _):
            measured(WEAK, cc.scan_parquet(own))
        for n_parts in size.empties:
            measured(EMPTY, empty_scan(n_parts))
        for part in size.cuts if n == 2 else ():
            with drawn(size.strong * size.part, row_group=part) as (own, _):
                measured(CUT, cc.scan_parquet(own, memory=max(8 * part, PART)))


@contextmanager
def cluster(n_workers: int, *, quick: bool) -> Iterator[Any]:
    """Give a client, all of whose processes count what they write; a quick run's workers are threads."""
    if quick:
        from distributed import Client

        with Client(
            n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as one:
            yield one
        return
    with local_cluster(n_workers) as client:
        client.wait_for_workers(n_workers, timeout=120)
        wire.counted(client)
        yield client
