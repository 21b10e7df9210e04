"""LETOR / SVMlight text: `grade qid:N 1:v 2:v ... # comment`, read in parallel and exactly."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from concordant.exceptions import EmptyDataError, MalformedLineError, ParameterError
from concordant.supervision.data import RankingData
from concordant.supervision.readers import _letor_chunks
from concordant.supervision.readers._letor_chunks import Chunk, Columns, Layout, Source
from concordant.supervision.readers.text import PathLike, paths_of, read_buffer, read_lines
from concordant.types import ArrayLike, IntArray

__all__ = ["parse_letor", "read_letor"]

DENSE_ALWAYS = 4 << 30  # bytes up to which a dense matrix is made whatever it holds
DENSE_SPARSITY = 16  # above that, at least one entry in so many must be in the file
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
    r"""Rows of a LETOR (SVMlight) file, every value the very double that Python's `float` reads.

    Parameters
    ----------
    path
        A file, or several that are read as one (the parts of a LETOR fold); plain, .gz, .xz, .bz2 or .zst.
    sparse
        Return `X` as a `scipy.sparse.csr_array`; zeros written in the file stay stored.
    n_features
        Number of columns; by default the largest index found. A larger index is an error.
    dtype
        float64 or float32 (then rounded once more, from the double).
    zero_based
        The first feature is `0:`, not `1:`.
    fill
        Value of the features a row leaves out (dense only), e.g. `np.nan`.
    group
        For files without `qid:`, the number of rows of each query in turn: an array, or a file (or one file
        for each of `path`) with a number a line, as LightGBM has it. Without either, all rows are query 0.

    Returns
    -------
    RankingData
        `docid` is X of `docid = X` in the comment, else the stripped comment, else empty; `None` if no row
        has one.

    Raises
    ------
    MalformedLineError
        At the first line that breaks the format: line and column count from 1. Indices must increase along a
        row; nan, inf, numbers beyond the largest double, negative grades, and rows with and without `qid:` in
        one set are refused. So is a dense matrix over 4 GiB of which less than one entry in 16 is in the file
        (most often a stray index): nothing is allocated.
    EmptyDataError
        If there are no rows.

    Notes
    -----
    Blank lines, comment lines, tabs, runs of spaces, CRLF, a byte order mark and a missing last line end are
    fine. At its peak the memory is the text itself, decompressed, and the arrays returned: measured
    on 136 features a line, 1.8 times the size of the file when dense and 2.2 times when sparse.

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
    return parse_letor(
        [Source(name, read_buffer(name)) for name in paths_of(path)],
        sparse=sparse,
        n_features=n_features,
        dtype=dtype,
        zero_based=zero_based,
        fill=fill,
        sizes=None if group is None else _group_sizes(group),
    )


def parse_letor(
    sources: list[Source],
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
    r"""`read_letor` of texts already in memory, each ending with a line end.

    `has_qid`: whether rows have a query id; None: as the first row. `docids`: whether document ids are read.

    >>> text = np.frombuffer(b"1 qid:3 1:2\n", dtype=np.uint8)
    >>> parse_letor([Source("memory", text)]).X.tolist()
    [[2.0]]
    """
    dtype = _check_options(sparse, n_features, dtype, fill)
    chunks = _letor_chunks.measure(sources)
    n_rows = sum(chunk.rows for chunk in chunks)
    if n_rows == 0:
        raise EmptyDataError(", ".join(os.fspath(source.path) for source in sources) or "the list of files")
    base = 0 if zero_based else 1
    found = max(0, max(chunk.largest for chunk in chunks) + 1 - base)
    columns = found if n_features is None else int(n_features)
    layout = Layout(
        base=base,
        limit=LARGEST if n_features is None else columns,
        width=0 if sparse else max(columns, 1),
        has_qid=_letor_chunks.has_qid(sources) if has_qid is None else has_qid,
    )
    if not sparse:
        _check_size(chunks, layout, dtype, given=n_features)
    out = Columns.empty(chunks, layout, dtype, fill)
    _letor_chunks.read(chunks, layout, out)
    X = _as_csr(out, columns) if sparse else out.values[:, :columns]
    qid = out.qids if sizes is None else _grouped(sizes, n_rows, has_qid=layout.has_qid)
    docid = _docids(chunks, out.spans) if docids else None
    return RankingData(X=X, y=out.grades, qid=qid, docid=docid)


def _check_options(sparse: bool, n_features: int | None, dtype: DTypeLike, fill: float) -> np.dtype[Any]:
    """Give the dtype, refusing what cannot be combined."""
    if dtype not in (np.float64, np.float32, "float64", "float32", float):
        raise ParameterError("dtype", dtype, "float64 or float32")
    if not isinstance(fill, numbers.Real):
        raise ParameterError("fill", fill, "a number")
    if sparse and fill != 0:
        raise ParameterError("fill", fill, "0 when sparse=True: what a sparse matrix leaves out is zero")
    if n_features is not None and not (isinstance(n_features, numbers.Integral) and n_features >= 0):
        raise ParameterError("n_features", n_features, "a whole number, 0 or more")
    return np.dtype(dtype)


def _check_size(chunks: list[Chunk], layout: Layout, dtype: np.dtype[Any], given: int | None) -> None:
    """Refuse a huge dense matrix that would be almost all fill, naming the line with the largest index."""
    n_rows, colons = sum(chunk.rows for chunk in chunks), sum(chunk.colons for chunk in chunks)
    size = n_rows * layout.width * dtype.itemsize
    if size <= DENSE_ALWAYS or n_rows * layout.width <= DENSE_SPARSITY * colons:
        return
    problem = f"makes a dense matrix of {n_rows:,} x {layout.width:,} numbers ({size / 2**30:,.0f} GiB)"
    if given is not None:
        raise ParameterError("n_features", given, f"smaller or come with sparse=True, since it {problem}")
    # A line that breaks the format explains a wild index better; one column is enough room to find it.
    _letor_chunks.outline(chunks, layout)
    source, offset, widest = _letor_chunks.find_widest(chunks)
    problem, hint = f"feature {widest} {problem}", "pass sparse=True, or correct the index."
    raise _letor_chunks.malformed(source, offset, problem, hint)


def _as_csr(out: Columns, columns: int) -> Any:
    from scipy.sparse import csr_array

    indptr = np.concatenate([[0], out.ends]).astype(out.indices.dtype)
    return csr_array((out.values, out.indices, indptr), shape=(len(out.ends), columns))


def _docids(chunks: list[Chunk], spans: IntArray) -> np.ndarray | None:
    """Document ids of all rows, `None` if every one is empty."""
    from concordant.supervision.readers._spans import texts

    if not (spans[:, 1] > spans[:, 0]).any():
        return None
    sources: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        sources.setdefault(id(chunk.source), []).append(chunk)
    pieces = [
        texts(own[0].source.buffer, spans[own[0].first_row : own[-1].first_row + own[-1].rows])
        for own in sources.values()
    ]
    return np.concatenate(pieces)


def _group_sizes(group: PathLike | Iterable[PathLike] | ArrayLike) -> IntArray:
    """Sizes from an array, a file, or several files."""
    if not isinstance(group, str | os.PathLike | Iterable):
        raise ParameterError("group", group, "a list of sizes, or a file of them")
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


def _grouped(sizes: IntArray, n_rows: int, *, has_qid: bool) -> IntArray:
    """Query ids 0, 1, ... of consecutive groups."""
    if has_qid:
        raise ParameterError("group", "given", "left out, since the rows have `qid:`")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ParameterError("group", sizes.tolist()[:5], "whole numbers, 0 or more")
    if sizes.sum() != n_rows:
        total = f"{len(sizes)} sizes adding up to {sizes.sum()}"
        raise ParameterError("group", total, f"sizes that add up to the {n_rows} rows")
    return np.repeat(np.arange(len(sizes)), sizes)
