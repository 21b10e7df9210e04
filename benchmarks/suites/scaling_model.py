"""Cost of a gradient on a cluster: a model, fitted to measurements, and drawn on to other clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.shared.parquet_sets import FEATURES, GB
from benchmarks.shared.tables import Cell, Table
from benchmarks.suites.scaling_runs import ROW_BYTES, Gradient, shape

GOAL, MACHINES, GRADIENTS = 1_000_000_000, 100, 30  # documents; of a usual fit
PART_SIZES = (64 << 20, 256 << 20, 1 << 30)
NETWORK = 5e-4  # seconds of a message between machines, assumed; a level of the tree waits for two


@dataclass(frozen=True)
class Machine:
    """Assumptions of the extrapolation: workers, and GB of X a second that they read together."""

    name: str
    workers: int
    rate: float


@dataclass(frozen=True)
class Cost:
    """seconds = slowness * bytes / rate + level * levels + task * tasks + call."""

    slowness: float
    level: float
    task: float
    call: float
    rates: Mapping[int, float]  # workers -> bytes of X a second that so many processes read without a cluster

    @classmethod
    def fit(cls, gradients: Sequence[Gradient], rates: Mapping[int, float]) -> "Cost":
        """Fit by least squares of relative errors; no cost is negative."""
        from scipy.optimize import nnls

        costs, _ = nnls(
            np.array([np.array(_terms(gradient, rates)) / gradient.seconds for gradient in gradients]),
            np.ones(len(gradients)),
        )
        return cls(*map(float, costs), rates)

    def seconds(self, gradient: Gradient) -> float:
        """Expected seconds of a gradient."""
        return float(np.dot(_terms(gradient, self.rates), (self.slowness, self.level, self.task, self.call)))


def _terms(gradient: Gradient, rates: Mapping[int, float]) -> tuple[float, ...]:
    """Factors of the four costs."""
    tasks, levels = shape(gradient.n_parts)
    return gradient.size / rates[gradient.workers], levels, tasks, 1.0


def coefficients(cost: Cost) -> Table:
    """The fitted costs."""
    note = (
        "seconds = slowness * bytes of X / rate + levels * level + tasks * task + call, fitted to all "
        "gradients on clusters by least squares of relative errors, no cost below 0. The rate is that of as "
        "many plain processes (the machine's limit, above), not fitted. Tasks go through one scheduler, one "
        "after the other: their cost does not shrink with the number of workers."
    )
    rows: list[tuple[Cell, ...]] = [
        ("slowness", cost.slowness, "times the plain processes' time; 1: nothing is lost"),
        ("level", cost.level * 1e3, "ms for each level of the tree of sums"),
        ("task", cost.task * 1e3, "ms for each task, in client, scheduler and worker"),
        ("call", cost.call * 1e3, "ms for each gradient"),
    ]
    return Table("Cost model", note, ("cost", "value", "unit"), rows)


def residuals(cost: Cost, gradients: Sequence[Gradient]) -> Table:
    """Measured, and what the model says."""
    note = "All gradients that the model was fitted to; error: how far the model is off, as a share."
    columns = ("set", "workers", "parts", "tasks", "levels", "measured, ms", "model, ms", "error")
    table = Table("Cost model: residuals", note, columns)
    for gradient in gradients:
        expected, (tasks, levels) = cost.seconds(gradient), shape(gradient.n_parts)
        numbers = gradient.seconds * 1e3, expected * 1e3, expected / gradient.seconds - 1.0
        table.rows.append((gradient.kind, gradient.workers, gradient.n_parts, tasks, levels, *numbers))
    return table


def extrapolated(cost: Cost, machines: Sequence[Machine]) -> Table:
    """A gradient of 10^9 documents on 100 machines."""
    note = (
        f"{GOAL:,} documents, {FEATURES} float32 features ({GOAL * ROW_BYTES / GB:,.0f} GB) in the memory of "
        f"{MACHINES} machines. Nothing of this was run. Assumed: the costs of the model as they were fitted "
        "here, where client, scheduler and workers share the cores; one scheduler; parts spread evenly; a "
        f"message between machines takes {NETWORK * 1e3:g} ms, and each level of the tree waits for two; "
        "weights and sums (1 kB each) take no time on the network. A machine reads X at the rate that is "
        f"given with it. The fit: {GRADIENTS} gradients, data already in memory. `cc.scan_parquet(..., "
        "part='1 GiB', memory='8 GiB')` reads such parts."
    )
    columns = (
        "machine", "part, MiB", "parts", "tasks", "levels", "reading X, s", "levels, s", "tasks, s",
        "a gradient, s", "share of tasks", "a fit, s",
    )  # fmt: skip
    table = Table("10^9 documents on 100 machines", note, columns)
    for machine in machines:
        for part in (*PART_SIZES, GOAL * ROW_BYTES / (MACHINES * machine.workers)):
            table.rows.append(_forecast(cost, machine, part))
    return table


def _forecast(cost: Cost, machine: Machine, part: float) -> tuple[Cell, ...]:
    """Expected cost of a gradient with parts of this size; a worker has whole parts."""
    n_parts = max(round(GOAL * ROW_BYTES / part), 1)
    tasks, levels = shape(n_parts)
    most = -(-n_parts // (MACHINES * machine.workers))  # parts of the worker that has most
    reading = cost.slowness * most * machine.workers * part / machine.rate
    waiting = levels * (cost.level + 2 * NETWORK) + cost.call
    total = reading + waiting + tasks * cost.task
    head = machine.name, part / 2**20, n_parts, tasks, levels
    return *head, reading, waiting, tasks * cost.task, total, tasks * cost.task / total, total * GRADIENTS
