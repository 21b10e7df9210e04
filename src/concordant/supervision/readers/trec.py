"""TREC judgements (qrels) and runs: `qid 0 docid grade` and `qid Q0 docid rank score tag`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.exceptions import EmptyDataError, MalformedLineError
from concordant.supervision.readers.text import Bytes, PathLike, locate, read_buffer
from concordant.types import FloatArray, IntArray

__all__ = ["Judged", "Qrels", "Run", "codes_of", "join", "read_qrels", "read_run"]

QRELS_FORM = "`qid iteration docid grade`"
RUN_FORM = "`qid Q0 docid rank score tag`"


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements in file order; ids are text, grades may be negative (TREC marks spam so)."""

    qid: np.ndarray
    docid: np.ndarray
    grade: IntArray


@dataclass(frozen=True, eq=False)
class Run:
    """Retrieved documents in file order; `tag` is that of the first line."""

    qid: np.ndarray
    docid: np.ndarray
    score: FloatArray
    tag: str


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged and retrieved documents together, the rows of a query adjacent.

    Attributes
    ----------
    y
        Grades; 0 where a retrieved document was not judged or its grade is negative.
    scores
        Scores of the run; -inf where a judged document was not retrieved: it gains nothing, but counts among
        what could be found.
    qid, docid
        Ids, as text.
    n_unjudged, n_missing, n_negative
        How many rows were retrieved but not judged, judged but not retrieved, judged below 0.
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
    r"""Judgements of a qrels file, plain or compressed.

    Raises
    ------
    MalformedLineError
        At the first line without four columns, with a grade that is no whole number, or with a document that
        was judged before for the query.

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
    from concordant.supervision.readers._spans import texts
    from concordant.supervision.readers._trec_kernels import read_integers

    buffer, spans = _fields(path, 4, QRELS_FORM)
    grade = np.empty(len(spans), dtype=np.int64)
    bad = read_integers(buffer, spans[:, 3], grade)
    if bad >= 0:
        raise _wrong(path, buffer, spans[bad, 3], "is not a whole number", f"a line is {QRELS_FORM}.")
    qrels = Qrels(texts(buffer, spans[:, 0]), texts(buffer, spans[:, 2]), grade)
    _refuse_repeats(path, buffer, spans[:, 2], qrels.qid, qrels.docid)
    return qrels


def read_run(path: PathLike) -> Run:
    r"""Scores of a run file, plain or compressed; the rank column is ignored, as trec_eval does.

    Raises
    ------
    MalformedLineError
        At the first line without six columns, with a score that is not finite, or with a document retrieved
        before for the query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run").write_text("301 Q0 FR-1 1 0.75 bm25\n")
    ...     read_run(Path(folder, "run")).score.tolist()
    [0.75]
    """
    from concordant.supervision.readers._floats import settle
    from concordant.supervision.readers._spans import texts
    from concordant.supervision.readers._trec_kernels import read_numbers

    buffer, spans = _fields(path, 6, RUN_FORM)
    score = np.empty(len(spans))
    bad = read_numbers(buffer, spans[:, 4], score)
    if bad < 0 and (offset := settle(buffer, score)) >= 0:
        bad = int(np.flatnonzero(spans[:, 4, 0] == offset)[0])
    if bad >= 0:
        raise _wrong(path, buffer, spans[bad, 4], "is not a finite number", f"a line is {RUN_FORM}.")
    tag = str(texts(buffer, spans[:1, 5])[0])
    run = Run(texts(buffer, spans[:, 0]), texts(buffer, spans[:, 2]), score, tag)
    _refuse_repeats(path, buffer, spans[:, 2], run.qid, run.docid)
    return run


def _fields(path: PathLike, columns: int, form: str) -> tuple[Bytes, IntArray]:
    """Text of a file and the spans of its fields, (rows, columns, 2)."""
    from concordant.supervision.readers._trec_kernels import split_fields

    buffer = read_buffer(path)
    spans = np.empty((int(np.count_nonzero(buffer == ord("\n"))), columns, 2), dtype=np.int64)
    rows, fault, found = split_fields(buffer, spans)
    if fault >= 0:
        line, column = locate(buffer, fault)
        problem = f"{columns} columns belong here, not {found}"
        raise MalformedLineError(path, line, column, problem, f"a line is {form}.")
    if rows == 0:
        raise EmptyDataError(str(path))
    return buffer, spans[:rows]


def _wrong(path: PathLike, buffer: Bytes, span: IntArray, problem: str, hint: str) -> MalformedLineError:
    token = buffer[span[0] : span[1]].tobytes().decode("utf-8", "replace")[:40]
    return MalformedLineError(path, *locate(buffer, int(span[0])), f"{token!r} {problem}", hint)


def codes_of(*columns: np.ndarray) -> list[IntArray]:
    """Number equal texts equally, in order of first appearance over all columns (hashed, not sorted)."""
    import pyarrow as pa

    chunks = [pa.array(np.asarray(column).astype(np.str_, copy=False), pa.string()) for column in columns]
    encoded = pa.chunked_array(chunks).dictionary_encode().combine_chunks()
    codes = encoded.indices.to_numpy().astype(np.int64)
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _pair_keys(queries: IntArray, documents: IntArray, n_documents: int) -> IntArray:
    return queries * np.int64(n_documents) + documents


def _refuse_repeats(
    path: PathLike, buffer: Bytes, spans: IntArray, qid: np.ndarray, docid: np.ndarray
) -> None:
    """Raise at the first line whose document its query has had before."""
    documents = codes_of(docid)[0]
    keys = _pair_keys(codes_of(qid)[0], documents, int(documents.max()) + 1)
    order = np.argsort(keys, kind="stable")
    repeats = order[1:][keys[order[1:]] == keys[order[:-1]]]
    if repeats.size:
        row = int(repeats.min())
        problem = f"is given twice for query {qid[row]}"
        raise _wrong(path, buffer, spans[row], problem, "keep one line for each document of a query.")


def join(qrels: Qrels, run: Run, *, all_queries: bool = False) -> Judged:
    """Judged and retrieved documents of the queries in both, or, with `all_queries`, of all judged queries.

    Queries come in the order of `qrels`; within one, the retrieved documents in the order of the run, so that
    no tie rule favours what was judged, then those not retrieved.

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
    queries, run_queries = codes_of(qrels.qid, run.qid)
    documents, run_documents = codes_of(qrels.docid, run.docid)
    n_documents = int(max(documents.max(initial=0), run_documents.max(initial=0))) + 1
    keys = _pair_keys(queries, documents, n_documents)
    run_keys = _pair_keys(run_queries, run_documents, n_documents)
    shown = np.isin(run_queries, queries)
    missing = ~np.isin(keys, run_keys) & (all_queries | np.isin(queries, run_queries))
    grades = np.r_[_look_up(run_keys[shown], keys, qrels.grade), qrels.grade[missing]]
    scores = np.r_[run.score[shown], np.full(int(missing.sum()), -np.inf)]
    order = np.argsort(np.r_[run_queries[shown], queries[missing]], kind="stable")
    return Judged(
        y=np.maximum(np.nan_to_num(grades), 0.0)[order],
        scores=scores[order],
        qid=np.concatenate([run.qid[shown], qrels.qid[missing]])[order],
        docid=np.concatenate([run.docid[shown], qrels.docid[missing]])[order],
        n_unjudged=int(np.isnan(grades).sum()),
        n_missing=int(missing.sum()),
        n_negative=int((grades < 0).sum()),
        n_dropped=int((~shown).sum()),
    )


def _look_up(keys: IntArray, known: IntArray, values: IntArray) -> FloatArray:
    """Value of each key among the known ones, NaN where it is not."""
    if not known.size:
        return np.full(len(keys), np.nan)
    order = np.argsort(known)
    places = order[np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)]
    return np.where(known[places] == keys, values[places], np.nan)
