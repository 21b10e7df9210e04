"""write_parquet: rows of any source as a Parquet file in which no row group cuts a query."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from concordant._progress import is_wanted, shown
from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.readers.text import PathLike
from concordant.supervision.scans.conversion.counts import Counts, counted
from concordant.supervision.scans.conversion.groups import Form, row_groups
from concordant.supervision.scans.conversion.layout import Layout, checked_dtype
from concordant.supervision.scans.conversion.sorting import by_query
from concordant.supervision.scans.conversion.source_kinds import name_of, source_of
from concordant.supervision.scans.conversion.sources import Source, Wanted
from concordant.supervision.scans.parquet import as_whole, reads_whole, scan_parquet
from concordant.supervision.scans.scan import IN_FLIGHT, Scan, read_size, written_size

__all__ = ["write_parquet"]

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
    r"""Write rows to a Parquet file in which no row group cuts a query, and give the scan of it.

    Rows keep their order where those of each query stand together; else they are sorted by query id, and
    those of a query keep their order. The source may be larger than memory.

    Parameters
    ----------
    source
        LETOR text, Parquet, Feather, CSV or TSV: a file, several, or a folder of Parquet files; text may be
        compressed. Or a `RankingData`; a pandas, polars or pyarrow frame; a `Scan`; or anything that gives
        ranking data or frames one after the other, which is asked once.
    path
        The file to write. It appears whole or not at all.
    qid, grade, features, docid
        Columns, as `from_frame` has them; the file has columns of the same names. A source without names gets
        these, by default qid, grade, docid, and f1, f2, ... by the feature indices of the text.
    sample_weight, query_weight
        Columns of weights, by default none.
    n_features, zero_based
        Of LETOR text, as `read_letor` has them.
    dtype
        float32 or float64 for the features; by default as the source has them (float32 where that is exact).
    memory
        Bytes of rows that may be in memory at a time. A query may take a sixth of it.
    row_group
        Bytes of features in a row group, at most, unless one query has more; its rows take at most a sixth of
        `memory`.
    compression
        snappy, zstd, lz4, gzip, brotli or none.
    verbose
        Whether to show progress bars on standard error.

    Returns
    -------
    Scan
        As `scan_parquet` gives it.

    Raises
    ------
    ParameterError
        If a query is larger than a sixth of `memory`; it is named.
    NotNumericError, NonFiniteError, GradeError, LabelError, MalformedLineError
        At a bad row, by file and row. Nothing is written then.

    Notes
    -----
    A first pass counts the rows of each query (24 bytes each are kept, and the ids, if they are text); a
    second one writes. Rows to be sorted go to temporary files beside `path`, by ranges of ids that fit in
    memory. These files have no name, and are gone with the process, whatever happens to it. The file that is
    being written has one, `.NAME.XXXXXXXX.tmp.parquet` beside `path`, until it is whole: a process that is
    killed or terminated leaves it behind. No scan of the folder reads it; delete it.

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
    room = read_size(memory) // IN_FLIGHT
    wanted = Wanted({**roles, **weights}, checked_dtype(dtype), room)
    form = Form(Path(path), read_size(row_group, "row_group"), room, compression, name_of(source))
    with ExitStack() as stack, naming_disk(form.path):
        found = source_of(source, wanted, n_features, zero_based, form.path.parent, stack)
        layout = converted(found, form, stack.enter_context(telling(verbose)))
    return scan_parquet(path, **vars(layout.roles), memory=memory)


def converted(source: Source, form: Form, follow: Follow) -> Layout:
    """Count, sort if that is needed, and write; give the layout of the file."""
    counts = counted(follow(source.ids(), "counting", None))
    if counts is None:
        raise EmptyDataError(form.source)
    layout = source.layout
    if not layout.roles.features:
        raise LabelError(f"{form.source} has no features", "name a column at least: features=...")
    if reads_whole(counts.ids):
        counts = Counts(*as_whole(counts.ids, counts.sizes, None)[:2], counts.together)
    refuse_long(counts, layout, form.room)
    tables: Iterable[Any] = (with_ids(table, counts) for table in source.tables())
    if not counts.together:
        rows = form.room // layout.row_bytes
        tables = by_query(follow(tables, "sorting", counts.n_rows), counts, rows, form.path.parent)
    groups = row_groups(tables, form.rows(layout))
    form.write(follow(groups, "writing", counts.n_rows), layout)
    return layout


@contextmanager
def naming_disk(path: Path) -> Iterator[None]:
    """What is said of a full disk inside names the file, as `open` does, and says what it needs."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        needed = "there must be room for the file and, where rows are sorted, for all of them uncompressed"
        raise OSError(error.errno, f"{os.strerror(error.errno)}; {needed}", os.fspath(path)) from error


def with_ids(table: Any, counts: Counts) -> Any:
    """Give a table whose ids, the first column, are of the type in which all are different."""
    import pyarrow as pa

    kind = pa.string() if counts.ids.dtype.kind == "U" else pa.from_numpy_dtype(counts.ids.dtype)
    if table.schema.field(0).type == kind:
        return table
    return table.set_column(0, table.column_names[0], table.column(0).cast(kind))


def refuse_long(counts: Counts, layout: Layout, room: int) -> None:
    """Refuse a query that is too large to be read at once."""
    longest = int(np.argmax(counts.sizes))
    size = int(counts.sizes[longest]) * layout.row_bytes
    if size > room:
        query = f"query {counts.ids[longest].item()!r} has {counts.sizes[longest]:,} rows"
        least = written_size(IN_FLIGHT * size, up=True)
        wanted = f"at least {least}, {IN_FLIGHT} times the largest query: {query}"
        raise ParameterError("memory", written_size(IN_FLIGHT * room), wanted)


@contextmanager
def telling(verbose: int) -> Iterator[Follow]:
    """Give a function that shows a bar while it hands things on, or that only hands them on."""
    if not is_wanted(verbose):
        yield lambda items, _title, _total: items
        return
    with shown() as bar:

        def follow(items: Iterable[Any], title: str, total: int | None) -> Iterator[Any]:
            task = bar.add_task(title, total=total)
            for item in items:
                yield item
                bar.update(task, advance=len(item))

        yield follow
