"""A linear ranker from Parquet larger than memory: what it holds, and how long against reading alone.

`python -m benchmarks.suites.out_of_core JOB PATH PASSES DROPPING` does one job in this process and
prints what it took, as JSON. The folder `CONCORDANT_BENCH_DATA`, by default benchmarks/data, has the sets.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

import concordant as cc
from benchmarks.shared.parquet_sets import FEATURES, GB, LONGEST, POOL, ROW_GROUP, SHORTEST, drawn, fits
from benchmarks.shared.processes import memory, run_module
from benchmarks.shared.tables import Cell, Table
from benchmarks.shared.timing import watched
from concordant._base.segments import n_threads
from concordant.data.io.tables import open_columns
from concordant.metrics.parse import metric as parsed
from concordant.rankers.parts.linear_parts import LinearPreparation, assign_queries, index_shares, slope
from concordant.rankers.parts.ranker_source import in_columns
from concordant.rankers.recipe import choose_surrogate
from concordant.scale.parts import StreamedParts
from concordant.scale.scan.row_groups import check_columns
from concordant.scale.scan.scan import PartRows, Scan

MEMORY, METRIC = "1 GiB", "ndcg@10"
MEMORY_GOAL, RATIO_GOAL = 2.0, 2.0  # GB; of a pass to one of reading alone
CACHE = Path("/proc/sys/vm/drop_caches")
READ, TWO, FIT = "read", "read, two at a time", "fit"
SETS = {(2 * GB, "none"): (False,), (2 * GB, "snappy"): (False,), (20 * GB, "snappy"): (True, False)}


@dataclass(frozen=True)
class Measured:
    """Measurements on a set; `dropping`: the system's cache was emptied before every pass."""

    name: str
    dropping: bool
    size: int
    written: float
    jobs: list[tuple[str, dict]]

    @property
    def head(self) -> tuple[str, str]:
        """The set, and where its bytes come from."""
        return self.name, "disk" if self.dropping else "disk or cache"

    @property
    def fit(self) -> dict:
        """The fit."""
        return next(result for name, result in self.jobs if name == FIT)

    def usual(self, name: str) -> float:
        """Seconds of a usual pass of all runs of a reader."""
        return median(seconds for job, result in self.jobs if job == name for seconds in result["passes"])


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    possible_sets = {(size, codec): ways for (size, codec), ways in SETS.items() if fits(size)}
    sets = {(2e6, "snappy"): (False,)} if quick else possible_sets
    results, stages = [], {}
    for (size, compression), ways in watched(sets.items(), "out of core"):
        group = ROW_GROUP // 64 if quick else ROW_GROUP
        with drawn(size, compression=compression, row_group=group) as (path, seconds):
            about = f"{size / GB:g} GB, {compression}", path.stat().st_size, seconds
            possible = [dropping for dropping in ways if not dropping or os.access(CACHE, os.W_OK)]
            results += [_measured(path, *about, dropping=dropping, quick=quick) for dropping in possible]
            stages = stages or _staged(cc.scan_parquet(path, memory=MEMORY), 1 if quick else 30)
    return [_passes_table(results), _stages_table(stages), _holdings(results)]


def _measured(path: Path, name: str, size: int, written: float, *, dropping: bool, quick: bool) -> Measured:
    """Read and fit; readers before and after the fit, since what comes later may find more in the cache."""
    # A quick run's are in this process: what it holds from before makes the numbers meaningless.
    job, passes = (_took, 1) if quick else (partial(run_module, __name__), 2 if dropping else 4)
    jobs = [(reader, job(reader, path, passes, dropping)) for reader in (READ, TWO, FIT, READ, TWO)]
    return Measured(name, dropping, size, written, jobs)


# ---------------------------------------------------------------- tables


def _passes_table(results: list[Measured]) -> Table:
    """A pass of the fit against a pass of reading alone."""
    note = (
        f"{FEATURES} float32 features, {SHORTEST} to {LONGEST} documents a query, row groups of 64 MiB that "
        "cut no query, written as `cc.write_parquet` writes them. Reading alone: pyarrow reads the same row "
        "groups into tables, one after the other, by as many threads as there are cores, and drops them; two "
        "at a time: two such readers, as the fit has. Fit: "
        f"`cc.LinearRanker('{METRIC}').fit(cc.scan_parquet(path, memory='{MEMORY}'))`: seconds of a usual "
        "pass (a gradient), and of the first one, which checks and measures the data and loads the kernels. "
        "Each in a process of its own, readers before and after the fit. Disk: the system's cache was "
        "emptied before every pass, outside of the time. "
        f"Goal: at most {RATIO_GOAL:g} times reading alone."
    )
    columns = (
        "set", "from", "documents", "reading alone, s a pass", "two at a time", "fit, s a pass",
        "fit / reading", "fit / two at a time", "first pass, s", "all passes / reading", "GB/s", "reached",
    )  # fmt: skip
    table = Table("A pass over the data", note, columns)
    for measured_set in results:
        alone, two, (first, *others) = (
            measured_set.usual(READ),
            measured_set.usual(TWO),
            measured_set.fit["passes"],
        )
        each = median(others)
        ratios = each / alone, each / two, first, (first + sum(others)) / (1 + len(others)) / alone
        reached = "yes" if each / alone <= RATIO_GOAL else "no"
        speed = measured_set.size / each / GB
        table.rows.append(
            (*measured_set.head, measured_set.fit["rows"], alone, two, each, *ratios, speed, reached)
        )
    return table


def _holdings(results: list[Measured]) -> Table:
    """Memory of the process, and the whole fit."""
    note = (
        f"The highest resident memory of the process that fits (VmHWM: Python, libraries and all), given "
        f"`memory='{MEMORY}'`; goal: less than {MEMORY_GOAL:g} GB. Scanning reads the footer and the query "
        "ids. Written by streaming, a row group at a time: each column of a row group is a window, at a "
        f"random place, of one pool of {POOL:,} normal numbers, times the spread of the feature. To draw all "
        "numbers would take longer, and neither compression nor the ranker can tell."
    )
    columns = (
        "set", "from", "file, GB", "written in, s", "resident at most, GB", "scan, s", "fit, s", "passes",
        "reached",
    )  # fmt: skip
    table = Table("What the fit holds", note, columns)
    for measured_set in results:
        fit, peak = measured_set.fit, measured_set.fit["peak"] / GB
        times = fit["scan"], fit["seconds"], len(fit["passes"])
        reached = "yes" if peak < MEMORY_GOAL else "no"
        table.rows.append(
            (*measured_set.head, measured_set.size / GB, measured_set.written, peak, *times, reached)
        )
    return table


def _stages_table(stages: dict[str, float]) -> Table:
    """Time of each step of a pass."""
    note = (
        "Parts of the first set, from the cache, step after step in one thread (pyarrow decodes with as many "
        f"as there are cores, {n_threads()}): milliseconds for each 64 MiB of features. In a fit two threads "
        "do all but the gradient for the next parts, while a third one finds that of a part."
    )
    rows: list[tuple[Cell, ...]] = [
        (step, seconds * 1e3, seconds / sum(stages.values())) for step, seconds in stages.items()
    ]
    return Table("Where the time goes", note, ("step", "ms a part", "share"), rows)


# ---------------------------------------------------------------- one job, in its own process


def _took(name: str, path: Path, passes: int, dropping: bool) -> dict:
    """Do the job; seconds of each pass, and the highest memory of this process."""
    before = _drop if dropping else lambda: None
    done = _fitted(path, before) if name == FIT else {"passes": _reads(path, passes, before, two=name == TWO)}
    return done | {"peak": memory("VmHWM")}


def _drop() -> None:
    """Empty the system's cache of files."""
    CACHE.write_text("3", encoding="utf-8")


def _reads(path: Path, passes: int, before: Callable[[], None], *, two: bool) -> list[float]:
    """Read all row groups so often; seconds of each time."""
    from pyarrow.parquet import ParquetFile, read_metadata

    seconds = []
    for _ in range(passes):
        before()
        start = time.perf_counter()
        footer = read_metadata(path)

        def read(group: int, footer: object = footer) -> int:
            return ParquetFile(path, metadata=footer).read_row_group(group).num_rows

        with ThreadPoolExecutor(2 if two else 1) as pool:
            list(pool.map(read, range(footer.num_row_groups)))
        seconds.append(time.perf_counter() - start)
    return seconds


def _fitted(path: Path, before: Callable[[], None]) -> dict:
    """Scan and fit; seconds of each pass over the parts."""
    passes, iter_prepared = [], StreamedParts.iter_prepared

    def timed(parts: StreamedParts, order: object = None) -> Iterator:
        before()
        start = time.perf_counter()
        yield from iter_prepared(parts, order)
        passes.append(time.perf_counter() - start)

    start = time.perf_counter()
    scan = cc.scan_parquet(path, memory=MEMORY)
    scanned = time.perf_counter() - start
    with patch.object(StreamedParts, "iter_prepared", timed):
        start = time.perf_counter()
        cc.LinearRanker(METRIC).fit(scan)
    seconds = time.perf_counter() - start
    return {"rows": scan.n_rows, "scan": scanned, "seconds": seconds, "passes": passes}


def _staged(scan: Scan, n_parts: int) -> dict[str, float]:
    """Seconds for each step of a pass, a part, over so many parts; the first pass is not counted."""
    metric = parsed(METRIC)
    prepare = LinearPreparation(metric, choose_surrogate("auto", metric), None, None, digests=False)
    none = np.array([], dtype=np.int64)
    query_shares, _ = assign_queries(scan.index, index_shares(scan.index), none, none)
    weights = 0.01 * np.random.default_rng(0).standard_normal(scan.n_features)
    for _ in range(2):
        spent: dict[str, float] = {}
        step = Clock(spent)
        for part, asked in zip(map(in_columns, scan.parts[:n_parts]), query_shares, strict=False):
            table = step("read and decode, to columns", part.table, part.read_roles.named)
            queries = step("queries", part.queries, table)
            others = step("grades", check_columns, open_columns(table)[0], part.read_roles)
            X = step("columns to a matrix, all finite", part.features, table)
            rows = PartRows.from_rows(X, qid=queries, **others)
            prepared = step("targets and loss", prepare, part, rows, asked)
            step("value and gradient", slope, prepared, weights)
    return {name: seconds / min(n_parts, len(scan.parts)) for name, seconds in spent.items()}


@dataclass(frozen=True)
class Clock:
    """Calls that are timed, by what they are called."""

    spent: dict[str, float]

    def __call__(self, name: str, call: Callable, *arguments: Any) -> Any:
        """Call, and add the seconds it took."""
        start = time.perf_counter()
        result = call(*arguments)
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start
        return result


if __name__ == "__main__":
    print(json.dumps(_took(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True")))
