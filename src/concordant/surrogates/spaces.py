"""Work space for kernels, lent to one chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concordant.surrogates.kernels.long import Space

__all__ = ["Spaces"]


class Spaces:
    """Arrays for lists of up to `longest` items; kept, since new ones would cost as much as the work."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.free: list[Space] = []  # one for each thread that was at work

    @contextmanager
    def lent(self) -> Iterator[Space]:
        """Lend arrays to one chunk."""
        from concordant.surrogates.kernels.long import workspace

        try:
            space = self.free.pop()
        except IndexError:  # all are in use
            space = workspace(self.longest)
        yield space
        self.free.append(space)
