"""Progress bars on standard error for long fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from concordant._base.progress import open_progress_bar
from concordant._base.validate import is_verbose
from concordant.scale.parts import Parts, StreamedParts
from concordant.scale.scan.scan import Part
from concordant.solvers import Step
from concordant.solvers.solution import Callback

LEAST = 1e-300  # smallest excess: its logarithm is finite


@contextmanager
def show_pass(title: str, verbose: int, parts: Parts) -> Iterator[None]:
    """Show a progress bar while parts are read, once."""
    if not (is_verbose(verbose) and isinstance(parts, StreamedParts)):
        yield
        return
    with open_progress_bar() as bar, _follow_parts(bar, title, parts):
        yield


@contextmanager
def _follow_parts(bar: Any, title: str, parts: Parts | None) -> Iterator[None]:
    """Advance a progress bar with the parts read, pass after pass; a cluster has no such bar."""
    if not isinstance(parts, StreamedParts):
        yield
        return
    total = sum(part.n_rows for part in parts.parts)
    task, done = bar.add_task(title, total=total, status=""), 0

    def advance(part: Part) -> None:
        nonlocal done
        done = (done if done < total else 0) + part.n_rows
        bar.update(task, completed=done)

    before, parts.on_part_done = parts.on_part_done, advance
    try:
        yield
    finally:
        parts.on_part_done = before


@contextmanager
def open_status_bar(title: str, total: float) -> Iterator[tuple[Any, Callable[[float, str], None]]]:
    """Open a progress bar with a text behind it; yield it, and a function that updates both."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}")
    with open_progress_bar(*columns, TimeElapsedColumn()) as bar:
        task = bar.add_task(title, total=total, status="")
        yield bar, lambda completed, status: bar.update(task, completed=completed, status=status)


@contextmanager
def show_steps(title: str, callback: Callback | None, parts: Parts | None = None) -> Iterator[Callback]:
    """Yield a callback that moves a bar from the first excess to the goal, and calls the caller's callback.

    `parts`: data that is read at each pass, with a separate bar.
    """
    first: list[float] = []
    with open_status_bar(title, 1.0) as (bar, update):

        def show_step(step: Step) -> object:
            first.append(step.excess)
            text = f"step {step.iteration}: {step.value:.6g}, at most about {step.excess:.1e} to go"
            update(_progress_share(first[0], step.excess, step.goal), text)
            return callback(step) if callback is not None else None

        with _follow_parts(bar, "reading", parts):
            yield show_step


def _progress_share(first: float, excess: float, goal: float) -> float:
    """Share of the way from the first excess to the goal, in orders of magnitude.

    >>> _progress_share(1.0, 1e-3, 1e-6), _progress_share(1.0, 2.0, 1e-6), _progress_share(1e-7, 1e-7, 1e-6)
    (0.5, 0.0, 1.0)
    """
    if excess <= goal:
        return 1.0
    whole, gone = (math.log(max(first, LEAST) / max(end, LEAST)) for end in (goal, excess))
    return min(max(gone / whole, 0.0), 1.0) if 0.0 < whole < math.inf else 0.0


@contextmanager
def show_count(total: int, verbose: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar of `total` steps, with a text."""
    if not is_verbose(verbose):
        yield lambda _: None
        return
    with open_progress_bar() as bar:
        task = bar.add_task("fitting", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)
