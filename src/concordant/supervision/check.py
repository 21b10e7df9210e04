"""Any (X, y, qid) becomes contiguous checked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant.exceptions import EmptyDataError, NonFiniteError, ShapeError
from concordant.supervision.columns import as_numpy, check_grades, check_lengths, numbers_from_objects
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, FloatArray

__all__ = ["check"]


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
