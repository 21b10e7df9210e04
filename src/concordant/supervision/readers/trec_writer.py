"""TREC judgements and runs, written whole or not at all."""

from __future__ import annotations

import numpy as np

from concordant.exceptions import GradeError, LabelError, ParameterError
from concordant.supervision.columns import check_column, check_ids, check_lengths, check_scores
from concordant.supervision.readers.text import PathLike, write_atomically
from concordant.supervision.readers.trec import codes_of
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["write_qrels", "write_run"]


def write_qrels(path: PathLike, qid: ArrayLike, docid: ArrayLike, grades: ArrayLike) -> None:
    r"""Write judgements as `qid 0 docid grade`, whole or not at all; grades are whole numbers.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_qrels(folder + "/qrels", ["1"], ["a"], [2])
    ...     (Path(folder) / "qrels").read_text()
    '1 0 a 2\n'
    """
    grades = check_column(grades, "grades")
    queries, documents = _ids("qid", qid, len(grades)), _ids("docid", docid, len(grades))
    if (broken := np.flatnonzero(~((np.mod(grades, 1) == 0) & (np.abs(grades) < 2**53)))).size:  # NaN too
        row = int(broken[0])
        raise GradeError(float(grades[row]), f"row {row}", "is not a whole number", "qrels hold those only.")
    _refuse_repeats(queries, documents)
    with write_atomically(path) as stream:
        for query, document, grade in zip(queries, documents, grades.astype(np.int64).tolist(), strict=True):
            stream.write(f"{query} 0 {document} {grade}\n".encode())


def write_run(
    path: PathLike, qid: ArrayLike, docid: ArrayLike, scores: ArrayLike, *, tag: str = "concordant"
) -> None:
    r"""Write a ranking as `qid Q0 docid rank score tag`, whole or not at all.

    Ranks start at 1 and follow the score downwards, equal scores the document id downwards, as in trec_eval.
    A document with score -inf is not in the ranking and is left out.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_run(folder + "/run", ["1", "1", "1"], ["a", "b", "c"], [0.5, 0.5, 1.0], tag="me")
    ...     (Path(folder) / "run").read_text()
    '1 Q0 c 1 1.0 me\n1 Q0 b 2 0.5 me\n1 Q0 a 3 0.5 me\n'
    """
    documents = _ids("docid", docid)
    scores = check_scores(scores, len(documents), "docid")
    queries = _ids("qid", qid, len(scores))
    _ids("tag", [tag])
    _refuse_repeats(queries, documents)
    order, ranks = _ranking(queries, documents, scores)
    with write_atomically(path) as stream:
        for row, rank in zip(order.tolist(), ranks.tolist(), strict=True):
            line = f"{queries[row]} Q0 {documents[row]} {rank} {float(scores[row])!r} {tag}\n"
            stream.write(line.encode())


def _ranking(queries: list[str], documents: list[str], scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows with a score, by query of first appearance and then by rank, and their ranks."""
    rows = np.flatnonzero(scores > -np.inf)
    codes = codes_of(np.array(queries, dtype=object))[0][rows] if rows.size else rows
    by_name = np.unique(np.array(documents, dtype=np.str_), return_inverse=True)[1][rows]
    order = np.lexsort((-by_name, -scores[rows], codes))
    codes = codes[order]
    starts = np.searchsorted(codes, codes)
    return rows[order], np.arange(len(rows)) - starts + 1


def _refuse_repeats(queries: list[str], documents: list[str]) -> None:
    """Refuse a document given twice for a query: no reader would take the file."""
    seen: set[tuple[str, str]] = set()
    for row, pair in enumerate(zip(queries, documents, strict=True)):
        if pair in seen:
            raise LabelError(f"row {row} gives document {pair[1]!r} of query {pair[0]!r} again", "keep one.")
        seen.add(pair)


def _ids(name: str, ids: ArrayLike, n_rows: int | None = None) -> list[str]:
    """Ids as text, refusing what would break the columns."""
    column = [str(one) for one in check_ids(ids, name).tolist()]
    if n_rows is not None:
        check_lengths("the other columns", n_rows, **{name: column})
    for one in column:
        if not one or any(blank in one for blank in " \t\r\n"):
            raise ParameterError(name, one, "text without blanks")
    return column
