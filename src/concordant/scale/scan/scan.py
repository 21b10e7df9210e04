"""Scans: sets of queries that are read part by part, each part whole queries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from concordant.data.queries import Queries
from concordant.exceptions import ConcordantError, ParameterError, RowError
from concordant.scale.scan.index import Index
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Reading ahead: the next parts are read on other threads while the current part is processed.

Read = TypeVar("Read")

# A single reader would keep a linear ranker waiting: decoding a part takes longer than its gradient.
READERS = 2


def read_ahead(readers: Sequence[Callable[[], Read]]) -> Iterator[Read]:
    """Run two readers at a time while the caller works on an earlier result; yield results in order.

    Three results are alive at a time. An exception of a reader is raised when its turn comes.

    >>> list(read_ahead([lambda: 1, lambda: 2]))
    [1, 2]
    """
    pool = ThreadPoolExecutor(READERS, thread_name_prefix="concordant-read")
    remaining, futures = iter(readers), deque[Future[Read]]()
    try:
        futures.extend(pool.submit(reader) for reader in islice(remaining, READERS))
        while futures:
            result = futures.popleft().result()
            futures.extend(pool.submit(reader) for reader in islice(remaining, 1))
            yield result
            del result  # before waiting for the next: else four would be alive
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


IN_FLIGHT = 6  # parts' worth of memory: one processed, two read ahead, and what decoding these takes
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True, eq=False)
class PartRows:
    """Checked rows of a part; rows of each query are adjacent, queries ascend by id.

    Attributes
    ----------
    X
        Features, float32 or float64.
    y
        One grade per row.
    queries
        Queries of the rows, which are sorted already.
    sample_weight, query_weight
        One number per row; None: all are 1.
    docid
        Document ids; None: there are none, or they were not requested.
    moved
        Row here -> row as read; None: the same.
    """

    X: Any
    y: FloatArray
    queries: Queries
    sample_weight: FloatArray | None = None
    query_weight: FloatArray | None = None
    docid: NDArray[Any] | None = None
    moved: IntArray | None = None

    @classmethod
    def from_rows(cls, X: Any, y: FloatArray, qid: Any, **columns: Any) -> PartRows:
        """Sort checked rows by query; `columns`: sample_weight, query_weight and docid, if any.

        >>> rows = PartRows.from_rows(np.eye(3, 1), np.array([0.0, 1.0, 2.0]), ["b", "a", "b"])
        >>> rows.y.tolist(), rows.queries.ids.tolist()
        ([1.0, 0.0, 2.0], ['a', 'b'])
        """
        queries = Queries.for_rows(qid, X.shape[0], "X")
        moved = {name: None if column is None else queries.gather(column) for name, column in columns.items()}
        sorted_queries = Queries(queries.offsets, queries.ids)
        return cls(queries.gather(X), queries.gather(y), sorted_queries, **moved, moved=queries.moved)

    def __sizeof__(self) -> int:
        # Dask moves small results to large ones by this size; it does not look inside.
        columns = (self.X, self.y, self.sample_weight, self.query_weight, self.docid, self.moved)
        return sum(int(column.nbytes) for column in columns if column is not None)


class Part(Protocol):
    """Whole queries that are read together; small enough to be sent to where they are read."""

    @property
    def name(self) -> str:
        """Name in messages, such as "train.parquet, row group 3"."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def nbytes(self) -> int:
        """Memory that the rows take while they are processed, in bytes."""

    def read(self) -> PartRows:
        """Read and check the rows; raise at a bad row, named by file, row group and row."""

    def where(self, row: int) -> tuple[str, int]:
        """Return the name of the piece that holds a row as read, and the row's number there, from 0."""


@contextmanager
def locating(part: Part, rows: PartRows | None = None) -> Iterator[None]:
    """Add file, row group and row to errors about a row of the part, and the part's name to other errors."""
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
    """Queries on disk, read part by part; built by `cc.scan_parquet` and `cc.scan_letor`.

    Attributes
    ----------
    parts
        Rows that are read together; no query is cut.
    index
        Queries of all parts.
    n_features, feature_names
        Number and names of the features; names are None if the files have none.
    memory
        Bytes that rows may take in memory at a time.
    weighted
        True if rows have a `sample_weight`.
    in_parts
        True; lower layers recognize a scan by it.
    """

    in_parts: ClassVar[bool] = True

    parts: tuple[Part, ...]
    index: Index
    n_features: int
    feature_names: tuple[str, ...] | None
    memory: int
    weighted: bool = False

    def __post_init__(self) -> None:
        check_memory(
            self.parts, self.memory, "cc.write_parquet(..., row_group=...) writes smaller row groups."
        )

    @property
    def n_rows(self) -> int:
        """Number of rows in all parts."""
        return self.index.n_rows

    @property
    def n_queries(self) -> int:
        """Number of queries in all parts."""
        return self.index.n_queries

    def __iter__(self) -> Iterator[PartRows]:
        """Read the parts in order, with document ids; the next two are read on other threads meanwhile."""
        return read_ahead([part.read for part in self.with_docid().parts])

    def with_docid(self) -> Scan:
        """Return the scan with parts that read document ids too, if there are any; fits do not need them."""
        return replace(self, parts=tuple(map(_with_docid, self.parts)))

    def __repr__(self) -> str:
        size = f"n_rows={self.n_rows:,}, n_features={self.n_features:,}, n_queries={self.n_queries:,}"
        return f"Scan({size}, n_parts={len(self.parts):,}, memory={format_size(self.memory)})"


def _with_docid(part: Any) -> Any:
    """Return the part reading document ids too; parts that are not files have them anyway."""
    return replace(part, documents=True) if hasattr(part, "documents") else part


def scan_column_error(name: str) -> ParameterError:
    """Build the error for a column passed along with a scan."""
    return ParameterError.because(
        f"{name} was given, but a scan already names its columns. Leave {name} out."
    )


def check_memory(parts: Sequence[Part], memory: int, hint: str) -> None:
    """Raise if a part takes too much memory."""
    widest = max(parts, key=lambda part: part.nbytes)
    if IN_FLIGHT * widest.nbytes > memory:
        least = format_size(IN_FLIGHT * widest.nbytes, up=True)
        allowed = f"at least {least}, {IN_FLIGHT} times {widest.name}"
        raise ParameterError("memory", format_size(memory), allowed, hint=hint)


def parse_size(value: object, name: str = "memory") -> int:
    """Parse a number of bytes, passed as a number or as text.

    >>> parse_size("1.5 GiB"), parse_size(1000)
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


def format_size(size: float, *, up: bool = False) -> str:
    """Format bytes for people; round up for a size that must be enough.

    >>> format_size(3 * 2**29), format_size(10), format_size(1025), format_size(1025, up=True)
    ('1.5 GiB', '10 bytes', '1 KiB', '1.1 KiB')
    """
    for unit in ("GiB", "MiB", "KiB"):
        if size >= UNITS[unit.lower()]:
            tenths = 10 * size / UNITS[unit.lower()]
            return f"{(np.ceil(tenths) if up else np.round(tenths)) / 10:g} {unit}"
    return f"{size:g} bytes"
