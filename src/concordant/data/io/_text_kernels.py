"""Compiled passes over text: measure and read LETOR rows, and read whitespace-separated columns.

Every function expects a buffer whose last byte is a line end, which stops each loop.
"""

from __future__ import annotations

from typing import Any

from concordant._base.files import Bytes
from concordant._base.segments import kernel
from concordant.data.io._floats import BAD, HARD, OVERFLOW, read_number
from concordant.types import FloatArray, IntArray

TAB, NEWLINE, RETURN, SPACE, QUOTE, HASH, COLON, EQUALS = 9, 10, 13, 32, 34, 35, 58, 61
LAST_BEFORE_OVERFLOW = (2**63 - 1) // 10
LARGEST = 2**63 - 1

# Problems of a row; `letor.PROBLEMS` has their messages, in this order.
FINE, NO_GRADE, NEGATIVE_GRADE, NO_QID, BAD_QID, NO_FEATURE = 0, 1, 2, 3, 4, 5
INDEX_TOO_LOW, INDEX_TOO_HIGH, INDEX_NOT_INCREASING, INDEX_OVERFLOW = 6, 7, 8, 9
BAD_VALUE, VALUE_OVERFLOW = 10, 11


@kernel
def _is_blank(byte: Any) -> bool:
    return byte == SPACE or byte == TAB or byte == RETURN  # type: ignore[no-any-return]  # noqa: PLR1714


@kernel
def _ends_token(byte: Any) -> bool:
    return _is_blank(byte) or byte == NEWLINE or byte == HASH  # noqa: PLR1714


@kernel
def _skip_blanks(buffer: Bytes, at: int) -> int:
    """Return the first offset from `at` on that is not a space, tab or carriage return."""
    while _is_blank(buffer[at]):
        at += 1
    return at


@kernel
def _read_whole(buffer: Bytes, at: int) -> tuple[int, int]:
    """Return the value and end of the digits at `at`; the value is -1 beyond int64."""
    value = 0
    while 48 <= buffer[at] <= 57:
        fits = 0 <= value <= LAST_BEFORE_OVERFLOW  # the product fits; a sum that wraps is negative
        value = max(value * 10 + int(buffer[at]) - 48, -1) if fits else -1
        at += 1
    return value, at


@kernel
def _last_index(buffer: Bytes, start: int, end: int) -> int:
    """Return the feature index before the last colon of a row, its largest index; -1 if there is none."""
    at = end - 1
    while at > start and buffer[at] != COLON:
        at -= 1
    first = at
    while first > start and 48 <= buffer[first - 1] <= 57:
        first -= 1
    if first == at or (first > start and not _ends_token(buffer[first - 1])):
        return -1
    return _read_whole(buffer, first)[0]


@kernel
def measure(buffer: Bytes, start: int, stop: int) -> tuple[int, int, int]:
    """Count rows and colons outside comments, and find the largest feature index, in `start:stop`."""
    rows, colons, largest = 0, 0, -1
    at = start
    while at < stop:
        first = _skip_blanks(buffer, at)
        at = first
        while buffer[at] != NEWLINE and buffer[at] != HASH:
            colons += buffer[at] == COLON
            at += 1
        if at > first:
            rows += 1
            largest = max(largest, _last_index(buffer, first, at))
        while buffer[at] != NEWLINE:
            at += 1
        at += 1
    return rows, colons, largest


@kernel
def _read_head(
    buffer: Bytes, at: int, has_qid: bool, row: int, grades: FloatArray, qids: IntArray
) -> tuple[int, int, int]:
    """Read `grade qid:N`; return the problem, the offset reached (or at fault), and 1 for a hard grade."""
    value, end, status = read_number(buffer, at)
    if status == BAD or not _ends_token(buffer[end]):
        return NO_GRADE, at, 0
    if status == OVERFLOW:
        return VALUE_OVERFLOW, at, 0
    if value < 0:
        return NEGATIVE_GRADE, at, 0
    grades[row] = value
    at = _skip_blanks(buffer, end)
    if has_qid:
        # "qid:"; each test passes only on a byte that is not the buffer's last, so the next one exists
        named = buffer[at] == 113 and buffer[at + 1] == 105 and buffer[at + 2] == 100
        if not (named and buffer[at + 3] == COLON):
            return NO_QID, at, 0
        qid, end = _read_whole(buffer, at + 4)
        if qid < 0 or end == at + 4 or not _ends_token(buffer[end]):
            return BAD_QID, at, 0
        qids[row] = qid
        at = _skip_blanks(buffer, end)
    return FINE, at, 1 if status == HARD else 0


@kernel
def _read_features(
    buffer: Bytes, at: int, base: int, limit: int, width: int, slot: int, values: FloatArray, indices: Any
) -> tuple[int, int, int, int]:
    """Read `index:value` pairs to the end of the row; return (problem, offset, number read, number hard).

    With a width, values go to `slot + index`; without, values and indices go to `slot` onwards. Values that
    do not fit are not written: then this row, or a later one, is malformed and everything is discarded.
    """
    previous, count, hard = -1, 0, 0
    while buffer[at] != NEWLINE and buffer[at] != HASH:
        index, end = _read_whole(buffer, at)
        if end == at or buffer[end] != COLON:
            return NO_FEATURE, at, count, hard
        if index < 0 or index - base == LARGEST:
            return INDEX_OVERFLOW, at, count, hard
        index -= base
        if index <= previous or index >= limit:
            low = INDEX_TOO_LOW if index < 0 else INDEX_NOT_INCREASING
            return low if index <= previous else INDEX_TOO_HIGH, at, count, hard
        previous = index
        value, at, status = read_number(buffer, end + 1)
        if status == BAD or not _ends_token(buffer[at]):
            return BAD_VALUE, end + 1, count, hard
        if status == OVERFLOW:
            return VALUE_OVERFLOW, end + 1, count, hard
        hard += 1 if status == HARD else 0
        if width > 0:
            if index < width:
                values[slot + index] = value
        elif slot + count < len(values):
            values[slot + count] = value
            indices[slot + count] = index
        count += 1
        at = _skip_blanks(buffer, at)
    return FINE, at, count, hard


@kernel
def _find_docid(buffer: Bytes, start: int, stop: int) -> int:
    """Return the offset of X in `docid = X` (X may be empty) in a comment; -1 if there is no `docid =`."""
    for at in range(start, stop - 5):
        if (
            buffer[at] == 100  # "docid"
            and buffer[at + 1] == 111
            and buffer[at + 2] == 99
            and buffer[at + 3] == 105
            and buffer[at + 4] == 100
        ):
            after = _skip_blanks(buffer, at + 5)
            if buffer[after] == EQUALS:
                return _skip_blanks(buffer, after + 1)
    return -1


@kernel
def _read_comment(buffer: Bytes, at: int, span: IntArray) -> int:
    """Write the span of the document id, or else of the stripped comment, to `span`; return the line end."""
    end = at
    while buffer[end] != NEWLINE:
        end += 1
    if buffer[at] == HASH:
        start, stop = _skip_blanks(buffer, at + 1), end
        docid = _find_docid(buffer, start, end)
        if docid >= 0:
            start = stop = docid
            while buffer[stop] != NEWLINE and not _is_blank(buffer[stop]):
                stop += 1
        while stop > start and _is_blank(buffer[stop - 1]):
            stop -= 1
        span[0], span[1] = start, stop
    return end


@kernel
def read_rows(
    buffer: Bytes,
    start: int,
    stop: int,
    base: int,
    limit: int,
    width: int,
    has_qid: bool,
    values: FloatArray,
    indices: Any,
    ends: IntArray,
    grades: FloatArray,
    qids: IntArray,
    spans: IntArray,
) -> tuple[int, int, int]:
    """Read the lines in `start:stop`; return the first problem, its offset, and the number of hard values.

    The output arrays cover only these lines: `ends[row]` counts the features up to the end of a row,
    `spans[row]` delimits its document id.
    """
    row, total, hard, at = 0, 0, 0, start
    while at < stop:
        at = _skip_blanks(buffer, at)
        if buffer[at] != NEWLINE and buffer[at] != HASH:
            problem, at, hards = _read_head(buffer, at, has_qid, row, grades, qids)
            hard += hards
            if problem != FINE:
                return problem, at, hard
            slot = row * width if width > 0 else total
            problem, at, count, hards = _read_features(buffer, at, base, limit, width, slot, values, indices)
            total += count
            hard += hards
            if problem != FINE:
                return problem, at, hard
            ends[row] = total
            at = _read_comment(buffer, at, spans[row])
            row += 1
        else:
            while buffer[at] != NEWLINE:
                at += 1
        at += 1
    return FINE, at, hard


@kernel
def row_starts(buffer: Bytes, starts: IntArray) -> None:
    """Fill `starts` with the offset of each row's line."""
    row, at = 0, 0
    while at < len(buffer):
        line = at
        at = _skip_blanks(buffer, at)
        if buffer[at] != NEWLINE and buffer[at] != HASH:
            starts[row] = line
            row += 1
        while buffer[at] != NEWLINE:
            at += 1
        at += 1


# Reading of whitespace-separated columns.


@kernel
def split_fields(buffer: Bytes, spans: IntArray, longer: bool) -> tuple[int, int, int]:
    """Fill `spans[row, column]` with start and stop of each field, and return (rows, offset, columns).

    Blank lines and lines that begin with `#` are skipped. At a line with a different number of columns, stop
    and return its offset and that number; else -1 and 0. With `longer`, extra columns are ignored.
    """
    row, at, columns = 0, 0, spans.shape[1]
    while at < len(buffer):
        at = _skip_blanks(buffer, at)
        count, line_start = 0, at
        if buffer[at] == HASH:
            while buffer[at] != NEWLINE:
                at += 1
        while buffer[at] != NEWLINE:
            start = at
            while buffer[at] != NEWLINE and not _is_blank(buffer[at]):
                at += 1
            if count < columns:
                spans[row, count, 0], spans[row, count, 1] = start, at
            count += 1
            at = _skip_blanks(buffer, at)
        if count not in (0, columns) and not (longer and count > columns):
            return row, line_start, count
        row += 1 if count else 0
        at += 1
    return row, -1, 0


@kernel
def read_numbers(buffer: Bytes, spans: IntArray, out: FloatArray) -> int:
    """Fill `out` with one number per span; return the first row that is not a finite number, or -1."""
    for row in range(len(spans)):
        value, end, status = read_number(buffer, spans[row, 0])
        if end != spans[row, 1] or status in (BAD, OVERFLOW):
            return row
        out[row] = value
    return -1


@kernel
def read_integers(buffer: Bytes, spans: IntArray, out: IntArray) -> int:
    """Fill `out` with one (signed) whole number per span; return the first row without one, or -1."""
    for row in range(len(spans)):
        start = spans[row, 0]
        signed = buffer[start] == 45 or buffer[start] == 43
        value, end = _read_whole(buffer, start + 1 if signed else start)
        if value < 0 or end != spans[row, 1] or (signed and end == start + 1):
            return row
        out[row] = -value if buffer[start] == 45 else value
    return -1


@kernel
def gather_spans(buffer: Bytes, spans: IntArray, out: Bytes) -> None:
    """Copy each span into its row of `out`."""
    for row in range(len(spans)):
        for at in range(spans[row, 0], spans[row, 1]):
            out[row, at - spans[row, 0]] = buffer[at]


@kernel
def find_open_quote(buffer: Bytes, delimiter: int) -> int:
    """Find the first quote that opens a multi-line cell but does not close at its end; -1 if none."""
    at = 0
    while at < len(buffer):
        if buffer[at] == QUOTE:
            start, lines, closed = at, 0, False
            at += 1
            while at < len(buffer) and not closed:
                lines += buffer[at] == NEWLINE
                if buffer[at] == QUOTE:
                    closed = at + 1 == len(buffer) or buffer[at + 1] != QUOTE
                    at += 0 if closed else 1
                at += 1
            ends = closed and (at >= len(buffer) or buffer[at] in (delimiter, NEWLINE, RETURN))
            if lines > 0 and not ends:
                return start
        while at < len(buffer) and buffer[at] not in (delimiter, NEWLINE, RETURN):
            at += 1
        at += 1
    return -1
