"""Progress bars on standard error for long fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.solvers import Step
from concordant.solvers.solution import Callback

__all__ = ["counted", "is_wanted", "shown", "watched"]

LEAST = 1e-300  # whose logarithm is finite


@contextmanager
def shown(*columns: Any) -> Iterator[Any]:
    """Give a bar on standard error; what others print stays where they print it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bar:
        yield bar


def is_wanted(verbose: object) -> bool:
    """Whether a bar is to be shown; what is neither a truth value nor a whole number is refused."""
    if not isinstance(verbose, (Integral, np.bool_)):
        raise ParameterError("verbose", verbose, "True, False or a whole number")
    return bool(verbose)


@contextmanager
def watched(title: str, verbose: int, callback: Callback | None) -> Iterator[Callback | None]:
    """Give a callback that moves a bar from the first excess to the goal, and then asks the caller's own."""
    if not is_wanted(verbose):
        yield callback
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    told_column = TextColumn("{task.fields[told]}")
    with shown(TextColumn("{task.description}"), BarColumn(), told_column, TimeElapsedColumn()) as bar:
        task = bar.add_task(title, total=1.0, told="")
        first: list[float] = []

        def told(step: Step) -> object:
            first.append(step.excess)
            text = f"step {step.iteration}: {step.value:.6g}, at most about {step.excess:.1e} to go"
            bar.update(task, completed=way_gone(first[0], step.excess, step.goal), told=text)
            return callback(step) if callback is not None else None

        yield told


def way_gone(first: float, excess: float, goal: float) -> float:
    """Share of the way from the first excess to the goal, counted in digits.

    >>> way_gone(1.0, 1e-3, 1e-6), way_gone(1.0, 2.0, 1e-6), way_gone(1e-7, 1e-7, 1e-6)
    (0.5, 0.0, 1.0)
    """
    if excess <= goal:
        return 1.0
    whole, gone = (math.log(max(first, LEAST) / max(end, LEAST)) for end in (goal, excess))
    return min(max(gone / whole, 0.0), 1.0) if 0.0 < whole < math.inf else 0.0


@contextmanager
def counted(total: int, verbose: int) -> Iterator[Callable[[str], None]]:
    """Give a function that counts one fit more."""
    if not is_wanted(verbose):
        yield lambda _: None
        return
    with shown() as bar:
        task = bar.add_task("fitting", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)
