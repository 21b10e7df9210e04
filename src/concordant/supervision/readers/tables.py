"""Tables (Parquet, Feather, CSV; pandas, polars or pyarrow frames) as ranking data or comparisons."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    MalformedLineError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from concordant.supervision.columns import check_column, check_grades, check_ids, no_id, refuse
from concordant.supervision.data import RankingData
from concordant.supervision.labels import Comparisons
from concordant.supervision.readers.outcomes import OUTCOMES, SCORES, key_of, meanings_of, signs_of
from concordant.supervision.readers.roles import GRADE_NAMES, Roles, index_columns
from concordant.supervision.readers.text import COMPRESSED, PathLike, read_buffer
from concordant.types import ArrayLike, FloatArray

__all__ = ["GRADE_NAMES", "OUTCOMES", "SCORES", "from_frame", "read_comparisons", "read_table"]

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
QUOTED_LINE = re.compile(r"Row #(\d+)")  # where pyarrow names the line


def read_table(
    path: PathLike,
    *,
    qid: str = "qid",
    grade: str | None = None,
    features: Sequence[str] | None = None,
    docid: str | None = None,
) -> RankingData:
    r"""Ranking data of a Parquet, Feather, CSV or TSV file; text may be compressed (.gz, .xz, .bz2, .zst).

    The parameters are those of `from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("qid,grade,bm25\nq1,2,0.5\nq1,0,1.5\n")
    ...     data = read_table(Path(folder, "a.csv"))
    >>> data.X.tolist(), data.y.tolist(), data.qid.tolist()
    ([[0.5], [1.5]], [2.0, 0.0], ['q1', 'q1'])
    """
    table = _read_arrow(path, (qid, docid or "docid"))
    return from_frame(table, qid=qid, grade=grade, features=features, docid=docid)


def from_frame(
    frame: ArrayLike,
    *,
    qid: str = "qid",
    grade: str | None = None,
    features: Sequence[str] | None = None,
    docid: str | None = None,
) -> RankingData:
    """Ranking data of a pandas, polars or pyarrow frame.

    Parameters
    ----------
    frame
        One row per document.
    qid
        Column of query ids, numbers or text.
    grade
        Column of grades; by default the first present of grade, y, label, relevance, rel.
    features
        Columns of X; by default all others, which must then be numeric, but for an index of pandas.
    docid
        Column of document ids; by default `docid` if there is one.

    Raises
    ------
    UnknownNameError
        If a column is missing; the message lists those there are.
    NotNumericError, NonFiniteError, GradeError
        At the first row, counted from 0, with text, a null, NaN, infinity or a negative grade.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from_frame(pa.table({"qid": [1, 1], "y": [0, 1], "a": [0.5, 2.0], "b": [1, 2]}))
    RankingData(n_rows=2, n_features=2, n_queries=1)
    """
    column, names = _columns(frame)
    roles = frame_roles(frame, names, qid=qid, grade=grade, features=features, docid=docid)
    y = check_grades(column(roles.grade), f"column {roles.grade!r}")
    X = np.empty((len(y), len(roles.features)))
    for place, name in enumerate(roles.features):
        X[:, place] = _numbers(column(name), name)
    ids = whole_ids(_query_ids(column(qid), qid))
    documents = None if roles.docid is None else _document_ids(column(roles.docid), roles.docid)
    return RankingData(X=X, y=y, qid=ids, docid=documents)


def frame_roles(frame: ArrayLike, names: Sequence[str], **wanted: Any) -> Roles:
    """Roles of a frame's columns; what a pyarrow table has of an index of pandas is no feature."""
    import narwhals as nw

    hidden = index_columns(frame.schema) if nw.dependencies.is_pyarrow_table(frame) else ()
    return Roles.of(names, hidden=hidden, **wanted)


def _query_ids(values: ArrayLike, name: str) -> np.ndarray:
    """One id a row; text stays text."""
    ids = check_ids(values, f"column {name!r}")
    if ids.dtype.kind == "U" and (ids == "").any():  # what CSV makes of an empty cell
        raise no_id(f"column {name!r}", int(np.argmax(ids == "")))
    return ids


def _document_ids(values: ArrayLike, name: str) -> np.ndarray:
    """One text a row."""
    return check_ids(values, f"column {name!r}").astype(np.str_)


def whole_ids(ids: np.ndarray) -> np.ndarray:
    """Ids as integers where that loses nothing: every text is the way Python writes a whole number.

    >>> whole_ids(np.array(["7", "10"])), whole_ids(np.array(["7", "007"]))
    (array([ 7, 10]), array(['7', '007'], dtype='<U3'))
    """
    names = ids.tolist()
    plain = all(isinstance(name, str) and WHOLE.fullmatch(name) for name in names)
    return np.array([int(name) for name in names]) if plain and names else ids


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    """One finite number a row."""
    numbers = check_column(values, f"column {name!r}")
    if (bad := ~np.isfinite(numbers)).any():
        refuse(bad, numbers, f"column {name!r}", "a null reads as nan: impute or drop these rows.")
    return numbers


def _columns(frame: ArrayLike) -> tuple[Callable[[str], np.ndarray], list[str]]:
    """Function from a column's name to its values, and the names."""
    import narwhals as nw

    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise NotNumericError("frame", f"it is a {type(frame).__name__}, not a table") from error
    except (nw.exceptions.NarwhalsError, UnicodeDecodeError) as error:  # columns of one name, not UTF-8
        raise ConcordantError(
            f"the table's columns cannot be used: {' '.join(str(error).split())}"
        ) from error
    table = native.collect() if isinstance(native, nw.LazyFrame) else native
    if len(table) == 0:
        raise EmptyDataError("frame")
    names = table.columns  # once: narwhals makes this list anew each time

    def column(name: str) -> np.ndarray:
        if name not in names:
            raise UnknownNameError("column", name, names)
        values = table.get_column(name)
        if values.dtype in (nw.Categorical, nw.Enum):  # ids by their text, not by the order of the categories
            values = values.cast(nw.String)
        return values.to_numpy()

    return column, names


def _read_arrow(path: PathLike, ids: Iterable[str]) -> Any:
    """Table of a file, by its suffix; `ids` names the columns that are ids."""
    inner = Path(path).with_suffix("") if Path(path).suffix in COMPRESSED else Path(path)
    if inner.suffix not in FORMATS:
        raise UnknownNameError("table format", inner.suffix, FORMATS)
    if inner != Path(path) and inner.suffix not in (".csv", ".tsv"):
        raise ParameterError("path", str(path), "uncompressed, since Parquet and Feather compress themselves")
    with naming_damage(path, inner.suffix):
        return FORMATS[inner.suffix](path, ids)


@contextmanager
def naming_damage(path: PathLike, suffix: str) -> Iterator[None]:
    """What pyarrow says of a file inside becomes a named error; one that is not there is an `OSError`."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or "decompressed" in str(error)):
            raise  # not there, not to be read, not that compression: says so itself
        raise ConcordantError(f"{path}: cannot be read as {suffix}: {error}") from error


def _read_parquet(path: PathLike, _ids: Iterable[str]) -> Any:
    from pyarrow.parquet import read_table as read

    return _validated(read(Path(path), page_checksum_verification=True))


def _read_feather(path: PathLike, _ids: Iterable[str]) -> Any:
    from pyarrow.feather import read_table as read

    return _validated(read(Path(path)))


def _validated(table: Any) -> Any:
    """The table, if nothing in it points outside of it, as in a damaged file."""
    table.validate(full=True)
    return table


def _read_text(path: PathLike, ids: Iterable[str], delimiter: str = ",") -> Any:
    """Text table; id columns stay text, since 007 and 7, or 1.10 and 1.1, are different ids."""
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    buffer = read_buffer(path)
    if not buffer[:-1].size:
        raise EmptyDataError(str(path))
    with naming_line(path):
        # one thread: only then does pyarrow name the line it cannot read
        types = csv.ConvertOptions(column_types=dict.fromkeys(ids, pa.string()))
        return csv.read_csv(pa.py_buffer(buffer), csv.ReadOptions(use_threads=False), options, types)


@contextmanager
def naming_line(path: PathLike) -> Iterator[None]:
    """What pyarrow says of a text table inside becomes an error that names the line."""
    from pyarrow import ArrowInvalid

    try:
        yield
    except ArrowInvalid as error:
        line = QUOTED_LINE.search(str(error))
        raise MalformedLineError(path, int(line[1]) if line else 1, 0, str(error)) from error


FORMATS: dict[str, Callable[[PathLike, Iterable[str]], Any]] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".feather": _read_feather,
    ".arrow": _read_feather,
    ".csv": _read_text,
    ".tsv": lambda path, ids: _read_text(path, ids, "\t"),
}


def read_comparisons(
    source: PathLike | ArrayLike,
    *,
    left: str = "left",
    right: str = "right",
    outcome: str = "outcome",
    outcomes: Mapping[Any, int] | str | None = None,
) -> Comparisons:
    """Comparisons of a table file or frame: -1 the left is better, +1 the right is better, 0 a tie.

    Parameters
    ----------
    source
        A file as in `read_table`, or a pandas, polars or pyarrow frame.
    left, right, outcome
        Columns: the two items and how it ended.
    outcomes
        What each outcome means. By default `OUTCOMES`: left/right/tie, win_a, model_b, draw, 1-0, 1/2-1/2 and
        the like, or -1, 0, 1. `"score"` reads 1, 0.5, 0 as the score of the left. A mapping gives your own.
        Text is compared without regard to case and blanks around it.

    Raises
    ------
    LabelError
        At the first row, counted from 0, with an outcome that is not in the table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"left": ["a", "b"], "right": ["b", "c"], "winner": ["left", "tie"]})
    >>> read_comparisons(table, outcome="winner").outcome.tolist()
    [-1, 0]
    """
    is_file = isinstance(source, str | os.PathLike)
    column, _ = _columns(_read_arrow(source, (left, right)) if is_file else source)
    meaning = meanings_of(outcomes)
    seen, codes = np.unique([key_of(value) for value in column(outcome).tolist()], return_inverse=True)
    signs = signs_of(seen.tolist(), codes, outcome, meaning)
    first, second = column(left), column(right)
    if {first.dtype.kind, second.dtype.kind} <= {"U", "O"}:  # numbers on one side may be text on the other
        first, second = np.split(whole_ids(np.concatenate((first, second))), [len(first)])
    return Comparisons(first, second, signs)
