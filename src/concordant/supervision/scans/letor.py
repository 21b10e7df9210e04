"""scan_letor: LETOR text as a set of queries that is read part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from concordant.exceptions import EmptyDataError, ParameterError
from concordant.supervision.queries import Queries
from concordant.supervision.readers.text import COMPRESSED, Bytes, PathLike, paths_of
from concordant.supervision.scans.conversion.counts import run_starts
from concordant.supervision.scans.conversion.layout import checked_dtype
from concordant.supervision.scans.index import Index, Piece
from concordant.supervision.scans.letor_part import LetorPart
from concordant.supervision.scans.letor_text import NEWLINE, Outline, text_pieces
from concordant.supervision.scans.parquet_part import mark_of
from concordant.supervision.scans.scan import IN_FLIGHT, Scan, read_size
from concordant.supervision.scans.sizes import row_bytes, text_bytes
from concordant.types import IntArray

__all__ = ["scan_letor"]

PART_BYTES = 64 << 20  # of text, or of rows if they take more, after which a part ends with its query


def scan_letor(
    files: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike = "float64",
    memory: int | str = "1 GiB",
) -> Scan:
    r"""Queries of LETOR (SVMlight) text, of which only some lines are in memory at a time.

    Parameters
    ----------
    files
        A file, or several that are read as one set; not compressed, since those cannot be read from the
        middle: `cc.write_parquet` converts them.
    n_features, zero_based
        As `read_letor` has them.
    dtype
        float64 or float32.
    memory
        Bytes that rows may take at a time, as a number or as text such as "500 MiB".

    Returns
    -------
    Scan
        Parts are stretches of about 64 MiB of text (or of rows in memory, if those take more), each of which
        ends where a query does. Text has no feature names.

    Raises
    ------
    MalformedLineError
        At the first line that breaks the format; all lines are read once here.
    LabelError
        If the rows of a query are in two parts: `cc.write_parquet` sorts them.
    ParameterError
        If a file is compressed, or six times the largest part is more than `memory`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "train.txt")
    ...     _ = text.write_text("1 qid:7 1:0.5\n0 qid:7 2:1\n2 qid:3 1:2\n")
    ...     scan = scan_letor(text)
    ...     [rows.y.tolist() for rows in scan]
    [[2.0, 1.0, 0.0]]
    """
    limit = read_size(memory)
    names = paths_of(files, "files")
    kind = checked_dtype(dtype) or "float64"
    outline = Outline(n_features, zero_based=zero_based, dtype=kind, room=limit // IN_FLIGHT)
    runs = [(name, Runs.of(name, outline)) for name in names]  # all are read before the width is known
    found = [one for name, own in runs if own is not None for one in own.parts(name, outline)]
    if not found:
        raise EmptyDataError(", ".join(names) or "the list of files")
    parts = tuple(part for part, _ in found)
    index = Index.of([piece for _, piece in found], [part.name for part in parts])
    return Scan(parts, index, outline.n_features, None, limit)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of rows with one id in a file.

    Attributes
    ----------
    ids, rows
        Id and number of rows of each.
    starts, lines
        Byte at which each begins, and the lines before that; and one more of both, for the end of the file.
    """

    ids: IntArray
    rows: IntArray
    starts: IntArray
    lines: IntArray

    @classmethod
    def of(cls, file: str, outline: Outline) -> Runs | None:
        """Read a file once, and refuse the first line that breaks the format; None where it has no rows."""
        if Path(file).suffix in COMPRESSED:
            wanted = (
                'plain text, to be read from the middle; cc.write_parquet(files, "train.parquet") converts'
            )
            raise ParameterError("files", file, wanted)
        found, end, lines = [], 0, 0
        for at, text in text_pieces(file):
            ends = np.flatnonzero(text.buffer == NEWLINE)
            columns = outline.read(text)
            if columns is not None:
                found.append(runs_in(columns.qids, text.buffer, at, text.lines, ends))
            end, lines = at + len(text.buffer), text.lines + len(ends)
        if not found:
            return None
        ids, rows, starts, before = (np.concatenate(column) for column in zip(*found, strict=True))
        own = run_starts(ids)  # a run may begin in one piece and end in the next
        end = min(end, Path(file).stat().st_size)  # a line end may have been added
        return cls(ids[own], np.add.reduceat(rows, own), np.r_[starts[own], end], np.r_[before[own], lines])

    def edges(self, size: int) -> list[int]:
        """Cut where runs end: after `PART_BYTES` of text, or of rows of this size if they take more."""
        rows, edges = np.r_[0, self.rows.cumsum()], [0]
        while edges[-1] < len(self.ids):
            text = np.searchsorted(self.starts, self.starts[edges[-1]] + PART_BYTES)
            taken = np.searchsorted(rows * size, rows[edges[-1]] * size + PART_BYTES)
            edges.append(min(max(edges[-1] + 1, int(min(text, taken))), len(self.ids)))
        return edges

    def parts(self, file: str, outline: Outline) -> Iterator[tuple[LetorPart, Piece]]:
        """Give the parts of the file, and the queries of each."""
        documents = text_bytes(outline.docid_length)
        for first, last in pairwise(self.edges(row_bytes(outline.n_features, outline.dtype) + documents)):
            queries = Queries.from_runs(self.ids[first:last], self.rows[first:last])
            part = LetorPart(
                path=str(Path(file).absolute()),
                shown=file,
                start=int(self.starts[first]),
                stop=int(self.starts[last]),
                lines=int(self.lines[first]),
                n_lines=int(self.lines[last] - self.lines[first]),
                n_rows=queries.n_rows,
                mark=mark_of(queries.ids, queries.sizes),
                n_features=outline.n_features,
                dtype=outline.dtype,
                zero_based=outline.base == 0,
                has_qid=bool(outline.has_qid),
                docid_bytes=documents,
            )
            yield part, (queries.ids, queries.sizes, None)


def runs_in(ids: IntArray, text: Bytes, at: int, lines: int, ends: IntArray) -> tuple[IntArray, ...]:
    """Give ids, rows, first bytes and lines before of the runs in a piece of text that begins at a byte."""
    from concordant.supervision.readers._letor_kernels import row_starts

    rows, places = np.empty(len(ids), dtype=np.int64), run_starts(ids)
    row_starts(text, rows)
    starts = rows[places]
    return ids[places], np.diff(places, append=len(ids)), at + starts, lines + np.searchsorted(ends, starts)
