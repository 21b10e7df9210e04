"""Read LETOR / SVMlight text (`grade qid:N 1:v 2:v ... # comment`) in parallel and exactly, and write it."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from concordant._base.files import (
    Bytes,
    PathLike,
    list_paths,
    locate,
    naming_memory,
    read_buffer,
    read_lines,
    require_memory,
    write_atomically,
)
from concordant._base.segments import run_chunks
from concordant._base.validate import check_grades, check_ids, check_lengths, check_whole, refuse_misaligned
from concordant.data.check import check_features
from concordant.data.labels import RankingData
from concordant.exceptions import (
    EmptyDataError,
    MalformedLineError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
)
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

# LETOR text in chunks of whole lines: measured, read by several threads, faults turned into errors.

CHUNK_BYTES = 1 << 20  # bytes per kernel call: enough to amortise the call, small enough for the cache
FIRST_ROW = re.compile(rb"^[ \t\r]*[^ \t\r\n#]+(?:[ \t\r]+(qid:))?", re.MULTILINE)
TOKEN = re.compile(rb"[^ \t\r\n#]*")
SHOWN = 40  # characters of a token quoted in an error

# Messages for the problem numbers of `_text_kernels`, in their order.
PROBLEMS = (
    ("", ""),
    ("the grade {token!r} is not a decimal number", "a line is `grade qid:N 1:value 2:value ... # comment`."),
    ("the grade {token!r} is negative", "grades start at 0; map spam to 0 or drop these rows."),
    ("no `qid:` after the grade, though the first row has one", "give every row its query id, or none."),
    ("{token!r} is not `qid:` and an integer below 2**63", "renumber the queries."),
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
class LetorText:
    """Text of a file, or a part of it that starts after `lines` lines and ends with a line end."""

    path: PathLike
    buffer: Bytes
    lines: int = 0


@dataclass(frozen=True, eq=False)
class TextChunk:
    """Whole lines `start:stop` of a file; `first_row` is the number of rows in all chunks before it."""

    source: LetorText
    start: int
    stop: int
    rows: int = 0
    colons: int = 0
    largest: int = -1
    first_row: int = 0


@dataclass(frozen=True)
class FeatureLayout:
    """Feature numbering (from `base`, below `limit`) and storage: `width` columns, or sparse if 0."""

    base: int
    limit: int
    width: int
    has_qid: bool


@dataclass(frozen=True, eq=False)
class LetorColumns:
    """Columns read: one entry per row, except that `values` and `indices` have one per feature if sparse."""

    values: Any
    indices: Any
    ends: IntArray
    grades: FloatArray
    qids: IntArray
    spans: IntArray

    @classmethod
    def empty(
        cls, chunks: list[TextChunk], layout: FeatureLayout, dtype: np.dtype[Any], fill: float
    ) -> LetorColumns:
        """Allocate room for all chunks; a malformed file may overflow it, and is refused anyway."""
        n_rows = sum(chunk.rows for chunk in chunks)
        entries = 0 if layout.width else sum(_count_entries(chunk, layout) for chunk in chunks)
        wide = max((chunk.largest for chunk in chunks), default=0) >= 2**31
        shape = (n_rows, layout.width) if layout.width else (entries,)
        return cls(
            # zeros come untouched from the system: the threads, not this line, pay for the memory
            values=np.zeros(shape, dtype) if fill == 0 else np.full(shape, fill, dtype),
            indices=np.empty(entries, dtype=np.int64 if wide else np.int32),
            ends=np.empty(n_rows, dtype=np.int64),
            grades=np.empty(n_rows),
            qids=np.zeros(n_rows, dtype=np.int64),
            spans=np.zeros((n_rows, 2), dtype=np.int64),
        )


def _count_entries(chunk: TextChunk, layout: FeatureLayout) -> int:
    return max(0, chunk.colons - (chunk.rows if layout.has_qid else 0))


def _cut_text(source: LetorText) -> list[TextChunk]:
    """Cut the text into chunks of about `CHUNK_BYTES` that end at line ends."""
    text, edges = source.buffer, [0]
    while edges[-1] < len(text):
        at = min(edges[-1] + CHUNK_BYTES, len(text)) - 1
        while not (ends := np.flatnonzero(text[at : at + 4096] == ord("\n"))).size:
            at += 4096  # terminates because the last byte is a line end
        edges.append(at + int(ends[0]) + 1)
    return [TextChunk(source, start, stop) for start, stop in pairwise(edges)]


def _for_each(chunks: list[TextChunk], job: Callable[[int], None]) -> None:
    def body(first: int, last: int) -> None:
        for index in range(first, last):
            job(index)

    run_chunks(np.cumsum([0, *(chunk.stop - chunk.start for chunk in chunks)]), body)


def measure(sources: list[LetorText]) -> list[TextChunk]:
    """Cut all files into chunks, each with its counts and its first row."""
    from concordant.data.io import _text_kernels

    chunks = [chunk for source in sources for chunk in _cut_text(source)]

    def job(index: int) -> None:
        chunk = chunks[index]
        rows, colons, largest = _text_kernels.measure(chunk.source.buffer, chunk.start, chunk.stop)
        chunks[index] = replace(chunk, rows=rows, colons=colons, largest=largest)

    _for_each(chunks, job)
    starts = accumulate((chunk.rows for chunk in chunks), initial=0)
    return [replace(chunk, first_row=start) for chunk, start in zip(chunks, starts, strict=False)]


def text_has_qid(sources: list[LetorText]) -> bool:
    """True if the first row has a query id; the rows after it must agree."""
    matches = (FIRST_ROW.search(source.buffer.data) for source in sources)
    return next((match[1] is not None for match in matches if match), False)


def read_outline(chunks: list[TextChunk], layout: FeatureLayout) -> LetorColumns:
    """Read everything to find the first fault, but keep at most one column of features."""
    narrow = replace(layout, width=1)
    out = LetorColumns.empty(chunks, narrow, np.dtype(np.float64), 0.0)
    _read_chunks(chunks, narrow, out)
    return out


def find_widest(chunks: list[TextChunk]) -> tuple[LetorText, int, int]:
    """Return the largest feature index with its source and offset."""
    widest = max(chunks, key=lambda chunk: chunk.largest)
    text = widest.source.buffer[: widest.stop].data
    match = re.compile(rb"(?<=[ \t\r])0*%d:" % widest.largest).search(text, widest.start)
    return widest.source, match.start() if match else widest.start, widest.largest


def _read_chunks(chunks: list[TextChunk], layout: FeatureLayout, out: LetorColumns) -> None:
    """Fill `out`; raise for the first fault of the files, whichever thread found it."""
    first_entries = list(accumulate((_count_entries(chunk, layout) for chunk in chunks), initial=0))
    faults: list[tuple[int, int]] = [(0, -1)] * len(chunks)

    def job(index: int) -> None:
        entries = slice(first_entries[index], first_entries[index + 1])
        faults[index] = _read_chunk(chunks[index], entries, layout, out)
        out.ends[chunks[index].first_row :][: chunks[index].rows] += first_entries[index]

    _for_each(chunks, job)
    for chunk, (problem, offset) in zip(chunks, faults, strict=True):
        if problem:
            raise malformed_line(chunk.source, offset, *PROBLEMS[problem])


def _read_chunk(
    chunk: TextChunk, entries: slice, layout: FeatureLayout, out: LetorColumns
) -> tuple[int, int]:
    """Fill the rows of one chunk; return its first problem (0: none) and the offset."""
    from concordant.data.io import _floats, _text_kernels

    rows = slice(chunk.first_row, chunk.first_row + chunk.rows)
    target = out.values[rows if layout.width else entries]
    values = target if target.dtype == np.float64 else target.astype(np.float64)
    flat, text, grades = values.reshape(-1), chunk.source.buffer, out.grades[rows]
    problem, offset, hard = _text_kernels.read_rows(
        text, chunk.start, chunk.stop, layout.base, layout.limit, layout.width, layout.has_qid,
        flat, out.indices[entries], out.ends[rows], grades, out.qids[rows], out.spans[rows],
    )  # fmt: skip
    if hard:
        faults = [(_floats.resolve_hard_numbers(text, flat), VALUE_OVERFLOW)]
        faults.append((offset if problem else -1, problem))
        faults.append((_floats.resolve_hard_numbers(text, grades, 0.0), NEGATIVE_GRADE))
        offset, problem = min((fault for fault in faults if fault[0] >= 0), default=(-1, 0))
    if values is not target and not problem:
        with np.errstate(over="ignore"):
            target[...] = values
        if (lost := np.isinf(target) & np.isfinite(values)).any():
            raise _too_large(chunk, values, lost, out.ends[rows])
    return problem, offset


def _too_large(chunk: TextChunk, values: FloatArray, lost: BoolArray, ends: IntArray) -> NonFiniteError:
    from concordant.data.io import _text_kernels

    entry, source = int(np.flatnonzero(lost)[0]), chunk.source
    row = entry // values.shape[1] if values.ndim == 2 else int(np.searchsorted(ends, entry, side="right"))
    starts = np.empty(chunk.rows, dtype=np.int64)
    _text_kernels.row_starts(source.buffer[chunk.start : chunk.stop], starts)
    line = source.lines + locate(source.buffer, chunk.start + int(starts[row]))[0]
    where, hint = f"the value {float(values.flat[entry])!r}", "read it with dtype=np.float64."
    name = f"{source.path}, line {line}: X in float32"
    return NonFiniteError(name, np.inf, where, int(lost.sum()), hint)


def malformed_line(source: LetorText, offset: int, problem: str, hint: str) -> MalformedLineError:
    """Build the error for the token at `offset`."""
    match = TOKEN.match(source.buffer.data, offset)
    token = match[0].decode("utf-8", "replace")[:SHOWN] if match else ""
    line, column = locate(source.buffer, offset)
    return MalformedLineError(source.path, source.lines + line, column, problem.format(token=token), hint)


DENSE_ALWAYS = 4 << 30  # bytes up to which a dense matrix is always allowed
DENSE_SPARSITY = 16  # above that, at least one in so many entries must be in the file
LARGEST = 2**63 - 1


def read_letor(
    path: PathLike | Iterable[PathLike],
    *,
    sparse: bool = False,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool = False,
    fill: float = 0.0,
    group: PathLike | Iterable[PathLike] | ArrayLike | None = None,
) -> RankingData:
    r"""Read a LETOR (SVMlight) file; every value is exactly the double that Python's `float` reads.

    Parameters
    ----------
    path
        A file, or several that are read as a single file (the parts of a LETOR fold); plain, .gz, .xz, .bz2
        or .zst.
    sparse
        Return `X` as a `scipy.sparse.csr_array`; zeros written in the file stay stored.
    n_features
        Number of columns; by default the largest index found. A larger index is an error.
    dtype
        float64 or float32 (the double, rounded once more).
    zero_based
        The first feature is `0:`, not `1:`.
    fill
        Value of the features that a row omits (dense only), e.g. `np.nan`.
    group
        For files without `qid:`, the number of rows of each consecutive query: an array, or a file (or one
        file per file of `path`) with one number per line, as LightGBM uses. Without either, all rows are
        query 0.

    Returns
    -------
    RankingData
        `docid` is X of `docid = X` in the comment, which may be empty, else the stripped comment, else empty;
        `None` if all are empty.

    Raises
    ------
    MalformedLineError
        At the first malformed line: line and column count from 1. Indices must increase along a row; nan,
        inf, numbers beyond the largest double, negative grades, rows with and without `qid:` in the same
        data, and document ids that are not UTF-8 are refused. So is a dense matrix over 4 GiB with fewer than
        one entry in 16 in the file (most often a stray index), before anything is allocated.
    EmptyDataError
        If there are no rows.

    Notes
    -----
    Blank lines, comment lines, tabs, runs of spaces, CRLF, a byte order mark and a missing last line end are
    allowed. Peak memory is the decompressed text plus the arrays returned: measured with 136 features per
    line, 1.8 times the file size if dense and 2.2 times if sparse.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.txt")
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1 # docid = a\n0 qid:7 2:-1e-05 # docid = b\n")
    ...     data = read_letor(path)
    >>> data
    RankingData(n_rows=2, n_features=3, n_queries=1)
    >>> data.X.tolist(), data.y.tolist(), data.docid.tolist()
    ([[0.5, 0.0, 1.0], [0.0, -1e-05, 0.0]], [2.0, 0.0], ['a', 'b'])
    """
    with naming_memory(path):
        return parse_letor(
            [LetorText(name, read_buffer(name)) for name in list_paths(path)],
            sparse=sparse,
            n_features=n_features,
            dtype=dtype,
            zero_based=zero_based,
            fill=fill,
            sizes=None if group is None else _group_sizes(group),
        )


def parse_letor(
    sources: list[LetorText],
    *,
    sparse: bool = False,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool = False,
    fill: float = 0.0,
    sizes: IntArray | None = None,
    has_qid: bool | None = None,
    docids: bool = True,
) -> RankingData:
    r"""Parse `LetorText` in memory like `read_letor`; each text ends with a line end.

    `has_qid`: whether rows have a query id; None: as in the first row. `docids`: read document ids.

    >>> text = np.frombuffer(b"1 qid:3 1:2\n", dtype=np.uint8)
    >>> parse_letor([LetorText("memory", text)]).X.tolist()
    [[2.0]]
    """
    dtype = _check_options(sparse, n_features, dtype, fill)
    chunks = measure(sources)
    n_rows = sum(chunk.rows for chunk in chunks)
    if n_rows == 0:
        raise EmptyDataError(", ".join(os.fspath(source.path) for source in sources) or "the list of files")
    base = 0 if zero_based else 1
    n_found = max(0, max(chunk.largest for chunk in chunks) + 1 - base)
    columns = n_found if n_features is None else int(n_features)
    layout = FeatureLayout(
        base=base,
        limit=LARGEST if n_features is None else columns,
        width=0 if sparse else max(columns, 1),
        has_qid=text_has_qid(sources) if has_qid is None else has_qid,
    )
    if not sparse:
        _check_size(chunks, layout, dtype, n_features=n_features)
    out = LetorColumns.empty(chunks, layout, dtype, fill)
    _read_chunks(chunks, layout, out)
    X = _as_csr(out, columns) if sparse else out.values[:, :columns]
    qid = out.qids if sizes is None else _group_ids(sizes, n_rows, has_qid=layout.has_qid)
    docid = _read_docids(chunks, out.spans) if docids else None
    return RankingData(X=X, y=out.grades, qid=qid, docid=docid)


def _check_options(sparse: bool, n_features: int | None, dtype: DTypeLike, fill: float) -> np.dtype[Any]:
    if dtype not in (np.float64, np.float32, "float64", "float32", float):
        raise ParameterError("dtype", dtype, "float64 or float32")
    if not isinstance(fill, numbers.Real):
        raise ParameterError("fill", fill, "a number")
    if sparse and fill != 0:
        raise ParameterError("fill", fill, "0 with sparse=True")
    if n_features is not None:
        check_whole("n_features", n_features, 0, also="None")
    return np.dtype(dtype)


def _check_size(
    chunks: list[TextChunk], layout: FeatureLayout, dtype: np.dtype[Any], n_features: int | None
) -> None:
    """Raise on a huge dense matrix that would be almost all fill, naming the line with the largest index."""
    n_rows, colons = sum(chunk.rows for chunk in chunks), sum(chunk.colons for chunk in chunks)
    size = n_rows * layout.width * dtype.itemsize
    if size <= DENSE_ALWAYS or n_rows * layout.width <= DENSE_SPARSITY * colons:
        require_memory(chunks[0].source.path, size)
        return
    problem = f"makes a dense matrix of {n_rows:,} x {layout.width:,} numbers ({size / 2**30:,.0f} GiB)"
    if n_features is not None:
        raise ParameterError.because(f"n_features={n_features} {problem}. Lower it, or pass sparse=True.")
    # A malformed line explains a wild index better; one column is enough room to find it.
    read_outline(chunks, layout)
    source, offset, widest = find_widest(chunks)
    problem, hint = f"feature {widest} {problem}", "pass sparse=True, or correct the index."
    raise malformed_line(source, offset, problem, hint)


def _as_csr(out: LetorColumns, columns: int) -> Any:
    from scipy.sparse import csr_array

    indptr = np.concatenate([[0], out.ends]).astype(out.indices.dtype)
    return csr_array((out.values, out.indices, indptr), shape=(len(out.ends), columns))


def _read_docids(chunks: list[TextChunk], spans: IntArray) -> np.ndarray | None:
    """Read the document ids of all rows; `None` if all are empty."""
    from concordant.data.io.trec import decode_spans

    if not (spans[:, 1] > spans[:, 0]).any():
        return None
    pieces = []
    for _, group in groupby(chunks, key=lambda chunk: id(chunk.source)):
        source_chunks = list(group)
        source, start = source_chunks[0].source, source_chunks[0].first_row
        stop = source_chunks[-1].first_row + source_chunks[-1].rows
        pieces.append(decode_spans(source.path, source.buffer, spans[start:stop], lines=source.lines))
    return np.concatenate(pieces)


def _group_sizes(group: PathLike | Iterable[PathLike] | ArrayLike) -> IntArray:
    if not isinstance(group, str | os.PathLike | Iterable):
        raise ParameterError("group", group, "a list of sizes or the name of a file of sizes")
    names = [group] if isinstance(group, str | os.PathLike) else list(group)
    if not names or not isinstance(names[0], str | os.PathLike):
        return np.asarray(names)
    return np.concatenate([_read_sizes(name) for name in names])


def _read_sizes(path: PathLike) -> IntArray:
    sizes = []
    for line, text in read_lines(path):
        if text.strip():
            digits = text.strip()
            if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
                raise MalformedLineError(path, line, 1, f"{digits[:40]!r} is not a number of rows")
            sizes.append(int(digits))
    return np.array(sizes, dtype=np.int64)


def _group_ids(sizes: IntArray, n_rows: int, *, has_qid: bool) -> IntArray:
    if has_qid:
        raise ParameterError.because("group was given, but the rows already have `qid:`. Leave group out.")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ParameterError("group", sizes.tolist()[:5], "integers >= 0")
    if sizes.sum() != n_rows:
        raise ParameterError.because(
            f"group must add up to the {n_rows} rows, got {len(sizes)} sizes that add up to {sizes.sum()}."
        )
    return np.repeat(np.arange(len(sizes)), sizes)


# Writing LETOR / SVMlight text such that reading it restores every bit.

ROWS_AT_ONCE = 1024  # rows converted to Python floats together
BLANK = re.compile(r"[ \t\r]")
UNREADABLE = re.compile(r"[\n\0]|docid[ \t\r]*=|^[ \t\r]|[ \t\r]$")  # would not be read back unchanged


def write_letor(
    path: PathLike,
    X: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike,
    *,
    docid: ArrayLike | None = None,
    zero_based: bool = False,
) -> None:
    r"""Write rows so that `read_letor` returns the same doubles, grades, query ids and document ids.

    The file is written completely or not at all, compressed if its suffix is .gz, .xz, .bz2 or .zst. For a
    sparse `X` only the stored entries are written: pass `n_features` to `read_letor` if the last columns may
    be empty.

    Raises
    ------
    NonFiniteError, GradeError, NotNumericError, LengthMismatchError, ParameterError
        For values that the format cannot store: NaN and infinities, negative grades, query ids that are not
        whole numbers from 0, document ids of several lines.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_letor(Path(folder, "a.txt"), [[0.5, -0.0]], y=[2], qid=[7], docid=["x"])
    ...     Path(folder, "a.txt").read_text()
    '2 qid:7 1:0.5 2:-0.0 #docid = x\n'
    """
    from scipy.sparse import issparse

    refuse_misaligned(X=X, y=y, qid=qid, docid=docid)
    is_sparse: bool = issparse(X)
    if is_sparse:
        X = X.tocsr(copy=True)  # the caller's matrix is unchanged
        X.sum_duplicates()
    X = check_features(X)
    heads, comments = _format_heads(y, qid, X.shape[0]), _format_comments(docid, X.shape[0])
    rows = (_sparse_rows if is_sparse else _dense_rows)(X, 0 if zero_based else 1)
    with write_atomically(path) as stream:
        for head, row, comment in zip(heads, rows, comments, strict=True):
            stream.write(f"{head}{row}{comment}\n".encode())


def _dense_rows(X: Any, base: int) -> Iterator[str]:
    template = "".join(f" {column + base}:%r" for column in range(X.shape[1]))
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        for row in X[start : start + ROWS_AT_ONCE].astype(np.float64).tolist():
            yield template % tuple(row)  # one call formats the row: 1.2 times as fast as a join


def _sparse_rows(X: Any, base: int) -> Iterator[str]:
    for start, stop in zip(X.indptr, X.indptr[1:], strict=False):
        indices = (X.indices[start:stop].astype(np.int64) + base).tolist()
        values = X.data[start:stop].astype(np.float64).tolist()
        yield "".join(f" {index}:{value!r}" for index, value in zip(indices, values, strict=True))


def _format_heads(y: ArrayLike, qid: ArrayLike, n_rows: int) -> list[str]:
    """Format `grade qid:N` of each row."""
    grades, qid = check_grades(y), check_ids(qid)
    check_lengths("X", n_rows, y=grades, qid=qid)
    if qid.dtype.kind not in "iu":
        raise NotNumericError("qid", f"its dtype is {qid.dtype}, and LETOR needs integers")
    if (qid < 0).any() or (qid > 2**63 - 1).any():
        raise ParameterError("qid", int(qid.min()), "between 0 and 2**63 - 1")
    texts = [repr(grade).removesuffix(".0") for grade in grades.tolist()]
    return [f"{grade} qid:{query}" for grade, query in zip(texts, qid.tolist(), strict=True)]


def _format_comments(docid: ArrayLike | None, n_rows: int) -> list[str]:
    """Format the comment of each row: `docid = X`, or the bare text if it has blanks."""
    if docid is None:
        return [""] * n_rows
    names = [str(name) for name in check_ids(docid, "docid").tolist()]
    check_lengths("X", n_rows, docid=names)
    for name in names:
        if UNREADABLE.search(name):
            raise ParameterError(
                "docid", name, "text on one line, without leading or trailing blanks and without `docid =`"
            )
    leads = [" # " if BLANK.search(name) else " #docid = " for name in names]
    return [lead + name if name else "" for lead, name in zip(leads, names, strict=True)]
