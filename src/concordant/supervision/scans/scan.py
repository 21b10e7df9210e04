"""Scan: a set of queries that is read part by part, each part whole queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concordant.exceptions import ConcordantError, ParameterError, RowError
from concordant.supervision.queries import Queries
from concordant.supervision.scans.index import Index
from concordant.supervision.scans.prefetch import ahead
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["IN_FLIGHT", "Part", "PartRows", "Scan", "check_memory", "locating", "read_size", "written_size"]

IN_FLIGHT = 6  # parts' worth of memory: one worked on, two read ahead, and what decoding these takes
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one part, checked; rows of each query adjacent, queries by ascending id.

    Attributes
    ----------
    X
        Features, float32 or float64.
    y
        One grade per row.
    queries
        The queries of the rows, which need not be moved.
    sample_weight, query_weight
        One number per row; None: all are 1.
    docid
        Document ids; None: there are none, or nobody asked for them.
    moved
        Row here -> row as it was read; None: the same.
    """

    X: Any
    y: FloatArray
    queries: Queries
    sample_weight: FloatArray | None = None
    query_weight: FloatArray | None = None
    docid: NDArray[Any] | None = None
    moved: IntArray | None = None

    @classmethod
    def of(cls, X: Any, y: FloatArray, qid: Any, **columns: Any) -> PartRows:
        """Sort checked rows by query; `columns`: sample_weight, query_weight and docid, where there are any.

        >>> rows = PartRows.of(np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0]), ["b", "a", "b"])
        >>> rows.y.tolist(), rows.queries.ids.tolist()
        ([1.0, 0.0, 2.0], ['a', 'b'])
        """
        queries = Queries.of(qid, X.shape[0], "X")
        moved = {name: None if one is None else queries.gather(one) for name, one in columns.items()}
        own = Queries(queries.offsets, queries.ids)
        return cls(queries.gather(X), queries.gather(y), own, **moved, moved=queries.moved)

    def __sizeof__(self) -> int:
        # By which Dask decides what moves to what: it does not look inside.
        columns = (self.X, self.y, self.sample_weight, self.query_weight, self.docid, self.moved)
        return sum(int(one.nbytes) for one in columns if one is not None)


class Part(Protocol):
    """Whole queries that are read together; small, so that it can be sent to where it is read.

    Attributes
    ----------
    name
        Where they are, for messages: "train.parquet, row group 3".
    n_rows, nbytes
        How many rows, and how much memory they take while they are worked on.
    """

    @property
    def name(self) -> str:
        """Where the rows are."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    @property
    def nbytes(self) -> int:
        """Memory that the rows take while they are worked on."""

    def read(self) -> PartRows:
        """Give the rows; a bad one is refused by file, row group and row."""

    def where(self, row: int) -> tuple[str, int]:
        """Give the piece of the data in which a row that was read stands, and its number there, from 0."""


@contextmanager
def locating(part: Part, rows: PartRows | None = None) -> Iterator[None]:
    """Errors about a row of the part name its file, its row group and its row there; others the part."""
    try:
        yield
    except RowError as error:
        if error.row is None:
            error.args = (f"{part.name}: {error}",)
        else:
            row = error.row if rows is None or rows.moved is None else int(rows.moved[error.row])
            error.within(*part.where(row))
        raise
    except ConcordantError as error:
        error.args = (f"{part.name}: {error}",)
        raise


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """A set of queries on disk; `cc.scan_parquet` and `cc.scan_letor` make one.

    Attributes
    ----------
    parts
        What is read together; no query is cut.
    index
        The queries of all parts.
    n_features, feature_names
        Of X; names are None where the files have none.
    memory
        Bytes of rows that may be in memory at a time.
    weighted
        Whether rows have a `sample_weight`.
    """

    parts: tuple[Part, ...]
    index: Index
    n_features: int
    feature_names: tuple[str, ...] | None
    memory: int
    weighted: bool = False

    def __post_init__(self) -> None:
        check_memory(self.parts, self.memory, "cc.write_parquet(..., row_group=...) writes smaller ones")

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return self.index.n_rows

    @property
    def n_queries(self) -> int:
        """Queries of all parts."""
        return self.index.n_queries

    def __iter__(self) -> Iterator[PartRows]:
        """Read part after part, document ids too, the next two on other threads while one is worked on."""
        return ahead([part.read for part in self.with_docid().parts])

    def with_docid(self) -> Scan:
        """Give the scan whose parts read document ids too, where there are any; a fit does not need them."""
        return replace(self, parts=tuple(map(reading_docid, self.parts)))

    def __repr__(self) -> str:
        size = f"n_rows={self.n_rows:,}, n_features={self.n_features:,}, n_queries={self.n_queries:,}"
        return f"Scan({size}, n_parts={len(self.parts):,}, memory={written_size(self.memory)})"


def reading_docid(part: Any) -> Any:
    """Give a part that reads document ids too; those that are no files have them anyway."""
    return replace(part, documents=True) if hasattr(part, "documents") else part


def check_memory(parts: Sequence[Part], memory: int, otherwise: str) -> None:
    """Refuse parts that take more memory than there may be; `otherwise` says what else can be done."""
    widest = max(parts, key=lambda part: part.nbytes)
    if IN_FLIGHT * widest.nbytes > memory:
        least = written_size(IN_FLIGHT * widest.nbytes, up=True)
        wanted = f"at least {least}, {IN_FLIGHT} times {widest.name}"
        raise ParameterError("memory", written_size(memory), f"{wanted}; or {otherwise}")


def read_size(value: object, name: str = "memory") -> int:
    """Give a number of bytes, given as one or as text.

    >>> read_size("1.5 GiB"), read_size(1000)
    (1610612736, 1000)
    """
    text = str(value).strip().lower()
    digits = text.rstrip("bgikm ")
    try:
        size = float(digits) * UNITS[text[len(digits) :].strip()]
    except (KeyError, ValueError) as error:
        raise ParameterError(name, value, "a number of bytes, such as 500_000_000 or '2 GiB'") from error
    if isinstance(value, bool) or not 1 <= size < 2**63:
        raise ParameterError(name, value, "a number of bytes > 0")
    return int(size)


def written_size(size: float, *, up: bool = False) -> str:
    """Give bytes as a person reads them; rounded up, where it says how many are enough.

    >>> written_size(3 * 2**29), written_size(10), written_size(1025), written_size(1025, up=True)
    ('1.5 GiB', '10 bytes', '1 KiB', '1.1 KiB')
    """
    for unit in ("GiB", "MiB", "KiB"):
        if size >= UNITS[unit.lower()]:
            tenths = 10 * size / UNITS[unit.lower()]
            return f"{(np.ceil(tenths) if up else np.round(tenths)) / 10:g} {unit}"
    return f"{size:g} bytes"
