"""ParquetPart: row groups of a Parquet file that are read together."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ConcordantError
from concordant.supervision.columns import check_grades, check_nonnegative
from concordant.supervision.queries import Queries
from concordant.supervision.readers.roles import Roles
from concordant.supervision.readers.tables import (
    _columns,
    _document_ids,
    _numbers,
    _query_ids,
    whole_ids,
)
from concordant.supervision.scans.conversion.counts import run_starts
from concordant.supervision.scans.index import Piece
from concordant.supervision.scans.row_groups import RowGroups, opened
from concordant.supervision.scans.scan import PartRows
from concordant.supervision.scans.sizes import row_bytes
from concordant.supervision.weights import agreed_weights
from concordant.types import IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ParquetPart", "mark_of", "matrix", "opened"]

FILLED_AT_ONCE = 16384  # rows


@dataclass(frozen=True)
class ParquetPart(RowGroups):
    """Row groups of which each row is a document.

    Attributes
    ----------
    path, shown, groups, stamp
        As of `RowGroups`.
    roles
        What the columns are.
    dtype
        Of X: "float32" or "float64".
    whole
        Whether the ids are text, all of it whole numbers, and so read as numbers.
    mark
        What the ids and sizes of the queries must hash to; None: unknown.
    documents, docid_bytes
        Whether document ids are read, and the bytes that one takes, about.
    by_columns
        Whether X shall lie in memory column after column, as it does in the file: that takes less time.
    """

    roles: Roles
    dtype: str
    whole: bool = False
    mark: int | None = None
    documents: bool = False
    docid_bytes: int = 0
    by_columns: bool = False

    @property
    def nbytes(self) -> int:
        """Memory that the rows take while they are worked on."""
        roles, documents = self.roles, self.docid_bytes if self.documents else 0
        return self.n_rows * (row_bytes(len(roles.features), self.dtype, len(roles.weights)) + documents)

    @property
    def wanted(self) -> Roles:
        """The columns that are read."""
        return self.roles if self.documents else replace(self.roles, docid=None)

    def read(self) -> PartRows:
        """Give the rows; a bad one is refused by file, row group and row."""
        with self.located("read"):
            table = self.table(self.wanted.named)
            queries = self.queries(table)
            if self.mark not in (None, mark_of(queries.ids, queries.sizes)):
                raise self.changed("it has other queries")
            others, X = self.others(table), self.features(table)
            del table  # before the rows are sorted, which may take as much again
            return PartRows.of(X, qid=queries, **others)

    def others(self, table: Any) -> dict[str, Any]:
        """Give all columns but the ids of queries and the features, checked."""
        roles, (column, _) = self.wanted, _columns(table)
        found: dict[str, Any] = {"y": check_grades(column(roles.grade), f"column {roles.grade!r}")}
        for role, name in (("sample_weight", roles.sample_weight), ("query_weight", roles.query_weight)):
            found[role] = None if name is None else check_nonnegative(column(name), f"column {name!r}", "row")
        found["docid"] = None if roles.docid is None else _document_ids(column(roles.docid), roles.docid)
        return found

    def features(self, table: Any) -> NDArray[Any]:
        """Give X, checked."""
        try:
            wanted = table.select(self.roles.features)
            return columns(wanted, self.dtype) if self.by_columns else matrix(wanted, self.dtype)
        except ConcordantError:
            for name in self.roles.features:  # says the same, and counts the rows of the whole column
                _numbers(table.column(name).to_numpy(), name)
            raise

    def scanned(self) -> Piece:
        """Give the ids, sizes and weights of the queries; nothing else is read."""
        with self.located("scanned"):
            weight = self.roles.query_weight
            table = self.table((self.roles.qid,) if weight is None else (self.roles.qid, weight))
            queries = self.queries(table)
            if weight is None:
                return queries.ids, queries.sizes, None
            given = check_nonnegative(_columns(table)[0](weight), f"column {weight!r}", "row")
            return queries.ids, queries.sizes, agreed_weights(given, queries)

    def queries(self, table: Any) -> Queries:
        """Give the queries of rows as they were read."""
        heads, lengths = runs(table.column(self.roles.qid), self.roles.qid)
        return Queries.from_runs(whole_ids(heads) if self.whole else heads, lengths)

    def alone(self, group: tuple[int, int]) -> ParquetPart:
        """Give one of the row groups."""
        return replace(self, groups=(group,), mark=None)


def runs(column: Any, name: str) -> tuple[NDArray[Any], IntArray]:
    """Give checked ids, one for each run of rows with the same, and the lengths of the runs."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not can_be_encoded(column.type):
        ids = _query_ids(column.to_numpy(), name)
        starts = run_starts(ids)
        return ids[starts], np.diff(starts, append=len(ids))
    encoded = compute.run_end_encode(column.combine_chunks(), run_end_type=pa.int64())
    try:
        heads = _query_ids(encoded.values.to_numpy(zero_copy_only=False), name)
    except ConcordantError:
        _query_ids(column.to_numpy(), name)  # says the same, and counts rows
        raise
    return heads, np.diff(encoded.run_ends.to_numpy(), prepend=0)


def can_be_encoded(kind: Any) -> bool:
    """Whether Arrow finds the runs of a column of this type."""
    from pyarrow import types

    views = types.is_string_view(kind) or types.is_binary_view(kind)
    return not (views or types.is_nested(kind) or hasattr(kind, "extension_name"))


def matrix(table: Any, dtype: str) -> NDArray[Any]:
    """Give columns of finite numbers as a matrix; a piece that Arrow can turn into one is turned by it."""
    pieces = table.to_batches()
    if len(pieces) == 1 and (found := turned(pieces[0], dtype)) is not None:
        return found
    X, start = np.empty(table.shape, dtype=dtype), 0
    for piece in pieces:
        rows, found = X[start : start + piece.num_rows], turned(piece, dtype)
        if found is None:
            fill(rows, piece)
        else:
            rows[:] = found
        start += piece.num_rows
    return X


def columns(table: Any, dtype: str) -> NDArray[Any]:
    """Give columns of finite numbers as a matrix whose columns are contiguous."""
    import pyarrow as pa

    height, width = table.shape
    # Arrow keeps the memory of the part before; the system would give, and empty, new pages for each.
    memory = pa.allocate_buffer(height * width * np.dtype(dtype).itemsize)
    X: NDArray[Any] = np.frombuffer(memory, dtype=dtype).reshape(width, height)
    for place, (name, column) in enumerate(zip(table.schema.names, table.columns, strict=True)):
        start = 0
        for piece in column.chunks:
            X[place, start : start + len(piece)] = finite(piece.to_numpy(zero_copy_only=False), name)
            start += len(piece)
    return X.T


def turned(piece: Any, dtype: str) -> NDArray[Any] | None:
    """Give columns of this type as a matrix, by Arrow; None where one is of another, or a number is none."""
    import pyarrow as pa

    wanted = pa.from_numpy_dtype(dtype)
    if any(column.type != wanted or column.null_count for column in piece.columns):
        return None
    X: NDArray[Any] = piece.to_tensor().to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        return X if np.isfinite(X.sum()) else None


def fill(X: NDArray[Any], table: Any) -> None:
    """Fill a matrix with columns of finite numbers, by pieces that stay in the cache.

    That is three times as fast as column by column, and no other array of its size is made.
    """
    names = table.schema.names
    for first in range(0, table.num_rows, FILLED_AT_ONCE):
        piece = table.slice(first, FILLED_AT_ONCE)
        rows = X[first : first + piece.num_rows]
        for place, column in enumerate(piece.columns):
            rows[:, place] = finite(column.to_numpy(zero_copy_only=False), names[place])


def finite(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Give a column of finite numbers; the sum settles the usual case."""
    with np.errstate(over="ignore", invalid="ignore"):
        usual = values.dtype in (np.float32, np.float64) and np.isfinite(values.sum())
    return values if usual else _numbers(values, name)


def mark_of(ids: NDArray[Any], sizes: IntArray) -> int:
    """Give what tells these queries from others."""
    return zlib.crc32(ids.tobytes(), zlib.crc32(sizes.tobytes()))
