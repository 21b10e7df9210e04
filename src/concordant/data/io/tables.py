"""Read tables (Parquet, Feather, CSV; pandas, polars or pyarrow frames) as ranking data or comparisons."""

from __future__ import annotations

import operator
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from concordant._base.files import (
    COMPRESSED,
    Bytes,
    PathLike,
    locate,
    naming_memory,
    read_buffer,
    require_memory,
)
from concordant._base.validate import check_column, check_grades, check_ids, missing_id_error, refuse
from concordant.data.io.roles import (
    Roles,
    find_index_columns,
    normalize_outcome,
    outcome_signs,
    parse_outcomes,
)
from concordant.data.labels import Comparisons, RankingData
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    MalformedLineError,
    NotNumericError,
    OutcomeWarning,
    ParameterError,
    UnknownNameError,
)
from concordant.types import ArrayLike, FloatArray

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
NUMBER = re.compile(r" *[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)? *", re.ASCII)
MISSING = re.compile(r"\s*(|na|n/a|nan|null|none|[+-]?inf(inity)?)\s*", re.IGNORECASE)
FIRST_LINE = re.compile(rb"(?:\r?\n)*([^\n]*)\n")  # pyarrow skips empty lines
HEXADECIMAL = re.compile(rb"0[xX]")
QUOTE = re.compile(rb'"')
QUOTED_LINE = re.compile(r"Row #(\d+)")  # pyarrow's name for the line


def read_table(
    path: PathLike,
    *,
    qid: str = "qid",
    grade: str | None = None,
    features: Sequence[str] | None = None,
    docid: str | None = None,
) -> RankingData:
    r"""Read ranking data from Parquet, Feather, CSV or TSV; text may be compressed (.gz, .xz, .bz2, .zst).

    The first line of CSV and TSV is the header, unless every cell of it is a number: then the columns are
    named "1", "2", ...

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
    with naming_memory(path):
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
    """Convert a pandas, polars or pyarrow frame to ranking data.

    Parameters
    ----------
    frame
        One row per document.
    qid
        Column of query ids, numbers or text.
    grade
        Column of grades; by default grade, y, label, relevance or rel. If there are several, name one, or
        `features`: otherwise the others would become features.
    features
        Columns of X, or ranges of them, "f1-f50"; by default all others, which must be numeric, except a
        pandas index.
    docid
        Column of document ids; by default `docid` if there is one.

    Raises
    ------
    UnknownNameError
        If a column is missing; the message lists the existing columns.
    LabelError
        If the grade column is ambiguous, or a column that would be a feature has no name.
    NotNumericError, NonFiniteError, GradeError
        At the first row, counted from 0, with text, a null, NaN, infinity or a negative grade.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from_frame(pa.table({"qid": [1, 1], "y": [0, 1], "a": [0.5, 2.0], "b": [1, 2]}))
    RankingData(n_rows=2, n_features=2, n_queries=1)
    """
    column, names = open_columns(frame)
    roles = frame_roles(frame, names, qid=qid, grade=grade, features=features, docid=docid)
    y = check_grades(column(roles.grade), f"column {roles.grade!r}")
    require_memory("the table's features", 8 * len(y) * len(roles.features))
    X = np.empty((len(y), len(roles.features)))
    for column_number, name in enumerate(roles.features):
        X[:, column_number] = check_finite_column(column(name), name)
    ids = to_integer_ids(check_query_ids(column(qid), qid))
    documents = None if roles.docid is None else check_document_ids(column(roles.docid), roles.docid)
    return RankingData(X=X, y=y, qid=ids, docid=documents)


def frame_roles(frame: ArrayLike, names: Sequence[str], **role_columns: Any) -> Roles:
    """Assign roles to a frame's columns; a pandas index stored in a pyarrow table is not a feature."""
    import narwhals as nw

    hidden = find_index_columns(frame.schema) if nw.dependencies.is_pyarrow_table(frame) else ()
    return Roles.from_columns(names, hidden=hidden, **role_columns)


def check_query_ids(values: ArrayLike, name: str) -> np.ndarray:
    """Check query ids, one per row; text stays text."""
    ids = check_ids(values, f"column {name!r}")
    if ids.dtype.kind == "U" and (ids == "").any():  # CSV reads an empty cell as ""
        raise missing_id_error(f"column {name!r}", int(np.argmax(ids == "")))
    return ids


def check_document_ids(values: ArrayLike, name: str) -> np.ndarray:
    """Check document ids and convert them to text."""
    return check_ids(values, f"column {name!r}").astype(np.str_)


def to_integer_ids(ids: np.ndarray) -> np.ndarray:
    """Convert ids to integers if lossless: every text must be the canonical spelling of a whole number.

    >>> to_integer_ids(np.array(["7", "10"])), to_integer_ids(np.array(["7", "007"]))
    (array([ 7, 10]), array(['7', '007'], dtype='<U3'))
    """
    names = ids.tolist()
    plain = all(isinstance(name, str) and WHOLE.fullmatch(name) for name in names)
    return np.array([int(name) for name in names]) if plain and names else ids


def check_finite_column(values: ArrayLike, name: str) -> FloatArray:
    """Check that a column has one finite number per row."""
    numbers = check_column(values, f"column {name!r}")
    if (bad := ~np.isfinite(numbers)).any():
        refuse(bad, numbers, f"column {name!r}", "a null reads as nan: impute or drop these rows.")
    return numbers


def open_columns(frame: ArrayLike) -> tuple[Callable[[str], np.ndarray], list[str]]:
    """Return a function from column name to values, and the column names."""
    import narwhals as nw

    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise NotNumericError("frame", f"it is a {type(frame).__name__}, not a table") from error
    except (nw.exceptions.NarwhalsError, UnicodeDecodeError) as error:  # duplicate names, not UTF-8
        problem = " ".join(str(error).split())
        raise ConcordantError(f"the table's columns cannot be used: {problem}") from error
    table = native.collect() if isinstance(native, nw.LazyFrame) else native
    if len(table) == 0:
        raise EmptyDataError("frame")
    names = table.columns  # once: narwhals builds this list on each access

    def column(name: str) -> np.ndarray:
        if name not in names:
            raise UnknownNameError("column", name, names)
        values = table.get_column(name)
        if values.dtype in (nw.Categorical, nw.Enum):  # the text, not the order of the categories
            values = values.cast(nw.String)
        array = values.to_numpy()
        # rows of several numbers, as in polars: objects, which no reader accepts as numbers
        return array if array.ndim == 1 else np.fromiter(array, dtype=object, count=len(array))

    return column, names


def _read_arrow(path: PathLike, ids: Iterable[str]) -> Any:
    """Read a table file by its suffix; `ids` are the names of the id columns."""
    inner = Path(path).with_suffix("") if Path(path).suffix in COMPRESSED else Path(path)
    if inner.suffix not in FORMATS:
        raise UnknownNameError("table format", inner.suffix, FORMATS)
    if inner != Path(path) and inner.suffix not in (".csv", ".tsv"):
        raise ParameterError(
            "path", str(path), "uncompressed", hint="Parquet and Feather files compress themselves."
        )
    with naming_damage(path, inner.suffix):
        return FORMATS[inner.suffix](path, ids)


@contextmanager
def naming_damage(path: PathLike, suffix: str) -> Iterator[None]:
    """Convert pyarrow errors about a file to a named error; a missing file stays an `OSError`."""
    from pyarrow import ArrowException

    try:
        yield
    except MemoryError:  # pyarrow's MemoryError is also an ArrowException
        raise
    except (ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or "decompressed" in str(error)):
            raise  # missing, unreadable or wrong compression: says so itself
        raise ConcordantError(f"{path}: cannot be read as {suffix}: {error}") from error


def _read_parquet(path: PathLike, _ids: Iterable[str]) -> Any:
    from pyarrow.parquet import ParquetFile
    from pyarrow.parquet import read_table as read
    from pyarrow.types import is_primitive

    if Path(path).is_file():  # not a folder of files
        with ParquetFile(path) as opened:
            types = [field.type for field in opened.schema_arrow]
            bits = sum(kind.bit_width for kind in types if is_primitive(kind))
            require_memory(path, opened.metadata.num_rows * bits / 8)
    return validate_table(read(Path(path), page_checksum_verification=True))


def _read_feather(path: PathLike, _ids: Iterable[str]) -> Any:
    from pyarrow.feather import read_table as read

    return validate_table(read(Path(path)))


def validate_table(table: Any) -> Any:
    """Return the table after checking that no offset points outside of it, as in a damaged file."""
    table.validate(full=True)
    return table


def _read_text(path: PathLike, ids: Iterable[str], delimiter: str = ",") -> Any:
    """Read a text table; id columns stay text, since 007 and 7, or 1.10 and 1.1, are different ids."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    options = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    buffer = read_buffer(path)
    if not buffer[:-1].size:
        raise EmptyDataError(str(path))
    _refuse_open_quote(path, buffer, delimiter)
    line = FIRST_LINE.match(buffer.data)
    names = number_columns(path, line[1] if line else b"", delimiter)

    def read(types: Mapping[str, Any]) -> Any:
        # single-threaded: only then does pyarrow name the line that it cannot read
        convert = arrow_csv.ConvertOptions(column_types={**types, **dict.fromkeys(ids, pa.string())})
        reading = arrow_csv.ReadOptions(use_threads=False, column_names=names)
        return arrow_csv.read_csv(pa.py_buffer(buffer), reading, options, convert)

    with naming_line(path):
        table = read({})
        if HEXADECIMAL.search(buffer.data):  # pyarrow reads it as a whole number, but not as a double
            whole = [field.name for field in table.schema if pa.types.is_integer(field.type)]
            read(dict.fromkeys(whole, pa.float64()))
        return table


def number_columns(path: PathLike, first_line: bytes, delimiter: str) -> list[str] | None:
    """Return the names "1", "2", ... if a text table has no header: its first line holds numbers alone.

    Cells may be empty, or say that a number is missing.

    Raises
    ------
    ConcordantError
        If the line counts from 0 or 1, as a header of column numbers does.

    Examples
    --------
    >>> number_columns("a.csv", b"2,7,0.5", ","), number_columns("a.csv", b"grade,7,0.5", ",")
    (['1', '2', '3'], None)
    """
    cells = first_line.decode("utf-8", "replace").strip("\ufeff\r").split(delimiter)  # names may be quoted
    is_number = [NUMBER.fullmatch(cell) is not None for cell in cells]
    is_missing = [MISSING.fullmatch(cell) is not None for cell in cells]
    # pandas begins the header with an empty cell if it writes row labels.
    if not cells[0] or not any(is_number) or not all(map(operator.or_, is_number, is_missing)):
        return None
    if len(cells) > 1 and cells in ([*map(str, range(start, start + len(cells)))] for start in (0, 1)):
        raise ConcordantError(
            f"{path}: the first line counts from {cells[0]} to {cells[-1]}: it may be a header or a row.\n"
            "Hint: write a first line of names that are not numbers, such as grade,qid,f1,f2."
        )
    return [str(number) for number in range(1, len(cells) + 1)]


def _refuse_open_quote(path: PathLike, buffer: Bytes, delimiter: str) -> None:
    """Check that no quote swallows the following lines into its cell, which pyarrow would silently accept."""
    from concordant.data.io._text_kernels import find_open_quote

    if QUOTE.search(buffer.data) and (offset := find_open_quote(buffer, ord(delimiter))) >= 0:
        problem = "the quote that opens this cell is not closed at the end of a cell"
        hint = "close it; a quote in a cell is doubled."
        raise MalformedLineError(path, *locate(buffer, offset), problem, hint)


@contextmanager
def naming_line(path: PathLike) -> Iterator[None]:
    """Convert pyarrow errors about a text table to an error that names the line."""
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
    """Read comparisons from a table file or frame: -1 the left is better, +1 the right is better, 0 a tie.

    Parameters
    ----------
    source
        A file as in `read_table`, or a pandas, polars or pyarrow frame.
    left, right, outcome
        Columns: the two items and the outcome.
    outcomes
        Meaning of each outcome. By default `OUTCOMES`: left/right/tie, win_a, model_b, draw, 1-0, 1/2-1/2 and
        the like, or -1, 0, 1. `"score"` reads 1, 0.5, 0 as the score of the left. A mapping defines other
        outcomes. Case and surrounding blanks are ignored.

    Raises
    ------
    LabelError
        At the first row, counted from 0, with an unknown outcome, or without an item.

    Warns
    -----
    OutcomeWarning
        If the outcomes are the numbers 0 and 1, and `outcomes` does not define their meaning.
    SimilarNamesWarning
        If items differ only by case or blanks.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"left": ["a", "b"], "right": ["b", "c"], "winner": ["left", "tie"]})
    >>> read_comparisons(table, outcome="winner").outcome.tolist()
    [-1, 0]
    """
    if isinstance(source, str | os.PathLike):
        with naming_memory(source):
            table = _read_arrow(source, (left, right))
            return read_comparisons(table, left=left, right=right, outcome=outcome, outcomes=outcomes)
    column, _ = open_columns(source)
    meaning = parse_outcomes(outcomes)
    normalized = [normalize_outcome(value) for value in column(outcome).tolist()]
    spellings, codes = np.unique(normalized, return_inverse=True)
    signs = outcome_signs(spellings.tolist(), codes, outcome, meaning)
    first, second = column(left), column(right)
    if {first.dtype.kind, second.dtype.kind} <= {"U", "O"}:  # numbers on one side may be text on the other
        first, second = np.split(to_integer_ids(np.concatenate((first, second))), [len(first)])
    with warnings.catch_warnings():
        if outcomes is not None or not {*spellings.tolist()} <= {"0", "1", "+1"}:  # unambiguous words
            warnings.simplefilter("ignore", OutcomeWarning)
        return Comparisons(first, second, signs)
