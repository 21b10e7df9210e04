"""Row sources by kind: table files, LETOR text, frames, ranking data, scans and iterables of these."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.files import (
    COMPRESSED,
    list_paths,
    naming_archive,
    open_binary,
)
from concordant._base.validate import check_grades, check_ids, check_lengths
from concordant.data.io.roles import Roles
from concordant.data.io.tables import (
    FORMATS,
    frame_roles,
    naming_damage,
    naming_line,
    number_columns,
    open_columns,
)
from concordant.data.labels import RankingData
from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.scale.convert.layout import RowChunk, RowLayout
from concordant.scale.convert.row_sources import ChunkedSource, ConversionOptions, RowSource, SpooledSource
from concordant.scale.scan.letor_scan import PIECE, Outline, text_pieces
from concordant.scale.scan.parquet import join_paths, parquet_files, read_schema
from concordant.scale.scan.row_groups import (
    common_dtype,
    common_roles,
    docid_bytes,
    feature_dtype,
    read_footer,
    text_bytes,
)
from concordant.scale.scan.scan import PartRows, Scan, scan_column_error

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Table files as sources: Parquet, Feather, CSV and TSV, read some rows at a time.

BUFFER = 1 << 17  # bytes of each column of a Parquet file that are read at a time
BLOCK = 1 << 22  # bytes of text that pyarrow turns into numbers at a time


def _parquet_source(files: Sequence[str], options: ConversionOptions) -> RowSource:
    """Open Parquet files, with rows in any order and row groups of any size."""
    schemas = {file: read_schema(file) for file in files}
    docid = common_roles(schemas, options.roles).docid
    sizes = [docid_bytes(read_footer(str(Path(file).absolute())).metadata, docid) for file in files]
    return _chunked_source(files, schemas, options, _parquet_chunks, max(sizes, default=0))


def _chunked_source(
    files: Sequence[str],
    schemas: Mapping[str, Any],
    options: ConversionOptions,
    chunks: Callable[..., Iterator[RowChunk]],
    docid_size: int | None = None,
) -> RowSource:
    """Build the source of files of the same kind and columns; `docid_size`: bytes of a document id."""
    roles = common_roles(schemas, options.roles)
    layout = options.layout(roles, common_dtype(schemas, roles), docid_size)
    rows = options.rows(layout)

    def all_chunks(columns: Sequence[str] | None) -> Iterator[RowChunk]:
        for file in files:
            yield from chunks(file, list(columns or roles.named), rows)

    return ChunkedSource(layout, all_chunks)


def _parquet_chunks(file: str, columns: list[str], rows: int) -> Iterator[RowChunk]:
    """Yield the rows of a Parquet file; only some rows of a row group are in memory."""
    from pyarrow.parquet import ParquetFile

    options: dict[str, Any] = {"buffer_size": BUFFER, "page_checksum_verification": True}
    with naming_damage(file, ".parquet"), ParquetFile(file, **options) as opened:
        for number in range(opened.num_row_groups):
            batches = opened.iter_batches(rows, row_groups=[number], columns=columns)
            yield from _locate_batches(batches, f"{file}, row group {number}")


def _locate_batches(batches: Iterator[Any], location: str) -> Iterator[RowChunk]:
    """Yield record batches as chunks that know their location; empty batches are skipped."""
    import pyarrow as pa

    start = 0
    for batch in batches:
        if batch.num_rows:
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            yield RowChunk(table, location, start)
        start += batch.num_rows


def _feather_source(files: Sequence[str], options: ConversionOptions) -> RowSource:
    """Open Feather (Arrow IPC) files; their record batches are read whole."""
    schemas = {}
    for file in files:
        with naming_damage(file, ".feather"), _opened_feather(file) as opened:
            schemas[file] = opened.schema
    return _chunked_source(files, schemas, options, _feather_chunks)


def _opened_feather(file: str) -> Any:
    """Open a file without memory mapping: reading a mapped file that was truncated would kill the process."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.OSFile(file))


def _feather_chunks(file: str, columns: list[str], rows: int) -> Iterator[RowChunk]:

    def batches(opened: Any) -> Iterator[Any]:
        for number in range(opened.num_record_batches):
            batch = opened.get_batch(number).select(columns)
            yield from (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))

    with naming_damage(file, ".feather"), _opened_feather(file) as opened:
        yield from _locate_batches(batches(opened), file)


def _csv_source(files: Sequence[str], options: ConversionOptions, delimiter: str) -> RowSource:
    """Open text tables; id columns stay text, all others are numbers, as the first rows must show."""
    schemas = {}
    for file in files:
        with _opened_csv(file, delimiter) as opened:
            schemas[file] = opened.schema
    roles = common_roles(schemas, options.roles)
    types = {file: _csv_types(schema, roles) for file, schema in schemas.items()}
    return _chunked_source(files, schemas, options, partial(_csv_chunks, types=types, delimiter=delimiter))


def _csv_types(schema: Any, roles: Roles) -> dict[str, Any]:
    """Return the column types to read: the first rows may look like whole numbers when later ones are not."""
    import pyarrow as pa

    ids = dict.fromkeys([name for name in (roles.qid, roles.docid) if name is not None], pa.string())
    others = [field for field in schema if field.name in roles.named and not pa.types.is_boolean(field.type)]
    return dict.fromkeys([field.name for field in others], pa.float64()) | ids


@contextmanager
def _opened_csv(file: str, delimiter: str, **convert: Any) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    with naming_archive(file), open_binary(file) as stream:
        first_line = next((line for line in stream if line.strip(b"\r\n")), b"")
        if not first_line:
            raise EmptyDataError(file)
        names = number_columns(file, first_line.rstrip(b"\n"), delimiter)
    with naming_archive(file), open_binary(file) as stream, naming_damage(file, ".csv"), naming_line(file):
        parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        # errors name lines only with a single thread
        options = csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names)
        yield csv.open_csv(pa.PythonFile(stream, "r"), options, parse, csv.ConvertOptions(**convert))


def _csv_chunks(
    file: str, columns: list[str], rows: int, *, types: Mapping[str, Any], delimiter: str
) -> Iterator[RowChunk]:
    with _opened_csv(file, delimiter, column_types=types[file], include_columns=columns) as opened:
        parts = (batch.slice(first, rows) for batch in opened for first in range(0, batch.num_rows, rows))
        yield from _locate_batches(parts, file)


# Data in memory, and scans, as sources.


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """Unnamed features with the names assigned to them, and the other, named columns."""

    X: Any
    names: tuple[str, ...]
    others: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: slice) -> Any:
        import pyarrow as pa

        X = self.X[rows]
        features = np.ascontiguousarray((X.toarray() if hasattr(X, "toarray") else np.asarray(X)).T)
        others = {name: values[rows] for name, values in self.others.items()}
        return pa.table({**others, **dict(zip(self.names, features, strict=True))})


def _table_source(data: Any, options: ConversionOptions) -> RowSource:
    layout, frame = _lay_out(data, options)
    return ChunkedSource(layout, lambda _: _cut_rows(frame, options.rows(layout)))


def _spooled_source(pieces: Iterable[Any], options: ConversionOptions, folder: Path) -> SpooledSource:
    """Build the source of ranking data or frames that can be iterated only once."""

    def cut_piece(
        piece: Any, number: int, first_layout: RowLayout | None
    ) -> tuple[RowLayout | None, Iterator[RowChunk]]:
        try:
            with RowChunk(None, f"piece {number}").located():
                layout, frame = _lay_out(piece, options)
        except EmptyDataError:
            return first_layout, iter(())
        first_layout = first_layout or layout
        if first_layout.roles != layout.roles:
            raise _other_piece(number, first_layout.roles, layout.roles)
        return first_layout, _cut_rows(frame, options.rows(first_layout), f"piece {number}")

    return SpooledSource(pieces, cut_piece, folder)


def _other_piece(number: int, first: Roles, other: Roles) -> LabelError:
    differing = sorted(set(first.named) ^ set(other.named)) or ["in another order"]
    problem = f"piece {number} has other columns than piece 0: {', '.join(differing[:5])}"
    return LabelError(problem, "all pieces have the same columns, in the same order.")


def _cut_rows(frame: Any, rows: int, location: str = "") -> Iterator[RowChunk]:
    return (RowChunk(frame[first : first + rows], location, first) for first in range(0, len(frame), rows))


def _lay_out(data: Any, options: ConversionOptions) -> tuple[RowLayout, Any]:
    """Return the layout, and a table that can be sliced by rows."""
    if isinstance(data, RankingData):
        X = (
            data.X.tocsr() if hasattr(data.X, "tocsr") else data.X
        )  # other sparse formats cannot be sliced by rows
        others = {"qid": check_ids(data.qid), "grade": check_grades(data.y), "docid": data.docid}
        check_lengths("X", X.shape[0], **others)
        roles = options.assign_names(X.shape[1], docid=data.docid is not None)
        return options.layout(roles, feature_dtype([X.dtype])), _name_columns(X, roles, others)
    import narwhals as nw
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    column, names = open_columns(data)
    roles = frame_roles(data, names, **options.roles)
    kinds = [column(name).dtype for name in roles.features]
    native = nw.from_native(data)
    frame = native.collect() if isinstance(native, nw.LazyFrame) else native
    return options.layout(roles, feature_dtype(kinds)), frame


def _name_columns(X: Any, roles: Roles, others: dict[str, Any]) -> FeatureMatrix:
    """Name columns by role; missing document ids become empty strings."""
    columns = {}
    for role, values in others.items():
        if (name := getattr(roles, role)) is not None:
            columns[name] = np.full(X.shape[0], "") if values is None else np.asarray(values)
    return FeatureMatrix(X, roles.features, columns)


@dataclass(frozen=True)
class ScanRows:
    """Rows of a scan, part by part."""

    scan: Scan
    layout: RowLayout
    rows: int

    def ids(self) -> Iterator[NDArray[Any]]:
        """Yield the ids of all rows from the scan's index."""
        index = self.scan.index
        for part in range(len(self.scan.parts)):
            queries = index.part_slice(part)
            yield np.repeat(index.ids[queries], index.sizes[queries])

    def tables(self) -> Iterator[Any]:
        """Yield all rows."""
        for part, rows in zip(self.scan.parts, self.scan, strict=True):
            frame = _name_columns(rows.X, self.layout.roles, _part_columns(rows))
            yield from (self.layout.table(chunk) for chunk in _cut_rows(frame, self.rows, part.name))


def _part_columns(rows: PartRows) -> dict[str, Any]:
    ids = np.repeat(rows.queries.ids, rows.queries.sizes)
    weights = {"sample_weight": rows.sample_weight, "query_weight": rows.query_weight}
    return {"qid": ids, "grade": rows.y, "docid": rows.docid, **weights}


def _scan_source(scan: Scan, options: ConversionOptions) -> RowSource:
    """Build the source of a scan; raise if the caller names columns, which the scan has already."""
    requested = {**options.roles, "qid": None if options.roles["qid"] == "qid" else options.roles["qid"]}
    for name, value in requested.items():
        if value is not None:
            raise scan_column_error(name)
    parts: Sequence[Any] = scan.parts
    documents = max(part.docid_bytes for part in parts)
    layout = options.layout(parts[0].roles, parts[0].dtype, documents)
    return ScanRows(scan, layout, options.rows(layout))


SOURCE_KINDS = (
    "a file, several files, a folder of Parquet files, ranking data, a frame, a scan or several frames"
)


def open_source(
    source: Any,
    options: ConversionOptions,
    n_features: int | None,
    zero_based: bool,
    folder: Path,
    stack: ExitStack,
) -> RowSource:
    """Build the row source; an iterable is spooled to the folder's disk until the stack is closed."""
    source = RankingData.like(source) or source
    if isinstance(source, Mapping):  # whose keys would be taken for file names
        raise ParameterError.because(f"source must be {SOURCE_KINDS}, got {type(source).__name__}.")
    if isinstance(source, Iterable) and not (_is_path(source) or _is_whole(source)):
        pieces = iter(source)
        first = next(pieces, None)
        if first is None:
            raise EmptyDataError("the source")
        source = chain([first], pieces)
        if not _is_path(first):
            _refuse_letor(n_features, zero_based)
            return stack.enter_context(closing(_spooled_source(source, options, folder)))
    if _is_path(source) or isinstance(source, chain):
        return _file_source(list_paths(source, "source"), options, n_features, zero_based)
    _refuse_letor(n_features, zero_based)
    if not _is_whole(source):
        raise ParameterError.because(f"source must be {SOURCE_KINDS}, got {type(source).__name__}.")
    return _scan_source(source, options) if isinstance(source, Scan) else _table_source(source, options)


def describe_source(source: Any) -> str:
    """Return the file names of a source for messages, or "the source"."""
    files = source if isinstance(source, list | tuple) else [source]
    if not files or not all(map(_is_path, files)):
        return "the source"
    return join_paths([os.fspath(file) for file in files], source)


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _is_whole(source: Any) -> bool:
    """True for a source that holds all rows: ranking data, a scan or a frame."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(source, RankingData | Scan | pa.RecordBatch):
        return True
    try:
        return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # a frame that raises a named error later
        return True


def _file_source(
    files: Sequence[str], options: ConversionOptions, n_features: int | None, zero_based: bool
) -> RowSource:
    """Open files of the same kind, read from their suffixes; files that are not tables are LETOR text."""
    kinds = {file: _file_kind(file) for file in files}
    if len(set(kinds.values())) > 1:
        first, other = list({kind: file for file, kind in kinds.items()}.values())[:2]
        raise LabelError(
            f"{first} and {other} are of different kinds", "convert files of one kind at a time."
        )
    kind = next(iter(kinds.values()))
    if kind == "":
        return LetorSource(files, options, n_features, zero_based=zero_based)
    _refuse_letor(n_features, zero_based)
    if kind in (".csv", ".tsv"):
        return _csv_source(files, options, "," if kind == ".csv" else "\t")
    return (
        _feather_source(files, options)
        if kind == ".feather"
        else _parquet_source(parquet_files(files), options)
    )


def _file_kind(file: str) -> str:
    """Return the suffix by which a file is read; LETOR text has none.

    >>> _file_kind("train.txt.gz"), _file_kind("a.pq"), _file_kind("a.csv.xz")
    ('', '.parquet', '.csv')
    """
    inner = Path(file).with_suffix("") if Path(file).suffix in COMPRESSED else Path(file)
    if Path(file).is_dir() or inner.suffix == ".pq":
        return ".parquet"
    if inner != Path(file) and inner.suffix in FORMATS and inner.suffix not in (".csv", ".tsv"):
        raise ParameterError(
            "source", file, "uncompressed", hint="Parquet and Feather files compress themselves."
        )
    return {".arrow": ".feather"}.get(inner.suffix, inner.suffix if inner.suffix in FORMATS else "")


def _refuse_letor(n_features: int | None, zero_based: bool) -> None:
    """Raise if options of LETOR text are passed for another source."""
    if n_features is not None or zero_based:
        name, value = ("n_features", n_features) if n_features is not None else ("zero_based", zero_based)
        raise ParameterError.because(
            f"{name}={value!r} was given, but it applies to LETOR text only. Leave it out."
        )


class LetorSource:
    """LETOR files, plain or compressed; columns have no names there."""

    def __init__(
        self, files: Sequence[str], options: ConversionOptions, n_features: int | None, *, zero_based: bool
    ) -> None:
        self.files, self.options = files, options
        dtype = options.dtype or "float64"
        self.outline = Outline(n_features, zero_based=zero_based, dtype=dtype, room=options.room)

    @property
    def layout(self) -> RowLayout:
        """Columns to write, and their types."""
        outline = self.outline
        roles = self.options.assign_names(outline.n_features, outline.base, docid=outline.docid_length > 0)
        return self.options.layout(roles, outline.dtype, text_bytes(outline.docid_length))

    def ids(self) -> Iterator[NDArray[Any]]:
        """Yield the ids of all rows."""
        outlines = (
            self.outline.read(text) for file in self.files for _, text in text_pieces(file, self.size)
        )
        return (columns.qids for columns in outlines if columns is not None)

    def tables(self) -> Iterator[Any]:
        """Yield all rows."""
        layout = self.layout
        for file in self.files:
            for _, text in text_pieces(file, self.size):
                with suppress(EmptyDataError):  # a piece of comments
                    data = self.outline.parse(text)
                    others = {"qid": data.qid, "grade": data.y, "docid": data.docid}
                    frame = _name_columns(data.X, layout.roles, others)
                    yield from (
                        layout.table(chunk) for chunk in _cut_rows(frame, self.options.rows(layout), file)
                    )

    @property
    def size(self) -> int:
        """Bytes of text that are read at a time."""
        return min(PIECE, max(1 << 16, self.options.room // 4))
