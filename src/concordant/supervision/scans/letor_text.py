"""LETOR text of any length, read in pieces of whole lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, MalformedLineError, ParameterError
from concordant.supervision.data import RankingData
from concordant.supervision.readers import _letor_chunks
from concordant.supervision.readers._letor_chunks import Columns
from concordant.supervision.readers._letor_chunks import Layout as Numbering
from concordant.supervision.readers._letor_chunks import Source as Text
from concordant.supervision.readers.letor import LARGEST, _check_options, parse_letor
from concordant.supervision.readers.text import BYTE_ORDER_MARK, naming_archive, only_cr, open_binary
from concordant.supervision.scans.conversion.layout import Layout
from concordant.supervision.scans.conversion.source_memory import cut, named
from concordant.supervision.scans.conversion.sources import Wanted
from concordant.supervision.scans.scan import written_size
from concordant.supervision.scans.sizes import text_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NEWLINE", "LetorSource", "Outline", "text_pieces"]

PIECE = 8 << 20  # bytes of text that are read at a time
NEWLINE, DENSER = 10, 8  # a dense matrix may take so many times the memory of the text
LONGEST_LINE = 256 << 20  # bytes


def text_pieces(path: str, size: int = PIECE) -> Iterator[tuple[int, Text]]:
    """Give a file, plain or compressed, in pieces of whole lines, each with the place of its first byte."""
    rest, start, lines = b"", 0, 0
    with naming_archive(path), open_binary(path) as stream:
        while data := stream.read(size):
            text = rest + data
            if not start and text.startswith(BYTE_ORDER_MARK):
                text, start = text[3:], 3
            end = text.rfind(b"\n") + 1
            if len(text) - end > LONGEST_LINE:
                raise MalformedLineError(
                    path, lines + 1, 0, f"the line is over {written_size(LONGEST_LINE)} long"
                )
            if end:
                piece = Text(path, np.frombuffer(text[:end], dtype=np.uint8), lines)
                yield start, piece
                start, lines = start + end, lines + text.count(b"\n", 0, end)
            rest = text[end:]
    if not lines and only_cr(np.frombuffer(rest, dtype=np.uint8)):
        raise MalformedLineError(path, 1, 0, "lines end in CR alone", "convert the line ends to LF.")
    if rest:
        yield start, Text(path, np.frombuffer(rest + b"\n", dtype=np.uint8), lines)


class Outline:
    """What is known of LETOR text that was read once: how wide it is, and what its rows have.

    Parameters
    ----------
    n_features
        As `read_letor` has it.
    zero_based
        The first feature is `0:`, not `1:`.
    dtype, room
        Type of features, and the bytes that those of a row may take.
    """

    def __init__(self, n_features: int | None, *, zero_based: bool, dtype: str, room: int) -> None:
        _check_options(sparse=False, n_features=n_features, dtype=dtype, fill=0.0)
        self.given, self.base, self.dtype, self.room = n_features, 0 if zero_based else 1, dtype, room
        self.largest, self.docid_length = -1, 0
        self.has_qid: bool | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return max(0, self.largest + 1 - self.base) if self.given is None else int(self.given)

    def read(self, text: Text) -> Columns | None:
        """Read a piece, but for its features; the first line that breaks the format is refused."""
        chunks = _letor_chunks.measure([text])
        if not sum(chunk.rows for chunk in chunks):
            return None
        if self.has_qid is None:
            self.has_qid = _letor_chunks.has_qid([text])
        limit = LARGEST if self.given is None else self.n_features
        found = _letor_chunks.outline(chunks, Numbering(self.base, limit, 1, self.has_qid))
        self.largest = max(self.largest, *(chunk.largest for chunk in chunks))
        self.docid_length = max(self.docid_length, int((found.spans[:, 1] - found.spans[:, 0]).max()))
        self.refuse_wide(chunks)
        return found

    def refuse_wide(self, chunks: list[Any]) -> None:
        """Refuse rows that do not fit in memory, at the line that made them as wide."""
        size = self.n_features * np.dtype(self.dtype).itemsize
        if size > self.room and self.given is None:
            text, offset, widest = _letor_chunks.find_widest(chunks)
            problem = f"feature {widest} makes every row {written_size(size)} long, more than memory allows"
            raise _letor_chunks.malformed(text, offset, problem, "raise memory, or correct the index.")
        if size > self.room:
            raise ParameterError(
                "n_features", self.given, f"smaller: a row would be {written_size(size)} long"
            )

    def parse(self, text: Text) -> RankingData:
        """Read a piece; what takes much more memory than its text comes sparse."""
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


class LetorSource:
    """LETOR files, plain or compressed; grades, ids and features have no names there."""

    def __init__(
        self, files: Sequence[str], wanted: Wanted, n_features: int | None, *, zero_based: bool
    ) -> None:
        self.files, self.wanted = files, wanted
        dtype = wanted.dtype or "float64"
        self.outline = Outline(n_features, zero_based=zero_based, dtype=dtype, room=wanted.room)

    @property
    def layout(self) -> Layout:
        """What is written of each row."""
        outline = self.outline
        roles = self.wanted.nameless(outline.n_features, outline.base, docid=outline.docid_length > 0)
        return self.wanted.layout(roles, outline.dtype, text_bytes(outline.docid_length))

    def ids(self) -> Iterator[NDArray[Any]]:
        """Give the ids of all rows."""
        found = (self.outline.read(text) for file in self.files for _, text in text_pieces(file, self.size))
        return (columns.qids for columns in found if columns is not None)

    def tables(self) -> Iterator[Any]:
        """Give all rows."""
        layout = self.layout
        for file in self.files:
            for _, text in text_pieces(file, self.size):
                with suppress(EmptyDataError):  # a piece of comments
                    data = self.outline.parse(text)
                    others = {"qid": data.qid, "grade": data.y, "docid": data.docid}
                    frame = named(data.X, layout.roles, others)
                    yield from (layout.table(chunk) for chunk in cut(frame, self.wanted.rows(layout), file))

    @property
    def size(self) -> int:
        """Bytes of text that are read at a time."""
        return min(PIECE, max(1 << 16, self.wanted.room // 4))
