"""Workers of a cluster killed during a fit: how many models are those of an undisturbed fit, and how late."""

import os
import random
import signal
import statistics
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import concordant as cc
from benchmarks.parquet_sets import FEATURES, GB, drawn
from benchmarks.tables import Table
from benchmarks.timing import watched
from concordant.solvers.partitioned.local import local_cluster

SIZE = 1.3 * GB
MODEL: dict[str, Any] = {"metric": "ndcg@10", "alpha": 1e-6, "tol": 1e-12}
ATTEMPTS = 30  # for each kill, sooner each time: a fit may end before it
ENOUGH = 1e-8  # of the largest weight


@dataclass
class Kill:
    """One fit during which a worker was killed."""

    moment: float
    gradients: int  # steps of the solver before it
    seconds: float
    apart: float  # largest difference of a weight, as a share of the largest


@dataclass
class Trial:
    """A cluster, a set, and what a fit takes and gives where nobody is killed."""

    client: Any
    path: Path
    n_workers: int
    times: int
    seconds: float = field(init=False)
    coef: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.client.wait_for_workers(self.n_workers, timeout=120)
        fits = [self.fit() for _ in range(self.times)][-3:]  # the first loads the kernels
        self.seconds, self.coef = statistics.median(seconds for seconds, _ in fits), fits[0][1]
        if any(not np.array_equal(self.coef, coef) for _, coef in fits):
            raise ValueError("undisturbed fits differ")

    def fit(self, steps: list[int] | None = None) -> tuple[float, np.ndarray]:
        """Seconds and weights of a fit; its steps are counted."""
        told = None if steps is None else lambda step: steps.append(step.iteration)
        start = time.perf_counter()
        model = cc.LinearRanker(**MODEL, callback=told).fit(cc.scan_parquet(self.path), client=self.client)
        return time.perf_counter() - start, model.coef_

    def killed(self, rng: random.Random) -> Kill:
        """Fit, and meanwhile kill a worker; again where the fit was over before."""
        for attempt in range(ATTEMPTS):
            self.ready()
            found = self.attempt(rng.uniform(0.0, self.seconds) * 0.5**attempt, rng)
            if found is not None:
                return found
        raise TimeoutError("every fit ended before the kill")

    def ready(self) -> None:
        """Wait until all workers are there, and have loaded the library."""
        self.client.wait_for_workers(self.n_workers, timeout=120)
        self.client.run(loaded)

    def attempt(self, moment: float, rng: random.Random) -> Kill | None:
        """Fit, and kill a worker at a moment; None if the fit had ended."""
        steps: list[int] = []
        before: list[int] = []
        process = rng.choice(processes(self.client))

        def kill() -> None:
            before.append(len(steps))
            os.kill(process, signal.SIGKILL)

        timer = threading.Timer(moment, kill)
        timer.start()
        seconds, coef = self.fit(steps)
        timer.cancel()
        timer.join()
        if not before or moment > seconds:
            return None
        apart = float(np.abs(coef - self.coef).max() / np.abs(self.coef).max())
        return Kill(moment, before[0], seconds, apart)


def loaded() -> None:
    """Import on a worker what a fit needs, as workers that run for long have done."""
    import concordant.rankers.linear
    import concordant.scorers.kernels  # noqa: F401


def processes(client: Any) -> list[int]:
    """Give the numbers of the workers' processes."""
    return sorted(client.run(os.getpid).values())


def patient() -> AbstractContextManager[object]:
    """Let nannies go on after many deaths: one whose worker is missing 15 s after its last is let go."""
    import distributed  # noqa: F401  its own settings must be there before
    from dask import config

    patience: AbstractContextManager[object] = config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    return patience


def run(*, quick: bool) -> list[Table]:
    """Both tables."""
    sizes, kills = ((2,), 1) if quick else ((2, 3), 20)
    rng, found = random.Random(0), {}
    with drawn(SIZE / 1000, row_group=1 << 18) if quick else drawn(SIZE) as (path, _):
        scan = cc.scan_parquet(path)
        about = f"{scan.n_rows:,} documents, {FEATURES} features, {len(scan.parts)} parts"
        for n_workers in sizes:
            with patient(), local_cluster(n_workers) as client:
                trial = Trial(client, path, n_workers, 1 if quick else 4)
                turns = watched(range(kills), f"{n_workers} workers")
                found[n_workers] = trial.seconds, [trial.killed(rng) for _ in turns]
    return [summary(found, about), every(found)]


def summary(found: dict[int, tuple[float, list[Kill]]], about: str) -> Table:
    """Count the models."""
    note = (
        f"{about}, read from Parquet and held by worker processes of this machine, each with a nanny that "
        "starts another where one dies. In each fit one worker, drawn at random, is ended by `kill -9` at a "
        "moment drawn evenly from the length of an undisturbed fit. Equal: the weights have the bits of an "
        f"undisturbed fit; near: they differ by at most {ENOUGH:g} of the largest weight. "
        f"`cc.LinearRanker({', '.join(f'{name}={value!r}' for name, value in MODEL.items())})`."
    )
    columns = (
        "workers", "kills", "equal models", "near", "largest difference", "undisturbed fit, s",
        "killed: median, s", "most, s",
    )  # fmt: skip
    table = Table("Workers killed during a fit", note, columns)
    for n_workers, (seconds, kills) in found.items():
        apart, took = [one.apart for one in kills], [one.seconds for one in kills]
        equal, near = sum(one == 0.0 for one in apart), sum(one <= ENOUGH for one in apart)
        times = seconds, statistics.median(took), max(took)
        table.rows.append((n_workers, len(kills), equal, near, max(apart), *times))
    return table


def every(found: dict[int, tuple[float, list[Kill]]]) -> Table:
    """List the kills."""
    note = (
        "The moment in shares of an undisturbed fit; steps of the solver before it (0: while the data were "
        "read and measured); and how much longer the fit took than an undisturbed one."
    )
    table = Table(
        "Every kill", note, ("workers", "moment", "steps before", "seconds longer", "largest difference")
    )
    for n_workers, (seconds, kills) in found.items():
        for one in sorted(kills, key=lambda one: one.moment):
            longer = one.seconds - seconds
            table.rows.append((n_workers, one.moment / seconds, one.gradients, longer, one.apart))
    return table
