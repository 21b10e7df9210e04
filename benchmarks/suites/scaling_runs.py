"""Gradients of a linear ranker on a cluster of processes, timed; and what the machine can do without one."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np

import concordant as cc
from benchmarks.shared import wire
from benchmarks.shared.parquet_sets import FEATURES, GB
from benchmarks.shared.shapes import MSLR, Set
from benchmarks.suites.training import objective
from concordant._base.segments import one_blas_thread, one_kernel_thread
from concordant.rankers.parts.linear_parts import LinearPreparation, partitioned_problem
from concordant.rankers.parts.ranker_source import as_parts_source
from concordant.scale.parts import FAN
from concordant.scale.scan.index import Index
from concordant.scale.scan.scan import PartRows, Scan
from concordant.surrogates import Softmax

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
class Measurements:
    """Rates of the machine, gradients and fits."""

    rates: dict[int, tuple[float, float]] = field(default_factory=dict)
    gradients: list[Gradient] = field(default_factory=list)
    fits: list[tuple[str, float, np.ndarray]] = field(default_factory=list)

    def of_kinds(self, *kinds: str) -> list[Gradient]:
        """Gradients of such sets."""
        return [gradient for gradient in self.gradients if gradient.kind in kinds]


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
    preparation = LinearPreparation(*model.checked_parameters(), None, None, digests=False)
    source = as_parts_source(scan, client=client)
    goal = partitioned_problem(preparation, source, nullcontext, fit_scale=True).objective(ALPHA)
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
    return Gradient(*about, seconds, {name: spent / each for name, spent in _busy(stream).items()}, moved)


def _busy(stream: Any) -> Counter[str]:
    """Seconds of workers, by what they did."""
    seconds: Counter[str] = Counter()
    for task in stream:
        job = str(task["key"]).split("-", 1)[0]
        for span in task["startstops"]:
            spent = span["stop"] - span["start"]
            if span["action"] == "compute":
                seconds["kernels" if job == "done" else "reduction"] += spent
            else:
                seconds["transfers" if span["action"] == "transfer" else "other"] += spent
    return seconds


# ---------------------------------------------------------------- parts that hold next to nothing


@dataclass(frozen=True)
class EmptyPart:
    """One query of two documents: what remains of a gradient is what the cluster takes."""

    number: int

    n_rows = 2
    nbytes = 2 * ROW_BYTES

    @property
    def name(self) -> str:
        """Name of the part, in place of a path."""
        return f"part {self.number}"

    def read(self) -> PartRows:
        """Two documents that differ."""
        X = np.random.default_rng(self.number).standard_normal((2, FEATURES), dtype=np.float32)
        return PartRows.from_rows(X, np.array([0.0, 1.0]), np.full(2, self.number))

    def where(self, row: int) -> tuple[str, int]:
        """Name of the part and number of a row in it."""
        return self.name, row


def empty_scan(n_parts: int) -> Scan:
    """So many of them."""
    parts = tuple(EmptyPart(number) for number in range(n_parts))
    pieces = [(np.array([part.number]), np.array([2]), None) for part in parts]
    return Scan(parts, Index.from_pieces(pieces, [part.name for part in parts]), FEATURES, None, 2**30)


# ---------------------------------------------------------------- what the machine can do


def rates(processes: int, share: float, seconds: float) -> tuple[float, float]:
    """GB/s of X that so many plain processes read together: by `X @ w`, and by our gradient."""
    context = get_context("spawn")
    start, queue = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=_reading, args=(share / processes, seconds, start, queue))
        for _ in range(processes)
    ]
    for process in running:
        process.start()
    speeds = [queue.get(timeout=300) for _ in running]
    for process in running:
        process.join()
    products, gradients = np.sum(speeds, axis=0) / GB
    return float(products), float(gradients)


def _reading(share: float, seconds: float, start: Any, queue: Any) -> None:
    """Read X again and again, by one thread; tell the bytes a second of both ways."""
    data = Set.random(MSLR.part(share))
    goal = objective(data, Softmax(), ALPHA)
    weights = np.full(FEATURES, 0.01)
    single = weights.astype(np.float32)
    with one_kernel_thread(), one_blas_thread():
        calls = (lambda: data.X @ single), (lambda: goal.value_and_grad(weights))
        queue.put([data.X.nbytes * _rate(call, seconds, start) for call in calls])


def _rate(call: Callable[[], object], seconds: float, start: Any) -> float:
    """Calls a second, while the other processes do the same."""
    call()
    start.wait()
    begun, calls = time.perf_counter(), 0
    for calls in _until(begun + seconds):  # noqa: B007
        call()
    return calls / (time.perf_counter() - begun)


def _until(end: float) -> Iterator[int]:
    """Count from 1 on, until then."""
    number = 0
    while time.perf_counter() < end or not number:
        number += 1
        yield number
