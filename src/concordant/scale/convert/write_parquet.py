"""write_parquet: rows of any source as a Parquet file in which every row group holds whole queries."""

from __future__ import annotations

import errno
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from concordant._base.files import PathLike, write_atomically
from concordant._base.progress import open_progress_bar
from concordant._base.validate import all_zero_error, check_choice, is_verbose
from concordant.data.check import to_query_weights
from concordant.data.queries import Queries
from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.scale.convert.layout import QueryCounts, RowLayout, check_dtype, count_rows, run_starts
from concordant.scale.convert.row_sources import ConversionOptions, RowSource, Spill
from concordant.scale.convert.source_kinds import describe_source, open_source
from concordant.scale.scan.parquet import WHOLE_QUERIES, are_whole_numbers, as_whole_numbers, scan_parquet
from concordant.scale.scan.scan import IN_FLIGHT, Scan, format_size, parse_size
from concordant.types import IntArray

# Row groups of whole queries, as many as fit; and the file that is written.

COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")
MOST_ROWS = 1 << 26  # of a row group: pyarrow cuts longer ones
SUM = b"concordant.crc32"  # of all bytes before the footer, so that files differ in their footers


def row_groups(tables: Iterable[Any], most_rows: int) -> Iterator[Any]:
    """Cut rows between queries; the rows of each query (first column) are adjacent.

    A row group has at most `most_rows` rows, unless a single query has more; the next query would not fit in.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    for table in tables:
        waiting.append(table)
        while sum(table_.num_rows for table_ in waiting) > most_rows:
            rows = pa.concat_tables(waiting)
            starts = run_starts(rows.column(0).to_numpy())
            fitting = starts[(starts > 0) & (starts <= most_rows)]
            if not len(fitting) and len(starts) == 1:
                break  # a single query, of which more rows may follow
            edge = int(fitting[-1] if len(fitting) else starts[1])
            yield rows.slice(0, edge)
            waiting = [rows.slice(edge)]
    if waiting := [table_ for table_ in waiting if table_.num_rows]:
        yield pa.concat_tables(waiting)


@dataclass(frozen=True)
class ParquetForm:
    """The file to write.

    Attributes
    ----------
    path
        Path of the file.
    group, room
        Bytes of features in a row group, and bytes that rows may take in memory at a time.
    compression
        One of `COMPRESSIONS`.
    source
        Name of the source, for messages.
    """

    path: Path
    group: int
    room: int
    compression: str
    source: str

    def __post_init__(self) -> None:
        check_choice("compression", self.compression, COMPRESSIONS)
        if self.path.suffix not in (".parquet", ".pq"):
            raise ParameterError("path", os.fspath(self.path), "a file name that ends in .parquet")
        if self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(self.path))
        if not self.path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "its folder is not there", os.fspath(self.path))

    def rows(self, layout: RowLayout) -> int:
        """Return the largest number of rows in a row group."""
        return max(1, min(MOST_ROWS, self.group // layout.feature_bytes, self.room // layout.row_bytes))

    def write(self, groups: Iterable[Any], layout: RowLayout) -> None:
        """Write the row groups; features are not dictionary-encoded, which would take long."""
        from pyarrow.parquet import ParquetWriter

        roles, weight, groups = layout.roles, 0.0, iter(groups)
        first = next(groups)  # exists: rows were counted
        schema = first.schema.with_metadata(WHOLE_QUERIES)
        options: dict[str, Any] = {"compression": self.compression, "write_page_checksum": True}
        options |= {"use_dictionary": [roles.qid, roles.grade], "write_statistics": [roles.qid]}
        with write_atomically(self.path) as stream:
            summed = ChecksumStream(stream)
            with ParquetWriter(summed, schema, **options) as writer:
                for group in chain([first], groups):
                    weight = max(weight, self.largest_weight(group, roles.query_weight))
                    writer.write_table(group.cast(schema), row_group_size=group.num_rows)
                writer.add_key_value_metadata({SUM: f"{summed.crc:08x}"})
            if not weight:
                raise all_zero_error("query_weight", "query")

    def largest_weight(self, group: Any, name: str | None) -> float:
        """Return the largest query weight; raise if rows of a query have different weights."""
        if name is None:
            return 1.0
        queries = Queries.from_ids(group.column(0).to_numpy())
        try:
            return float(to_query_weights(group.column(name).to_numpy(), queries).max())
        except LabelError as error:
            error.args = (f"{self.source}: {error}",)
            raise


class ChecksumStream(io.RawIOBase):
    """Output stream that computes the CRC-32 of what is written."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.crc = stream, 0

    def writable(self) -> bool:
        """Always True."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes."""
        self.crc = zlib.crc32(data, self.crc)
        return self.stream.write(data)


# Sorting rows by query, with only some rows in memory at a time.

MOST_SPILLS, FEWEST_SPILLS = 64, 8  # files that are open at a time
SCATTERED = 8  # least rows per write to a file, about: writing a single row takes as long as writing many


def _sort_out_of_core(
    tables: Iterable[Any], counts: QueryCounts, most_rows: int, folder: Path
) -> Iterator[Any]:
    """Yield tables of at most `most_rows` rows, sorted by the id in the first column; the sort is stable.

    Too many rows are written to files by ranges of ids, each of which is then sorted in the same way.
    """
    if counts.n_rows <= most_rows or len(counts.ids) == 1:
        yield concatenate_sorted(tables)
        return
    edges = _ranges(counts.sizes, most_rows)
    with ExitStack() as stack:
        spills = [stack.enter_context(closing(Spill(folder))) for _ in edges[1:]]
        for table in _join_small(tables, most_rows // 4):
            _scatter(table, counts.ids[edges[1:-1]], spills)
        for spill, (first, last) in zip(spills, pairwise(edges.tolist()), strict=True):
            with closing(spill):  # close each file when it is done, not when all are
                yield from _sort_out_of_core(spill.tables(), counts.within(first, last), most_rows, folder)


def _join_small(tables: Iterable[Any], rows: int) -> Iterator[Any]:
    """Concatenate small consecutive tables until they have so many rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_rows = 0
    for table in tables:
        waiting.append(table)
        n_rows += table.num_rows
        if n_rows >= rows:
            yield pa.concat_tables(waiting)
            waiting, n_rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def concatenate_sorted(tables: Iterable[Any]) -> Any:
    """Concatenate the tables, sorted by query."""
    import pyarrow as pa

    return _sort_by_query(pa.concat_tables(tables))[0]


def _sort_by_query(table: Any) -> tuple[Any, Queries]:
    """Sort a table by its first column, and return it with its queries; a column at a time is copied."""
    import pyarrow as pa

    queries = Queries.from_ids(table.column(0).to_numpy())
    if queries.moved is None:
        return table, queries
    order = pa.array(queries.moved)
    columns = [column.combine_chunks().take(order) for column in table.columns]
    return pa.table(columns, schema=table.schema), queries


def _ranges(sizes: IntArray, most_rows: int) -> IntArray:
    """Cut queries into ranges of at most `most_rows` rows, or more if there would be too many ranges.

    >>> _ranges(np.array([2, 2, 3, 1]), 4).tolist()
    [0, 2, 4]
    """
    ends = np.cumsum(sizes)
    spills = min(MOST_SPILLS, max(FEWEST_SPILLS, most_rows // 4 // SCATTERED))
    most_rows = max(most_rows, int(np.ceil(2 * ends[-1] / spills)))
    edges = [0]
    while edges[-1] < len(sizes):
        before = ends[edges[-1] - 1] if edges[-1] else 0
        edges.append(max(edges[-1] + 1, int(np.searchsorted(ends, before + most_rows, side="right"))))
    return np.array(edges)


def _scatter(table: Any, firsts: Any, spills: list[Spill]) -> None:
    """Write each row to the file of its range; `firsts`: the first ids of all ranges but the first."""
    rows, queries = _sort_by_query(table)
    edges = np.r_[0, queries.offsets[np.searchsorted(queries.ids, firsts)], table.num_rows]
    for spill, (first, last) in zip(spills, pairwise(edges.tolist()), strict=True):
        if first < last:
            spill.write(rows.slice(first, last - first))


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Follow = Callable[[Iterable[Any], str, int | None], Iterable[Any]]


def write_parquet(
    source: Any,
    path: PathLike,
    *,
    qid: str = "qid",
    grade: str | None = None,
    features: Sequence[str] | None = None,
    docid: str | None = None,
    sample_weight: str | None = None,
    query_weight: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike | None = None,
    memory: int | str = "1 GiB",
    row_group: int | str = "64 MiB",
    compression: str = "snappy",
    verbose: int = 0,
) -> Scan:
    r"""Write rows to a Parquet file in which no row group cuts a query, and return its scan.

    Rows keep their order if those of each query are adjacent; else they are sorted by query id, and rows
    of a query keep their order. The source may be larger than memory.

    Parameters
    ----------
    source
        LETOR text, Parquet, Feather, CSV or TSV: a file, several, or a folder of Parquet files; text may be
        compressed. Or a `RankingData`; a pandas, polars or pyarrow frame; a `Scan`; or an iterable of
        ranking data or frames, which is iterated once.
    path
        The file to write. It appears whole or not at all.
    qid, grade, features, docid
        Columns, as in `from_frame`; the file has columns of the same names. A source without names gets
        these, by default qid, grade, docid, and f1, f2, ... by the feature indices of the text.
    sample_weight, query_weight
        Columns of weights, by default none.
    n_features, zero_based
        For LETOR text, as in `read_letor`.
    dtype
        float32 or float64 for the features; by default as in the source (float32 where that is exact).
    memory
        Bytes of rows that may be in memory at a time. A query may take a sixth of it.
    row_group
        Bytes of features in a row group, at most, unless a single query has more; its rows take at most a
        sixth of `memory`.
    compression
        snappy, zstd, lz4, gzip, brotli or none.
    verbose
        Above 0: show progress bars on standard error.

    Returns
    -------
    Scan
        Scan of the file, as from `scan_parquet`.

    Raises
    ------
    ParameterError
        If a query is larger than a sixth of `memory`; it is named.
    NotNumericError, NonFiniteError, GradeError, LabelError, MalformedLineError
        At a bad row, named by file and row. Nothing is written then.

    Notes
    -----
    The first pass counts the rows of each query (24 bytes each are kept, and the ids, if they are text); the
    second pass writes. Rows to be sorted go to temporary files beside `path`, by ranges of ids that fit in
    memory. These files have no name and disappear with the process, whatever happens to it. The file being
    written is called `.NAME.XXXXXXXX.tmp.parquet`, beside `path`, until it is complete: a process that is
    killed or terminated leaves it behind. Scans of the folder ignore it; delete it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "train.txt")
    ...     _ = text.write_text("1 qid:7 1:0.5\n0 qid:3 2:1\n2 qid:7 1:2\n")
    ...     scan = write_parquet(text, Path(folder, "train.parquet"))
    ...     [(rows.y.tolist(), rows.queries.ids.tolist()) for rows in scan]
    [([0.0, 1.0, 2.0], [3, 7])]
    >>> scan.feature_names
    ('f1', 'f2')
    """
    roles = {"qid": qid, "grade": grade, "features": features, "docid": docid}
    weights = {"sample_weight": sample_weight, "query_weight": query_weight}
    room = parse_size(memory) // IN_FLIGHT
    options = ConversionOptions({**roles, **weights}, check_dtype(dtype), room)
    form = ParquetForm(
        Path(path), parse_size(row_group, "row_group"), room, compression, describe_source(source)
    )
    with ExitStack() as stack, _naming_disk(form.path):
        rows = open_source(source, options, n_features, zero_based, form.path.parent, stack)
        layout = _convert(rows, form, stack.enter_context(_progress_bars(verbose)))
    return scan_parquet(path, **vars(layout.roles), memory=memory)


def _convert(source: RowSource, form: ParquetForm, follow: Follow) -> RowLayout:
    """Count rows, sort them if needed, and write; return the layout of the file."""
    counts = count_rows(follow(source.ids(), "counting", None))
    if counts is None:
        raise EmptyDataError(form.source)
    layout = source.layout
    if not layout.roles.features:
        raise LabelError(f"{form.source} has no features", "name a column at least: features=...")
    if are_whole_numbers(counts.ids):
        counts = QueryCounts(*as_whole_numbers(counts.ids, counts.sizes, None)[:2], counts.together)
    _refuse_long(counts, layout, form.room)
    tables: Iterable[Any] = (_with_ids(table, counts) for table in source.tables())
    if not counts.together:
        rows = form.room // layout.row_bytes
        tables = _sort_out_of_core(follow(tables, "sorting", counts.n_rows), counts, rows, form.path.parent)
    groups = row_groups(tables, form.rows(layout))
    form.write(follow(groups, "writing", counts.n_rows), layout)
    return layout


@contextmanager
def _naming_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        needed = "there must be room for the file and, where rows are sorted, for all of them uncompressed"
        raise OSError(error.errno, f"{os.strerror(error.errno)}; {needed}", os.fspath(path)) from error


def _with_ids(table: Any, counts: QueryCounts) -> Any:
    """Cast the ids, the first column, to the type in which all ids differ."""
    import pyarrow as pa

    kind = pa.string() if counts.ids.dtype.kind == "U" else pa.from_numpy_dtype(counts.ids.dtype)
    if table.schema.field(0).type == kind:
        return table
    return table.set_column(0, table.column_names[0], table.column(0).cast(kind))


def _refuse_long(counts: QueryCounts, layout: RowLayout, room: int) -> None:
    longest = int(np.argmax(counts.sizes))
    size = int(counts.sizes[longest]) * layout.row_bytes
    if size > room:
        query = f"Query {counts.ids[longest].item()!r} has {counts.sizes[longest]:,} rows"
        least = format_size(IN_FLIGHT * size, up=True)
        allowed = f"at least {least}, {IN_FLIGHT} times the largest query"
        raise ParameterError("memory", format_size(IN_FLIGHT * room), allowed, hint=f"{query}.")


@contextmanager
def _progress_bars(verbose: int) -> Iterator[Follow]:
    """Yield a function that passes items on and moves a progress bar, if `verbose` asks for bars."""
    if not is_verbose(verbose):
        yield lambda items, _title, _total: items
        return
    with open_progress_bar() as bar:

        def follow(items: Iterable[Any], title: str, total: int | None) -> Iterator[Any]:
            task = bar.add_task(title, total=total)
            for item in items:
                yield item
                bar.update(task, advance=len(item))

        yield follow
