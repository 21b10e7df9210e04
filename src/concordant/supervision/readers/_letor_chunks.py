"""LETOR text in chunks of whole lines: measured, read by threads, faults turned into errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from concordant._segments import run_chunks
from concordant.exceptions import MalformedLineError, NonFiniteError
from concordant.supervision.readers.text import Bytes, PathLike, locate
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = [
    "Chunk",
    "Columns",
    "Layout",
    "Source",
    "find_widest",
    "has_qid",
    "malformed",
    "measure",
    "outline",
    "read",
]

CHUNK_BYTES = 1 << 20  # text read by one kernel call: enough to forget the call, small enough for the cache
FIRST_ROW = re.compile(rb"^[ \t\r]*[^ \t\r\n#]+(?:[ \t\r]+(qid:))?", re.MULTILINE)
TOKEN = re.compile(rb"[^ \t\r\n#]*")
SHOWN = 40  # characters of a token quoted in an error

# Sentences for the problem numbers of `_letor_kernels`, in their order.
PROBLEMS = (
    ("", ""),
    ("the grade {token!r} is not a decimal number", "a line is `grade qid:N 1:value 2:value ... # comment`."),
    ("the grade {token!r} is negative", "grades start at 0; map spam to 0 or drop these rows."),
    ("no `qid:` after the grade, though the first row has one", "give every row its query id, or none."),
    ("{token!r} is not `qid:` and a whole number below 2**63", "renumber the queries."),
    ("{token!r} is not `index:value`", "`qid:` stands after the grade, on every row or on none."),
    ("feature {token!r}, where indices start at 1", "pass zero_based=True if this file counts from 0."),
    ("feature {token!r} lies beyond n_features", "raise n_features, or leave it out."),
    ("feature {token!r} does not increase", "a repeated index would lose a value; sort the row."),
    ("the feature index in {token!r} does not fit in 64 bits", "renumber the features."),
    ("the value {token!r} is not a finite decimal number", "leave missing values out: they read as 0."),
    ("{token!r} is too large for a double", "rescale it."),
)
NEGATIVE_GRADE, VALUE_OVERFLOW = 2, 11


@dataclass(frozen=True, eq=False)
class Source:
    """A file and its text, or a stretch of it after so many `lines`, which ends with a line end."""

    path: PathLike
    buffer: Bytes
    lines: int = 0


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole lines `start:stop` of a file; `first_row` counts the rows of all chunks before it."""

    source: Source
    start: int
    stop: int
    rows: int = 0
    colons: int = 0
    largest: int = -1
    first_row: int = 0


@dataclass(frozen=True)
class Layout:
    """How features are numbered (from `base`, below `limit`) and kept: in `width` columns, sparsely if 0."""

    base: int
    limit: int
    width: int
    has_qid: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """What is read: an entry a row, except that `values` and `indices` have one a feature when sparse."""

    values: Any
    indices: Any
    ends: IntArray
    grades: FloatArray
    qids: IntArray
    spans: IntArray

    @classmethod
    def empty(cls, chunks: list[Chunk], layout: Layout, dtype: np.dtype[Any], fill: float) -> Columns:
        """Room for all chunks; a malformed file may have more features than room, and is refused anyway."""
        n_rows = sum(chunk.rows for chunk in chunks)
        entries = 0 if layout.width else sum(_entries(chunk, layout) for chunk in chunks)
        wide = max((chunk.largest for chunk in chunks), default=0) >= 2**31
        shape = (n_rows, layout.width) if layout.width else (entries,)
        return cls(
            # zeros come from the system untouched, so that the threads, not this line, pay for the memory
            values=np.zeros(shape, dtype) if fill == 0 else np.full(shape, fill, dtype),
            indices=np.empty(entries, dtype=np.int64 if wide else np.int32),
            ends=np.empty(n_rows, dtype=np.int64),
            grades=np.empty(n_rows),
            qids=np.zeros(n_rows, dtype=np.int64),
            spans=np.zeros((n_rows, 2), dtype=np.int64),
        )


def _entries(chunk: Chunk, layout: Layout) -> int:
    """Count the features of a well-formed chunk."""
    return max(0, chunk.colons - (chunk.rows if layout.has_qid else 0))


def _cut(source: Source) -> list[Chunk]:
    """Chunks of about `CHUNK_BYTES` that end at line ends."""
    text, edges = source.buffer, [0]
    while edges[-1] < len(text):
        at = min(edges[-1] + CHUNK_BYTES, len(text)) - 1
        while not (ends := np.flatnonzero(text[at : at + 4096] == ord("\n"))).size:
            at += 4096  # the last byte is a line end, so this stops
        edges.append(at + int(ends[0]) + 1)
    return [Chunk(source, start, stop) for start, stop in pairwise(edges)]


def _for_each(chunks: list[Chunk], job: Callable[[int], None]) -> None:
    """Run `job(place)` for every chunk, on all threads."""

    def body(first: int, last: int) -> None:
        for place in range(first, last):
            job(place)

    run_chunks(np.cumsum([0, *(chunk.stop - chunk.start for chunk in chunks)]), body)


def measure(sources: list[Source]) -> list[Chunk]:
    """Chunks of all files, each with its counts and its first row among all."""
    from concordant.supervision.readers import _letor_kernels

    chunks = [chunk for source in sources for chunk in _cut(source)]

    def job(place: int) -> None:
        chunk = chunks[place]
        rows, colons, largest = _letor_kernels.measure(chunk.source.buffer, chunk.start, chunk.stop)
        chunks[place] = replace(chunk, rows=rows, colons=colons, largest=largest)

    _for_each(chunks, job)
    starts = accumulate((chunk.rows for chunk in chunks), initial=0)
    return [replace(chunk, first_row=start) for chunk, start in zip(chunks, starts, strict=False)]


def has_qid(sources: list[Source]) -> bool:
    """Whether the first row of all has a query id; the rows after it must agree."""
    matches = (FIRST_ROW.search(source.buffer.data) for source in sources)
    return next((match[1] is not None for match in matches if match), False)


def outline(chunks: list[Chunk], layout: Layout) -> Columns:
    """Read everything, and refuse the first fault, but keep one column of features at most."""
    narrow = replace(layout, width=1)
    out = Columns.empty(chunks, narrow, np.dtype(np.float64), 0.0)
    read(chunks, narrow, out)
    return out


def find_widest(chunks: list[Chunk]) -> tuple[Source, int, int]:
    """Give the largest feature index, and where it stands."""
    widest = max(chunks, key=lambda chunk: chunk.largest)
    text = widest.source.buffer[: widest.stop].data
    match = re.compile(rb"(?<=[ \t\r])0*%d:" % widest.largest).search(text, widest.start)
    return widest.source, match.start() if match else widest.start, widest.largest


def read(chunks: list[Chunk], layout: Layout, out: Columns) -> None:
    """Fill `out`, or raise for the first fault of the files, whichever thread met it."""
    places = list(accumulate((_entries(chunk, layout) for chunk in chunks), initial=0))
    faults: list[tuple[int, int]] = [(0, -1)] * len(chunks)

    def job(place: int) -> None:
        entries = slice(places[place], places[place + 1])
        faults[place] = _read_chunk(chunks[place], entries, layout, out)
        out.ends[chunks[place].first_row :][: chunks[place].rows] += places[place]

    _for_each(chunks, job)
    for chunk, (problem, offset) in zip(chunks, faults, strict=True):
        if problem:
            raise malformed(chunk.source, offset, *PROBLEMS[problem])


def _read_chunk(chunk: Chunk, entries: slice, layout: Layout, out: Columns) -> tuple[int, int]:
    """Fill the rows of one chunk; its first problem (0: none) and where."""
    from concordant.supervision.readers import _floats, _letor_kernels

    rows = slice(chunk.first_row, chunk.first_row + chunk.rows)
    target = out.values[rows if layout.width else entries]
    values = target if target.dtype == np.float64 else target.astype(np.float64)
    flat, text, grades = values.reshape(-1), chunk.source.buffer, out.grades[rows]
    problem, offset, hard = _letor_kernels.read_rows(
        text, chunk.start, chunk.stop, layout.base, layout.limit, layout.width, layout.has_qid,
        flat, out.indices[entries], out.ends[rows], grades, out.qids[rows], out.spans[rows],
    )  # fmt: skip
    if hard:
        faults = [(_floats.settle(text, flat), VALUE_OVERFLOW), (offset if problem else -1, problem)]
        faults.append((_floats.settle(text, grades, 0.0), NEGATIVE_GRADE))
        offset, problem = min((fault for fault in faults if fault[0] >= 0), default=(-1, 0))
    if values is not target and not problem:
        with np.errstate(over="ignore"):
            target[...] = values
        if (lost := np.isinf(target) & np.isfinite(values)).any():
            raise too_large(chunk, values, lost, out.ends[rows])
    return problem, offset


def too_large(chunk: Chunk, values: FloatArray, lost: BoolArray, ends: IntArray) -> NonFiniteError:
    """Error for the first value that single precision turns infinite."""
    from concordant.supervision.readers import _letor_kernels

    place, source = int(np.flatnonzero(lost)[0]), chunk.source
    row = place // values.shape[1] if values.ndim == 2 else int(np.searchsorted(ends, place, side="right"))
    starts = np.empty(chunk.rows, dtype=np.int64)
    _letor_kernels.row_starts(source.buffer[chunk.start : chunk.stop], starts)
    line = source.lines + locate(source.buffer, chunk.start + int(starts[row]))[0]
    where, hint = f"the value {float(values.flat[place])!r}", "read it with dtype=np.float64."
    name = f"{source.path}, line {line}: X in float32"
    return NonFiniteError(name, np.inf, where, int(lost.sum()), hint)


def malformed(source: Source, offset: int, problem: str, hint: str) -> MalformedLineError:
    """Error for the token at `offset`."""
    match = TOKEN.match(source.buffer.data, offset)
    token = match[0].decode("utf-8", "replace")[:SHOWN] if match else ""
    line, column = locate(source.buffer, offset)
    return MalformedLineError(source.path, source.lines + line, column, problem.format(token=token), hint)
