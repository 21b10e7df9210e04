"""Read and write TREC judgements and runs: `qid 0 docid grade` and `qid Q0 docid rank score tag`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from concordant._base.files import (
    Bytes,
    PathLike,
    decode,
    locate,
    naming_memory,
    read_buffer,
    write_atomically,
)
from concordant._base.validate import check_column, check_ids, check_lengths, check_scores, refuse_misaligned
from concordant.exceptions import EmptyDataError, GradeError, LabelError, MalformedLineError, ParameterError
from concordant.types import ArrayLike, FloatArray, IntArray

# Spans of a byte buffer, decoded to an array of text.

NUL = re.compile(rb"\0")
PADDING_ALLOWED = 4  # times the size of the text that a fixed-width array may take; objects are cheaper then


def decode_spans(path: PathLike, buffer: Bytes, spans: IntArray, *, lines: int = 0) -> np.ndarray:
    """Decode the text between `spans[i, 0]` and `spans[i, 1]`; errors count the `lines` before the buffer.

    Returns fixed-width text if that is compact, an array of objects if a few entries are very long. Bytes
    that are not UTF-8, and NUL, at which numpy or Arrow end text, raise: different ids would become equal.

    >>> decode_spans("a.txt", np.frombuffer(b"one,two", dtype=np.uint8), np.array([[0, 3], [4, 7]])).tolist()
    ['one', 'two']
    """
    lengths = spans[:, 1] - spans[:, 0]
    nuls = np.array([*(match.start() for match in NUL.finditer(buffer.data)), len(buffer)])
    following = nuls[np.searchsorted(nuls, spans[:, 0])]
    if (inside := following < spans[:, 1]).any():
        line, column = locate(buffer, int(following[inside][0]))
        raise MalformedLineError(path, lines + line, column, "an id has a NUL byte")
    width = max(1, int(lengths.max(initial=0)))
    if width * len(spans) <= PADDING_ALLOWED * int(lengths.sum()) + (1 << 20):
        out = np.zeros((len(spans), width), dtype=np.uint8)
        from concordant.data.io._text_kernels import gather_spans

        gather_spans(buffer, spans, out)
        if not (out & 0x80).any():  # ASCII: numpy widens bytes to text
            return out.view(f"S{width}")[:, 0].astype(f"U{width}")
    pieces = [decode(path, buffer, start, stop, lines) for start, stop in spans.tolist()]
    longest = max(map(len, pieces), default=0)
    compact = longest * len(pieces) <= PADDING_ALLOWED * sum(map(len, pieces)) + (1 << 20)
    return np.array(pieces, dtype=np.str_ if compact else object)


# TREC judgements (qrels) and runs: `qid 0 docid grade` and `qid Q0 docid rank score tag`.

QRELS_FORM = "`qid iteration docid grade`"
RUN_FORM = "`qid Q0 docid rank score tag`"
DICTIONARY_ROWS = 200_000  # from here on pyarrow is faster, but creating an array imports pandas


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements in file order; ids are text, grades may be negative (TREC marks spam so)."""

    qid: np.ndarray
    docid: np.ndarray
    grade: IntArray


@dataclass(frozen=True, eq=False)
class Run:
    """Retrieved documents in file order; `tag` is taken from the first line."""

    qid: np.ndarray
    docid: np.ndarray
    score: FloatArray
    tag: str


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged and retrieved documents combined, the rows of a query adjacent.

    Attributes
    ----------
    y
        Grades; 0 if a retrieved document was not judged or its grade is negative.
    scores
        Scores of the run; -inf if a judged document was not retrieved: it gains nothing, but counts among the
        documents to be found.
    qid, docid
        Ids, as text.
    n_unjudged, n_missing, n_negative
        Numbers of rows that were retrieved but not judged, judged but not retrieved, judged below 0.
    n_dropped
        Lines of the run whose query has no judgement.
    """

    y: FloatArray
    scores: FloatArray
    qid: np.ndarray
    docid: np.ndarray
    n_unjudged: int
    n_missing: int
    n_negative: int
    n_dropped: int


def read_qrels(path: PathLike) -> Qrels:
    r"""Read the judgements of a qrels file, plain or compressed; lines that begin with `#` are comments.

    Raises
    ------
    MalformedLineError
        At the first line without four columns, with a grade that is not a whole number, or with a document
        that was already judged for the query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "qrels").write_text("301 0 FR-1 2\n301 0 FR-2 -1\n")
    ...     qrels = read_qrels(Path(folder, "qrels"))
    >>> qrels.docid.tolist(), qrels.grade.tolist()
    (['FR-1', 'FR-2'], [2, -1])
    """
    from concordant.data.io._text_kernels import read_integers

    with naming_memory(path):
        buffer, spans = _split_fields(path, 4, QRELS_FORM)
        grade = np.empty(len(spans), dtype=np.int64)
        bad = read_integers(buffer, spans[:, 3], grade)
        if bad >= 0:
            hint = f"a line is {QRELS_FORM}."
            raise _field_error(path, buffer, spans[bad, 3], "is not an integer", hint)
        return Qrels(*_read_ids(path, buffer, spans), grade)


def read_run(path: PathLike) -> Run:
    r"""Read the scores of a run file, plain or compressed.

    As in trec_eval, the rank column and text after the tag are ignored, and lines that begin with `#` are
    comments.

    Raises
    ------
    MalformedLineError
        At the first line with fewer than six columns, with a score that is not finite, or with a document
        already retrieved for the query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run").write_text("301 Q0 FR-1 1 0.75 bm25\n")
    ...     read_run(Path(folder, "run")).score.tolist()
    [0.75]
    """
    from concordant.data.io._floats import resolve_hard_numbers
    from concordant.data.io._text_kernels import read_numbers

    with naming_memory(path):
        buffer, spans = _split_fields(path, 6, RUN_FORM, longer=True)
        score = np.empty(len(spans))
        bad = read_numbers(buffer, spans[:, 4], score)
        if bad < 0 and (offset := resolve_hard_numbers(buffer, score)) >= 0:
            bad = int(np.flatnonzero(spans[:, 4, 0] == offset)[0])
        if bad >= 0:
            hint = f"a line is {RUN_FORM}."
            raise _field_error(path, buffer, spans[bad, 4], "is not a finite number", hint)
        tag = str(decode_spans(path, buffer, spans[:1, 5])[0])
        return Run(*_read_ids(path, buffer, spans), score, tag)


def _split_fields(path: PathLike, columns: int, form: str, *, longer: bool = False) -> tuple[Bytes, IntArray]:
    """Read a file and split it into fields, with spans (rows, columns, 2); `longer` allows extra columns."""
    from concordant.data.io._text_kernels import split_fields

    buffer = read_buffer(path)
    spans = np.empty((int(np.count_nonzero(buffer == ord("\n"))), columns, 2), dtype=np.int64)
    rows, fault, n_columns = split_fields(buffer, spans, longer)
    if fault >= 0:
        line, column = locate(buffer, fault)
        problem = f"expected {columns} columns, got {n_columns}"
        raise MalformedLineError(path, line, column, problem, f"a line is {form}.")
    if rows == 0:
        raise EmptyDataError(str(path))
    return buffer, spans[:rows]


def _field_error(
    path: PathLike, buffer: Bytes, span: IntArray, problem: str, hint: str
) -> MalformedLineError:
    token = buffer[span[0] : span[1]].tobytes().decode("utf-8", "replace")[:40]
    return MalformedLineError(path, *locate(buffer, int(span[0])), f"{token!r} {problem}", hint)


def _encode_texts(*columns: np.ndarray) -> list[IntArray]:
    """Encode texts as integers, in order of first appearance over all columns (hashed, not sorted)."""
    if sum(map(len, columns)) < DICTIONARY_ROWS:
        code_of: dict[str, int] = {}
        rows = (np.asarray(column).astype(np.str_, copy=False).tolist() for column in columns)
        return [
            np.array([code_of.setdefault(text, len(code_of)) for text in texts], np.int64) for texts in rows
        ]
    import pyarrow as pa

    chunks = [pa.array(np.asarray(column).astype(np.str_, copy=False), pa.string()) for column in columns]
    encoded = pa.chunked_array(chunks).dictionary_encode().combine_chunks()
    all_codes = encoded.indices.to_numpy().astype(np.int64)
    return np.split(all_codes, np.cumsum([len(column) for column in columns])[:-1])


def _pair_keys(queries: IntArray, documents: IntArray, n_documents: int) -> IntArray:
    return queries * np.int64(n_documents) + documents


def _read_ids(path: PathLike, buffer: Bytes, spans: IntArray) -> tuple[np.ndarray, np.ndarray]:
    """Read query and document ids; raise at the first line that repeats a document of its query."""
    qid, docid = (decode_spans(path, buffer, spans[:, column]) for column in (0, 2))
    documents = _encode_texts(docid)[0]
    keys = _pair_keys(_encode_texts(qid)[0], documents, int(documents.max()) + 1)
    order = np.argsort(keys, kind="stable")
    repeats = order[1:][keys[order[1:]] == keys[order[:-1]]]
    if repeats.size:
        row = int(repeats.min())
        problem = f"is given twice for query {qid[row]}"
        hint = "keep one line for each document of a query."
        raise _field_error(path, buffer, spans[row, 2], problem, hint)
    return qid, docid


def join(qrels: Qrels, run: Run, *, all_queries: bool = False) -> Judged:
    """Combine judged and retrieved documents of the queries in both, or of all judged queries.

    Queries are in the order of `qrels`; within a query, first the retrieved documents in the order of the
    run, so that no tie rule favours judged documents, then those not retrieved.

    Examples
    --------
    >>> qrels = Qrels(np.array(["1", "1"]), np.array(["a", "b"]), np.array([2, -1]))
    >>> run = Run(np.array(["1", "1", "9"]), np.array(["c", "a", "a"]), np.array([3.0, 1.0, 1.0]), "bm25")
    >>> judged = join(qrels, run)
    >>> judged.docid.tolist(), judged.y.tolist(), judged.scores.tolist()
    (['c', 'a', 'b'], [0.0, 2.0, 0.0], [3.0, 1.0, -inf])
    >>> judged.n_unjudged, judged.n_missing, judged.n_negative, judged.n_dropped
    (1, 1, 1, 1)
    """
    queries, run_queries = _encode_texts(qrels.qid, run.qid)
    documents, run_documents = _encode_texts(qrels.docid, run.docid)
    n_documents = int(max(documents.max(initial=0), run_documents.max(initial=0))) + 1
    keys = _pair_keys(queries, documents, n_documents)
    run_keys = _pair_keys(run_queries, run_documents, n_documents)
    is_judged_query = np.isin(run_queries, queries)
    missing = ~np.isin(keys, run_keys) & (all_queries | np.isin(queries, run_queries))
    grades = np.r_[_look_up(run_keys[is_judged_query], keys, qrels.grade), qrels.grade[missing]]
    scores = np.r_[run.score[is_judged_query], np.full(int(missing.sum()), -np.inf)]
    order = np.argsort(np.r_[run_queries[is_judged_query], queries[missing]], kind="stable")
    return Judged(
        y=np.maximum(np.nan_to_num(grades), 0.0)[order],
        scores=scores[order],
        qid=np.concatenate([run.qid[is_judged_query], qrels.qid[missing]])[order],
        docid=np.concatenate([run.docid[is_judged_query], qrels.docid[missing]])[order],
        n_unjudged=int(np.isnan(grades).sum()),
        n_missing=int(missing.sum()),
        n_negative=int((grades < 0).sum()),
        n_dropped=int((~is_judged_query).sum()),
    )


def _look_up(keys: IntArray, known_keys: IntArray, values: IntArray) -> FloatArray:
    """Return the value of each key, NaN if it is not among the known keys."""
    if not known_keys.size:
        return np.full(len(keys), np.nan)
    order = np.argsort(known_keys)
    positions = order[np.minimum(np.searchsorted(known_keys, keys, sorter=order), len(known_keys) - 1)]
    return np.where(known_keys[positions] == keys, values[positions], np.nan)


# Writing of TREC judgements and runs.


def write_qrels(path: PathLike, qid: ArrayLike, docid: ArrayLike, grades: ArrayLike) -> None:
    r"""Write judgements as `qid 0 docid grade`, completely or not at all; grades are whole numbers.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_qrels(folder + "/qrels", ["1"], ["a"], [2])
    ...     (Path(folder) / "qrels").read_text()
    '1 0 a 2\n'
    """
    refuse_misaligned(qid=qid, docid=docid, grades=grades)
    grades = check_column(grades, "grades")
    queries = _check_text_ids("qid", qid, len(grades))
    documents = _check_text_ids("docid", docid, len(grades))
    if (broken := np.flatnonzero(~((np.mod(grades, 1) == 0) & (np.abs(grades) < 2**53)))).size:  # also NaN
        row = int(broken[0])
        raise GradeError(float(grades[row]), f"row {row}", "is not an integer", "qrels hold those only.")
    _check_distinct(queries, documents)
    with write_atomically(path) as stream:
        for query, document, grade in zip(queries, documents, grades.astype(np.int64).tolist(), strict=True):
            stream.write(f"{query} 0 {document} {grade}\n".encode())


def write_run(
    path: PathLike, qid: ArrayLike, docid: ArrayLike, scores: ArrayLike, *, tag: str = "concordant"
) -> None:
    r"""Write a ranking as `qid Q0 docid rank score tag`, completely or not at all.

    Ranks start at 1 and follow decreasing scores, equal scores by decreasing document id, as in trec_eval. A
    document with score -inf is not in the ranking and is left out.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_run(folder + "/run", ["1", "1", "1"], ["a", "b", "c"], [0.5, 0.5, 1.0], tag="me")
    ...     (Path(folder) / "run").read_text()
    '1 Q0 c 1 1.0 me\n1 Q0 b 2 0.5 me\n1 Q0 a 3 0.5 me\n'
    """
    refuse_misaligned(qid=qid, docid=docid, scores=scores)
    documents = _check_text_ids("docid", docid)
    scores = check_scores(scores, len(documents), "docid")
    queries = _check_text_ids("qid", qid, len(scores))
    _check_text_ids("tag", [tag])
    _check_distinct(queries, documents)
    order, ranks = _rank_rows(queries, documents, scores)
    with write_atomically(path) as stream:
        for row, rank in zip(order.tolist(), ranks.tolist(), strict=True):
            line = f"{queries[row]} Q0 {documents[row]} {rank} {float(scores[row])!r} {tag}\n"
            stream.write(line.encode())


def _rank_rows(queries: list[str], documents: list[str], scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows with a score, by query of first appearance and then by rank, and their ranks."""
    rows = np.flatnonzero(scores > -np.inf)
    codes = _encode_texts(np.array(queries, dtype=object))[0][rows] if rows.size else rows
    by_name = np.unique(np.array(documents, dtype=np.str_), return_inverse=True)[1][rows]
    order = np.lexsort((-by_name, -scores[rows], codes))
    codes = codes[order]
    starts = np.searchsorted(codes, codes)
    return rows[order], np.arange(len(rows)) - starts + 1


def _check_distinct(queries: list[str], documents: list[str]) -> None:
    """Raise if a document occurs twice for a query: no reader would accept the file."""
    previous: set[tuple[str, str]] = set()
    for row, pair in enumerate(zip(queries, documents, strict=True)):
        if pair in previous:
            raise LabelError(f"row {row} gives document {pair[1]!r} of query {pair[0]!r} again", "keep one.")
        previous.add(pair)


def _check_text_ids(name: str, ids: ArrayLike, n_rows: int | None = None) -> list[str]:
    """Check ids and convert them to text; raise if they would break the columns."""
    column = [str(text_id) for text_id in check_ids(ids, name).tolist()]
    if n_rows is not None:
        check_lengths("the other columns", n_rows, **{name: column})
    unwritable = re.compile(r"^$|[ \t\r\n]" + ("|^#" if name == "qid" else ""))
    for text_id in column:
        if unwritable.search(text_id):
            raise ParameterError(name, text_id, "text without blanks" + " or a leading #" * (name == "qid"))
    return column
