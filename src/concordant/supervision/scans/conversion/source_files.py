"""Files of tables as sources: Parquet, Feather, CSV and TSV, read some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from concordant.exceptions import EmptyDataError
from concordant.supervision.readers.roles import Roles
from concordant.supervision.readers.tables import naming_damage, naming_line
from concordant.supervision.readers.text import naming_archive, open_binary
from concordant.supervision.scans.conversion.layout import Chunk
from concordant.supervision.scans.conversion.sources import Pieces, Source, Wanted
from concordant.supervision.scans.parquet import schema_of
from concordant.supervision.scans.row_groups import footer_of
from concordant.supervision.scans.schemas import common_dtype, same_roles
from concordant.supervision.scans.sizes import docid_bytes

__all__ = ["of_csv", "of_feather", "of_parquet"]

BUFFER = 1 << 17  # bytes of each column of a Parquet file that are read at a time
BLOCK = 1 << 22  # bytes of text that pyarrow turns into numbers at a time


def of_parquet(files: Sequence[str], wanted: Wanted) -> Source:
    """Give Parquet files, whatever the order of their rows and the size of their row groups."""
    schemas = {file: schema_of(file) for file in files}
    docid = same_roles(schemas, wanted.roles).docid
    sizes = [docid_bytes(footer_of(str(Path(file).absolute())).metadata, docid) for file in files]
    return pieces(files, schemas, wanted, parquet_chunks, max(sizes, default=0))


def pieces(
    files: Sequence[str],
    schemas: Mapping[str, Any],
    wanted: Wanted,
    chunks: Callable[..., Iterator[Chunk]],
    documents: int | None = None,
) -> Source:
    """Give files of one kind as a source; they have the same columns. `documents`: bytes of a document id."""
    roles = same_roles(schemas, wanted.roles)
    layout = wanted.layout(roles, common_dtype(schemas, roles), documents)
    rows = wanted.rows(layout)

    def all_chunks(columns: Sequence[str] | None) -> Iterator[Chunk]:
        for file in files:
            yield from chunks(file, list(columns or roles.named), rows)

    return Pieces(layout, all_chunks)


def parquet_chunks(file: str, columns: list[str], rows: int) -> Iterator[Chunk]:
    """Give the rows of a Parquet file; of a row group only some are in memory."""
    from pyarrow.parquet import ParquetFile

    options: dict[str, Any] = {"buffer_size": BUFFER, "page_checksum_verification": True}
    with naming_damage(file, ".parquet"), ParquetFile(file, **options) as opened:
        for number in range(opened.num_row_groups):
            batches = opened.iter_batches(rows, row_groups=[number], columns=columns)
            yield from placed(batches, f"{file}, row group {number}")


def placed(batches: Iterator[Any], place: str) -> Iterator[Chunk]:
    """Give batches as tables that know where they stand; empty ones are left out."""
    import pyarrow as pa

    start = 0
    for batch in batches:
        if batch.num_rows:
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            yield Chunk(table, place, start)
        start += batch.num_rows


def of_feather(files: Sequence[str], wanted: Wanted) -> Source:
    """Give Feather (Arrow IPC) files; their record batches are read whole."""
    schemas = {}
    for file in files:
        with naming_damage(file, ".feather"), opened_feather(file) as opened:
            schemas[file] = opened.schema
    return pieces(files, schemas, wanted, feather_chunks)


def opened_feather(file: str) -> Any:
    """Open a file; it is not mapped into memory: one cut short by another program would kill the process."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.OSFile(file))


def feather_chunks(file: str, columns: list[str], rows: int) -> Iterator[Chunk]:
    """Give the rows of a Feather file."""

    def batches(opened: Any) -> Iterator[Any]:
        for number in range(opened.num_record_batches):
            batch = opened.get_batch(number).select(columns)
            yield from (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))

    with naming_damage(file, ".feather"), opened_feather(file) as opened:
        yield from placed(batches(opened), file)


def of_csv(files: Sequence[str], wanted: Wanted, delimiter: str) -> Source:
    """Give text tables; id columns stay text, all others are numbers, which the first rows must show."""
    schemas = {}
    for file in files:
        with opened_csv(file, delimiter) as opened:
            schemas[file] = opened.schema
    roles = same_roles(schemas, wanted.roles)
    types = {file: csv_types(schema, roles) for file, schema in schemas.items()}
    return pieces(files, schemas, wanted, partial(csv_chunks, types=types, delimiter=delimiter))


def csv_types(schema: Any, roles: Roles) -> dict[str, Any]:
    """Give the types as which columns are read: the first rows may be whole numbers, and others not."""
    import pyarrow as pa

    ids = dict.fromkeys([name for name in (roles.qid, roles.docid) if name is not None], pa.string())
    others = [field for field in schema if field.name in roles.named and not pa.types.is_boolean(field.type)]
    return dict.fromkeys([field.name for field in others], pa.float64()) | ids


@contextmanager
def opened_csv(file: str, delimiter: str, **convert: Any) -> Iterator[Any]:
    """Open a text table, plain or compressed; it gives some rows at a time."""
    import pyarrow as pa
    from pyarrow import csv

    with naming_archive(file), open_binary(file) as stream:
        if not stream.read(1):
            raise EmptyDataError(file)
    with naming_archive(file), open_binary(file) as stream, naming_damage(file, ".csv"), naming_line(file):
        parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        options = csv.ReadOptions(use_threads=False, block_size=BLOCK)  # one thread: only then it names lines
        yield csv.open_csv(pa.PythonFile(stream, "r"), options, parse, csv.ConvertOptions(**convert))


def csv_chunks(
    file: str, columns: list[str], rows: int, *, types: Mapping[str, Any], delimiter: str
) -> Iterator[Chunk]:
    """Give the rows of a text table."""
    with opened_csv(file, delimiter, column_types=types[file], include_columns=columns) as opened:
        parts = (batch.slice(first, rows) for batch in opened for first in range(0, batch.num_rows, rows))
        yield from placed(parts, file)
