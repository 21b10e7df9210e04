"""Computations over ragged data: the thread pool over chunks of queries, kernel compilation, segment sums."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np

from concordant.types import FloatArray, IntArray

Function = TypeVar("Function", bound=Callable[..., Any])

THREADS: ContextVar[int | None] = ContextVar("concordant_threads", default=None)
SERIAL_ROWS = 20_000  # below this, a thread costs more (about 0.1 ms) than it saves
CHUNKS_PER_THREAD = 4  # so that one long query does not leave the other threads idle

UNCACHED = (
    "concordant: compiled functions cannot be cached, so each process compiles those it uses, for seconds to "
    "minutes (%s). Set NUMBA_CACHE_DIR to a writable folder."
)


def kernel(function: Function) -> Function:
    """Compile a per-query function: cached on disk, GIL released, IEEE division (no exception on 0/0).

    numba invalidates a cached kernel when its file changes; these are also invalidated when the file of a
    kernel they call changes.
    """
    return _compiled_by(function, fastmath=False)


def vector_kernel(function: Function) -> Function:
    """Compile like `kernel`, but let sums be reordered so that loops over items can be vectorized.

    NaN and infinity keep their meaning: only the order of additions may change.
    """
    return _compiled_by(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled_by(function: Function, fastmath: bool | set[str]) -> Function:
    """Compile a kernel and stamp its cache with every file that its code comes from."""
    from numba import njit

    _defer_blas()
    compiled: Any = njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    if not hasattr(compiled, "_cache"):  # NUMBA_DISABLE_JIT: plain Python, for debugging
        return function
    _share_overloads(compiled)
    called = (getattr(value, "sources", ()) for value in function.__globals__.values())
    compiled.sources = frozenset({function.__code__.co_filename}.union(*called))
    compiled._cache = _open_kernel_cache(function, compiled.sources)  # noqa: SLF001
    return cast("Function", compiled)


def _share_overloads(compiled: Any) -> None:
    """Let callers that pass a constant use the overload for its type: numba would compile another."""
    unliteral: Any = import_module("numba.core.types").unliteral
    find_template = getattr(compiled, "get_call_template", None)
    if find_template is None:  # a version of numba that finds overloads otherwise
        return

    def unliteral_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        named = {name: unliteral(kind) for name, kind in kws.items()}
        return find_template(tuple(map(unliteral, args)), named)

    compiled.get_call_template = unliteral_template


@cache
def _defer_blas() -> None:
    """Let numba import scipy.linalg when a function multiplies matrices, not with the first kernel."""
    linalg: Any = import_module("numba.np.linalg")
    check = getattr(linalg, "ensure_blas", None)
    if check is None:  # a version of numba without this check
        return
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")  # it only checks that scipy has a BLAS, which takes 0.1 s
    finally:
        linalg.ensure_blas = check


@cache
def _kernel_cache() -> Any:
    """Return numba's disk cache class, hardened against I/O failures; imported late because numba is slow."""
    caching: Any = import_module("numba.core.caching")  # its types differ from version to version

    class KernelFolders(caching.CompileResultCacheImpl):  # type: ignore[misc]
        """Locate the cache folder; in the user's home only if there is one, lest `~` be created literally."""

        _locator_classes = [  # noqa: RUF012
            locator
            for locator in caching.CompileResultCacheImpl._locator_classes  # noqa: SLF001
            if locator is not caching.UserWideCacheLocator
            or Path(caching.AppDirs("numba", appauthor=False).user_cache_dir).is_absolute()
        ]

    class KernelCache(caching.FunctionCache):  # type: ignore[misc]
        """numba cache that tolerates a damaged, full or read-only folder."""

        _impl_class = KernelFolders

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Load a compiled function; None if there is none or it cannot be read."""
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # noqa: BLE001  # a damaged pickle may raise anything
                with suppress(OSError):
                    self.flush()
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            """Save a compiled function if possible."""
            try:
                super().save_overload(sig, data)
            except OSError as error:
                log_uncached(error.strerror or str(error))

    return KernelCache


def _open_kernel_cache(function: Any, sources: frozenset[str]) -> Any:
    """Open the cache of a function, invalidated if any of its source files changed."""
    try:
        opened = _kernel_cache()(function)
    except RuntimeError:  # no locator
        log_uncached("no cache folder can be written")
        return import_module("numba.core.caching").NullCache()
    stats = [Path(path).stat() for path in sorted(sources)]
    opened._cache_file._source_stamp = tuple((f.st_mtime_ns, f.st_size) for f in stats)  # noqa: SLF001
    return opened


@cache
def log_uncached(reason: str) -> None:
    """Log a line once per process; a warning could be made an error by a filter and break an import."""
    logging.getLogger("concordant").warning(UNCACHED, reason)


@contextmanager
def kernel_threads(number: int) -> Iterator[None]:
    """Limit kernels to `number` threads, as a cluster does for its tasks."""
    before = THREADS.set(number)
    try:
        yield
    finally:
        THREADS.reset(before)


def one_kernel_thread() -> AbstractContextManager[None]:
    """Limit kernels to the calling thread, as a cluster does for single-threaded tasks."""
    return kernel_threads(1)


def n_threads() -> int:
    """Number of threads used by kernels: `CONCORDANT_THREADS`, else the cores available to this process."""
    if (number := THREADS.get()) is not None:
        return number
    setting = os.environ.get("CONCORDANT_THREADS", "")
    if setting.isascii() and setting.isdigit() and int(setting) > 0:
        return int(setting)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class SingleBlasThread:
    """Reentrant context that limits BLAS to one thread until the last user leaves it.

    The limit is per process: if each user restored the previous one, the first to leave would lift it.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.limit = Lock(), 0, nullcontext()

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = _blas_controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.__exit__(None, None, None)


ALONE = SingleBlasThread()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: on small matrices its threads only wait, for long if the machine is busy."""
    return ALONE


@cache
def _blas_controller() -> Any:
    """Return the controller of the loaded BLAS libraries, cached because finding them takes milliseconds."""
    import scipy.linalg  # noqa: F401  # scipy brings its BLAS, which must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def allow_forks(library: str, set_threads: Callable[[int], object] | None = None) -> None:
    """Limit OpenMP to one thread in processes forked from now on; `library` has loaded libgomp.

    A forked process lacks the threads that libgomp waits for at the next parallel loop: it would hang for
    ever. `set_threads` sets the thread limit of the library itself, if it requests several from OpenMP.
    """
    from threadpoolctl import ThreadpoolController

    del library  # only the cache key
    openmp = ThreadpoolController().select(prefix="libgomp")

    def limit() -> None:
        openmp.limit(limits=1)
        if set_threads is not None:
            set_threads(1)

    if len(openmp) and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=limit)


def run_chunks(offsets: IntArray, body: Callable[[int, int], None]) -> None:
    """Call `body(first, last)` on chunks that cover each query once and hold similar numbers of rows.

    `body` must release the GIL and write to disjoint elements. The pool lives for one call: a longer-lived
    pool would hang after a fork, and starting it costs less than a millisecond.
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
            except IndexError:  # another thread took the last chunk
                return
            body(*chunk)

    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(work) for _ in range(threads - 1)]
        work()  # this thread works too: waiting would cost a tenth
        for helper in helpers:
            helper.result()


def cut_queries(offsets: IntArray, n_parts: int) -> IntArray:
    """Cut the queries into at most `n_parts` parts with similar numbers of rows; return the part boundaries.

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
    if filled.any():  # reduceat gives an empty segment its first neighbour: leave empty segments out
        results[filled] = function.reduceat(values, offsets[:-1][filled])
    return results


def segment_sum(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sum of each query's values; 0 for an empty query."""
    return segment_reduce(np.add, values, offsets)
