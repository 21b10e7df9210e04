"""Progress bars on standard error for long fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from concordant._progress import is_wanted, shown
from concordant.solvers import Step
from concordant.solvers.partitioned.parts import Parts, StreamedParts
from concordant.solvers.solution import Callback
from concordant.supervision.scans.scan import Part

__all__ = ["counted", "is_wanted", "passing", "shown", "watched"]

LEAST = 1e-300  # whose logarithm is finite


@contextmanager
def passing(title: str, verbose: int, parts: Parts) -> Iterator[None]:
    """Show a bar while parts are read, once."""
    if not (is_wanted(verbose) and isinstance(parts, StreamedParts)):
        yield
        return
    with shown() as bar, following(bar, title, parts):
        yield


@contextmanager
def following(bar: Any, title: str, parts: Parts | None) -> Iterator[None]:
    """Move a task of a bar from the first part to the last, pass after pass; of a cluster there is none."""
    if not isinstance(parts, StreamedParts):
        yield
        return
    total = sum(part.n_rows for part in parts.parts)
    task, done = bar.add_task(title, total=total, told=""), 0

    def told(part: Part) -> None:
        nonlocal done
        done = (done if done < total else 0) + part.n_rows
        bar.update(task, completed=done)

    before, parts.told = parts.told, told
    try:
        yield
    finally:
        parts.told = before


@contextmanager
def watched(
    title: str, verbose: int, callback: Callback | None, parts: Parts | None = None
) -> Iterator[Callback | None]:
    """Give a callback that moves a bar from the first excess to the goal, and then asks the caller's own.

    `parts`: data that is read at each pass, which has a bar of its own.
    """
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

        with following(bar, "reading", parts):
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
