"""The tables of the suite `scaling`."""

from collections.abc import Sequence

import numpy as np

from benchmarks.shared import wire
from benchmarks.shared.parquet_sets import FEATURES, GB
from benchmarks.shared.tables import Cell, Table
from benchmarks.suites.scaling_runs import CUT, EMPTY, METRIC, STRONG, WEAK, Gradient, Measurements, shape
from concordant._base.segments import n_threads


def limits(measurements: Measurements) -> Table:
    """Rates at which plain processes read."""
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
    alone = measurements.rates[1]
    for n, (product, gradient) in measurements.rates.items():
        table.rows.append((n, product, product / alone[0], gradient, gradient / alone[1]))
    return table


def _scaled(table: Table, gradients: Sequence[Gradient], rates: dict, first: float) -> Table:
    """Rows of a cluster: efficiency against one worker, and against the machine's limit."""
    for gradient in gradients:
        speed = gradient.size / gradient.seconds
        gained, limit = speed / first, rates[gradient.workers][1] / rates[1][1]
        numbers = gradient.seconds * 1e3, speed / GB, gained, gained / gradient.workers, limit, gained / limit
        table.rows.append((f"{gradient.workers} workers", gradient.n_rows, gradient.n_parts, *numbers))
    return table


COLUMNS = (
    "on", "documents", "parts", "ms a gradient", "GB/s", "of one worker", "efficiency", "machine's limit",
    "of the limit",
)  # fmt: skip


def strong(measurements: Measurements) -> Table:
    """The same data on more workers."""
    note = (
        "The same set on 1, 2 and 4 worker processes of one thread. Speed as a multiple of that of one "
        "worker; efficiency: that divided by the workers; the machine's limit: what plain processes gain "
        "(above). Below: the same gradient without a cluster."
    )
    gradients = measurements.of_kinds(STRONG)
    table = _scaled(
        Table("Strong scaling", note, COLUMNS),
        gradients,
        measurements.rates,
        gradients[0].size / gradients[0].seconds,
    )
    for gradient in measurements.gradients:
        if not gradient.workers:
            numbers = gradient.seconds * 1e3, gradient.size / gradient.seconds / GB
            table.add_text(gradient.kind, gradient.n_rows, gradient.n_parts, *numbers)
    return table


def weak(measurements: Measurements) -> Table:
    """As much data for each worker."""
    note = "Each worker has as many rows, whatever their number; columns as above."
    gradients = measurements.of_kinds(WEAK)
    return _scaled(
        Table("Weak scaling", note, COLUMNS),
        gradients,
        measurements.rates,
        gradients[0].size / gradients[0].seconds,
    )


def tasks_of(measurements: Measurements) -> Table:
    """Time of a gradient by kind of work."""
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
    for gradient in measurements.of_kinds(STRONG, WEAK):
        spent = [gradient.busy.get(name, 0.0) * 1e3 for name in ("kernels", "reduction", "transfers")]
        whole = gradient.seconds * 1e3
        table.rows.append(
            (
                gradient.kind,
                gradient.workers,
                *shape(gradient.n_parts),
                whole,
                *spent,
                gradient.workers * whole - sum(spent),
            )
        )
    return table


def bytes_of(measurements: Measurements) -> Table:
    """Bytes that a gradient moves."""
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
    for gradient in measurements.of_kinds(STRONG, WEAK):
        moved = [float(gradient.bytes.get(kind, 0.0)) for kind in wire.KINDS]
        needed = gradient.workers * 8 * (2 * FEATURES + 2)
        numbers = *moved, sum(moved), sum(moved) / gradient.size, needed
        table.rows.append((gradient.kind, gradient.workers, shape(gradient.n_parts)[0], *numbers))
    return table


def empties(measurements: Measurements) -> Table:
    """Gradients of next to nothing."""
    note = "Parts of two documents: what remains is what client, scheduler and workers take for the tasks."
    table = Table("An empty gradient", note, ("workers", "parts", "tasks", "levels", "ms", "ms a task"))
    for gradient in measurements.of_kinds(EMPTY):
        tasks, levels = shape(gradient.n_parts)
        spent = gradient.seconds * 1e3
        table.rows.append((gradient.workers, gradient.n_parts, tasks, levels, spent, spent / tasks))
    return table


def parts_of(measurements: Measurements) -> Table:
    """The same data in smaller and larger parts."""
    note = "The fixed set on two workers, cut otherwise: many small parts cost tasks, few large ones balance."
    table = Table("Size of parts", note, ("part, MiB", "parts", "tasks", "ms a gradient", "GB/s"))
    gradients = [
        gradient
        for gradient in measurements.of_kinds(STRONG, CUT)
        if gradient.workers == min(2, max(measurements.rates))
    ]
    for gradient in sorted(gradients, key=lambda gradient: -gradient.n_parts):
        rows: tuple[Cell, ...] = (round(gradient.size / gradient.n_parts / 2**20, 1), gradient.n_parts)
        table.rows.append(
            (*rows, shape(gradient.n_parts)[0], gradient.seconds * 1e3, gradient.size / gradient.seconds / GB)
        )
    return table


def same_model(measurements: Measurements) -> Table:
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
    (_, _, plain), (_, _, read), *_ = measurements.fits
    for name, seconds, coef in measurements.fits:
        apart = float(np.abs(coef - plain).max() / np.abs(plain).max())
        table.rows.append((name, seconds, apart, "yes" if np.array_equal(coef, read) else "no"))
    return table
