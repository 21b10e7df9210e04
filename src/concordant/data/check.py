"""Check (X, y, qid) and convert them to contiguous arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np

from concordant._base.segments import segment_reduce
from concordant._base.validate import (
    as_numpy,
    check_grades,
    check_lengths,
    numbers_from_objects,
    refuse_masked,
    refuse_misaligned,
)
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    FeaturesError,
    LabelError,
    NonFiniteError,
    NonFiniteFeaturesError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from concordant.types import ArrayLike, FloatArray, IntArray

# Query weights, passed as one weight per row.

OF_ITEMS, OF_QUERIES = "items", "queries"


def to_query_weights(row_weights: FloatArray, queries: Queries) -> FloatArray:
    """Return one weight per query from one per row; raise if rows of a query disagree.

    >>> to_query_weights(np.array([2.0, 1.0, 2.0]), Queries.from_ids(["b", "a", "b"])).tolist()
    [1.0, 2.0]
    """
    rows = queries.gather(row_weights)
    lowest = segment_reduce(np.minimum, rows, queries.offsets)
    highest = segment_reduce(np.maximum, rows, queries.offsets)
    if (apart := np.flatnonzero(lowest != highest)).size:
        q = apart[0]
        problem = f"query_weight of query {queries.ids[q].item()!r} is both {lowest[q]:g} and {highest[q]:g}"
        raise LabelError(problem, "give all rows of a query the same query_weight; rows have sample_weight.")
    return lowest


def weight_kind(weights: FloatArray | None, offsets: IntArray) -> str:
    """Return what row weights refer to: "items", "queries", or "" if all are 1.

    Rows of a query are adjacent. Weights are item weights if they differ within a query, else query weights.

    >>> drawn = [[2.0, 2.0, 5.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    >>> [weight_kind(np.array(weights), np.array([0, 2, 3])) for weights in drawn]
    ['queries', 'items', '']
    """
    if weights is None or (weights == 1.0).all():
        return ""
    lowest, highest = (segment_reduce(end, weights, offsets) for end in (np.minimum, np.maximum))
    return OF_ITEMS if (lowest < highest).any() else OF_QUERIES


def joint_weight_kind(parts: Sequence[str]) -> str:
    """Combine the weight kinds of all parts of the data.

    >>> joint_weight_kind(["", "items", "queries"]), joint_weight_kind(["", "queries"])
    ('items', 'queries')
    """
    return next((kind for kind in (OF_ITEMS, OF_QUERIES) if kind in parts), "")


WORDS = (str, bytes, date, time, timedelta, np.datetime64, np.timedelta64)  # datetime is a date
FINITE = "all must be finite: impute such values, or drop their rows"
TREES = "; BoostedRanker takes NaN as missing"
MISSING = "replace infinities by finite numbers, or by NaN, which means missing."
LARGEST = 2.0**480  # bound on a feature: sums of squares stay in the range of doubles


def check_features(X: ArrayLike, name: str = "X", labels: Sequence[str] | None = None) -> Any:
    """Check features as a finite 2-D float matrix: float32 and float64 are kept, the rest becomes float64.

    A scipy sparse matrix becomes CSR. `labels` name the columns in errors.
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
    refuse_non_finite(matrix, name, labels)
    return matrix


def check_pairs(pairs: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Return the finite features of both sides, (n, 2, n_features), small enough to be squared and summed.

    >>> check_pairs([[[1, 2], [3, 4]]]).shape
    (1, 2, 2)
    """
    raw = as_numpy(pairs, "pairs")
    width = "n_features" if n_features is None else n_features
    if raw.ndim != 3 or raw.shape[1] != 2 or n_features not in (None, raw.shape[2]):
        raise ShapeError("pairs", raw.shape, f"(n, 2, {width}): the features of left and right")
    if not len(raw):
        raise EmptyDataError("pairs")
    if not raw.shape[2]:
        raise ShapeError("pairs", raw.shape, "at least one feature")
    labels = [f"{side}, column {number}" for side in ("left", "right") for number in range(raw.shape[2])]
    table = check_features(raw.reshape(len(raw), -1), "pairs", labels)
    flat = np.ascontiguousarray(table, dtype=np.float64)
    refuse_large(flat, "pairs", labels)
    return flat.reshape(raw.shape)


@contextmanager
def naming_features(name: str = "X") -> Iterator[None]:
    """Convert errors that scikit-learn raises about features to a `FeaturesError` with the same message.

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
    """Return features unchanged, nested lists as an array; raise on masked entries, text and dates.

    scikit-learn would convert these to plain numbers, exposing masked entries or changing the meaning.
    """
    refuse_masked(X, name)
    refuse_parts(X, name)
    features = np.asarray(X) if isinstance(X, (list, tuple)) else X
    _refuse_words(features, name)
    for number, column in _odd_columns(features):
        _refuse_words(np.asarray(column), f"{name}[:, {number}]")
    return features


def is_collection(value: Any) -> bool:
    """True if this is a Dask collection; Dask need not be installed."""
    return hasattr(value, "__dask_graph__")


def are_in_memory(*columns: Any) -> bool:
    """True if no column is a scan or a Dask collection."""
    return not any(getattr(column, "in_parts", None) is True or is_collection(column) for column in columns)


def refuse_parts(X: ArrayLike, name: str) -> None:
    """Raise if data is not in memory but rows are needed."""
    if are_in_memory(X):
        return
    if is_collection(X):
        kind, instead = "a Dask collection", "X.compute()"
    else:
        kind, instead = "a scan, whose rows are on disk", "read its parts: `for rows in scan`, rows.X"
    hint = f"use it with linear, boosted or pair rankers and cc.evaluate, or pass {instead}"
    raise FeaturesError(name, f"it is {kind}; {hint}")


def _odd_columns(frame: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number and values of a frame's columns whose type is not numeric."""
    if hasattr(frame, "iloc") and hasattr(frame, "dtypes") and frame.ndim == 2:
        kinds = enumerate(frame.dtypes)
        yield from ((number, frame.iloc[:, number]) for number, kind in kinds if kind.kind not in "biuf")
    elif hasattr(frame, "columns"):
        import narwhals as nw

        columns = frame.get_columns() if hasattr(frame, "get_columns") else frame.columns
        for number, column in enumerate(columns):
            series = nw.from_native(column, series_only=True, pass_through=True)
            if isinstance(series, nw.Series) and not series.dtype.is_numeric():
                yield number, column


def _refuse_words(array: Any, name: str) -> None:
    """Raise on text, dates and time spans, among objects too; the type of a numeric array settles it."""
    kind = getattr(getattr(array, "dtype", None), "kind", "f")
    if kind in "USTmMV":
        raise NotNumericError(name, f"it holds {array.dtype}")
    if kind != "O" or not isinstance(array, np.ndarray):
        return
    values = array.ravel().tolist()
    if any(issubclass(value_type, WORDS) for value_type in set(map(type, values))):
        entry = next(entry for entry, value in enumerate(values) if isinstance(value, WORDS))
        row = entry * len(array) // array.size
        raise NotNumericError(name, f"row {row} is {values[entry]!r}").at(row)


def refuse_large(matrix: FloatArray, name: str, labels: Sequence[str] | None = None) -> None:
    """Raise on numbers whose squares would overflow."""
    if matrix.size and max(float(matrix.max()), -float(matrix.min())) > LARGEST:  # never in single precision
        large = np.abs(matrix) > LARGEST
        (row, column), hint = np.argwhere(large)[0], "rescale the features."
        where = f"row {row}, {_column_name(column, labels)}"
        raise NonFiniteError(name, float(matrix[large][0]), where, int(large.sum()), hint)


def _column_name(column: int, labels: Sequence[str] | None) -> str:
    return f"column {column}" if labels is None else labels[column]


def column_labels(model: Any) -> list[str] | None:
    """Return labels of the columns that a model was fitted to; None if they have no names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [f"column {number} ({name!r})" for number, name in enumerate(names)]


def refuse_non_finite(
    matrix: Any, name: str, labels: Sequence[str] | None = None, *, missing: bool = False
) -> None:
    """Check that numbers are finite, or NaN if that means missing; usually a look at the sum is enough."""
    sparse = hasattr(matrix, "tocoo")
    values = matrix.data if sparse else matrix
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(values.sum())
    if suspicious and (bad := np.isinf(values) if missing else ~np.isfinite(values)).any():
        places = np.argwhere(bad)
        row, column = (axis[places[0, 0]] for axis in matrix.tocoo().coords) if sparse else places[0]
        where = f"row {row}, {_column_name(column, labels)}"
        hint = MISSING if missing else f"{FINITE}{TREES * (name == 'X')}."
        raise NonFiniteFeaturesError(name, float(values[bad][0]), where, int(bad.sum()), hint).at(int(row))


def check(X: ArrayLike, y: ArrayLike, qid: ArrayLike = None) -> tuple[Queries, Any, FloatArray]:
    """Check (X, y, qid) and return the queries, and X and y with the rows of each query adjacent.

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
    refuse_misaligned(X=X, y=y, qid=qid)
    with naming_query(qid):
        features, grades = check_features(X), check_grades(y)
    check_lengths("X", features.shape[0], y=grades)
    queries = Queries.for_rows(qid, features.shape[0], "X")
    return queries, queries.gather(features), queries.gather(grades)


# Torch tensors as columns; torch is not imported.


def on_host(values: Any) -> Any:
    """Convert a tensor to a numpy array, and return anything else; bfloat16 becomes float32."""
    if not is_tensor(values):
        return values
    refuse_hollow(values)
    here = values.detach().cpu()
    return (here.float() if here.is_floating_point() and here.itemsize < 4 else here).numpy()


def refuse_hollow(tensor: Any) -> None:
    """Raise for tensors that do not hold a number in each cell."""
    kind = str(tensor.layout).removeprefix("torch.")
    layout = "meta" if tensor.is_meta else "nested" if tensor.is_nested else kind
    if layout != "strided":
        raise ParameterError("tensor", layout, "dense", hint="Convert a sparse tensor by .to_dense().")


def is_tensor(values: Any) -> bool:
    """True for a torch tensor; torch is not imported."""
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "detach")
