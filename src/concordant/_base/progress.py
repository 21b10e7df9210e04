"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def open_progress_bar(*columns: Any) -> Iterator[Any]:
    """Open a progress bar on standard error; other output keeps its destination."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bar:
        yield bar
