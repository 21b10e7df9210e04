"""Row groups of a Parquet file that are read together; column roles, types and row sizes of table files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from platform import node
from typing import Any, Self

import numpy as np

from concordant._base.validate import check_grades, check_nonnegative
from concordant.data.io.roles import Roles, find_index_columns, find_repeated
from concordant.data.io.tables import check_document_ids, naming_damage, validate_table
from concordant.exceptions import ConcordantError, LabelError, NotNumericError, UnknownNameError

# Sizes: the memory that a row takes while it is read and processed.

# Ranks, scores, targets and gradients of a row, beside its columns. Parts are counted six times, and these
# arrays do not exist six times: measured as a sixth of what a linear fit takes beyond its columns.
WORKING = 40
CHARACTER = 3.5  # bytes, counted six times: numpy takes 4 in three parts, and in a copy for sorting
PAGE_HEADERS = 256  # bytes of a column that are not text
NUMBER_LENGTH = 21  # characters of a number of 64 bits, as text
UNKNOWN_DOCID = 256  # bytes: some 70 characters


def row_bytes(n_features: int, dtype: str, n_weights: int = 0) -> int:
    """Bytes of a row without its document id: features, grade, weights, and working memory.

    >>> row_bytes(136, "float32")
    592
    """
    return n_features * np.dtype(dtype).itemsize + 8 * (1 + n_weights) + WORKING


def text_bytes(length: float) -> int:
    """Bytes of an id with so many characters; a column takes as many per row as its longest id has."""
    return int(np.ceil(CHARACTER * length))


def docid_bytes(metadata: Any, name: str | None) -> int:
    """Bytes of a document id of a Parquet file, estimated from the footer.

    That is the largest mean over row groups, or the length of the smallest or largest id, if recorded.
    """
    columns = [index for index in range(metadata.num_columns) if metadata.schema.column(index).path == name]
    if not columns:
        return 0
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    lengths = [_id_length(group.column(columns[0]), group.num_rows) for group in groups if group.num_rows]
    return text_bytes(max(lengths, default=0))


def _id_length(column: Any, rows: int) -> float:
    if column.physical_type != "BYTE_ARRAY":
        return NUMBER_LENGTH
    statistics = column.statistics
    extremes = [statistics.min, statistics.max] if statistics is not None and statistics.has_min_max else []
    mean = float(column.total_uncompressed_size - PAGE_HEADERS) / rows
    return max([mean, 1.0, *(len(extreme) for extreme in extremes)])


# What table files have in common: roles and types of their columns.


def refuse_repeated(file: str, schema: Any) -> None:
    """Raise if a file has two columns of the same name, or names that cannot be read."""
    with naming_damage(file, "a table"):
        names = schema.names
    if (name := find_repeated(names)) is not None:
        raise LabelError(f"{file}: two columns are called {name!r}", "rename or drop one of them.")


def common_roles(files: Mapping[str, Any], requested: dict[str, Any]) -> Roles:
    """Return the column roles; raise if a file lacks a column that others have."""
    if not files:
        return Roles("", "", ())
    for file, schema in files.items():
        refuse_repeated(file, schema)
    first = next(iter(files))
    roles = Roles.from_columns(files[first].names, hidden=find_index_columns(files[first]), **requested)
    refuse_lacking(files, roles.named)
    for file, schema in files.items():
        extra_columns = {*schema.names}.difference(files[first].names, find_index_columns(schema))
        if requested["features"] is None and extra_columns:
            raise _other_columns(first, min(extra_columns), file)
    if not roles.features:
        raise LabelError(
            f"{first}: no column is left for features", f"it has {', '.join(files[first].names)}."
        )
    return roles


def refuse_lacking(files: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise if a file lacks one of these columns."""
    first = next(iter(files))
    for file, schema in files.items():
        if lacking := [name for name in names if name not in schema.names]:
            if file == first:
                raise UnknownNameError("column", lacking[0], schema.names)
            raise _other_columns(file, lacking[0], first)


def _other_columns(file: str, name: str, other: str) -> LabelError:
    hint = "files that are read together have the same columns; or name features= that all have."
    return LabelError(f"{file} has no column {name!r}, and {other} has one", hint)


def check_columns(column: Callable[[str], Any], roles: Roles) -> dict[str, Any]:
    """Check grades, weights and document ids; by argument of `PartRows`, None where there is no column."""
    weights = {"sample_weight": roles.sample_weight, "query_weight": roles.query_weight}
    checked: dict[str, Any] = {"y": check_grades(column(roles.grade), f"column {roles.grade!r}")}
    for role, name in weights.items():
        checked[role] = None if name is None else check_nonnegative(column(name), f"column {name!r}", "row")
    checked["docid"] = None if roles.docid is None else check_document_ids(column(roles.docid), roles.docid)
    return checked


def common_dtype(files: Mapping[str, Any], roles: Roles) -> str:
    """Return the dtype of X; raise if a column does not hold numbers, before any rows are read."""
    features, kinds = {*roles.features}, []
    for file, schema in files.items():
        for name in roles.numbers:
            kind = number_type(file, schema, name)
            if name in features:
                kinds.append(kind.to_pandas_dtype())
    return feature_dtype(kinds)


def feature_dtype(dtypes: Iterable[Any]) -> str:
    """Return "float32" if it holds every value of these numpy types, else "float64"."""
    return "float32" if all(np.can_cast(dtype, np.float32) for dtype in dtypes) else "float64"


def number_type(file: str, schema: Any, name: str) -> Any:
    """Return the Arrow type of a column of numbers; raise for other types."""
    from pyarrow import types

    kind = schema.field(name).type
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if not (number or types.is_boolean(kind) or types.is_null(kind)):
        raise NotNumericError(f"{file}: column {name!r}", f"it holds {kind}")
    return kind


# RowGroups: row groups of a Parquet file that are read together, independent of what their columns mean.

# Columns of row groups whose page checksums this process has verified, which takes half as long as reading:
# once is enough, since changed files have other stamps.
VERIFIED: set[tuple[object, ...]] = set()


@dataclass(frozen=True)
class RowGroups:
    """Row groups of a Parquet file, small and ready to be sent to another process.

    Attributes
    ----------
    path, shown
        Absolute path of the file, as other processes may run in other folders; and the caller's name of it.
    groups
        Number and rows of each row group.
    stamp
        Stamp of the file's footer; see `Footer`.
    """

    path: str
    shown: str
    groups: tuple[tuple[int, int], ...]
    stamp: int

    @property
    def name(self) -> str:
        """Name in messages: where the rows are."""
        first, last = self.groups[0][0], self.groups[-1][0]
        return f"{self.shown}, " + (
            f"row group {first}" if first == last else f"row groups {first} to {last}"
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(rows for _, rows in self.groups)

    def where(self, row: int) -> tuple[str, int]:
        """Return the name of the row group that holds a row as read, and the row's number there."""
        starts = accumulate((rows for _, rows in self.groups), initial=0)
        number, start = max(
            (number, start)
            for number, start in zip(range(len(self.groups)), starts, strict=False)
            if start <= row
        )
        return f"{self.shown}, row group {self.groups[number][0]}", row - start

    def table(self, columns: tuple[str, ...]) -> Any:
        """Read columns as they are; raise if the file is not the one that was scanned."""
        self.refuse_gone()
        with naming_damage(self.name, ".parquet"):
            pages = (*_file_version(self.path), self.groups, columns)
            file = open_parquet(self.path, verify=pages not in VERIFIED)
            self.refuse_changed(file, columns)
            numbers = [number for number, _ in self.groups]
            table = validate_table(file.read_row_groups(numbers, columns=list(columns)))
            VERIFIED.add(pages)
            return table

    def refuse_gone(self) -> None:
        """Raise if the file is missing on the machine that is to read it."""
        if not Path(self.path).exists():
            problem = f"{self.shown} is not there: {node()} has no {self.path}"
            hint = (
                "scan it again where it is; workers of a cluster read files themselves, under the same path."
            )
            raise ConcordantError(f"{problem}.\nHint: {hint}")

    def refuse_changed(self, file: Any, columns: tuple[str, ...]) -> None:
        """Raise if the file changed since it was scanned, as far as the footer shows."""
        n_groups = file.metadata.num_row_groups
        for number, rows in self.groups:
            current_rows = file.metadata.row_group(number).num_rows if number < n_groups else None
            if current_rows != rows:
                change = "is gone" if current_rows is None else f"has {current_rows} rows, and had {rows}"
                raise self.changed_error(f"row group {number} {change}")
        if lacking := sorted(set(columns) - set(file.schema_arrow.names)):
            raise self.changed_error(f"column {lacking[0]!r} is gone")
        if read_footer(self.path).stamp != self.stamp:
            raise self.changed_error("it has other contents")

    def changed_error(self, problem: str) -> ConcordantError:
        """Build the error for a file that changed since it was scanned."""
        return ConcordantError(f"it changed since it was scanned: {problem}.\nHint: scan it again.")

    def with_group(self, group: tuple[int, int]) -> Self:
        """Return the part with only this row group."""
        return replace(self, groups=(group,))

    @contextmanager
    def located(self, job: str) -> Iterator[None]:
        """Add the row group and its row number to errors; if several row groups fail, try each by itself."""
        try:
            yield
        except ConcordantError as error:
            if len(self.groups) > 1:
                for group in self.groups:
                    getattr(self.with_group(group), job)()
            if not str(error).startswith(self.shown):
                error.args = (f"{self.name}: {error}",)
            raise


def open_parquet(path: str, *, verify: bool = True) -> Any:
    """Open a Parquet file; `verify` compares pages with their checksums, if there are any."""
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, metadata=read_footer(path).metadata, page_checksum_verification=verify)


@dataclass(frozen=True)
class Footer:
    """Footer of a Parquet file.

    Attributes
    ----------
    metadata
        Metadata as read by pyarrow.
    stamp
        CRC-32 of its bytes. Footers written by `write_parquet` hold a checksum of all contents. Others hold
        the offsets, the sizes and usually the extremes of the columns: values replaced by others of the same
        size between the same extremes go unnoticed.
    """

    metadata: Any
    stamp: int


def read_footer(path: str) -> Footer:
    """Read the footer of a file; it may be long, and is cached."""
    return _read_cached_footer(*_file_version(path))


def _file_version(path: str) -> tuple[str, int, int]:
    """Return the path with the file's size and modification time, which tell versions of a file apart."""
    stat = Path(path).stat()
    return path, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=16)
def _read_cached_footer(path: str, _size: int, _changed: int) -> Footer:
    from pyarrow.parquet import read_metadata

    with Path(path).open("rb") as stream:  # open once: opened again by name it might be another file
        metadata = read_metadata(stream)
        stream.seek(-8 - metadata.serialized_size, os.SEEK_END)  # its length and four magic bytes follow
        return Footer(metadata, zlib.crc32(stream.read()))
