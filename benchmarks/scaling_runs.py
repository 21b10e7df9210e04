"""Gradients of a linear ranker on a cluster of processes, timed; and what the machine can do without one."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np

import concordant as cc
from benchmarks import wire
from benchmarks.parquet_sets import FEATURES, GB
from benchmarks.shapes import MSLR, Set
from benchmarks.training import objective
from concordant._segments import one_blas_thread, one_kernel_thread
from concordant.rankers.partitioned.source import source_of
from concordant.solvers.partitioned.tree import FAN
from concordant.supervision.scans.index import Index
from concordant.supervision.scans.scan import PartRows, Scan
from concordant.surrogates import Softmax

__all__ = [
    "CUT", "EMPTY", "METRIC", "STRONG", "WEAK", "Gradient", "Seen", "empty_scan", "gradient", "rates",
    "shape", "timed",
]  # fmt: skip

METRIC, ALPHA = "ndcg@10", 0.1
ROW_BYTES = 4 * FEATURES
STRONG, WEAK, EMPTY, CUT = "fixed set", "fixed share", "empty", "fixed set, other parts"


@dataclass(frozen=True)
class Gradient:
    """A usual gradient of a set on so many workers (0: without a cluster).

    Attributes
    ----------
    seconds
        Median.
    busy
        Seconds of all workers by what they did: "kernels", "reduction", "transfers", "other".
    bytes
        Moved, by `wire.KINDS`.
    """

    kind: str
    workers: int
    n_rows: int
    n_parts: int
    seconds: float
    busy: dict[str, float]
    bytes: dict[str, float]

    @property
    def size(self) -> float:
        """Bytes of X."""
        return float(self.n_rows * ROW_BYTES)


@dataclass
class Seen:
    """All that was measured."""

    rates: dict[int, tuple[float, float]] = field(default_factory=dict)
    gradients: list[Gradient] = field(default_factory=list)
    fits: list[tuple[str, float, np.ndarray]] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Gradient]:
        """Gradients of such sets."""
        return [one for one in self.gradients if one.kind in kinds]


def shape(n_parts: int) -> tuple[int, int]:
    """Tasks of a gradient, and levels of their tree above the parts.

    >>> shape(20)
    (24, 2)
    """
    tasks, levels = n_parts, 0
    while n_parts > 1:
        n_parts = -(-n_parts // FAN)
        tasks, levels = tasks + n_parts, levels + 1
    return tasks, levels


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Seconds of each of so many calls, after two that are not counted."""
    seconds = []
    for turn in range(times + 2):
        start = time.perf_counter()
        work()
        seconds += [time.perf_counter() - start] if turn > 1 else []
    return seconds


def gradient(kind: str, scan: Scan, client: Any, workers: int, times: int) -> Gradient:
    """Time gradients of a scan, whose parts the workers hold; without a client it is read at each."""
    model = cc.LinearRanker(METRIC, alpha=ALPHA)
    goal = model.parted(model.checked_parameters(), source_of(scan, client=client)).objective(ALPHA)
    weights = 0.01 * np.random.default_rng(0).standard_normal(scan.n_features)
    about = kind, workers, scan.n_rows, len(scan.parts)
    if client is None:
        return Gradient(*about, median(timed(lambda: goal.value_and_grad(weights), times)), {}, {})
    timed(lambda: goal.value_and_grad(weights), 1)
    client.get_task_stream()  # begins to be kept
    before, start = wire.moved(client), time.time()
    seconds = median(timed(lambda: goal.value_and_grad(weights), times))
    bytes_now, stream = wire.moved(client), client.get_task_stream(start=start)
    each = times + 2
    moved = {name: (bytes_now[name] - before[name]) / each for name in before}
    return Gradient(*about, seconds, {name: spent / each for name, spent in busy(stream).items()}, moved)


def busy(stream: Any) -> Counter[str]:
    """Seconds of workers, by what they did."""
    found: Counter[str] = Counter()
    for task in stream:
        job = str(task["key"]).split("-", 1)[0]
        for span in task["startstops"]:
            spent = span["stop"] - span["start"]
            if span["action"] == "compute":
                found["kernels" if job == "done" else "reduction"] += spent
            else:
                found["transfers" if span["action"] == "transfer" else "other"] += spent
    return found


# ---------------------------------------------------------------- parts that hold next to nothing


@dataclass(frozen=True)
class EmptyPart:
    """One query of two documents: what remains of a gradient is what the cluster takes."""

    number: int

    n_rows = 2
    nbytes = 2 * ROW_BYTES

    @property
    def name(self) -> str:
        """Where it is."""
        return f"part {self.number}"

    def read(self) -> PartRows:
        """Two documents that differ."""
        X = np.random.default_rng(self.number).standard_normal((2, FEATURES), dtype=np.float32)
        return PartRows.of(X, np.array([0.0, 1.0]), np.full(2, self.number))

    def where(self, row: int) -> tuple[str, int]:
        """Where a row is."""
        return self.name, row


def empty_scan(n_parts: int) -> Scan:
    """So many of them."""
    parts = tuple(EmptyPart(number) for number in range(n_parts))
    pieces = [(np.array([part.number]), np.array([2]), None) for part in parts]
    return Scan(parts, Index.of(pieces, [part.name for part in parts]), FEATURES, None, 2**30)


# ---------------------------------------------------------------- what the machine can do


def rates(processes: int, share: float, seconds: float) -> tuple[float, float]:
    """GB/s of X that so many plain processes read together: by `X @ w`, and by our gradient."""
    context = get_context("spawn")
    start, told = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=reading, args=(share / processes, seconds, start, told))
        for _ in range(processes)
    ]
    for process in running:
        process.start()
    found = [told.get(timeout=300) for _ in running]
    for process in running:
        process.join()
    products, gradients = np.sum(found, axis=0) / GB
    return float(products), float(gradients)


def reading(share: float, seconds: float, start: Any, told: Any) -> None:
    """Read X again and again, by one thread; tell the bytes a second of both ways."""
    data = Set.random(MSLR.part(share))
    goal = objective(data, Softmax(), ALPHA)
    weights = np.full(FEATURES, 0.01)
    single = weights.astype(np.float32)
    with one_kernel_thread(), one_blas_thread():
        calls = (lambda: data.X @ single), (lambda: goal.value_and_grad(weights))
        told.put([data.X.nbytes * rate(call, seconds, start) for call in calls])


def rate(call: Callable[[], object], seconds: float, start: Any) -> float:
    """Calls a second, while the other processes do the same."""
    call()
    start.wait()
    begun, calls = time.perf_counter(), 0
    for calls in until(begun + seconds):  # noqa: B007
        call()
    return calls / (time.perf_counter() - begun)


def until(end: float) -> Iterator[int]:
    """Count from 1 on, until then."""
    number = 0
    while time.perf_counter() < end or not number:
        number += 1
        yield number
