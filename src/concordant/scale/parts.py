"""Data in parts: the jobs that solvers run on every part, with results summed in tree order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from concordant.scale.scan.scan import Part, PartRows, read_ahead
from concordant.types import FloatArray, IntArray

# Sums in tree order have the same bits wherever, and by however many workers, the parts are added up.

FAN = 8  # sums that are added by one task

Merge: TypeAlias = Callable[..., Any]
"""`merge(*values)`: a module-level function that merges left to right and does not change its arguments."""


def add_vectors(*vectors: FloatArray) -> FloatArray:
    """Add vectors from left to right."""
    return reduce(np.add, vectors)


class Tree:
    """Values merged in groups of eight, those in groups of eight, and so on, as they arrive.

    Parameters
    ----------
    merge
        Merges several values into a single value.
    on_add
        Called with the tree after each addition, so that its state can be saved; None: nothing is called.

    Attributes
    ----------
    done
        Number of parts merged so far, counted from the first part.
    counts, values
        Per level: how many values were merged since the last full group of eight, and their merged value.

    Examples
    --------
    >>> tree = Tree(add_vectors)
    >>> for k in range(20):
    ...     tree.add(np.array([float(k)]))
    >>> tree.whole(), tree.done, tree.counts
    (array([190.]), 20, [4, 2])
    """

    def __init__(self, merge: Merge, on_add: Callable[[Tree], object] | None = None) -> None:
        self.merge, self.on_add = merge, on_add
        self.done = 0
        self.counts: list[int] = []
        self.values: list[Any] = []

    def add(self, value: Any, level: int = 0, n_parts: int = 1) -> None:
        """Add the next part, or `n_parts` parts merged elsewhere, at a level that they may start."""
        self.done += n_parts
        while True:
            while level >= len(self.counts):
                self.counts.append(0)
                self.values.append(None)
            count, before = self.counts[level], self.values[level]
            value = self.merge(before, value) if count else value
            if count + 1 < FAN:
                break
            self.counts[level], self.values[level] = 0, None
            level += 1
        self.counts[level], self.values[level] = count + 1, value
        if self.on_add is not None:
            self.on_add(self)

    def level(self, highest: int) -> int:
        """Return the highest level, at most `highest`, at which parts merged elsewhere can be added next."""
        return max(level for level in range(highest + 1) if self.done % FAN**level == 0)

    def whole(self) -> Any:
        """Merge the remaining values, lowest level first, each as the last of the next; the tree stays."""
        left = [value for count, value in zip(self.counts, self.values, strict=True) if count]
        return reduce(lambda later, value: self.merge(value, later), left)


def tree_sum(vectors: Iterable[FloatArray]) -> FloatArray:
    """Sum vectors in tree order (groups of eight); only a few partial sums are kept in memory.

    >>> tree_sum(np.array([float(k)]) for k in range(20))
    array([190.])
    """
    tree = Tree(add_vectors)
    for vector in vectors:
        tree.add(vector)
    total: FloatArray = tree.whole()
    return total


Prepared = TypeVar("Prepared")

Job = Callable[..., Any]
"""`job(prepared, *args)`: a module-level function that may be sent to another process and run there twice."""
Prepare = Callable[[Part, PartRows, Any], Prepared]
"""`prepare(part, rows, spec)` builds what jobs are called with; `spec` is specific to this part."""


class Parts(Protocol):
    """Data in parts, on each of which jobs can be run.

    Results depend neither on where a part is nor on the number of workers: sums are taken in the order of the
    parts, by `tree_sum`.
    """

    @property
    def n_parts(self) -> int:
        """Number of parts."""

    def each(self, job: Job, *args: Any) -> list[Any]:
        """Run the job on every part; return its results in the order of the parts."""

    def total(self, job: Job, *args: Any) -> FloatArray:
        """Sum the job's results, arrays of equal shape."""

    def merge(self, tree: Tree, job: Job, *args: Any) -> Any:
        """Merge the job's results into the tree; parts that are already in the tree are skipped."""

    def share(self, value: Any) -> Any:
        """Return a large value in a form that is sent to the workers once, not with every job."""


class StreamedParts(Generic[Prepared]):
    """Parts that are read again at each pass, the next two on other threads.

    Parameters
    ----------
    parts
        Parts to read.
    prepare
        Builds from rows what jobs work on; runs on the reading threads.
    specs
        One value per part, passed to `prepare`.
    """

    def __init__(self, parts: Sequence[Part], prepare: Prepare[Prepared], specs: Sequence[Any]) -> None:
        self.parts, self.prepare, self.specs = parts, prepare, specs
        self.on_part_done: Callable[[Part], object] = lambda _: None  # called after each part

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.parts)

    def read(self, number: int) -> Prepared:
        """Read and prepare a part."""
        part = self.parts[number]
        return self.prepare(part, part.read(), self.specs[number])

    def iter_prepared(self, order: IntArray | None = None) -> Iterator[Prepared]:
        """Yield the prepared parts, in this order of part numbers if there is any."""
        numbers = range(self.n_parts) if order is None else order.tolist()
        readers = [partial(self.read, number) for number in numbers]
        for number, prepared in zip(numbers, read_ahead(readers), strict=True):
            yield prepared
            del prepared
            self.on_part_done(self.parts[number])

    def each(self, job: Job, *args: Any) -> list[Any]:
        """Run the job on every part; return its results in the order of the parts."""
        return [job(prepared, *args) for prepared in self.iter_prepared()]

    def share(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def total(self, job: Job, *args: Any) -> FloatArray:
        """Sum the job's results."""
        return tree_sum(job(prepared, *args) for prepared in self.iter_prepared())

    def merge(self, tree: Tree, job: Job, *args: Any) -> Any:
        """Merge the job's results, part after part."""
        for part in self.parts[: tree.done]:
            self.on_part_done(part)
        for prepared in self.iter_prepared(np.arange(tree.done, self.n_parts)):
            tree.add(job(prepared, *args))
        return tree.whole()


def _prepared_already(_part: Part, _rows: PartRows, spec: Prepared) -> Prepared:
    return spec


class MemoryParts(StreamedParts[Prepared]):
    """Prepared parts that stay in memory: data that fits there is a single part.

    Parameters
    ----------
    values
        What jobs work on.

    Examples
    --------
    >>> parts = MemoryParts([np.array([1.0, 2.0]), np.array([3.0])])
    >>> parts.each(len), parts.total(np.atleast_1d), parts.merge(Tree(add_vectors), np.atleast_1d)
    ([2, 1], array([4., 5.]), array([4., 5.]))
    """

    def __init__(self, values: Sequence[Prepared]) -> None:
        super().__init__((), _prepared_already, ())
        self.values = values

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.values)

    def iter_prepared(self, order: IntArray | None = None) -> Iterator[Prepared]:
        """Yield the parts, in this order of part numbers if there is any."""
        numbers = range(self.n_parts) if order is None else order.tolist()
        return (self.values[number] for number in numbers)
