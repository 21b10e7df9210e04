"""Row sources: anything that holds rows, read as checked tables of bounded size."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from concordant._base.validate import id_kind
from concordant.data.io.roles import Roles, check_qid_column, find_repeated
from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.scale.convert.layout import RowChunk, RowLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Spill: rows on disk, in an unnamed temporary file, which disappears with its process.


class Spill:
    """Tables that are written in sequence, and then read in that order.

    Parameters
    ----------
    folder
        Folder whose disk is used: that of the result, which has room for about as much.
    """

    def __init__(self, folder: Path) -> None:
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by the owner of the spill
        self.writer: Any = None

    def close(self) -> None:
        """Close and delete the file."""
        self.writer = None
        self.file.close()

    def write(self, table: Any) -> None:
        """Append rows."""
        from pyarrow import ipc

        if self.writer is None:
            self.writer = ipc.new_stream(self.file, table.schema)
        self.writer.write_table(table)

    def tables(self) -> Iterator[Any]:
        """Read the rows, in tables as they were written."""
        import pyarrow as pa

        if self.writer is None:
            return
        self.writer.close()
        self.file.seek(0)
        with pa.ipc.open_stream(self.file) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])


CHUNK_BYTES = 16 << 20  # largest chunk of rows that is processed at a time


class RowSource(Protocol):
    """Rows that can be read twice: first their ids, then all of them."""

    @property
    def layout(self) -> RowLayout:
        """Columns to write, and their types; known once all ids were read."""

    def ids(self) -> Iterator[NDArray[Any]]:
        """Yield the query ids of all rows, chunk by chunk."""

    def tables(self) -> Iterator[Any]:
        """Yield all rows, checked and in the layout, chunk by chunk."""


@dataclass(frozen=True)
class ConversionOptions:
    """Options of a conversion that the caller chose.

    Attributes
    ----------
    roles
        Columns by role, as arguments of `Roles.from_columns`.
    dtype
        Type of the features; None: as in the source.
    room
        Bytes that rows may take at a time: the memory limit divided by the copies alive at once.
    """

    roles: dict[str, Any]
    dtype: str | None
    room: int

    def layout(self, roles: Roles, dtype: str, docid_bytes: int | None = None) -> RowLayout:
        """Build the layout of a source with these columns, type and document id size."""
        return RowLayout(roles, self.dtype or dtype, self.dtype is not None, docid_bytes)

    def rows(self, layout: RowLayout) -> int:
        """Return the number of rows per chunk."""
        return int(max(1, min(CHUNK_BYTES, self.room // 4) // layout.row_bytes))

    def assign_names(self, n_features: int, first: int = 1, *, docid: bool) -> Roles:
        """Name the columns of a source without names: features are f1, f2, and so on."""
        if weights := [role for role in ("sample_weight", "query_weight") if self.roles[role] is not None]:
            raise ParameterError(weights[0], self.roles[weights[0]], "None for a source without that column")
        check_qid_column(self.roles["qid"])
        names = self.roles["features"]
        if names is None:
            names = [f"f{first + number}" for number in range(n_features)]
        if len(names) != n_features:
            raise ParameterError("features", names, f"{n_features} names, one for each feature of the source")
        document = (self.roles["docid"] or "docid") if docid else None
        roles = Roles(self.roles["qid"], self.roles["grade"] or "grade", tuple(names), document)
        other_names = [roles.qid, roles.grade, *([] if document is None else [document])]
        if (name := find_repeated([*other_names, *roles.features])) is not None:
            problem = f"two columns would be called {name!r}"
            raise LabelError(problem, "give qid=, grade=, docid= and features= names that differ.")
        return roles


@dataclass(frozen=True)
class ChunkedSource:
    """Consecutive tables; `chunks` yields them, with all or with some columns."""

    layout: RowLayout
    chunks: Callable[[Sequence[str] | None], Iterable[RowChunk]]

    def ids(self) -> Iterator[NDArray[Any]]:
        """Yield the ids of all rows; raise if text and numbers are mixed."""
        first = None
        for chunk in self.chunks((self.layout.roles.qid,)):
            ids = self.layout.ids(chunk)
            kind = id_kind(ids)
            first = first or (kind, chunk.location)
            if kind != first[0]:
                raise _other_kind(chunk.location, kind, first[1], first[0])
            yield ids

    def tables(self) -> Iterator[Any]:
        """Yield all rows."""
        return (self.layout.table(chunk) for chunk in self.chunks(None))


def _other_kind(location: str, kind: str, other: str, other_kind: str) -> LabelError:
    problem = f"{location}: query ids are {kind}, and {other_kind} in {other}"
    return LabelError(problem, "give every id as the same type.")


class SpooledSource:
    """Pieces that can be read only once: written to a file as they arrive, and read again from there.

    Parameters
    ----------
    pieces
        Pieces, each cut into chunks by `cut`, which also gets the piece's number and the layout so far.
    cut
        Returns the layout, decided by the first piece that has rows, and the chunks of a piece.
    folder
        Folder whose disk is used.
    """

    def __init__(
        self,
        pieces: Iterable[Any],
        cut: Callable[..., tuple[RowLayout | None, Iterator[RowChunk]]],
        folder: Path,
    ) -> None:
        self.pieces, self.cut, self.spill = pieces, cut, Spill(folder)
        self.first_layout: RowLayout | None = None

    @property
    def layout(self) -> RowLayout:
        """Columns to write, decided by the first piece with rows."""
        if self.first_layout is None:
            raise EmptyDataError("the source")
        return self.first_layout

    def ids(self) -> Iterator[NDArray[Any]]:
        """Yield the ids of all rows."""
        for table in self.checked_tables():
            self.spill.write(table)
            yield self.layout.ids(RowChunk(table))

    def checked_tables(self) -> Iterator[Any]:
        """Yield all rows as they arrive."""
        schema = None
        for number, piece in enumerate(self.pieces):
            self.first_layout, chunks = self.cut(piece, number, self.first_layout)
            for chunk in chunks:
                table = _widen_ids(self.layout.table(chunk))
                schema = schema or table.schema
                if table.schema != schema:
                    kinds = table.schema.field(0).type, schema.field(0).type
                    raise _other_kind(chunk.location, kinds[0], "the pieces before", kinds[1])
                yield table

    def tables(self) -> Iterator[Any]:
        """Read all rows back."""
        return self.spill.tables()

    def close(self) -> None:
        """Close and delete the file."""
        self.spill.close()


def _widen_ids(table: Any) -> Any:
    """Cast integer ids, the first column, to 64 bits, signed if they fit."""
    import pyarrow as pa

    column, kind = table.column(0), table.schema.field(0).type
    if not pa.types.is_integer(kind) or pa.types.is_int64(kind):
        return table
    try:
        column = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return table  # uint64 values that do not fit
    return table.set_column(0, table.column_names[0], column)
