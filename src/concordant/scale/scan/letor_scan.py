"""scan_letor: LETOR text as a set of queries that is read part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from concordant._base.files import (
    BYTE_ORDER_MARK,
    COMPRESSED,
    Bytes,
    PathLike,
    has_only_cr,
    list_paths,
    naming_archive,
    open_binary,
)
from concordant.data.io import letor
from concordant.data.io.letor import (
    LARGEST,
    FeatureLayout,
    LetorColumns,
    LetorText,
    _check_options,
    parse_letor,
)
from concordant.data.io.roles import Roles
from concordant.data.labels import RankingData
from concordant.data.queries import Queries
from concordant.exceptions import ConcordantError, EmptyDataError, MalformedLineError, ParameterError
from concordant.scale.convert.layout import check_dtype, run_starts
from concordant.scale.scan.index import Index, Piece
from concordant.scale.scan.parquet import hash_queries
from concordant.scale.scan.row_groups import row_bytes, text_bytes
from concordant.scale.scan.scan import IN_FLIGHT, PartRows, Scan, format_size, parse_size
from concordant.types import IntArray

# LetorPart: lines of a LETOR file that are read together.


@dataclass(frozen=True)
class LetorPart:
    """Lines of a LETOR file, small and ready to be sent to another process.

    Attributes
    ----------
    path, shown
        Absolute path of the file, and the caller's name of it.
    start, stop
        Range of bytes that are read.
    lines, n_lines
        Number of lines before the part, and in it.
    n_rows, n_features
        Rows and columns of X.
    dtype
        Of X: "float32" or "float64".
    zero_based, has_qid
        Whether features are numbered from 0, and whether rows have query ids.
    documents, docid_bytes
        Whether document ids are read, and the bytes that an id takes; 0 if there are none.
    mark
        Hash of the ids and sizes of the queries, which must still match.
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
        """Name in messages: where the rows are."""
        return f"{self.shown}, lines {self.lines + 1} to {self.lines + self.n_lines}"

    @property
    def nbytes(self) -> int:
        """Memory that the rows take while they are processed, in bytes."""
        size = row_bytes(self.n_features, self.dtype) + (self.docid_bytes if self.documents else 0)
        return self.n_rows * size + (self.stop - self.start) // 3  # two parts being read hold their text

    @property
    def roles(self) -> Roles:
        """Column names, where names are needed: features are called by their index."""
        first = 0 if self.zero_based else 1
        names = tuple(f"f{first + number}" for number in range(self.n_features))
        return Roles("qid", "grade", names, "docid" if self.docid_bytes else None)

    def where(self, row: int) -> tuple[str, int]:
        """Return the part's name and the row, which is counted within the part."""
        return self.name, row

    def read(self) -> PartRows:
        """Read and check the rows; a malformed line is named by file, line and column."""
        data = parse_letor(
            [LetorText(self.shown, self.text(), self.lines)],
            n_features=self.n_features,
            dtype=self.dtype,
            zero_based=self.zero_based,
            has_qid=self.has_qid,
            docids=self.documents,
        )
        queries = Queries.from_ids(data.qid)
        if hash_queries(queries.ids, queries.sizes) != self.mark:
            raise self.changed_error()
        docid = data.docid
        if docid is None and self.documents and self.docid_bytes:
            docid = np.full(self.n_rows, "")
        return PartRows.from_rows(data.X, data.y, queries, docid=docid)

    def text(self) -> Bytes:
        """Read the bytes of the part; a final line end is added if it is missing."""
        with Path(self.path).open("rb") as stream:
            stream.seek(self.start)
            text = stream.read(self.stop - self.start)
        if len(text) < self.stop - self.start:
            raise self.changed_error()
        return np.frombuffer(text if text.endswith(b"\n") else text + b"\n", dtype=np.uint8)

    def changed_error(self) -> ConcordantError:
        """Build the error for a file that changed since it was scanned."""
        return ConcordantError(f"{self.name}: it changed since it was scanned.\nHint: scan it again.")


# LETOR text of any length, read in pieces of whole lines.

PIECE = 8 << 20  # bytes of text that are read at a time
NEWLINE, DENSER = 10, 8  # a dense matrix may take this many times the memory of the text
LONGEST_LINE = 256 << 20  # bytes


def text_pieces(path: str, size: int = PIECE) -> Iterator[tuple[int, LetorText]]:
    """Read a file, plain or compressed, in pieces of whole lines; yield each piece with its byte offset."""
    remainder, start, lines = b"", 0, 0
    with naming_archive(path), open_binary(path) as stream:
        while data := stream.read(size):
            text = remainder + data
            if not start and text.startswith(BYTE_ORDER_MARK):
                text, start = text[3:], 3
            end = text.rfind(b"\n") + 1
            if len(text) - end > LONGEST_LINE:
                raise MalformedLineError(
                    path, lines + 1, 0, f"the line is over {format_size(LONGEST_LINE)} long"
                )
            if end:
                piece = LetorText(path, np.frombuffer(text[:end], dtype=np.uint8), lines)
                yield start, piece
                start, lines = start + end, lines + text.count(b"\n", 0, end)
            remainder = text[end:]
    if not lines and has_only_cr(np.frombuffer(remainder, dtype=np.uint8)):
        raise MalformedLineError(path, 1, 0, "lines end with CR only", "convert the line ends to LF.")
    if remainder:
        yield start, LetorText(path, np.frombuffer(remainder + b"\n", dtype=np.uint8), lines)


class Outline:
    """Summary of LETOR text that was read once: the number of features, and which columns its rows have.

    Parameters
    ----------
    n_features
        As in `read_letor`.
    zero_based
        True if the first feature is `0:`, not `1:`.
    dtype, room
        Type of features, and the bytes that the features of a row may take.
    """

    def __init__(self, n_features: int | None, *, zero_based: bool, dtype: str, room: int) -> None:
        _check_options(sparse=False, n_features=n_features, dtype=dtype, fill=0.0)
        self.width, self.base, self.dtype, self.room = n_features, 0 if zero_based else 1, dtype, room
        self.largest, self.docid_length = -1, 0
        self.has_qid: bool | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return max(0, self.largest + 1 - self.base) if self.width is None else int(self.width)

    def read(self, text: LetorText) -> LetorColumns | None:
        """Read a piece without its features; raise at a malformed line. None if it has no rows."""
        chunks = letor.measure([text])
        if not sum(chunk.rows for chunk in chunks):
            return None
        if self.has_qid is None:
            self.has_qid = letor.text_has_qid([text])
        limit = LARGEST if self.width is None else self.n_features
        columns = letor.read_outline(chunks, FeatureLayout(self.base, limit, 1, self.has_qid))
        self.largest = max(self.largest, *(chunk.largest for chunk in chunks))
        self.docid_length = max(self.docid_length, int((columns.spans[:, 1] - columns.spans[:, 0]).max()))
        self.refuse_wide(chunks)
        return columns

    def refuse_wide(self, chunks: list[Any]) -> None:
        """Raise if a row does not fit in memory, naming the line with the largest feature index."""
        size = self.n_features * np.dtype(self.dtype).itemsize
        if size > self.room and self.width is None:
            text, offset, widest = letor.find_widest(chunks)
            problem = f"feature {widest} makes every row {format_size(size)} long, more than memory allows"
            raise letor.malformed_line(text, offset, problem, "raise memory, or correct the index.")
        if size > self.room:
            raise ParameterError.because(
                f"n_features={self.width} makes every row {format_size(size)} long. Lower it, or raise "
                "memory."
            )

    def parse(self, text: LetorText) -> RankingData:
        """Parse a piece; X is sparse if a dense matrix would take much more memory than the text."""
        dense = int(np.count_nonzero(text.buffer == NEWLINE)) * self.n_features * 8
        sparse = dense > DENSER * len(text.buffer)
        return parse_letor(
            [text],
            sparse=sparse,
            n_features=self.n_features,
            dtype=self.dtype,
            zero_based=not self.base,
            has_qid=self.has_qid,
        )


PART_BYTES = 64 << 20  # of text, or of rows if they take more, after which a part ends with its query


def scan_letor(
    files: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike = "float64",
    memory: int | str = "1 GiB",
) -> Scan:
    r"""Scan LETOR (SVMlight) text as queries, of which only some lines are in memory at a time.

    Parameters
    ----------
    files
        A file, or several files that form a single set; not compressed, since compressed files cannot be read
        from the middle: `cc.write_parquet` converts them.
    n_features, zero_based
        As in `read_letor`.
    dtype
        float64 or float32.
    memory
        Bytes that rows may take at a time, as a number or as text such as "500 MiB".

    Returns
    -------
    Scan
        Parts are stretches of about 64 MiB of text (or of rows in memory, if these take more) that end at the
        end of a query. Text has no feature names.

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
    limit = parse_size(memory)
    names = list_paths(files, "files")
    kind = check_dtype(dtype) or "float64"
    outline = Outline(n_features, zero_based=zero_based, dtype=kind, room=limit // IN_FLIGHT)
    runs = [(name, Runs.from_file(name, outline)) for name in names]  # all read before the width is known
    cuts = [
        cut for name, file_runs in runs if file_runs is not None for cut in file_runs.parts(name, outline)
    ]
    if not cuts:
        raise EmptyDataError(", ".join(names) or "the list of files")
    parts = tuple(part for part, _ in cuts)
    index = Index.from_pieces([piece for _, piece in cuts], [part.name for part in parts])
    return Scan(parts, index, outline.n_features, None, limit)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of adjacent rows with equal query id in a file.

    Attributes
    ----------
    ids, rows
        Id and number of rows of each run.
    starts, lines
        Byte offset of each run, and the number of lines before it; the last entries are the end of the file.
    """

    ids: IntArray
    rows: IntArray
    starts: IntArray
    lines: IntArray

    @classmethod
    def from_file(cls, file: str, outline: Outline) -> Runs | None:
        """Read a file once and raise at the first malformed line; None if it has no rows."""
        if Path(file).suffix in COMPRESSED:
            hint = 'cc.write_parquet(files, "train.parquet") converts.'
            raise ParameterError("files", file, "uncompressed text", hint=hint)
        pieces, end, lines = [], 0, 0
        for at, text in text_pieces(file):
            ends = np.flatnonzero(text.buffer == NEWLINE)
            columns = outline.read(text)
            if columns is not None:
                pieces.append(_find_runs(columns.qids, text.buffer, at, text.lines, ends))
            end, lines = at + len(text.buffer), text.lines + len(ends)
        if not pieces:
            return None
        ids, rows, starts, before = (np.concatenate(column) for column in zip(*pieces, strict=True))
        heads = run_starts(ids)  # a run may begin in a piece and end in the next
        end = min(end, Path(file).stat().st_size)  # a final line end may have been added
        return cls(
            ids[heads], np.add.reduceat(rows, heads), np.r_[starts[heads], end], np.r_[before[heads], lines]
        )

    def edges(self, size: int) -> list[int]:
        """Cut between runs: after `PART_BYTES` of text, or of rows of `size` bytes if these take more."""
        rows, edges = np.r_[0, self.rows.cumsum()], [0]
        while edges[-1] < len(self.ids):
            text = np.searchsorted(self.starts, self.starts[edges[-1]] + PART_BYTES)
            taken = np.searchsorted(rows * size, rows[edges[-1]] * size + PART_BYTES)
            edges.append(min(max(edges[-1] + 1, int(min(text, taken))), len(self.ids)))
        return edges

    def parts(self, file: str, outline: Outline) -> Iterator[tuple[LetorPart, Piece]]:
        """Yield the parts of the file, each with its queries."""
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
                mark=hash_queries(queries.ids, queries.sizes),
                n_features=outline.n_features,
                dtype=outline.dtype,
                zero_based=outline.base == 0,
                has_qid=bool(outline.has_qid),
                docid_bytes=documents,
            )
            yield part, (queries.ids, queries.sizes, None)


def _find_runs(ids: IntArray, text: Bytes, at: int, lines: int, ends: IntArray) -> tuple[IntArray, ...]:
    """Return ids, row counts, first bytes and lines before of the runs in a piece at a byte offset."""
    from concordant.data.io._text_kernels import row_starts

    rows, places = np.empty(len(ids), dtype=np.int64), run_starts(ids)
    row_starts(text, rows)
    starts = rows[places]
    return ids[places], np.diff(places, append=len(ids)), at + starts, lines + np.searchsorted(ends, starts)
