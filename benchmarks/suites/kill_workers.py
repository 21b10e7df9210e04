"""Workers of a cluster killed during a fit: how many models are those of an undisturbed fit, and how late."""

import os
import random
import signal
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import concordant as cc
from benchmarks.shared.parquet_sets import FEATURES, GB, drawn
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import watched
from concordant.scale.cluster import local_cluster

ATTEMPTS = 30  # for each kill, sooner each time: a fit may end before it
ENOUGH = 1e-8  # of the largest number


@dataclass(frozen=True)
class Kind:
    """A model to fit, to a set of so many bytes, by so many workers; and the numbers to compare models by."""

    name: str
    size: float
    n_workers: tuple[int, ...]
    model: Callable[..., Any]
    numbers: Callable[[Any], np.ndarray]


def _linear(callback: Callable[[Any], object]) -> Any:
    """Linear ranker that reports its steps."""
    return cc.LinearRanker("ndcg@10", alpha=1e-6, tol=1e-12, callback=callback)


def _trees(_: Callable[[Any], object]) -> Any:
    """Trees, which have no steps to report."""
    return cc.BoostedRanker("ndcg@10", n_estimators=50)


def _scores(model: Any) -> np.ndarray:
    """Scores of some items."""
    return model.predict(np.random.default_rng(0).standard_normal((1000, FEATURES)).astype(np.float32))


KINDS = (
    Kind("LinearRanker", 1.3 * GB, (2, 3), _linear, lambda model: model.coef_),
    Kind("BoostedRanker", 0.13 * GB, (2,), _trees, _scores),
)


@dataclass
class Kill:
    """One fit during which a worker was killed."""

    moment: float
    gradients: int  # steps of the solver before it
    seconds: float
    apart: float  # largest difference of a number, as a share of the largest


@dataclass
class WorkerTrial:
    """A cluster, a set, and what a fit takes and gives where nobody is killed."""

    kind: Kind
    client: Any
    path: Path
    n_workers: int
    times: int
    seconds: float = field(init=False)
    begun: float = field(init=False)  # seconds until the first step of the solver
    numbers: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.client.wait_for_workers(self.n_workers, timeout=120)
        fits, first = [], []
        for _ in range(self.times):
            steps: list[float] = []
            fits.append(self.fit(steps))
            first.append(min(steps, default=0.0))
        self.seconds, self.numbers = statistics.median(spent for spent, _ in fits[-3:]), fits[-1][1]
        self.begun = statistics.median(first[-3:])  # the first fit loads the kernels
        if any(not np.array_equal(self.numbers, numbers) for _, numbers in fits):
            raise ValueError("undisturbed fits differ")

    def fit(self, steps: list[float]) -> tuple[float, np.ndarray]:
        """Seconds and numbers of a fit; the times of its steps are noted."""
        start = time.perf_counter()
        model = self.kind.model(lambda _: steps.append(time.perf_counter() - start))
        model.fit(cc.scan_parquet(self.path), client=self.client)
        return time.perf_counter() - start, self.kind.numbers(model)

    def killed(self, rng: random.Random, *, late: bool) -> Kill:
        """Fit, and meanwhile kill a worker, if late amid the solver's steps; again where the fit was over."""
        begun = self.begun if late else 0.0
        for attempt in range(ATTEMPTS):
            self.ready()
            moment = begun + rng.uniform(0.0, self.seconds - begun) * 0.5**attempt
            kill = self.attempt(moment, rng)
            if kill is not None:
                return kill
        raise TimeoutError("every fit ended before the kill")

    def ready(self) -> None:
        """Wait until all workers are there, and have loaded the library."""
        while True:
            try:
                self.client.wait_for_workers(self.n_workers, timeout=120)
                self.client.run(_loaded)
            except OSError:  # one was killed just now, after the end of its fit
                time.sleep(0.1)
            else:
                return

    def attempt(self, moment: float, rng: random.Random) -> Kill | None:
        """Fit, and kill a worker at a moment; None if the fit had ended."""
        steps: list[float] = []
        before: list[int] = []
        process = rng.choice(_processes(self.client))

        def kill() -> None:
            before.append(len(steps))
            os.kill(process, signal.SIGKILL)

        timer = threading.Timer(moment, kill)
        timer.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of workers that were lost
            seconds, numbers = self.fit(steps)
        timer.cancel()
        timer.join()
        if not before or moment > seconds:
            return None
        apart = float(np.abs(numbers - self.numbers).max() / np.abs(self.numbers).max())
        return Kill(moment, before[0], seconds, apart)


def _loaded() -> None:
    """Import on a worker what a fit needs, as workers that run for long have done."""
    from concordant.solvers import product_kernels  # noqa: F401


def _processes(client: Any) -> list[int]:
    """Numbers of the workers' processes."""
    return sorted(client.run(os.getpid).values())


def _patient() -> AbstractContextManager[object]:
    """Let nannies go on after many deaths: one whose worker is missing 15 s after its last is let go."""
    import distributed  # noqa: F401  its own settings must be there before
    from dask import config

    patience: AbstractContextManager[object] = config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    return patience


def run(*, quick: bool) -> list[Table]:
    """Both tables."""
    kills = 1 if quick else 20
    rng, results = random.Random(0), {}
    for kind in KINDS[: 1 if quick else None]:
        size, options = (kind.size / 1000, {"row_group": 1 << 18}) if quick else (kind.size, {})
        with drawn(size, **options) as (path, _):
            for n_workers in kind.n_workers[: 1 if quick else None]:
                with _patient(), local_cluster(n_workers) as client:
                    trial = WorkerTrial(kind, client, path, n_workers, 1 if quick else 4)
                    turns = watched(range(kills), f"{kind.name}, {n_workers} workers")
                    done = [trial.killed(rng, late=turn % 2 == 1) for turn in turns]
                    results[kind.name, cc.scan_parquet(path).n_rows, n_workers] = trial.seconds, done
    return [_summary_table(results), _kill_table(results)]


Results = dict[tuple[str, int, int], tuple[float, list[Kill]]]


def _summary_table(results: Results) -> Table:
    """Count the models."""
    note = (
        f"{FEATURES} features, read from Parquet and held by worker processes of this machine, each with a "
        "nanny that starts another where one dies. In each fit one worker, drawn at random, is ended by "
        "`kill -9`: in every other fit at a moment drawn evenly from the length of an undisturbed one, in "
        "the others amid the steps of the solver (of trees, likewise from the whole length). Equal: the "
        "numbers (weights; of trees, scores of 1,000 items) have the bits of an undisturbed fit; near: they "
        "differ by "
        f"at most {ENOUGH:g} of the largest. A linear ranker goes on with the sums of the others; trees are "
        "all grown again. `cc.LinearRanker('ndcg@10', alpha=1e-6, tol=1e-12)`, "
        "`cc.BoostedRanker('ndcg@10', n_estimators=50)`."
    )
    columns = (
        "ranker", "documents", "workers", "kills", "amid steps", "equal models", "near",
        "largest difference", "undisturbed fit, s", "killed: median, s", "most, s",
    )  # fmt: skip
    table = Table("Workers killed during a fit", note, columns)
    for head, (seconds, kills) in results.items():
        apart, took = [kill.apart for kill in kills], [kill.seconds for kill in kills]
        equal, near = sum(share == 0.0 for share in apart), sum(share <= ENOUGH for share in apart)
        amid = sum(kill.gradients > 0 for kill in kills)
        times = seconds, statistics.median(took), max(took)
        table.rows.append((*head, len(kills), amid, equal, near, max(apart), *times))
    return table


def _kill_table(results: Results) -> Table:
    """List the kills."""
    note = (
        "The moment in shares of an undisturbed fit; steps of the solver before it (0: while the data were "
        "read and measured; trees do not tell); and how much longer the fit took than an undisturbed one."
    )
    columns = ("ranker", "workers", "moment", "steps before", "seconds longer", "largest difference")
    table = Table("Every kill", note, columns)
    for (name, _, n_workers), (seconds, kills) in results.items():
        for kill in sorted(kills, key=lambda kill: kill.moment):
            longer = kill.seconds - seconds
            table.rows.append((name, n_workers, kill.moment / seconds, kill.gradients, longer, kill.apart))
    return table
