"""Parts: what a solver asks of data that is not in one piece; and such data, read from disk at each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from concordant.solvers.partitioned.tree import Tree, tree_sum
from concordant.supervision.scans.prefetch import ahead
from concordant.supervision.scans.scan import Part, PartRows
from concordant.types import FloatArray, IntArray

__all__ = ["Job", "Parts", "Prepare", "StreamedParts"]

Held = TypeVar("Held")

Job = Callable[..., Any]
"""`job(held, *given)`, a function of a module: it may be sent to another process, and run there twice."""
Prepare = Callable[[Part, PartRows, Any], Held]
"""`prepare(part, rows, own)` gives what jobs are called with; `own` is what this part alone is told."""


class Parts(Protocol):
    """Data in parts, on each of which a job can be done.

    Results do not depend on where a part is, nor on how many work: sums are taken in the order of the parts,
    by `tree_sum`.
    """

    @property
    def n_parts(self) -> int:
        """How many there are."""

    def each(self, job: Job, *given: Any) -> list[Any]:
        """Do the job on every part; what it gives, in their order."""

    def total(self, job: Job, *given: Any) -> FloatArray:
        """Add up what the job gives: arrays of one shape."""

    def merged(self, tree: Tree, job: Job, *given: Any) -> Any:
        """Merge what the job gives, whatever it is; parts that the tree has already are left out."""

    def shared(self, value: Any) -> Any:
        """Give something large in a form in which jobs can be given it: sent once, not with every job."""


class StreamedParts(Generic[Held]):
    """Parts that are read anew at each pass, the next two on other threads.

    Parameters
    ----------
    parts
        What is read.
    prepare
        What makes of rows that which jobs work on; on those threads, too.
    own
        What each part alone is told.
    """

    def __init__(self, parts: Sequence[Part], prepare: Prepare[Held], own: Sequence[Any]) -> None:
        self.parts, self.prepare, self.own = parts, prepare, own
        self.told: Callable[[Part], object] = lambda _: None  # of each part that is done

    @property
    def n_parts(self) -> int:
        """How many there are."""
        return len(self.parts)

    def read(self, number: int) -> Held:
        """Read and prepare one of them."""
        part = self.parts[number]
        return self.prepare(part, part.read(), self.own[number])

    def held(self, order: IntArray | None = None) -> Iterator[Held]:
        """Give one after the other; in this order, if there is one."""
        numbers = range(self.n_parts) if order is None else order.tolist()
        readers = [partial(self.read, number) for number in numbers]
        for number, found in zip(numbers, ahead(readers), strict=True):
            yield found
            del found
            self.told(self.parts[number])

    def each(self, job: Job, *given: Any) -> list[Any]:
        """Do the job on every part; what it gives, in their order."""
        return [job(held, *given) for held in self.held()]

    def shared(self, value: Any) -> Any:
        """Give it as it is."""
        return value

    def total(self, job: Job, *given: Any) -> FloatArray:
        """Add up what the job gives."""
        return tree_sum(job(held, *given) for held in self.held())

    def merged(self, tree: Tree, job: Job, *given: Any) -> Any:
        """Merge what the job gives, part after part."""
        for part in self.parts[: tree.done]:
            self.told(part)
        for held in self.held(np.arange(tree.done, self.n_parts)):
            tree.add(job(held, *given))
        return tree.whole()
