"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError

__all__ = ["is_wanted", "shown"]


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
