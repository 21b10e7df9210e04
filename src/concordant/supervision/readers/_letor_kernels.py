"""Compiled passes over LETOR text: one that measures, one that reads.

Every function works on a buffer whose last byte is a line end, which is what stops each loop.
"""

from __future__ import annotations

from typing import Any

from concordant._segments import kernel
from concordant.supervision.readers._floats import BAD, HARD, OVERFLOW, read_number
from concordant.supervision.readers.text import Bytes
from concordant.types import FloatArray, IntArray

__all__ = ["is_blank", "measure", "read_rows", "read_whole", "row_starts", "skip_blanks"]

TAB, NEWLINE, RETURN, SPACE, HASH, COLON, EQUALS = 9, 10, 13, 32, 35, 58, 61
LAST_BEFORE_OVERFLOW = (2**63 - 1) // 10
LARGEST = 2**63 - 1

# What may be wrong with a row; `_letor_chunks.PROBLEMS` has the sentences.
FINE, NO_GRADE, NEGATIVE_GRADE, NO_QID, BAD_QID, NO_FEATURE = 0, 1, 2, 3, 4, 5
INDEX_TOO_LOW, INDEX_TOO_HIGH, INDEX_NOT_INCREASING, INDEX_OVERFLOW = 6, 7, 8, 9
BAD_VALUE, VALUE_OVERFLOW = 10, 11


@kernel
def is_blank(byte: Any) -> bool:
    """Whether a byte separates tokens within a line."""
    return byte == SPACE or byte == TAB or byte == RETURN  # type: ignore[no-any-return]  # noqa: PLR1714


@kernel
def _ends_token(byte: Any) -> bool:
    """Whether a byte may follow a token."""
    return is_blank(byte) or byte == NEWLINE or byte == HASH  # noqa: PLR1714


@kernel
def skip_blanks(buffer: Bytes, at: int) -> int:
    """First place from `at` on that is neither a space, a tab nor a carriage return."""
    while is_blank(buffer[at]):
        at += 1
    return at


@kernel
def read_whole(buffer: Bytes, at: int) -> tuple[int, int]:
    """Value and end of the digits at `at`; the value is -1 beyond int64."""
    value = 0
    while 48 <= buffer[at] <= 57:
        fits = 0 <= value <= LAST_BEFORE_OVERFLOW  # the product fits; a sum that wraps is negative
        value = max(value * 10 + int(buffer[at]) - 48, -1) if fits else -1
        at += 1
    return value, at


@kernel
def _last_index(buffer: Bytes, start: int, end: int) -> int:
    """Feature index before the last colon of a row: the largest, since indices increase; -1 where none is."""
    at = end - 1
    while at > start and buffer[at] != COLON:
        at -= 1
    first = at
    while first > start and 48 <= buffer[first - 1] <= 57:
        first -= 1
    if first == at or (first > start and not _ends_token(buffer[first - 1])):
        return -1
    return read_whole(buffer, first)[0]


@kernel
def measure(buffer: Bytes, start: int, stop: int) -> tuple[int, int, int]:
    """Rows, colons outside comments, and the largest feature index of the lines in `start:stop`."""
    rows, colons, largest = 0, 0, -1
    at = start
    while at < stop:
        first = skip_blanks(buffer, at)
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
    """Read `grade qid:N`; the problem, the place reached (or at fault), and 1 if the grade is hard."""
    value, end, status = read_number(buffer, at)
    if status == BAD or not _ends_token(buffer[end]):
        return NO_GRADE, at, 0
    if status == OVERFLOW:
        return VALUE_OVERFLOW, at, 0
    if value < 0:
        return NEGATIVE_GRADE, at, 0
    grades[row] = value
    at = skip_blanks(buffer, end)
    if has_qid:
        # "qid:"; each test passes only on a byte that is not the buffer's last, so the next one exists
        named = buffer[at] == 113 and buffer[at + 1] == 105 and buffer[at + 2] == 100
        if not (named and buffer[at + 3] == COLON):
            return NO_QID, at, 0
        qid, end = read_whole(buffer, at + 4)
        if qid < 0 or end == at + 4 or not _ends_token(buffer[end]):
            return BAD_QID, at, 0
        qids[row] = qid
        at = skip_blanks(buffer, end)
    return FINE, at, 1 if status == HARD else 0


@kernel
def _read_features(
    buffer: Bytes, at: int, base: int, limit: int, width: int, slot: int, values: FloatArray, indices: Any
) -> tuple[int, int, int, int]:
    """Read `index:value` until the row ends; the problem, the place, how many were read, how many are hard.

    With a width, values go to `slot + index`; without one, they and their indices go to `slot` onwards. What
    does not fit is not written: then the row, or a later one, breaks a rule and all is thrown away.
    """
    previous, count, hard = -1, 0, 0
    while buffer[at] != NEWLINE and buffer[at] != HASH:
        index, end = read_whole(buffer, at)
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
        at = skip_blanks(buffer, at)
    return FINE, at, count, hard


@kernel
def _find_docid(buffer: Bytes, start: int, stop: int) -> int:
    """Where X of `docid = X` starts in a comment; -1 where there is none."""
    for at in range(start, stop - 5):
        if (
            buffer[at] == 100  # "docid"
            and buffer[at + 1] == 111
            and buffer[at + 2] == 99
            and buffer[at + 3] == 105
            and buffer[at + 4] == 100
        ):
            after = skip_blanks(buffer, at + 5)
            if buffer[after] == EQUALS:
                after = skip_blanks(buffer, after + 1)
                if buffer[after] != NEWLINE:
                    return after
    return -1


@kernel
def _read_comment(buffer: Bytes, at: int, span: IntArray) -> int:
    """Put the span of the document id, or else of the stripped comment, in `span`; the end of the line."""
    end = at
    while buffer[end] != NEWLINE:
        end += 1
    if buffer[at] == HASH:
        start, stop = skip_blanks(buffer, at + 1), end
        docid = _find_docid(buffer, start, end)
        if docid >= 0:
            start = stop = docid
            while buffer[stop] != NEWLINE and not is_blank(buffer[stop]):
                stop += 1
        while stop > start and is_blank(buffer[stop - 1]):
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
    """Read the lines in `start:stop`; the first problem, its place, and how many numbers are left to Python.

    The output arrays belong to these lines alone: `ends[row]` counts the features up to the end of a row,
    `spans[row]` delimits its document id.
    """
    row, total, hard, at = 0, 0, 0, start
    while at < stop:
        at = skip_blanks(buffer, at)
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
    """Fill in where the line of each row begins."""
    row, at = 0, 0
    while at < len(buffer):
        line = at
        at = skip_blanks(buffer, at)
        if buffer[at] != NEWLINE and buffer[at] != HASH:
            starts[row] = line
            row += 1
        while buffer[at] != NEWLINE:
            at += 1
        at += 1
