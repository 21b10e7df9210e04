"""Parts held in memory by the workers of a Dask cluster, and the collection pieces they come from."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import count
from typing import Any, Self, cast

import numpy as np

from concordant._base.segments import one_kernel_thread
from concordant.data.check import is_collection
from concordant.scale.cluster import gather_results, naming_faults, submit_task
from concordant.scale.parts import FAN, Job, Merge, Parts, Prepare, StreamedParts, Tree, add_vectors
from concordant.scale.scan.scan import Part
from concordant.types import FloatArray

# A part in the memory of a worker. When it is moved, its inputs are sent and the part is built again.


class WorkerPart:
    """A prepared part on a worker, together with its inputs.

    Arrays received from another process may be read-only and unaligned: kernels would be compiled again for
    them, and sums would get other bits. So a part that is moved is prepared again.

    Parameters
    ----------
    prepare, part, spec
        As in `StreamedParts`.
    rows
        Rows of the part; None: they are read here.
    """

    def __init__(self, prepare: Prepare[Any], part: Part, rows: Any, spec: Any) -> None:
        self.recipe, self.rows = (prepare, part, _align_arrays(spec)), _align_arrays(rows)
        part_rows = part.read() if rows is None else self.rows
        with one_kernel_thread():
            self.value = prepare(part, part_rows, self.recipe[2])

    def __reduce__(self) -> tuple[Any, ...]:
        prepare, part, spec = self.recipe
        return WorkerPart, (prepare, part, self.rows, spec)

    def __sizeof__(self) -> int:
        # Dask moves small results to large ones by this size; it does not look inside.
        return sys.getsizeof(self.value)


def _align_arrays(value: Any) -> Any:
    """Return the value with aligned arrays; the value itself if they all are.

    >>> unaligned = np.frombuffer(bytes(9), dtype=np.uint8)[1:].view(np.float64)
    >>> unaligned.flags.aligned, _align_arrays({"w": unaligned})["w"].flags.aligned
    (False, True)
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    parts = value.values() if isinstance(value, dict) else vars(value).values() if _is_record(value) else ()
    if all(_align_arrays(part) is part for part in parts):
        return value
    return pickle.loads(pickle.dumps(value, protocol=4))  # noqa: S301  pickled on this line


def _is_record(value: Any) -> bool:
    """True for an instance with a `__dict__`, which is neither a class nor callable."""
    return hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value)


def run_job(job: Job, prepared: Any, *args: Any) -> Any:
    """Run a job on a part, on a worker, which has one thread per task."""
    value = prepared.value if isinstance(prepared, WorkerPart) else prepared
    with one_kernel_thread():
        return job(value, *(_align_arrays(arg) if isinstance(arg, np.ndarray) else arg for arg in args))


# Pieces of Dask collections: the partitions of frames, the row chunks of arrays.


@dataclass(frozen=True)
class CollectionPiece:
    """A piece whose rows are on a worker: its number, and its name in error messages."""

    number: int
    kind: str = "partition"
    n_rows: int = 0
    nbytes: int = 0

    @property
    def name(self) -> str:
        """Name in messages, such as "partition 3"."""
        return f"{self.kind} {self.number}"

    def where(self, row: int) -> tuple[str, int]:
        """Return the piece's name and the row, which is counted within the piece."""
        return self.name, row

    def read(self) -> Any:
        """Not used: workers have the rows."""
        raise NotImplementedError


def is_partitioned(value: Any) -> bool:
    """True for a Dask array, frame or series; False for a `Delayed`."""
    return is_collection(value) and hasattr(
        type(value), "npartitions"
    )  # a Delayed instance has every attribute


def rechunk_by_rows(collection: Any) -> Any:
    """Return the collection, with arrays rechunked so that they are cut by rows only."""
    if hasattr(collection, "chunks") and collection.ndim > 1:
        return collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    return collection


def compute_pieces(client: Any, collection: Any) -> list[Any]:
    """Start computing the pieces of a frame, a series or an array (cut by rows); return their futures."""
    # Arrays that share tasks, each optimised separately, would have different tasks under the same keys.
    delayed = rechunk_by_rows(collection).to_delayed(optimize_graph=hasattr(collection, "divisions"))
    one_by_one = delayed.ravel().tolist() if hasattr(delayed, "ravel") else list(delayed)
    with naming_faults():
        futures: list[Any] = client.compute(one_by_one)
    return futures


def build_dask_array(chunks: Sequence[Any], shapes: Sequence[tuple[float, ...]]) -> Any:
    """Build a Dask array, cut by rows, from futures of its chunks."""
    from dask import array, delayed

    shaped_chunks = zip(chunks, shapes, strict=True)
    return array.concatenate(
        [array.from_delayed(delayed(chunk), shape, dtype=float) for chunk, shape in shaped_chunks]
    )


ALL = slice(None)
TURNS = 4  # parts per thread between two checkpoints, so that few threads wait for the slowest


class ClusterParts:
    """Parts that workers keep in memory; a part that is lost with its worker is read and prepared elsewhere.

    Each gradient sends the weights to the parts; sums of eight parts, of eight such sums, and so on are taken
    on the workers. They have the same bits on any number of workers.

    Parameters
    ----------
    client
        Client of the cluster.
    parts
        Parts that workers read; with `rows`, only used for their names.
    prepare, specs
        As in `StreamedParts`.
    rows
        Futures of the parts' rows, if workers have them already.
    places
        Address of the worker that must hold each part; losing such a worker is an error. None: any worker.
    """

    def __init__(
        self,
        client: Any,
        parts: Sequence[Part],
        prepare: Prepare[Any],
        specs: Sequence[Any],
        rows: Sequence[Any] | None = None,
        places: Sequence[str] | None = None,
    ) -> None:
        self.client, self.needed = client, frozenset(places or ())
        read: Sequence[Any] = [None] * len(parts) if rows is None else rows
        self.places: Sequence[str | None] = [None] * len(parts) if places is None else places
        self.futures = [
            self.submit(WorkerPart, prepare, *arguments, address=address)
            for *arguments, address in zip(parts, read, specs, self.places, strict=True)
        ]

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.futures)

    def submit(self, function: Job, *args: Any, priority: int = 0, address: str | None = None) -> Any:
        """Submit a call and return its future."""
        return submit_task(self.client, function, *args, priority=priority, workers=address)

    def start_job(self, job: Job, *args: Any, some: slice = ALL) -> list[Any]:
        """Start the job on every part, or on a slice of the parts, where they are; return the futures."""
        parts = zip(self.futures[some], self.places[some], strict=True)
        return [self.submit(run_job, job, future, *args, address=address) for future, address in parts]

    def map_parts(self, job: Job, *args: Any) -> Self:
        """Return new parts, the job's results, each where its part is."""
        parts = copy(self)
        parts.futures = self.start_job(job, *args)
        return parts

    def prepare_again(self, prepare: Prepare[Any], specs: Sequence[Any]) -> Self:
        """Return parts prepared in another way from the rows that workers have."""
        parts = copy(self)
        arguments = zip(self.futures, specs, self.places, strict=True)
        parts.futures = [
            self.submit(_prepare_again_on_worker, *part_and_spec, prepare, address=address)
            for *part_and_spec, address in arguments
        ]
        return parts

    def share(self, value: Any) -> Any:
        """Send a value to one worker, from which others get it; if that worker is lost, it is sent again."""
        return self.submit(identity, value)

    def each(self, job: Job, *args: Any) -> list[Any]:
        """Run the job on every part, where it is; return its results in the order of the parts."""
        results: list[Any] = gather_results(self.client, self.start_job(job, *args), self.needed)
        return results

    def total(self, job: Job, *args: Any) -> FloatArray:
        """Sum the job's results by a tree of tasks; one array comes back."""
        total: FloatArray = self.merge(Tree(add_vectors), job, *args)
        return total

    def merge(self, tree: Tree, job: Job, *args: Any) -> Any:
        """Merge the job's results by a tree of tasks; in batches of parts, if the tree is saved meanwhile."""
        while tree.done < self.n_parts:
            level = tree.level(self.highest_level(is_recorded=tree.on_add is not None))
            some = slice(tree.done, min(tree.done + FAN**level, self.n_parts))
            tree.add(self.merge_subtree(tree.merge, some, job, *args), level, some.stop - some.start)
        return tree.whole()

    def merge_subtree(self, merge: Merge, some: slice, job: Job, *args: Any) -> Any:
        """Merge some parts in groups of eight, all submitted at once, so that few results wait in memory."""
        futures, height = self.start_job(job, *args, some=some), 0
        while len(futures) > 1:
            height += 1
            groups = [futures[start : start + FAN] for start in range(0, len(futures), FAN)]
            futures = [self.submit(merge, *group, priority=height) for group in groups]
        return gather_results(self.client, futures, self.needed)[0]

    def highest_level(self, *, is_recorded: bool) -> int:
        """Return the level that covers all parts, or those that are worked on between two checkpoints."""
        enough = self.n_parts
        if is_recorded:
            with naming_faults():
                enough = min(enough, TURNS * sum(self.client.nthreads().values()))
        return next(level for level in count() if FAN**level >= enough)


def identity(value: Any) -> Any:
    """Return the value."""
    return value


def _prepare_again_on_worker(prepared: WorkerPart, spec: Any, prepare: Prepare[Any]) -> WorkerPart:
    _, part, _ = prepared.recipe
    return WorkerPart(prepare, part, prepared.rows, spec)


def prepare_again(parts: Parts, prepare: Prepare[Any], specs: Sequence[Any]) -> Parts:
    """Return parts prepared in another way: read so from now on, or prepared again by the workers."""
    if isinstance(parts, ClusterParts):
        return parts.prepare_again(prepare, specs)
    return StreamedParts(cast("StreamedParts[Any]", parts).parts, prepare, specs)


def prepare_parts(
    client: Any,
    parts: Sequence[Part],
    prepare: Prepare[Any],
    specs: Sequence[Any],
    rows: list[Any] | None = None,
    places: Sequence[str] | None = None,
) -> Parts:
    """Return prepared parts, held by the workers of a client; without one, this process reads them.

    `rows`, futures as in `ClusterParts`, is emptied: workers need not keep them beside the parts.
    """
    if client is None:
        return StreamedParts(parts, prepare, specs)
    futures = None if rows is None else [*rows]
    if rows is not None:
        rows.clear()
    return ClusterParts(client, parts, prepare, specs, futures, places)
