"""Any (X, y, qid) becomes contiguous checked arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, NonFiniteError, ShapeError
from concordant.supervision.columns import as_numpy, check_grades, check_lengths, numbers_from_objects
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check"]


def check_features(X: ArrayLike) -> NDArray[Any]:
    """Give a 2-D float matrix: float32 and float64 are kept as they are, the rest becomes float64."""
    array = as_numpy(X, "X")
    if array.ndim != 2:
        raise ShapeError("X", array.shape, "two dimensions, one row per document")
    if not array.shape[0]:
        raise EmptyDataError("X")
    if array.dtype.kind not in "biuf":
        columns = [numbers_from_objects(array[:, j], f"X[:, {j}]") for j in range(array.shape[1])]
        array = np.column_stack(columns)
    array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    if not np.isfinite(array.sum()) and not np.isfinite(array).all():  # the sum settles it without a mask
        row, column = np.argwhere(~np.isfinite(array))[0]
        count = int((~np.isfinite(array)).sum())
        raise NonFiniteError("X", float(array[row, column]), f"row {row}, column {column}", count)
    return array


def check(X: ArrayLike, y: ArrayLike, qid: ArrayLike = None) -> tuple[Queries, NDArray[Any], FloatArray]:
    """Any (X, y, qid) -> the queries, and X and y with the rows of each query adjacent.

    Parameters
    ----------
    X
        Features, one row per document: numpy, pandas, polars or pyarrow.
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
    features, grades = check_features(X), check_grades(y)
    check_lengths("X", len(features), y=grades)
    queries = Queries.of(qid, len(features), "X")
    return queries, queries.gather(features), queries.gather(grades)
