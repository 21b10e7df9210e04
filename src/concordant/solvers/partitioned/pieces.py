"""Pieces of Dask collections: the partitions of frames, the chunks of arrays that are cut by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from concordant.solvers.partitioned.cluster import is_collection, naming_faults

__all__ = ["Named", "array_of", "by_rows", "is_cut", "pieces"]


@dataclass(frozen=True)
class Named:
    """A piece that workers have the rows of, by its number; what errors call it."""

    number: int
    kind: str = "partition"
    n_rows: int = 0
    nbytes: int = 0

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.kind} {self.number}"

    def where(self, row: int) -> tuple[str, int]:
        """Rows are counted in the piece."""
        return self.name, row

    def read(self) -> Any:
        """Nobody asks: workers have the rows."""
        raise NotImplementedError


def is_cut(value: Any) -> bool:
    """Whether this is a collection in pieces: an array, a frame or a series, and not a `Delayed`."""
    return is_collection(value) and hasattr(type(value), "npartitions")  # a Delayed itself has any name


def by_rows(collection: Any) -> Any:
    """Give a collection that is cut by rows alone."""
    if hasattr(collection, "chunks") and collection.ndim > 1:
        return collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    return collection


def pieces(client: Any, collection: Any) -> list[Any]:
    """Give the futures of a collection's pieces: of a frame, a series, or an array cut by rows alone."""
    # Arrays that have tasks in common, each optimised by itself, would have others under the same keys.
    delayed = by_rows(collection).to_delayed(optimize_graph=hasattr(collection, "divisions"))
    one_by_one = delayed.ravel().tolist() if hasattr(delayed, "ravel") else list(delayed)
    with naming_faults():
        found: list[Any] = client.compute(one_by_one)
    return found


def array_of(chunks: Sequence[Any], shapes: Sequence[tuple[float, ...]]) -> Any:
    """Give futures of arrays as one Dask array, cut by rows alone."""
    from dask import array, delayed

    pieces = zip(chunks, shapes, strict=True)
    return array.concatenate([array.from_delayed(delayed(one), shape, dtype=float) for one, shape in pieces])
