"""Compiled reading of whitespace-separated columns."""

from __future__ import annotations

from concordant._segments import kernel
from concordant.supervision.readers._floats import BAD, OVERFLOW, read_number
from concordant.supervision.readers._letor_kernels import NEWLINE, is_blank, read_whole, skip_blanks
from concordant.supervision.readers.text import Bytes
from concordant.types import FloatArray, IntArray

__all__ = ["read_integers", "read_numbers", "split_fields"]


@kernel
def split_fields(buffer: Bytes, spans: IntArray) -> tuple[int, int, int]:
    """Fill `spans[row, column]` with start and stop of each field, and count the rows.

    Blank lines are no rows. Where a line has another number of columns, its place and that number follow;
    else -1 and 0.
    """
    row, at, columns = 0, 0, spans.shape[1]
    while at < len(buffer):
        at = skip_blanks(buffer, at)
        count, place = 0, at
        while buffer[at] != NEWLINE:
            start = at
            while buffer[at] != NEWLINE and not is_blank(buffer[at]):
                at += 1
            if count < columns:
                spans[row, count, 0], spans[row, count, 1] = start, at
            count += 1
            at = skip_blanks(buffer, at)
        if count not in (0, columns):
            return row, place, count
        row += 1 if count else 0
        at += 1
    return row, -1, 0


@kernel
def read_numbers(buffer: Bytes, spans: IntArray, out: FloatArray) -> int:
    """Fill `out` with one number a span; the first row that is no finite number, or -1."""
    for row in range(len(spans)):
        value, end, status = read_number(buffer, spans[row, 0])
        if end != spans[row, 1] or status in (BAD, OVERFLOW):
            return row
        out[row] = value
    return -1


@kernel
def read_integers(buffer: Bytes, spans: IntArray, out: IntArray) -> int:
    """Fill `out` with one whole number a span, which may have a sign; the first row that has none, or -1."""
    for row in range(len(spans)):
        start = spans[row, 0]
        signed = buffer[start] == 45 or buffer[start] == 43
        value, end = read_whole(buffer, start + 1 if signed else start)
        if value < 0 or end != spans[row, 1] or (signed and end == start + 1):
            return row
        out[row] = -value if buffer[start] == 45 else value
    return -1
