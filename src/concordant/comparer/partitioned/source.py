"""Where parts of pairs come from: Dask arrays, whose chunks workers hold, or a scan of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.comparer.data import checked_rows, no_outcomes
from concordant.comparer.partitioned.part import Told, prepared
from concordant.comparer.partitioned.training import PairSource
from concordant.exceptions import FeaturesError, LabelError, ParameterError, ShapeError
from concordant.solvers.partitioned.cluster import checked_client, submitted
from concordant.solvers.partitioned.cluster_parts import ClusterParts
from concordant.solvers.partitioned.margin_sgd import ON_CLUSTER
from concordant.solvers.partitioned.parts import Parts, StreamedParts
from concordant.solvers.partitioned.pieces import Named, is_cut, pieces
from concordant.supervision.scans.pair_part import PairRows
from concordant.supervision.scans.pairs import PairScan
from concordant.supervision.scans.scan import locating
from concordant.types import FloatArray

__all__ = ["ArraySource", "source_of"]

CHUNK = "chunk"  # what a piece of an array is called


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Chunks that workers have: the client, futures of each chunk's `PairRows`, and how many there are."""

    client: Any
    rows: list[Any]
    n_parts: int

    @classmethod
    def of(cls, pairs: Any, y: Any, sample_weight: Any, client: Any) -> ArraySource:
        """Have the chunks checked where they are; arrays of other chunks than the pairs are refused."""
        if y is None:
            raise no_outcomes()
        if not hasattr(type(pairs), "chunks"):
            raise FeaturesError("pairs", f"it is a {type(pairs).__name__}, and not a Dask array")
        if pairs.ndim != 3 or pairs.shape[1] != 2:
            expected = "(n, 2, n_features): the features of left and right"
            raise ShapeError("pairs", tuple(pairs.shape), expected)
        given = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
        for name, value in given.items():
            check_alike(name, value, pairs)
        apart = {name: pieces(client, value) for name, value in given.items()}
        rows = [
            submitted(client, chunk_rows, number, one, {name: own[number] for name, own in apart.items()})
            for number, one in enumerate(pieces(client, pairs))
        ]
        return cls(client, rows, len(rows))

    def parts(self, own: Sequence[Told]) -> Parts:
        """Give the chunks, prepared; once, since workers need not keep what they were made of."""
        chunks, rows = [Named(number, CHUNK) for number in range(self.n_parts)], [*self.rows]
        self.rows.clear()
        return ClusterParts(self.client, chunks, prepared, own, rows)


@dataclass(frozen=True, eq=False)
class ScanSource:
    """A scan that this process reads at each pass; or, with futures of the parts, that workers hold."""

    scan: PairScan
    client: Any = None
    rows: list[Any] | None = None

    @classmethod
    def of(cls, scan: PairScan, client: Any) -> ScanSource:
        """Have the parts read by the workers of a client, if there is one."""
        if client is None:
            return cls(scan)
        return cls(scan, client, [submitted(client, read, part) for part in scan.parts])

    @property
    def n_parts(self) -> int:
        """How many there are."""
        return len(self.scan.parts)

    def parts(self, own: Sequence[Told]) -> Parts:
        """Give the parts, prepared; once, as of `ArraySource`."""
        if self.rows is None:
            return StreamedParts(self.scan.parts, prepared, own)
        rows = [*self.rows]
        self.rows.clear()
        return ClusterParts(self.client, self.scan.parts, prepared, own, rows)


def read(part: Any) -> PairRows:
    """Read a part; on a worker."""
    rows: PairRows = part.read()
    return rows


def source_of(pairs: Any, y: Any, sample_weight: Any, client: Any, solver: str) -> PairSource:
    """Give pairs in parts as such."""
    scanned = isinstance(pairs, PairScan)
    if solver == "sgd" and not (scanned and client is None):
        raise ParameterError("solver", "sgd", ON_CLUSTER)
    if not scanned:
        return ArraySource.of(pairs, y, sample_weight, checked_client(client))
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ParameterError(name, type(value).__name__, "left out: a scan has its own columns")
    return ScanSource.of(pairs, None if client is None else checked_client(client))


def check_alike(name: str, value: Any, pairs: Any) -> None:
    """Refuse a column that is not cut as the pairs are."""
    if not is_cut(value):
        hint = f"give {name} as a Dask array of the same chunks."
        raise LabelError(f"pairs is a Dask array, and {name} is a {type(value).__name__}", hint)
    if value.npartitions != pairs.numblocks[0]:
        hint = "rechunk one like the other."
        raise LabelError(f"{name} has {value.npartitions} chunks, pairs has {pairs.numblocks[0]}", hint)


def chunk_rows(number: int, pairs: FloatArray, columns: Mapping[str, Any]) -> PairRows:
    """Check the pairs of a chunk, on a worker; there may be none."""
    if not len(pairs):
        nothing = np.empty(0)
        return PairRows(np.empty((0, *pairs.shape[1:])), nothing.astype(np.int64), nothing)
    with locating(Named(number, CHUNK)):
        return PairRows(*checked_rows(pairs, columns["y"], columns.get("sample_weight")))
