"""What runs over ragged data: the thread pool over chunks of queries, and segment sums."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np

from concordant.types import FloatArray, IntArray

__all__ = [
    "cut_queries",
    "kernel",
    "kernel_threads",
    "n_threads",
    "one_blas_thread",
    "one_kernel_thread",
    "run_chunks",
    "segment_reduce",
    "segment_sum",
    "vector_kernel",
]

Function = TypeVar("Function", bound=Callable[..., Any])

THREADS: ContextVar[int | None] = ContextVar("concordant_threads", default=None)
SERIAL_ROWS = 20_000  # below this a thread costs more than it saves (about 0.1 ms)
CHUNKS_PER_THREAD = 4  # so that one long query does not leave the other threads idle


def kernel(function: Function) -> Function:
    """Compile a per-query function: cached on disk, GIL released, IEEE division (no exception on 0/0).

    numba forgets a cached kernel when its own file changes; ours are also forgotten when the file of a kernel
    they call does.
    """
    return compiled_by(function, fastmath=False)


def vector_kernel(function: Function) -> Function:
    """Compile as `kernel` does, and let sums be taken in any order, so that loops over items use vectors.

    NaN and infinity keep their meaning: only the order of additions is free.
    """
    return compiled_by(function, fastmath={"reassoc", "contract", "nsz"})


def compiled_by(function: Function, fastmath: bool | set[str]) -> Function:
    """Compile, and stamp the cache with every file the code comes from."""
    from numba import njit

    compiled: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
    if not hasattr(compiled, "_cache"):  # NUMBA_DISABLE_JIT: plain Python, for debugging
        return function
    called = (getattr(value, "sources", ()) for value in function.__globals__.values())
    compiled.sources = frozenset({function.__code__.co_filename}.union(*called))
    stats = [Path(path).stat() for path in sorted(compiled.sources)]
    compiled._cache._cache_file._source_stamp = tuple((s.st_mtime_ns, s.st_size) for s in stats)  # noqa: SLF001
    return cast("Function", compiled)


@contextmanager
def kernel_threads(number: int) -> Iterator[None]:
    """Keep kernels to so many threads: where a cluster gives a task no more."""
    before = THREADS.set(number)
    try:
        yield
    finally:
        THREADS.reset(before)


def one_kernel_thread() -> AbstractContextManager[None]:
    """Keep kernels to the calling thread: where a cluster gives each task one."""
    return kernel_threads(1)


def n_threads() -> int:
    """Threads used by kernels: `CONCORDANT_THREADS`, else the cores this process may use."""
    if (number := THREADS.get()) is not None:
        return number
    chosen = os.environ.get("CONCORDANT_THREADS", "")
    if chosen.isascii() and chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Alone:
    """A context in which BLAS has one thread; many may be in it at once, and the last one out ends it.

    The limit is the process's: if each gave back what it found, the first out would end it for the others.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.limit = Lock(), 0, nullcontext()

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = blas().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.__exit__(None, None, None)


ALONE = Alone()


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS to one thread: on small matrices its threads only wait, long where other work is going on."""
    return ALONE


@cache
def blas() -> Any:
    """Give the handle of the loaded BLAS libraries; finding them takes milliseconds."""
    import scipy.linalg  # noqa: F401  it brings a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def run_chunks(offsets: IntArray, body: Callable[[int, int], None]) -> None:
    """Call `body(first, last)` until every query is covered once; chunks hold about equal numbers of rows.

    `body` must release the GIL and write to disjoint places. The pool lives for one call: a longer-lived
    one would hang after a fork, and starting it costs less than a millisecond.
    """
    n_queries, n_rows, threads = len(offsets) - 1, int(offsets[-1]), n_threads()
    if threads == 1 or n_rows < SERIAL_ROWS or n_queries < 2:
        body(0, n_queries)
        return
    waiting = deque(pairwise(cut_queries(offsets, threads * CHUNKS_PER_THREAD).tolist()))

    def work() -> None:
        while waiting:
            try:
                chunk = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            body(*chunk)

    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(work) for _ in range(threads - 1)]
        work()  # this thread too: waiting would cost a tenth
        for helper in helpers:
            helper.result()


def cut_queries(offsets: IntArray, n_parts: int) -> IntArray:
    """Cut the queries into at most so many parts of about equal numbers of rows; where each part begins.

    >>> cut_queries(np.array([0, 2, 4, 6, 8]), 2).tolist()
    [0, 2, 4]
    """
    cuts = np.searchsorted(offsets, np.linspace(0, int(offsets[-1]), n_parts + 1)[1:-1])
    edges: IntArray = np.unique(np.r_[0, cuts, len(offsets) - 1])
    return edges


def segment_reduce(function: np.ufunc, values: FloatArray, offsets: IntArray) -> FloatArray:
    """Reduce each query's values (np.add, np.minimum, ...); 0 for an empty query.

    >>> segment_reduce(np.add, np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3])).tolist()
    [3.0, 0.0, 4.0]
    """
    results = np.zeros(len(offsets) - 1)
    filled = offsets[1:] > offsets[:-1]
    if filled.any():  # reduceat gives an empty segment its first neighbour: leave those out
        results[filled] = function.reduceat(values, offsets[:-1][filled])
    return results


def segment_sum(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sum of each query's values; 0 for an empty query."""
    return segment_reduce(np.add, values, offsets)
