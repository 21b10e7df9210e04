"""LetorPart: a stretch of a LETOR file that is read at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concordant.exceptions import ConcordantError
from concordant.supervision.queries import Queries
from concordant.supervision.readers._letor_chunks import Source
from concordant.supervision.readers.letor import parse_letor
from concordant.supervision.readers.roles import Roles
from concordant.supervision.readers.text import Bytes
from concordant.supervision.scans.parquet_part import mark_of
from concordant.supervision.scans.scan import PartRows, locating

__all__ = ["LetorPart"]


@dataclass(frozen=True)
class LetorPart:
    """Lines of a LETOR file, small and ready to be sent to another process.

    Attributes
    ----------
    path, shown
        The file, from the root, and as the caller named it.
    start, stop
        The bytes that are read.
    lines, n_lines
        Lines before them, and lines that they are.
    n_rows, n_features
        Rows and columns of X.
    dtype
        Of X: "float32" or "float64".
    zero_based, has_qid, has_docid
        Whether features are counted from 0, and what rows of the whole set have.
    mark
        What the ids and sizes of the queries must hash to.
    """

    path: str
    shown: str
    start: int
    stop: int
    lines: int
    n_lines: int
    n_rows: int
    mark: int
    n_features: int
    dtype: str
    zero_based: bool
    has_qid: bool
    has_docid: bool

    @property
    def name(self) -> str:
        """Where the rows are."""
        return f"{self.shown}, lines {self.lines + 1} to {self.lines + self.n_lines}"

    @property
    def nbytes(self) -> int:
        """Memory that the features take."""
        return self.n_rows * self.n_features * np.dtype(self.dtype).itemsize

    @property
    def roles(self) -> Roles:
        """Names of the columns, where names are needed: features are called by their index."""
        first = 0 if self.zero_based else 1
        names = tuple(f"f{first + number}" for number in range(self.n_features))
        return Roles("qid", "grade", names, "docid" if self.has_docid else None)

    def where(self, row: int) -> tuple[str, int]:
        """Rows are counted in the part."""
        return self.name, row

    def read(self) -> PartRows:
        """Give the rows; a line that breaks the format is refused by file, line and column."""
        with locating(self):
            data = parse_letor(
                [Source(self.shown, self.text(), self.lines)],
                n_features=self.n_features,
                dtype=self.dtype,
                zero_based=self.zero_based,
                has_qid=self.has_qid,
            )
            queries = Queries.from_ids(data.qid)
            if mark_of(queries.ids, queries.sizes) != self.mark:
                raise self.changed()
            docid = np.full(self.n_rows, "") if self.has_docid and data.docid is None else data.docid
            return PartRows.of(data.X, data.y, queries, docid=docid)

    def text(self) -> Bytes:
        """Read the bytes, and end them with a line end."""
        with Path(self.path).open("rb") as stream:
            stream.seek(self.start)
            text = stream.read(self.stop - self.start)
        if len(text) < self.stop - self.start:
            raise self.changed()
        return np.frombuffer(text if text.endswith(b"\n") else text + b"\n", dtype=np.uint8)

    def changed(self) -> ConcordantError:
        """Say that the file is not the one that was scanned."""
        return ConcordantError("it changed since it was scanned.\nHint: scan it again.")
