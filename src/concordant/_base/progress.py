"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError


@contextmanager
def open_progress_bar(*columns: Any) -> Iterator[Any]:
    """Open a progress bar on standard error; other output keeps its destination."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bar:
        yield bar


def is_verbose(verbose: object) -> bool:
    """True if a progress bar should be shown; raise unless `verbose` is a boolean or a whole number."""
    if not isinstance(verbose, (Integral, np.bool_)):
        raise ParameterError("verbose", verbose, "True, False or an integer")
    return bool(verbose)
