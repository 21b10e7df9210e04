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
from concordant.supervision.scans.scan import PartRows
from concordant.supervision.scans.sizes import row_bytes

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
    zero_based, has_qid
        Whether features are counted from 0, and whether rows of the set have query ids.
    documents, docid_bytes
        Whether document ids are read, and the bytes that one takes; 0 if the set has none.
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
    docid_bytes: int
    documents: bool = False

    @property
    def name(self) -> str:
        """Where the rows are."""
        return f"{self.shown}, lines {self.lines + 1} to {self.lines + self.n_lines}"

    @property
    def nbytes(self) -> int:
        """Memory that the rows take while they are worked on."""
        size = row_bytes(self.n_features, self.dtype) + (self.docid_bytes if self.documents else 0)
        return self.n_rows * size + (self.stop - self.start) // 3  # text is there of two that are being read

    @property
    def roles(self) -> Roles:
        """Names of the columns, where names are needed: features are called by their index."""
        first = 0 if self.zero_based else 1
        names = tuple(f"f{first + number}" for number in range(self.n_features))
        return Roles("qid", "grade", names, "docid" if self.docid_bytes else None)

    def where(self, row: int) -> tuple[str, int]:
        """Rows are counted in the part."""
        return self.name, row

    def read(self) -> PartRows:
        """Give the rows; a line that breaks the format is refused by file, line and column."""
        data = parse_letor(
            [Source(self.shown, self.text(), self.lines)],
            n_features=self.n_features,
            dtype=self.dtype,
            zero_based=self.zero_based,
            has_qid=self.has_qid,
            docids=self.documents,
        )
        queries = Queries.from_ids(data.qid)
        if mark_of(queries.ids, queries.sizes) != self.mark:
            raise self.changed()
        docid = data.docid
        if docid is None and self.documents and self.docid_bytes:
            docid = np.full(self.n_rows, "")
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
        return ConcordantError(f"{self.name}: it changed since it was scanned.\nHint: scan it again.")
