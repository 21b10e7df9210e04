"""Any (X, y, qid) becomes contiguous checked arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np

from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    FeaturesError,
    NonFiniteError,
    NotNumericError,
    ShapeError,
)
from concordant.supervision.columns import (
    as_numpy,
    check_grades,
    check_lengths,
    numbers_from_objects,
    refuse_masked,
)
from concordant.supervision.queries import Queries, naming_query
from concordant.supervision.scans.scan import Scan
from concordant.types import ArrayLike, FloatArray

__all__ = [
    "check",
    "check_features",
    "check_pairs",
    "naming_features",
    "plain_features",
    "refuse_large",
    "refuse_parts",
]

WORDS = (str, bytes, date, time, timedelta, np.datetime64, np.timedelta64)  # datetime is a date
LARGEST = 2.0**480  # of a feature: sums of squares stay in the range of doubles


def check_features(X: ArrayLike, name: str = "X") -> Any:
    """Give a 2-D float matrix: float32 and float64 are kept as they are, the rest becomes float64.

    A scipy sparse matrix becomes CSR.
    """
    matrix = X.tocsr() if hasattr(X, "tocsr") else as_numpy(X, name)
    if matrix.ndim != 2:
        raise ShapeError(name, matrix.shape, "two dimensions")
    if not matrix.shape[0]:
        raise EmptyDataError(name)
    if matrix.dtype.kind not in "biuf":
        columns = [numbers_from_objects(matrix[:, j], f"{name}[:, {j}]") for j in range(matrix.shape[1])]
        matrix = np.column_stack(columns)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    refuse_non_finite(matrix, name)
    return matrix


def check_pairs(pairs: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Give finite features of both sides, (n, 2, n_features), small enough to be squared and summed.

    >>> check_pairs([[[1, 2], [3, 4]]]).shape
    (1, 2, 2)
    """
    given = as_numpy(pairs, "pairs")
    wanted = "n_features" if n_features is None else n_features
    if given.ndim != 3 or given.shape[1] != 2 or n_features not in (None, given.shape[2]):
        raise ShapeError("pairs", given.shape, f"(n, 2, {wanted}): the features of left and right")
    if not len(given):
        raise EmptyDataError("pairs")
    if not given.shape[2]:
        raise ShapeError("pairs", given.shape, "at least one feature")
    flat = np.ascontiguousarray(check_features(given.reshape(len(given), -1), "pairs"), dtype=np.float64)
    refuse_large(flat, "pairs")
    return flat.reshape(given.shape)


@contextmanager
def naming_features(name: str = "X") -> Iterator[None]:
    """What scikit-learn says of features inside becomes a named error, in its words.

    >>> with naming_features():
    ...     raise ValueError("Complex data not supported")
    Traceback (most recent call last):
    concordant.exceptions.FeaturesError: X cannot be read as features: Complex data not supported
    """
    try:
        yield
    except ConcordantError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise FeaturesError(name, str(error)) from error


def plain_features(X: ArrayLike, name: str = "X") -> ArrayLike:
    """Give features as they are, nested lists as an array; masked entries, text and dates are refused.

    As plain numbers, which scikit-learn makes of them, they would show what is hidden, or mean others.
    """
    refuse_masked(X, name)
    refuse_parts(X, name)
    given = np.asarray(X) if isinstance(X, (list, tuple)) else X
    refuse_words(given, name)
    for number, column in odd_columns(given):
        refuse_words(np.asarray(column), f"{name}[:, {number}]")
    return given


def refuse_parts(X: ArrayLike, name: str) -> None:
    """Refuse data that is not in memory, where rows are asked for."""
    if isinstance(X, Scan):
        kind, instead = "a scan, whose rows are on disk", "read its parts: `for rows in scan`, rows.X"
    elif hasattr(X, "__dask_graph__"):
        kind, instead = "a Dask collection", "X.compute()"
    else:
        return
    hint = f"fit linear, boosted or pair rankers on it, judge them by cc.evaluate, or {instead}"
    raise FeaturesError(name, f"it is {kind}; {hint}")


def odd_columns(frame: Any) -> Iterator[tuple[int, Any]]:
    """Columns of a frame that are not numbers by their type, with their number."""
    if hasattr(frame, "iloc") and hasattr(frame, "dtypes") and frame.ndim == 2:
        kinds = enumerate(frame.dtypes)
        yield from ((number, frame.iloc[:, number]) for number, kind in kinds if kind.kind not in "biuf")
    elif hasattr(frame, "columns"):
        import narwhals as nw

        given = frame.get_columns() if hasattr(frame, "get_columns") else frame.columns
        for number, column in enumerate(given):
            series = nw.from_native(column, series_only=True, pass_through=True)
            if isinstance(series, nw.Series) and not series.dtype.is_numeric():
                yield number, column


def refuse_words(array: Any, name: str) -> None:
    """Refuse text, dates and spans of time, among objects too; arrays of numbers are known by their type."""
    kind = getattr(getattr(array, "dtype", None), "kind", "f")
    if kind in "USTmMV":
        raise NotNumericError(name, f"it holds {array.dtype}")
    if kind != "O" or not isinstance(array, np.ndarray):
        return
    values = array.ravel().tolist()
    if any(issubclass(one, WORDS) for one in set(map(type, values))):
        place = next(place for place, value in enumerate(values) if isinstance(value, WORDS))
        row = place * len(array) // array.size
        raise NotNumericError(name, f"row {row} is {values[place]!r}").at(row)


def refuse_large(matrix: FloatArray, name: str) -> None:
    """Refuse numbers whose squares would overflow."""
    if matrix.size and max(float(matrix.max()), -float(matrix.min())) > LARGEST:  # never of single precision
        large = np.abs(matrix) > LARGEST
        (row, column), hint = np.argwhere(large)[0], "rescale the features."
        where = f"row {row}, column {column}"
        raise NonFiniteError(name, float(matrix[large][0]), where, int(large.sum()), hint)


def refuse_non_finite(matrix: Any, name: str) -> None:
    """Raise NonFiniteError for the first bad entry; the sum settles the usual case without a mask."""
    sparse = hasattr(matrix, "tocoo")
    values = matrix.data if sparse else matrix
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(values.sum())
    if suspicious and (bad := ~np.isfinite(values)).any():
        places = np.argwhere(bad)
        row, column = (axis[places[0, 0]] for axis in matrix.tocoo().coords) if sparse else places[0]
        where = f"row {row}, column {column}"
        raise NonFiniteError(name, float(values[bad][0]), where, int(bad.sum())).at(int(row))


def check(X: ArrayLike, y: ArrayLike, qid: ArrayLike = None) -> tuple[Queries, Any, FloatArray]:
    """Any (X, y, qid) -> the queries, and X and y with the rows of each query adjacent.

    Parameters
    ----------
    X
        Features, one row per document: numpy, pandas, polars, pyarrow, or scipy sparse.
    y
        Grades, one per row.
    qid
        Query ids in any order; `None` makes all rows one query.

    Examples
    --------
    >>> queries, X, y = check([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> X.ravel().tolist(), y.tolist(), queries.offsets.tolist()
    ([2.0, 1.0, 3.0], [1.0, 0.0, 2.0], [0, 1, 3])
    """
    with naming_query(qid):
        features, grades = check_features(X), check_grades(y)
    check_lengths("X", features.shape[0], y=grades)
    queries = Queries.of(qid, features.shape[0], "X")
    return queries, queries.gather(features), queries.gather(grades)
