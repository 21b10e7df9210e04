"""The tables of `benchmarks/scaling.py`."""

from collections.abc import Sequence

import numpy as np

from benchmarks import wire
from benchmarks.parquet_sets import FEATURES, GB
from benchmarks.scaling_runs import CUT, EMPTY, METRIC, STRONG, WEAK, Gradient, Seen, shape
from benchmarks.tables import Cell, Table
from concordant._segments import n_threads

__all__ = ["bytes_of", "empties", "limits", "parts_of", "same_model", "strong", "tasks_of", "weak"]


def limits(seen: Seen) -> Table:
    """What the machine can do."""
    note = (
        "Plain processes without a cluster, each with its own rows and one thread, all at once: GB of "
        "float32 X that they read a second, together, by `X @ w` of BLAS and by our gradient (scores, loss, "
        f"and the gradient pulled back, in one pass). This machine has {n_threads()} cores. No cluster on it "
        "can scale better than the last column."
    )
    columns = (
        "processes", "X @ w, GB/s", "X @ w, of one process", "our gradient, GB/s", "gradient, of one process",
    )  # fmt: skip
    table = Table("The machine's limit", note, columns)
    one = seen.rates[1]
    for n, (product, own) in seen.rates.items():
        table.rows.append((n, product, product / one[0], own, own / one[1]))
    return table


def scaled(table: Table, seen: Sequence[Gradient], rates: dict, first: float) -> Table:
    """Rows of a cluster: efficiency against one worker, and against the machine's limit."""
    for one in seen:
        speed = one.size / one.seconds
        gained, limit = speed / first, rates[one.workers][1] / rates[1][1]
        numbers = one.seconds * 1e3, speed / GB, gained, gained / one.workers, limit, gained / limit
        table.rows.append((f"{one.workers} workers", one.n_rows, one.n_parts, *numbers))
    return table


COLUMNS = (
    "on", "documents", "parts", "ms a gradient", "GB/s", "of one worker", "efficiency", "machine's limit",
    "of the limit",
)  # fmt: skip


def strong(seen: Seen) -> Table:
    """The same data on more workers."""
    note = (
        "The same set on 1, 2 and 4 worker processes of one thread. Speed as a multiple of that of one "
        "worker; efficiency: that divided by the workers; the machine's limit: what plain processes gain "
        "(above). Below: the same gradient without a cluster."
    )
    own = seen.of(STRONG)
    table = scaled(Table("Strong scaling", note, COLUMNS), own, seen.rates, own[0].size / own[0].seconds)
    for one in seen.gradients:
        if not one.workers:
            numbers = one.seconds * 1e3, one.size / one.seconds / GB
            table.rows.append((one.kind, one.n_rows, one.n_parts, *numbers, *[None] * 4))
    return table


def weak(seen: Seen) -> Table:
    """As much data for each worker."""
    note = "Each worker has as many rows, whatever their number; columns as above."
    own = seen.of(WEAK)
    return scaled(Table("Weak scaling", note, COLUMNS), own, seen.rates, own[0].size / own[0].seconds)


def tasks_of(seen: Seen) -> Table:
    """Where the time of a gradient goes."""
    note = (
        "A gradient is a task for each part, and one for each eight sums; from Dask's task stream, "
        "milliseconds of all workers together: in the tasks of parts (kernels), in those that add up sums "
        "(reduction), and in fetching sums from other workers (transfers). Idle: what is left of workers x "
        "time, in which they wait for the scheduler, or for a core."
    )
    columns = (
        "set",
        "workers",
        "tasks",
        "levels",
        "ms a gradient",
        "kernels",
        "reduction",
        "transfers",
        "idle",
    )
    table = Table("Where the time of a gradient goes", note, columns)
    for one in seen.of(STRONG, WEAK):
        spent = [one.busy.get(name, 0.0) * 1e3 for name in ("kernels", "reduction", "transfers")]
        whole = one.seconds * 1e3
        table.rows.append(
            (one.kind, one.workers, *shape(one.n_parts), whole, *spent, one.workers * whole - sum(spent))
        )
    return table


def bytes_of(seen: Seen) -> Table:
    """What a gradient moves."""
    note = (
        "Bytes that the processes wrote to one another during a gradient, counted at their sockets: weights "
        "go out with every task, sums come back, and both with what Dask says about tasks. Needed: weights "
        f"({8 * FEATURES:,} bytes) to each worker once, one sum ({8 * (FEATURES + 2):,} bytes) from each."
    )
    table = Table(
        "Bytes of a gradient",
        note,
        ("set", "workers", "tasks", *wire.KINDS, "in all", "of X, as a share", "needed"),
    )
    for one in seen.of(STRONG, WEAK):
        moved = [float(one.bytes.get(kind, 0.0)) for kind in wire.KINDS]
        needed = one.workers * 8 * (2 * FEATURES + 2)
        numbers = *moved, sum(moved), sum(moved) / one.size, needed
        table.rows.append((one.kind, one.workers, shape(one.n_parts)[0], *numbers))
    return table


def empties(seen: Seen) -> Table:
    """Gradients of next to nothing."""
    note = "Parts of two documents: what remains is what client, scheduler and workers take for the tasks."
    table = Table("An empty gradient", note, ("workers", "parts", "tasks", "levels", "ms", "ms a task"))
    for one in seen.of(EMPTY):
        tasks, levels = shape(one.n_parts)
        spent = one.seconds * 1e3
        table.rows.append((one.workers, one.n_parts, tasks, levels, spent, spent / tasks))
    return table


def parts_of(seen: Seen) -> Table:
    """The same data in smaller and larger parts."""
    note = "The fixed set on two workers, cut otherwise: many small parts cost tasks, few large ones balance."
    table = Table("Size of parts", note, ("part, MiB", "parts", "tasks", "ms a gradient", "GB/s"))
    chosen = [one for one in seen.of(STRONG, CUT) if one.workers == min(2, max(seen.rates))]
    for one in sorted(chosen, key=lambda one: -one.n_parts):
        rows: tuple[Cell, ...] = (round(one.size / one.n_parts / 2**20, 1), one.n_parts)
        table.rows.append((*rows, shape(one.n_parts)[0], one.seconds * 1e3, one.size / one.seconds / GB))
    return table


def same_model(seen: Seen) -> Table:
    """The weights of all ways."""
    note = (
        f"`cc.LinearRanker('{METRIC}')` on the fixed set. Largest difference of a weight to the fit in "
        "memory, as a share of the largest weight; and whether the bits are those of the streamed fit. "
        "Seconds of the first fit: on a cluster with reading the parts, and loading the kernels in each "
        "worker."
    )
    table = Table(
        "The same model", note, ("fit", "seconds", "largest difference", "bits of the streamed fit")
    )
    (_, _, plain), (_, _, read), *_ = seen.fits
    for name, seconds, coef in seen.fits:
        apart = float(np.abs(coef - plain).max() / np.abs(plain).max())
        table.rows.append((name, seconds, apart, "yes" if np.array_equal(coef, read) else "no"))
    return table
