"""Sources: anything that holds rows, as checked tables of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.columns import kind_of_ids
from concordant.supervision.readers.roles import Roles, check_named, repeated
from concordant.supervision.scans.conversion.layout import Chunk, Layout
from concordant.supervision.scans.conversion.spill import Spill

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pieces", "Source", "Spooled", "Wanted"]

CHUNK_BYTES = 16 << 20  # of rows that are worked on at a time, at most


class Source(Protocol):
    """Rows that can be read twice: their ids, and then all of them.

    Attributes
    ----------
    layout
        What is written of each row; known when all ids were given.
    """

    @property
    def layout(self) -> Layout:
        """What is written of each row."""

    def ids(self) -> Iterator[NDArray[Any]]:
        """Give the ids of all rows, some at a time."""

    def tables(self) -> Iterator[Any]:
        """Give all rows, checked, as they are written, some at a time."""


@dataclass(frozen=True)
class Wanted:
    """What the caller asked for.

    Attributes
    ----------
    roles
        Columns by role, as `Roles.of` takes them.
    dtype
        Of features; None: as the source has them.
    room
        Bytes of rows that may be in memory at a time, over what they are needed for at once.
    """

    roles: dict[str, Any]
    dtype: str | None
    room: int

    def layout(self, roles: Roles, dtype: str, docid_bytes: int | None = None) -> Layout:
        """Give the layout of a source that has this type, and document ids of this size, by itself."""
        return Layout(roles, self.dtype or dtype, self.dtype is not None, docid_bytes)

    def rows(self, layout: Layout) -> int:
        """Give the rows of a chunk."""
        return int(max(1, min(CHUNK_BYTES, self.room // 4) // layout.row_bytes))

    def nameless(self, n_features: int, first: int = 1, *, docid: bool) -> Roles:
        """Give names to the columns of a source that has none: features are f1, f2 and so on."""
        if given := [role for role in ("sample_weight", "query_weight") if self.roles[role] is not None]:
            raise ParameterError(given[0], self.roles[given[0]], "None: the source has no such column")
        check_named(self.roles["qid"])
        names = self.roles["features"]
        if names is None:
            names = [f"f{first + number}" for number in range(n_features)]
        if len(names) != n_features:
            raise ParameterError("features", names, f"{n_features} names, one for each feature of the source")
        document = (self.roles["docid"] or "docid") if docid else None
        roles = Roles(self.roles["qid"], self.roles["grade"] or "grade", tuple(names), document)
        own = [roles.qid, roles.grade, *([] if document is None else [document])]
        if (name := repeated([*own, *roles.features])) is not None:
            problem = f"two columns would be called {name!r}"
            raise LabelError(problem, "give qid=, grade=, docid= and features= names that differ.")
        return roles


@dataclass(frozen=True)
class Pieces:
    """Tables that follow one another; `chunks` gives them, with all columns or with some."""

    layout: Layout
    chunks: Callable[[Sequence[str] | None], Iterable[Chunk]]

    def ids(self) -> Iterator[NDArray[Any]]:
        """Give the ids of all rows; text and numbers are not mixed."""
        first = None
        for chunk in self.chunks((self.layout.roles.qid,)):
            ids = self.layout.ids(chunk)
            kind = kind_of_ids(ids)
            first = first or (kind, chunk.place)
            if kind != first[0]:
                raise other_kind(chunk.place, kind, first[1], first[0])
            yield ids

    def tables(self) -> Iterator[Any]:
        """Give all rows."""
        return (self.layout.table(chunk) for chunk in self.chunks(None))


def other_kind(place: str, kind: str, other: str, before: str) -> LabelError:
    """Say where ids are of another kind than before."""
    problem = f"{place}: query ids are {kind}, and {before} in {other}"
    return LabelError(problem, "give every id as the same type.")


class Spooled:
    """Pieces that come once only: written to a file as they come, and read from there.

    Parameters
    ----------
    pieces
        What comes: each is told by `cut`, with its number and the layout so far, in chunks.
    cut
        Gives the layout, which the first piece that has rows decides, and the chunks of a piece.
    folder
        Whose disk is used.
    """

    def __init__(
        self, pieces: Iterable[Any], cut: Callable[..., tuple[Layout | None, Iterator[Chunk]]], folder: Path
    ) -> None:
        self.pieces, self.cut, self.spill = pieces, cut, Spill(folder)
        self.known: Layout | None = None

    @property
    def layout(self) -> Layout:
        """What is written of each row; the first piece decides."""
        if self.known is None:
            raise EmptyDataError("the source")
        return self.known

    def ids(self) -> Iterator[NDArray[Any]]:
        """Give the ids of all rows."""
        for table in self.checked():
            self.spill.write(table)
            yield self.layout.ids(Chunk(table))

    def checked(self) -> Iterator[Any]:
        """Give all rows as they come."""
        schema = None
        for number, piece in enumerate(self.pieces):
            self.known, chunks = self.cut(piece, number, self.known)
            for chunk in chunks:
                table = widened(self.layout.table(chunk))
                schema = schema or table.schema
                if table.schema != schema:
                    kinds = table.schema.field(0).type, schema.field(0).type
                    raise other_kind(chunk.place, kinds[0], "the pieces before", kinds[1])
                yield table

    def tables(self) -> Iterator[Any]:
        """Give all rows."""
        return self.spill.tables()

    def close(self) -> None:
        """Give the file up."""
        self.spill.close()


def widened(table: Any) -> Any:
    """Give whole numbers in the first column, the ids, as those of 64 bits, with a sign where they fit."""
    import pyarrow as pa

    column, kind = table.column(0), table.schema.field(0).type
    if not pa.types.is_integer(kind) or pa.types.is_int64(kind):
        return table
    try:
        column = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return table  # of uint64, beyond the others
    return table.set_column(0, table.column_names[0], column)
