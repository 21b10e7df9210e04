"""A progress bar on standard error for long fits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from concordant.solvers import Step
from concordant.solvers.solution import Callback

__all__ = ["watched"]


@contextmanager
def watched(title: str, verbose: int, callback: Callback | None) -> Iterator[Callback | None]:
    """Give a callback that moves a bar from the first excess to the goal, and then asks the caller's own."""
    if not verbose:
        yield callback
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=1.0, told="")
        first: list[float] = []

        def told(step: Step) -> object:
            first.append(step.excess)
            whole = math.log(max(first[0], 1e-300) / max(step.goal, 1e-300))
            gone = math.log(max(first[0], 1e-300) / max(step.excess, 1e-300))
            text = f"step {step.iteration}: {step.value:.6g}, at most about {step.excess:.1e} to go"
            bar.update(task, completed=min(max(gone / whole, 0.0), 1.0) if whole > 0 else 1.0, told=text)
            return callback(step) if callback is not None else None

        yield told
