"""scan_parquet: Parquet files as a set of queries that is read part by part."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.files import PathLike, list_paths
from concordant._base.validate import all_zero_error, check_nonnegative
from concordant.data.check import to_query_weights
from concordant.data.io.roles import Roles
from concordant.data.io.tables import (
    check_finite_column,
    check_query_ids,
    naming_damage,
    open_columns,
    to_integer_ids,
)
from concordant.data.queries import Queries
from concordant.exceptions import ConcordantError, EmptyDataError, ParameterError
from concordant.scale.convert.layout import run_starts
from concordant.scale.scan.index import Index, Piece
from concordant.scale.scan.row_groups import (
    RowGroups,
    check_columns,
    common_dtype,
    common_roles,
    docid_bytes,
    open_parquet,
    read_footer,
    row_bytes,
)
from concordant.scale.scan.scan import PartRows, Scan, parse_size
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# ParquetPart: row groups of a Parquet file that are read together.

FILLED_AT_ONCE = 16384  # rows


@dataclass(frozen=True)
class ParquetPart(RowGroups):
    """Row groups in which each row is a document.

    Attributes
    ----------
    path, shown, groups, stamp
        As in `RowGroups`.
    roles
        Names of the columns.
    dtype
        Of X: "float32" or "float64".
    whole
        True if all ids are whole numbers as text, which are read as numbers.
    mark
        Hash of the ids and sizes of the queries, which must still match; None: unknown.
    documents, docid_bytes
        Whether document ids are read, and roughly the bytes that an id takes.
    by_columns
        True if X is laid out column by column in memory, as in the file, which is faster.
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
        """Memory that the rows take while they are processed, in bytes."""
        roles, documents = self.roles, self.docid_bytes if self.documents else 0
        return self.n_rows * (row_bytes(len(roles.features), self.dtype, len(roles.weights)) + documents)

    @property
    def read_roles(self) -> Roles:
        """Columns that are read."""
        return self.roles if self.documents else replace(self.roles, docid=None)

    def read(self) -> PartRows:
        """Read and check the rows; raise at a bad row, named by file, row group and row."""
        with self.located("read"):
            table = self.table(self.read_roles.named)
            queries = self.queries(table)
            if self.mark not in (None, hash_queries(queries.ids, queries.sizes)):
                raise self.changed_error("it has other queries")
            others = check_columns(open_columns(table)[0], self.read_roles)
            X = self.features(table)
            del table  # before sorting the rows, which may take as much again
            return PartRows.from_rows(X, qid=queries, **others)

    def features(self, table: Any) -> NDArray[Any]:
        """Return the checked features, X."""
        try:
            selected = table.select(self.roles.features)
            return columns(selected, self.dtype) if self.by_columns else matrix(selected, self.dtype)
        except ConcordantError:
            for name in self.roles.features:  # raises the same error, with the row number in the whole column
                check_finite_column(table.column(name).to_numpy(), name)
            raise

    def scanned(self) -> Piece:
        """Read only the ids, sizes and weights of the queries."""
        with self.located("scanned"):
            weight = self.roles.query_weight
            table = self.table((self.roles.qid,) if weight is None else (self.roles.qid, weight))
            queries = self.queries(table)
            if weight is None:
                return queries.ids, queries.sizes, None
            row_weights = check_nonnegative(open_columns(table)[0](weight), f"column {weight!r}", "row")
            return queries.ids, queries.sizes, to_query_weights(row_weights, queries)

    def queries(self, table: Any) -> Queries:
        """Return the queries of rows as read."""
        heads, lengths = _find_runs(table.column(self.roles.qid), self.roles.qid)
        return Queries.from_runs(to_integer_ids(heads) if self.whole else heads, lengths)

    def with_group(self, group: tuple[int, int]) -> ParquetPart:
        """Return the part with only this row group."""
        return replace(self, groups=(group,), mark=None)


def _find_runs(column: Any, name: str) -> tuple[NDArray[Any], IntArray]:
    """Return the checked id and the length of each run of rows with equal id."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not _can_be_encoded(column.type):
        ids = check_query_ids(column.to_numpy(), name)
        starts = run_starts(ids)
        return ids[starts], np.diff(starts, append=len(ids))
    encoded = compute.run_end_encode(column.combine_chunks(), run_end_type=pa.int64())
    try:
        heads = check_query_ids(encoded.values.to_numpy(zero_copy_only=False), name)
    except ConcordantError:
        check_query_ids(column.to_numpy(), name)  # raises the same error, with row numbers
        raise
    return heads, np.diff(encoded.run_ends.to_numpy(), prepend=0)


def _can_be_encoded(kind: Any) -> bool:
    from pyarrow import types

    views = types.is_string_view(kind) or types.is_binary_view(kind)
    return not (views or types.is_nested(kind) or hasattr(kind, "extension_name"))


def matrix(table: Any, dtype: str) -> NDArray[Any]:
    """Convert columns of finite numbers to a matrix; Arrow converts the batches that it can."""
    pieces = table.to_batches()
    if len(pieces) == 1 and (block := _arrow_matrix(pieces[0], dtype)) is not None:
        return block
    X, start = np.empty(table.shape, dtype=dtype), 0
    for piece in pieces:
        rows, block = X[start : start + piece.num_rows], _arrow_matrix(piece, dtype)
        if block is None:
            fill(rows, piece)
        else:
            rows[:] = block
        start += piece.num_rows
    return X


def columns(table: Any, dtype: str) -> NDArray[Any]:
    """Convert columns of finite numbers to a matrix whose columns are contiguous."""
    import pyarrow as pa

    height, width = table.shape
    # Arrow reuses the memory of the previous part; the system would allocate and zero new pages for each.
    memory = pa.allocate_buffer(height * width * np.dtype(dtype).itemsize)
    X: NDArray[Any] = np.frombuffer(memory, dtype=dtype).reshape(width, height)
    for number, (name, column) in enumerate(zip(table.schema.names, table.columns, strict=True)):
        start = 0
        for piece in column.chunks:
            X[number, start : start + len(piece)] = finite_column(piece.to_numpy(zero_copy_only=False), name)
            start += len(piece)
    return X.T


def _arrow_matrix(piece: Any, dtype: str) -> NDArray[Any] | None:
    """Convert columns to a matrix by Arrow; None if a column has another type or a number is not finite."""
    import pyarrow as pa

    arrow_type = pa.from_numpy_dtype(dtype)
    if any(column.type != arrow_type or column.null_count for column in piece.columns):
        return None
    X: NDArray[Any] = piece.to_tensor().to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        return X if np.isfinite(X.sum()) else None


def fill(X: NDArray[Any], table: Any) -> None:
    """Fill a matrix with columns of finite numbers, in blocks of rows that stay in the cache.

    This is three times as fast as column by column, and allocates no other array of this size.
    """
    names = table.schema.names
    for first in range(0, table.num_rows, FILLED_AT_ONCE):
        piece = table.slice(first, FILLED_AT_ONCE)
        rows = X[first : first + piece.num_rows]
        for number, column in enumerate(piece.columns):
            rows[:, number] = finite_column(column.to_numpy(zero_copy_only=False), names[number])


def finite_column(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of finite numbers; checking its sum is enough in the usual case."""
    with np.errstate(over="ignore", invalid="ignore"):
        usual = values.dtype in (np.float32, np.float64) and np.isfinite(values.sum())
    return values if usual else check_finite_column(values, name)


def hash_queries(ids: NDArray[Any], sizes: IntArray) -> int:
    """Hash the ids and sizes of queries."""
    return zlib.crc32(ids.tobytes(), zlib.crc32(sizes.tobytes()))


PARQUET = (".parquet", ".pq")
PART_BYTES = 64 << 20  # row groups are read together up to this size
WHOLE_QUERIES = {b"concordant.row_groups": b"whole queries"}
"""Metadata by which `write_parquet` marks a file whose row groups are read separately."""


def scan_parquet(
    path: PathLike | Iterable[PathLike],
    *,
    qid: str = "qid",
    grade: str | None = None,
    features: Sequence[str] | None = None,
    docid: str | None = None,
    sample_weight: str | None = None,
    query_weight: str | None = None,
    memory: int | str = "1 GiB",
    part: int | str | None = None,
) -> Scan:
    """Scan Parquet files as queries, of which only some row groups are in memory at a time.

    Parameters
    ----------
    path
        A file; a folder, whose files that end in .parquet or .pq are read in the order of their names, except
        those beginning with "." or "_" (files in subfolders are an error, not skipped); or several files.
    qid, grade, features, docid
        Columns, as in `from_frame`.
    sample_weight, query_weight
        Columns of weights, by default none; all rows of a query have the same `query_weight`.
    memory
        Bytes that rows may take at a time, as a number or as text such as "500 MiB": features, grades,
        weights, and the working memory of a fit.
    part
        Bytes, counted likewise, up to which consecutive row groups of a file are read together. None: 64 MiB,
        and single row groups of files from `cc.write_parquet`. On a cluster every part is a task of about a
        millisecond per gradient: large sets need large parts.

    Returns
    -------
    Scan
        X is float32 where every feature is exact in it (float32, float16, 8 and 16 bit integers, truth
        values), else float64.

    Raises
    ------
    LabelError
        If two parts have rows of the same query: `cc.write_parquet` writes files in which no query is cut.
        Also if files differ in their columns, or rows of a query in `query_weight`.
    NotNumericError, NonFiniteError, GradeError
        While the parts are read, at the first bad row, by file, row group and row in it (from 0).
    ParameterError
        If six times the largest part is more than `memory`; also if document ids, which a fit does not read,
        are requested and do not fit.

    Notes
    -----
    Scanning reads the footers and the columns `qid` and `query_weight`. The rows of a query may stand
    anywhere in a part. The length of document ids is estimated from the footers.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pa.table({"qid": [7, 7, 8], "y": [0, 1, 2], "bm25": [0.5, 2.0, 1.0]})
    ...     pq.write_table(table, folder + "/train.parquet")
    ...     scan = scan_parquet(folder, memory="100 MiB")
    ...     [rows.y.tolist() for rows in scan]
    [[0.0, 1.0, 2.0]]
    >>> scan
    Scan(n_rows=3, n_features=1, n_queries=2, n_parts=1, memory=100 MiB)
    """
    limit, together = parse_size(memory), None if part is None else parse_size(part, "part")
    named = {"qid": qid, "grade": grade, "features": features, "docid": docid}
    weights = {"sample_weight": sample_weight, "query_weight": query_weight}
    files = parquet_files(path)
    schemas = {file: read_schema(file) for file in files}
    roles = common_roles(schemas, {**named, **weights})
    dtype = common_dtype(schemas, roles)
    parts = [part_ for file in files for part_ in _cut_file(file, roles, dtype, together)]
    if not parts:
        raise EmptyDataError(join_paths(files, path))
    return _build_scan(parts, limit)


def parquet_files(path: PathLike | Iterable[PathLike]) -> list[str]:
    """List the files at a path, by the caller's names."""
    return [file for path_or_folder in list_paths(path) for file in _files_in(path_or_folder)]


def _files_in(path: str) -> list[str]:
    """List a file, or the files of a folder; Spark writes folders that are named like files."""
    if not Path(path).is_dir():
        return [path]
    visible = [file for file in sorted(Path(path).iterdir()) if file.name[0] not in "._"]
    for folder in visible:
        if folder.is_dir() and not _is_parquet(folder) and any(map(_is_parquet, folder.rglob("*"))):
            raise ParameterError.because(
                f"path {path!r} has Parquet files in the subfolder {os.fspath(folder)!r}. Pass a list of "
                "files or folders."
            )
    return [file for entry in visible if _is_parquet(entry) for file in _files_in(os.fspath(entry))]


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def join_paths(files: Sequence[str], path: object) -> str:
    """Join file names for messages; without any, return the path as the caller passed it.

    >>> join_paths(["a", "b", "c", "d"], "folder"), join_paths([], "folder")
    ('a, b, c and 1 more', 'folder')
    """
    if not files:
        return os.fspath(path) if isinstance(path, str | os.PathLike) else "the list of files"
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if files[3:] else "")


def read_schema(file: str) -> Any:
    """Read the names and types of a file's columns."""
    with naming_damage(file, ".parquet"):
        return open_parquet(str(Path(file).absolute())).schema_arrow


def _is_intended(schema: Any) -> bool:
    """True if the file's metadata says that its row groups are to be read separately."""
    return WHOLE_QUERIES.items() <= (schema.metadata or {}).items()


def _cut_file(file: str, roles: Roles, dtype: str, limit: int | None) -> Iterator[ParquetPart]:
    path = str(Path(file).absolute())
    footer = read_footer(path)
    documents = docid_bytes(footer.metadata, roles.docid)
    size = row_bytes(len(roles.features), dtype, len(roles.weights)) + documents
    for groups in cut_groups(path, size, limit):
        yield ParquetPart(path, file, groups, footer.stamp, roles, dtype, docid_bytes=documents)


def cut_groups(path: str, size: int, limit: int | None = None) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield numbers and rows of the row groups that are read together: small ones, unless cut on purpose.

    `size`: bytes of a row; `limit`: bytes of rows that are read together, cut on purpose or not.
    """
    parquet_file = open_parquet(path)
    footer = parquet_file.metadata
    if limit is None:
        limit = 0 if _is_intended(parquet_file.schema_arrow) else PART_BYTES
    together: list[tuple[int, int]] = []
    waiting = 0  # rows of `together`
    for number in range(footer.num_row_groups):
        rows = footer.row_group(number).num_rows
        if together and (waiting + rows) * size > limit:
            yield tuple(together)
            together, waiting = [], 0
        if rows:
            together.append((number, rows))
            waiting += rows
    if together:
        yield tuple(together)


def _build_scan(parts: Sequence[ParquetPart], memory: int) -> Scan:
    pieces = [part.scanned() for part in parts]
    if all(are_whole_numbers(ids) for ids, _, _ in pieces):
        parts, pieces = (
            [replace(part, whole=True) for part in parts],
            [as_whole_numbers(*piece) for piece in pieces],
        )
    parts = [
        replace(part, mark=hash_queries(ids, sizes))
        for part, (ids, sizes, _) in zip(parts, pieces, strict=True)
    ]
    index = Index.from_pieces(pieces, [part.name for part in parts])
    if index.weights is not None and not index.weights.any():
        raise all_zero_error("query_weight", "query")
    roles = parts[0].roles
    weighted = roles.sample_weight is not None
    return Scan(tuple(parts), index, len(roles.features), roles.features, memory, weighted)


def are_whole_numbers(ids: NDArray[Any]) -> bool:
    """True if the ids are text that holds only whole numbers."""
    return ids.dtype.kind == "U" and to_integer_ids(ids).dtype.kind == "i"


def as_whole_numbers(ids: NDArray[Any], sizes: IntArray, weights: FloatArray | None) -> Piece:
    """Return queries with ids as numbers, in ascending order."""
    numbers = to_integer_ids(ids)
    order = np.argsort(numbers)
    return numbers[order], sizes[order], None if weights is None else weights[order]
