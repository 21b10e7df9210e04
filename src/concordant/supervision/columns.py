"""Anything array-like becomes a checked numpy column, or a named error says what was seen and where.

numpy arrays and lists go straight through; pandas, polars and pyarrow columns and frames go through
narwhals. Nothing is copied that already has the right type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import (
    EmptyDataError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ShapeError,
)
from concordant.types import ArrayLike, BoolArray, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "as_numpy",
    "check_column",
    "check_grades",
    "check_ids",
    "check_lengths",
    "check_nonnegative",
    "check_scores",
    "frozen",
    "graded",
    "refuse_masked",
]

EXACT = 2**53  # up to here every whole number is a double


def as_numpy(values: ArrayLike, name: str) -> NDArray[Any]:
    """Give any column or frame as a numpy array; objects without a common numeric type stay objects."""
    refuse_masked(values, name)
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if hasattr(values, "__array__") or isinstance(values, (list, tuple, range)):
        try:
            return np.asarray(values)
        except ValueError as error:  # ragged nested lists
            raise ShapeError(name, (len(values),), "one number per row, not nested lists") from error
    import narwhals as nw

    try:
        native = nw.from_native(values, allow_series=True)
    except TypeError as error:
        raise NotNumericError(name, f"it is a {type(values).__name__}") from error
    frame = native.collect() if isinstance(native, nw.LazyFrame) else native
    return np.asarray(frame.to_numpy())


def refuse_masked(values: ArrayLike, name: str) -> None:
    """Refuse an array of which something is masked: as a plain array it would show what is hidden."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise LabelError(f"{name} is masked at row {row}", "drop masked rows or fill them.")


def check_column(values: ArrayLike, name: str) -> FloatArray:
    """Give one float64 per row, without a copy where the input already is that; NaN passes.

    >>> check_column([1, 2], "y")
    array([1., 2.])
    >>> check_column(["good", "bad"], "y")
    Traceback (most recent call last):
    concordant.exceptions.NotNumericError: y must be numeric, but row 0 is 'good'.
    ...
    """
    array = as_numpy(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ShapeError(name, array.shape, "one number per row")
    if array.dtype.kind not in "biuf":
        array = numbers_from_objects(array, name)
    return np.ascontiguousarray(array, dtype=np.float64)


def refuse_rounded(array: NDArray[Any], name: str) -> None:
    """Refuse integers that a double cannot tell from their neighbours: as scores they would tie."""
    if array.size and (int(array.max()) > EXACT or int(array.min()) < -EXACT):
        row = int(np.argmax((array > EXACT) | (array < -EXACT)))
        problem = f"row {row} is {array[row]}, which a double cannot hold exactly"
        raise NotNumericError(name, problem).at(row)


def numbers_from_objects(array: NDArray[Any], name: str) -> FloatArray:
    """Convert objects that are numbers (Decimal, mixed); text is refused even if it reads as one."""
    if array.dtype.kind in "mM":
        raise NotNumericError(name, f"it holds {array.dtype}")
    numbers = np.empty(len(array))
    for row, value in enumerate(array.tolist()):
        if isinstance(value, (str, bytes, complex)) or not hasattr(value, "__float__"):
            raise NotNumericError(name, f"row {row} is {value!r}").at(row)
        try:
            numbers[row] = float(value)
        except (OverflowError, TypeError, ValueError) as error:  # 10**400, datetime64, a signalling NaN
            raise NotNumericError(name, f"row {row} is {str(value)[:40]}").at(row) from error
    return numbers


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Give a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_nonnegative(values: ArrayLike, name: str, unit: str) -> FloatArray:
    """Give one finite number >= 0 per unit (row, query, preference)."""
    numbers = check_column(values, name)
    bad = ~np.isfinite(numbers) | (numbers < 0)
    if bad.any():
        first, hint = int(np.argmax(bad)), f"{name} are finite and >= 0."
        raise NonFiniteError(name, float(numbers[first]), f"{unit} {first}", int(bad.sum()), hint)
    return numbers


def check_ids(values: ArrayLike, name: str = "qid") -> NDArray[Any]:
    """Give one id per row: integers or text; missing ids, and numbers among text, are refused."""
    if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
        values = np.array(values, dtype=object)  # as text, numpy would make numbers and None text too
    array = as_numpy(values, name)
    if array.ndim != 1:
        raise ShapeError(name, array.shape, "one id per row")
    if array.dtype.kind == "O":
        ids = array.tolist()
        if set(map(type, ids)) != {str}:  # text alone is the usual case, and sound
            refuse_mixed(ids, name)
        array = np.asarray(ids)  # one common type, so that ids can be compared
    if array.ndim != 1 or array.dtype.kind not in "biufUSMm":
        raise LabelError(f"{name} is neither numbers nor text", "give each row one number or text as its id.")
    if array.dtype.kind in "fMm":
        refuse_inexact(array, name)
    return array


def refuse_mixed(ids: list[Any], name: str) -> None:
    """Refuse ids that are missing or no single values, and text among numbers."""
    for row, value in enumerate(ids):
        if not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
            seen = f"{name} is {repr(value)[:40]} at row {row}, neither numbers nor text"
            raise LabelError(seen, "give each row one number or text as its id.")
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:  # noqa: PLR0124
            raise no_id(name, row)
        if isinstance(value, str) != isinstance(ids[0], str):
            problem = f"{name} mixes text and numbers: row 0 is {ids[0]!r}, row {row} is {value!r}"
            raise LabelError(problem, "give every id as the same type.")


def refuse_inexact(array: NDArray[Any], name: str) -> None:
    """Refuse ids that are missing, or floats so large that different ids become equal."""
    missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    if missing.any():
        raise no_id(name, int(np.argmax(missing)))
    if array.dtype.kind == "f" and (large := ~(np.abs(array) <= EXACT)).any():
        problem = f"{name} is {array[large][0]} at row {np.argmax(large)}, which a double cannot hold exactly"
        raise LabelError(problem, "give large ids as text.")


def joined_ids(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Ids of two columns as one, of a type in which none changes.

    >>> joined_ids(np.array([1], dtype=np.uint64), np.array([2])).dtype
    dtype('int64')
    """
    kinds = [kind_of_ids(ids) for ids in (first, second)]
    if kinds[0] != kinds[1]:
        problem = f"the ids of one column are {kinds[0]}, of the other {kinds[1]}: they mix text and numbers"
        problem = problem if "text" in kinds else problem.partition(": ")[0]
        raise LabelError(problem, "give every id as the same type.")
    if {first.dtype.kind, second.dtype.kind} == {"i", "u"}:  # numpy would make doubles of them
        highest = max(int(ids.max(initial=0)) for ids in (first, second))
        lowest = min(int(ids.min(initial=0)) for ids in (first, second))
        if highest > np.iinfo(np.int64).max and lowest < 0:
            problem = f"ids from {lowest} to {highest} fit no whole number of 64 bits"
            raise LabelError(problem, "give large ids as text.")
        kind = np.int64 if highest <= np.iinfo(np.int64).max else np.uint64
        return np.concatenate((first.astype(kind), second.astype(kind)))
    joined = np.concatenate((first, second))
    if joined.dtype.kind == "f":
        refuse_inexact(joined, "an id")
        for ids in (first, second):
            if ids.dtype.kind in "iu" and (large := (ids > EXACT) | (ids < -EXACT)).any():
                problem = f"an id is {ids[large][0]}, others are doubles, which cannot hold it exactly"
                raise LabelError(problem, "give large ids as text.")
    return joined


def kind_of_ids(ids: NDArray[Any]) -> str:
    """Text, numbers and times are never equal to one another."""
    return "text" if ids.dtype.kind in "US" else "times" if ids.dtype.kind in "mM" else "numbers"


def no_id(name: str, row: int) -> LabelError:
    """Say which row lacks an id."""
    return LabelError(f"{name} has no id at row {row}", "give every row an id, or drop it.")


def check_lengths(reference: str, n_rows: int, /, **columns: Sized | None) -> None:
    """Refuse columns that do not have one entry per row."""
    for name, column in columns.items():
        if column is None:
            continue
        try:
            length = len(column)
        except TypeError as error:  # a single number
            raise ShapeError(name, (), "one entry per row") from error
        if length != n_rows:
            raise LengthMismatchError(name, length, n_rows, reference)


def refuse(bad: BoolArray, values: FloatArray, name: str, hint: str = "") -> None:
    """Raise NonFiniteError for the first bad row."""
    row = int(np.argmax(bad))
    raise NonFiniteError(name, float(values[row]), f"row {row}", int(bad.sum()), hint).at(row)


def check_grades(y: ArrayLike, name: str = "y") -> FloatArray:
    """Give one finite grade >= 0 per row.

    >>> check_grades([0, -1])
    Traceback (most recent call last):
    concordant.exceptions.GradeError: grade -1 at row 1 is negative.
    Hint: grades start at 0; TREC's negative judgements become 0 by np.maximum(y, 0).
    """
    return graded(y, name)[0]


def graded(y: ArrayLike, name: str = "y") -> tuple[FloatArray, float]:
    """Give the checked grades, and the highest of them: metrics ask for it, and it costs a pass."""
    grades = check_column(y, name)
    if not grades.size:
        raise EmptyDataError(name)
    lowest, highest = grades.min(), float(grades.max())  # NaN if there is one
    if not (lowest >= 0 and highest < np.inf):
        if (bad := ~np.isfinite(grades)).any():
            refuse(bad, grades, name, "drop unjudged rows or give them grade 0.")
        row = int(np.argmin(grades))
        hint = "grades start at 0; TREC's negative judgements become 0 by np.maximum(y, 0)."
        raise GradeError(float(grades[row]), f"row {row}", "is negative", hint).at(row)
    return grades, highest


def check_scores(scores: ArrayLike, n_rows: int, reference: str = "y") -> FloatArray:
    """Give one score per row; `-inf` means "not in the ranking", NaN and `+inf` are refused."""
    given = as_numpy(scores, "scores")
    values = check_column(given, "scores")
    check_lengths(reference, n_rows, scores=values)
    if given.dtype.kind in "iu":
        refuse_rounded(given, "scores")
    if values.size and not values.max() < np.inf:
        hint = "a ranking needs comparable scores; -inf marks items that are not in the ranking."
        refuse(np.isnan(values) | np.isposinf(values), values, "scores", hint)
    return values
