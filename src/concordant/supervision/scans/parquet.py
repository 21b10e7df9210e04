"""scan_parquet: Parquet files as a set of queries that is read part by part."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, ParameterError
from concordant.supervision.readers.roles import Roles
from concordant.supervision.readers.tables import naming_damage, whole_ids
from concordant.supervision.readers.text import PathLike, paths_of
from concordant.supervision.scans.index import Index, Piece
from concordant.supervision.scans.parquet_part import ParquetPart, mark_of, opened
from concordant.supervision.scans.row_groups import footer_of
from concordant.supervision.scans.scan import Scan, read_size
from concordant.supervision.scans.schemas import common_dtype, same_roles
from concordant.supervision.scans.sizes import docid_bytes, row_bytes
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PART_BYTES", "WHOLE_QUERIES", "scan_parquet"]

PART_BYTES = 64 << 20  # up to which row groups are read together
WHOLE_QUERIES = {b"concordant.row_groups": b"whole queries"}
"""What `write_parquet` says in a file whose row groups are as the caller wants them: none are joined."""


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
    """Queries of Parquet files, of which only some row groups are in memory at a time.

    Parameters
    ----------
    path
        A file; a folder, whose files that end in .parquet are read in the order of their names, except those
        beginning with "." or "_"; or several files.
    qid, grade, features, docid
        Columns, as `from_frame` has them.
    sample_weight, query_weight
        Columns of weights, by default none; all rows of a query have the same `query_weight`.
    memory
        Bytes that rows may take at a time, as a number or as text such as "500 MiB": features, grades,
        weights, and what a fit makes of them.
    part
        Bytes, counted likewise, up to which row groups of a file that follow one another are read together.
        None: 64 MiB, and those that `cc.write_parquet` cut one by one. A part is a task of a cluster at each
        gradient, of about a millisecond: large sets want large ones.

    Returns
    -------
    Scan
        X is float32 where every feature is exact in it (float32, float16, 8 and 16 bit integers, truth
        values), else float64.

    Raises
    ------
    LabelError
        If two parts have rows of one query: `cc.write_parquet` writes files in which none is cut. Also if
        files differ in their columns, or rows of a query in `query_weight`.
    NotNumericError, NonFiniteError, GradeError
        While the parts are read, at the first bad row, by file, row group and row in it (from 0).
    ParameterError
        If six times the largest part is more than `memory`; also where document ids, which a fit does not
        read, are asked for and do not fit.

    Notes
    -----
    Scanning reads the footers and the columns `qid` and `query_weight`. The rows of a query may stand
    anywhere in a part. How long document ids are is told by the footers: about, if their lengths differ.

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
    limit, together = read_size(memory), None if part is None else read_size(part, "part")
    named = {"qid": qid, "grade": grade, "features": features, "docid": docid}
    weights = {"sample_weight": sample_weight, "query_weight": query_weight}
    files = parquet_files(path)
    schemas = {file: schema_of(file) for file in files}
    roles = same_roles(schemas, {**named, **weights})
    dtype = common_dtype(schemas, roles)
    parts = [one for file in files for one in cut(file, roles, dtype, together)]
    if not parts:
        raise EmptyDataError(listed(files, path))
    return indexed(parts, limit)


def parquet_files(path: PathLike | Iterable[PathLike]) -> list[str]:
    """Give the files that are meant, each as the caller named it."""
    return [file for one in paths_of(path) for file in files_in(one)]


def files_in(path: str) -> list[str]:
    """Give a file, or those of a folder; Spark writes folders that are called as files are."""
    if not Path(path).is_dir():
        return [path]
    own = [file for file in Path(path).iterdir() if file.suffix == ".parquet" and file.name[0] not in "._"]
    return [file for one in sorted(own) for file in files_in(os.fspath(one))]


def listed(files: Sequence[str], path: object) -> str:
    """Give the files by name, for messages; or what was given, where it names none.

    >>> listed(["a", "b", "c", "d"], "folder"), listed([], "folder")
    ('a, b, c and 1 more', 'folder')
    """
    if not files:
        return os.fspath(path) if isinstance(path, str | os.PathLike) else "the list of files"
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if files[3:] else "")


def schema_of(file: str) -> Any:
    """Give the names and types of the columns of a file."""
    with naming_damage(file, ".parquet"):
        return opened(str(Path(file).absolute())).schema_arrow


def is_intended(schema: Any) -> bool:
    """Whether a file says that its row groups were cut by intention, as those of `write_parquet` do."""
    return WHOLE_QUERIES.items() <= (schema.metadata or {}).items()


def cut(file: str, roles: Roles, dtype: str, limit: int | None) -> Iterator[ParquetPart]:
    """Give the parts of a file, up to a limit of bytes, as of `cut_groups`."""
    path = str(Path(file).absolute())
    footer = footer_of(path)
    documents = docid_bytes(footer.metadata, roles.docid)
    size = row_bytes(len(roles.features), dtype, len(roles.weights)) + documents
    for groups in cut_groups(path, size, limit):
        yield ParquetPart(path, file, groups, footer.stamp, roles, dtype, docid_bytes=documents)


def cut_groups(path: str, size: int, limit: int | None = None) -> Iterator[tuple[tuple[int, int], ...]]:
    """Give number and rows of row groups, as they are; small ones together, unless they were so intended.

    `size`: bytes of a row; `limit`: those of rows that are together, intended or not.
    """
    found = opened(path)
    footer = found.metadata
    if limit is None:
        limit = 0 if is_intended(found.schema_arrow) else PART_BYTES
    together: list[tuple[int, int]] = []
    waiting = 0  # rows of those
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


def indexed(parts: Sequence[ParquetPart], memory: int) -> Scan:
    """Give the scan of parts, whose queries are read here."""
    pieces = [part.scanned() for part in parts]
    if all(reads_whole(ids) for ids, _, _ in pieces):
        parts, pieces = [replace(part, whole=True) for part in parts], [as_whole(*piece) for piece in pieces]
    parts = [
        replace(part, mark=mark_of(ids, sizes)) for part, (ids, sizes, _) in zip(parts, pieces, strict=True)
    ]
    index = Index.of(pieces, [part.name for part in parts])
    if index.weights is not None and not index.weights.any():
        raise ParameterError("query_weight", "all zero", "positive for at least one query")
    roles = parts[0].roles
    weighted = roles.sample_weight is not None
    return Scan(tuple(parts), index, len(roles.features), roles.features, memory, weighted)


def reads_whole(ids: NDArray[Any]) -> bool:
    """Whether ids are text, all of it whole numbers."""
    return ids.dtype.kind == "U" and whole_ids(ids).dtype.kind == "i"


def as_whole(ids: NDArray[Any], sizes: IntArray, weights: FloatArray | None) -> Piece:
    """Give queries in the order of their ids as numbers."""
    numbers = whole_ids(ids)
    order = np.argsort(numbers)
    return numbers[order], sizes[order], None if weights is None else weights[order]
