"""Fair timing on a noisy machine: every candidate runs in every round; ratios are taken within rounds."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from statistics import median

from rich.console import Console
from rich.progress import track


@dataclass(frozen=True)
class Race:
    """Seconds of every candidate in every round; a round's noise hits all of them alike."""

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """Seconds of a usual round."""
        return median(self.seconds[name])

    def ratio(self, name: str, to: str) -> float:
        """Times that `name` takes longer than `to`: the median over rounds of the quotient."""
        return median(self.ratios(name, to))

    def ratios(self, name: str, to: str) -> list[float]:
        """The quotient in each round."""
        pairs = zip(self.seconds[name], self.seconds[to], strict=True)
        return [seconds / other for seconds, other in pairs]

    def nanoseconds(self, name: str, n: int) -> float:
        """Nanoseconds of a usual round for each of n items."""
        return self.median(name) / n * 1e9

    def goal(self, name: str, to: str, least: float) -> tuple[float, float, float, str]:
        """Median, lowest and highest ratio, and whether it is at least so large: "yes" in every round."""
        middle, rounds = self.ratio(name, to), self.ratios(name, to)
        reached = verdict(always=min(rounds) >= least, usually=middle >= least)
        return middle, min(rounds), max(rounds), reached


def verdict(*, always: bool, usually: bool) -> str:
    """Answer if a goal is reached in every round, in the median, or not."""
    return "yes" if always else "median only" if usually else "no"


def watched(steps: Iterable, title: str) -> Iterable:
    """The steps, with a progress bar on the error stream."""
    return track(list(steps), description=title, console=Console(stderr=True), transient=True)


def race(
    calls: Mapping[str, Callable[[], object]],
    *,
    title: str,
    rounds: int = 7,
    enough: float = 0.1,
    most: int = 10,
    warm_up: bool = True,
) -> Race:
    """Run every call once unmeasured, then in `rounds` rounds, each beginning with another call.

    A call's time in a round is its best of up to `most` runs that together take `enough` seconds.
    """
    names = list(calls)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for name in watched(names if warm_up else (), f"{title}: warming up"):
        calls[name]()  # compile, fill caches
    for number, turn in watched(product(range(rounds), range(len(names))), title):
        name = names[(turn + number) % len(names)]
        seconds[name].append(best(calls[name], enough, most))
    return Race(seconds)


def best(call: Callable[[], object], enough: float, most: int) -> float:
    """Shortest time of up to `most` runs; no further one once they took `enough` seconds together."""
    shortest, spent, runs = float("inf"), 0.0, 0
    while runs < most and (spent < enough or runs == 0):
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        shortest, spent, runs = min(shortest, took), spent + took, runs + 1
    return shortest


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Limit our kernels to so many threads."""
    before = os.environ.get("CONCORDANT_THREADS")
    os.environ["CONCORDANT_THREADS"] = str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CONCORDANT_THREADS"]
        else:
            os.environ["CONCORDANT_THREADS"] = before


def on_threads(number: int, call: Callable[[], object]) -> Callable[[], object]:
    """The call with so many threads of ours."""

    def limited() -> object:
        with threads(number):
            return call()

    return limited
