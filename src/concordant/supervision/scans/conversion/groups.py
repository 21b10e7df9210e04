"""Row groups: whole queries, as many as fit; and the file that they become."""

from __future__ import annotations

import errno
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from concordant.exceptions import LabelError, ParameterError
from concordant.supervision.queries import Queries
from concordant.supervision.readers.text import write_atomically
from concordant.supervision.scans.conversion.counts import run_starts
from concordant.supervision.scans.conversion.layout import Layout
from concordant.supervision.scans.parquet import WHOLE_QUERIES
from concordant.supervision.weights import agreed_weights

__all__ = ["Form", "row_groups"]

COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")
MOST_ROWS = 1 << 26  # of a row group: pyarrow cuts longer ones
SUM = b"concordant.crc32"  # says the footer of all bytes before it, so that no two files have the same


def row_groups(tables: Iterable[Any], most_rows: int) -> Iterator[Any]:
    """Cut rows, of which those of each query (first column) stand together, where queries end.

    Each has at most so many rows, unless a query alone has more; none could take the next query too.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    for table in tables:
        waiting.append(table)
        while sum(one.num_rows for one in waiting) > most_rows:
            rows = pa.concat_tables(waiting)
            starts = run_starts(rows.column(0).to_numpy())
            fitting = starts[(starts > 0) & (starts <= most_rows)]
            if not len(fitting) and len(starts) == 1:
                break  # nothing but one query, of which more may come
            edge = int(fitting[-1] if len(fitting) else starts[1])
            yield rows.slice(0, edge)
            waiting = [rows.slice(edge)]
    if waiting := [one for one in waiting if one.num_rows]:
        yield pa.concat_tables(waiting)


@dataclass(frozen=True)
class Form:
    """The file that is written.

    Attributes
    ----------
    path
        Where.
    group, room
        Bytes of features in a row group, and of rows that may be in memory at a time.
    compression
        One of `COMPRESSIONS`.
    source
        What is written, for messages.
    """

    path: Path
    group: int
    room: int
    compression: str
    source: str

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise ParameterError("compression", self.compression, f"one of {', '.join(COMPRESSIONS)}")
        if self.path.suffix not in (".parquet", ".pq"):
            raise ParameterError("path", os.fspath(self.path), "a file name that ends in .parquet")
        if self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(self.path))
        if not self.path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "its folder is not there", os.fspath(self.path))

    def rows(self, layout: Layout) -> int:
        """Rows of a row group, at most."""
        return max(1, min(MOST_ROWS, self.group // layout.feature_bytes, self.room // layout.row_bytes))

    def write(self, groups: Iterable[Any], layout: Layout) -> None:
        """Write row groups; features as they are, since a dictionary of them takes long to make."""
        from pyarrow.parquet import ParquetWriter

        roles, weight, groups = layout.roles, 0.0, iter(groups)
        first = next(groups)  # there is one: rows were counted
        schema = first.schema.with_metadata(WHOLE_QUERIES)
        options: dict[str, Any] = {"compression": self.compression, "write_page_checksum": True}
        options |= {"use_dictionary": [roles.qid, roles.grade], "write_statistics": [roles.qid]}
        with write_atomically(self.path) as stream:
            summed = Summed(stream)
            with ParquetWriter(summed, schema, **options) as writer:
                for group in chain([first], groups):
                    weight = max(weight, self.largest_weight(group, roles.query_weight))
                    writer.write_table(group.cast(schema), row_group_size=group.num_rows)
                writer.add_key_value_metadata({SUM: f"{summed.crc:08x}"})
            if not weight:
                raise ParameterError("query_weight", "all zero", "positive for at least one query")

    def largest_weight(self, group: Any, name: str | None) -> float:
        """Give the largest weight of a query; rows of one must agree."""
        if name is None:
            return 1.0
        queries = Queries.from_ids(group.column(0).to_numpy())
        try:
            return float(agreed_weights(group.column(name).to_numpy(), queries).max())
        except LabelError as error:
            error.args = (f"{self.source}: {error}",)
            raise


class Summed(io.RawIOBase):
    """A stream to which is written, and the CRC-32 of what was."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.crc = stream, 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Write some bytes."""
        self.crc = zlib.crc32(data, self.crc)
        return self.stream.write(data)
