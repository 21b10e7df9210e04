"""Rows in memory, and scans, as sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.columns import check_grades, check_ids, check_lengths
from concordant.supervision.data import RankingData
from concordant.supervision.readers.roles import Roles
from concordant.supervision.readers.tables import _columns, frame_roles
from concordant.supervision.scans.conversion.layout import Chunk, Layout
from concordant.supervision.scans.conversion.sources import Pieces, Source, Spooled, Wanted
from concordant.supervision.scans.scan import PartRows, Scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["of_one", "of_pieces", "of_scan"]


@dataclass(frozen=True, eq=False)
class Matrix:
    """Features without names, and the names that they are given; other columns have their own."""

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


def of_one(data: Any, wanted: Wanted) -> Source:
    """Give ranking data or a frame as a source."""
    layout, frame = laid_out(data, wanted)
    return Pieces(layout, lambda _: cut(frame, wanted.rows(layout)))


def of_pieces(pieces: Iterable[Any], wanted: Wanted, folder: Path) -> Spooled:
    """Give ranking data or frames that come one after the other, and once only."""

    def one(piece: Any, number: int, known: Layout | None) -> tuple[Layout | None, Iterator[Chunk]]:
        try:
            with Chunk(None, f"piece {number}").located():
                layout, frame = laid_out(piece, wanted)
        except EmptyDataError:
            return known, iter(())
        known = known or layout
        if known.roles != layout.roles:
            raise other_piece(number, known.roles, layout.roles)
        return known, cut(frame, wanted.rows(known), f"piece {number}")

    return Spooled(pieces, one, folder)


def other_piece(number: int, first: Roles, own: Roles) -> LabelError:
    """Say in which columns a piece differs from the first."""
    differing = sorted(set(first.named) ^ set(own.named)) or ["in another order"]
    problem = f"piece {number} has other columns than piece 0: {', '.join(differing[:5])}"
    return LabelError(problem, "all pieces have the same columns, in the same order.")


def cut(frame: Any, rows: int, place: str = "") -> Iterator[Chunk]:
    """Give a frame in chunks of so many rows."""
    return (Chunk(frame[first : first + rows], place, first) for first in range(0, len(frame), rows))


def laid_out(data: Any, wanted: Wanted) -> tuple[Layout, Any]:
    """Give the layout, and something that can be cut by rows."""
    if isinstance(data, RankingData):
        X = data.X.tocsr() if hasattr(data.X, "tocsr") else data.X  # other sparse ones have no rows to cut
        others = {"qid": check_ids(data.qid), "grade": check_grades(data.y), "docid": data.docid}
        check_lengths("X", X.shape[0], **others)
        roles = wanted.nameless(X.shape[1], docid=data.docid is not None)
        return wanted.layout(roles, kind_of([X.dtype])), named(X, roles, others)
    import narwhals as nw
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    column, names = _columns(data)
    roles = frame_roles(data, names, **wanted.roles)
    kinds = [column(name).dtype for name in roles.features]
    native = nw.from_native(data)
    frame = native.collect() if isinstance(native, nw.LazyFrame) else native
    return wanted.layout(roles, kind_of(kinds)), frame


def kind_of(dtypes: Sequence[np.dtype[Any]]) -> str:
    """Give single precision where it holds every value."""
    return "float32" if all(np.can_cast(own, np.float32) for own in dtypes) else "float64"


def named(X: Any, roles: Roles, others: dict[str, Any]) -> Matrix:
    """Give columns by role their names; of documents without ids the empty one."""
    found = {}
    for role, values in others.items():
        if (name := getattr(roles, role)) is not None:
            found[name] = np.full(X.shape[0], "") if values is None else np.asarray(values)
    return Matrix(X, roles.features, found)


@dataclass(frozen=True)
class Scanned:
    """The rows of a scan, part by part."""

    scan: Scan
    layout: Layout
    rows: int

    def ids(self) -> Iterator[NDArray[Any]]:
        """Give the ids of all rows, which the scan knows."""
        index = self.scan.index
        for part in range(len(self.scan.parts)):
            own = index.own(part)
            yield np.repeat(index.ids[own], index.sizes[own])

    def tables(self) -> Iterator[Any]:
        """Give all rows."""
        for part, rows in zip(self.scan.parts, self.scan, strict=True):
            frame = named(rows.X, self.layout.roles, columns_of(rows))
            yield from (self.layout.table(chunk) for chunk in cut(frame, self.rows, part.name))


def columns_of(rows: PartRows) -> dict[str, Any]:
    """Give the columns of a part, by role."""
    ids = np.repeat(rows.queries.ids, rows.queries.sizes)
    weights = {"sample_weight": rows.sample_weight, "query_weight": rows.query_weight}
    return {"qid": ids, "grade": rows.y, "docid": rows.docid, **weights}


def of_scan(scan: Scan, wanted: Wanted) -> Source:
    """Give a scan as a source; it has its own columns."""
    asked = {**wanted.roles, "qid": None if wanted.roles["qid"] == "qid" else wanted.roles["qid"]}
    for name, value in asked.items():
        if value is not None:
            raise ParameterError(name, value, "left out: a scan has its own columns")
    parts: Sequence[Any] = scan.parts
    documents = max(part.docid_bytes for part in parts)
    layout = wanted.layout(parts[0].roles, parts[0].dtype, documents)
    return Scanned(scan, layout, wanted.rows(layout))
