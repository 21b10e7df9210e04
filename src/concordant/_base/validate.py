"""Validation of values and columns: convert to checked numbers, or raise an error that names the row.

numpy arrays and lists go straight through; pandas, polars and pyarrow columns and frames go through
narwhals. Nothing is copied that already has the right type.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sized
from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.exceptions import (
    EmptyDataError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from concordant.types import ArrayLike, BoolArray, FloatArray

# Scalar parameters: each check returns the plain Python value, or names the parameter in the error.

INT32_MAX = 2**31 - 1  # limit of the underlying libraries: a larger number is a mistake
INT64_MAX = 2**63 - 1  # limit of numpy's whole numbers
DOUBLE_MAX = sys.float_info.max  # where "more than there are" means all, such as rows of a batch


def as_double(value: object) -> float:
    """Convert a number to a double: infinity if it is too large, NaN if it is not a number.

    NaN lies in no range, so `0.0 <= as_double(value) < math.inf` checks both type and range.

    >>> as_double(2), as_double(10**400), as_double(-(10**400)), as_double("2")
    (2.0, inf, -inf, nan)
    """
    if not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def is_whole(value: object, least: int, most: float = INT32_MAX) -> bool:
    """True if `value` is a whole number from `least` to `most`; booleans are not.

    >>> is_whole(3, 1), is_whole(0, 1), is_whole(3.0, 1), is_whole(True, 1), is_whole(10**400, 1)
    (True, False, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def check_whole(name: str, value: Any, least: int, most: float = INT64_MAX, *, also: str = "") -> int:
    """Return a whole number from `least` to `most`; `also` adds to the message what else the caller allows.

    >>> check_whole("k", 5, 1)
    5
    >>> check_whole("k", 0, 1, also="None")
    Traceback (most recent call last):
    concordant.exceptions.ParameterError: k must be an integer >= 1 or None, got 0.
    """
    if is_whole(value, least, most):
        return int(value)
    allowed = f"an integer >= {least}"
    if most < INT32_MAX or is_whole(value, least, math.inf):  # else the limit would only distract
        allowed = f"an integer from {least} to {most}"
    raise ParameterError(name, value, allowed + f" or {also}" * bool(also))


def check_counts(**counts: Any) -> None:
    """Check for whole numbers >= 1."""
    for name, count in counts.items():
        check_whole(name, count, 1)


def check_number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    also: str = "",
    hint: str = "",
) -> float:
    """Return a finite number within limits, `above` and `below` excluded; booleans are not numbers.

    >>> check_number("tol", 1, above=0.0)
    1.0
    >>> check_number("tol", 0, above=0.0, most=1.0)
    Traceback (most recent call last):
    concordant.exceptions.ParameterError: tol must be a number > 0 and <= 1, got 0.
    """
    number = math.nan if isinstance(value, bool) else as_double(value)
    if math.isfinite(number) and least <= number <= most and above < number < below:
        return number
    limits = ((">=", least), (">", above), ("<=", most), ("<", below))
    shown = " and ".join(
        f"{sign} {limit:g}"
        for sign, limit in limits
        if math.isfinite(limit) and (abs(limit) < INT64_MAX or abs(number) >= abs(limit))  # else it distracts
    )
    kind = "a number" if "<" in shown else "a finite number"
    raise ParameterError(name, value, f"{kind} {shown}".strip() + f" or {also}" * bool(also), hint=hint)


def check_share(name: str, value: Any, example: float) -> float:
    """Return a number between 0 and 1, both excluded, such as a level or a probability.

    >>> check_share("level", 95, 0.95)
    Traceback (most recent call last):
    concordant.exceptions.ParameterError: level must be a number > 0 and < 1, such as 0.95, got 95.
    """
    share = math.nan if isinstance(value, bool) else as_double(value)
    if not 0.0 < share < 1.0:
        raise ParameterError(name, value, f"a number > 0 and < 1, such as {example:g}")
    return share


def list_words(words: Iterable[str]) -> str:
    """Join words by commas and a final "or".

    >>> list_words(["'a'", "'b'", "None"]), list_words(["'a'"])
    ("'a', 'b' or None", "'a'")
    """
    *first, last = words
    return ", ".join(first) + " or " * bool(first) + last


def check_flag(name: str, value: Any, *, also: str = "") -> bool:
    """Return True or False, numpy's included; a text would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(name, value, list_words(["True", "False", *[also] * bool(also)]))
    return bool(value)


def check_choice(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise if the value is not one of the allowed words."""
    words = tuple(allowed)
    if not (isinstance(value, str) and value in words):
        raise ParameterError(name, value, list_words(map(repr, words)))


def is_verbose(verbose: object) -> bool:
    """True if a progress bar should be shown; raise unless `verbose` is a boolean or a whole number."""
    if not isinstance(verbose, (Integral, np.bool_)):
        raise ParameterError("verbose", verbose, "True, False or an integer")
    return bool(verbose)


def check_seed(name: str, value: Any, *, also: str = "") -> np.random.Generator:
    """Return numpy's random generator for a seed; raise if there is none."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        allowed = list_words(["an integer >= 0", *[also] * bool(also), "None"])
        raise ParameterError(name, value, allowed) from error


def all_zero_error(name: str, unit: str) -> ParameterError:
    """Build the error for weights that are all 0, one per unit (row, query, pair)."""
    return ParameterError.because(
        f"{name} is zero for every {unit}. Give at least one {unit} a positive weight."
    )


def sum_overflow_error(name: str) -> ParameterError:
    """Build the error for weights whose sum overflows."""
    return ParameterError.because(f"The sum of {name} overflows float64. Pass smaller weights.")


# Array-likes become checked numpy columns, or an error says what was wrong and where.

EXACT = 2**53  # up to here every whole number is a double; 2**53 itself may be 2**53 + 1, rounded


def as_numpy(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert a column or frame to a numpy array; objects without a common numeric type stay objects."""
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


def as_exact(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert like `as_numpy`, but keep a list as objects if floats would round its whole numbers."""
    array = as_numpy(values, name)
    if not isinstance(values, (list, tuple)) or array.dtype.kind != "f":
        return array
    if not array.size or (array.min() > -EXACT and array.max() < EXACT):  # avoids copying a long list
        return array
    if not (np.isfinite(array) & (np.abs(array) >= EXACT)).any():
        return array
    objects = np.array(values, dtype=object)
    return objects if any(isinstance(value, Integral) for value in objects.flat) else array


def refuse_masked(values: ArrayLike, name: str) -> None:
    """Raise if an array has masked entries: a plain array would expose them."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise LabelError(f"{name} is masked at row {row}", "drop masked rows or fill them.")


def refuse_misaligned(**columns: Any) -> None:
    """Raise if pandas objects have the same row labels in different orders: rows are matched by position."""
    indexes = [(name, column.index) for name, column in columns.items() if has_rows(column)]
    for (first, index), (second, other) in combinations(indexes, 2):
        if len(index) != len(other) or index.nlevels != other.nlevels or index.equals(other):
            continue
        if index.isin(other).all() and other.isin(index).all():
            hint = "rows are matched by position: align them by .loc, or pass .to_numpy() where they match."
            raise LabelError(f"{first} and {second} have the same index in different orders", hint)


def refuse_unlike_axes(matrix: Any, name: str) -> None:
    """Raise if the row labels of a square frame differ from its column labels."""
    if not hasattr(matrix, "columns"):
        return
    labels, index = list(matrix.columns), list(getattr(matrix, "index", []))
    if len(index) == len(labels) and index not in (labels, list(range(len(labels)))):
        row, column = next(pair for pair in zip(index, labels, strict=True) if pair[0] != pair[1])
        problem = f"row label {row!r} of {name} does not match column label {column!r}"
        raise LabelError(problem, "label rows and columns alike, in the same order: frame[frame.index].")


def has_rows(column: Any) -> bool:
    """True for a pandas object in memory."""
    return hasattr(column, "iloc") and not hasattr(column, "__dask_graph__")


def check_column(values: ArrayLike, name: str) -> FloatArray:
    """Convert to one float64 per row, without a copy if possible; NaN passes.

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


def refuse_rounded(original: NDArray[Any], values: FloatArray, name: str) -> None:
    """Raise if doubles round numbers to a neighbour: such scores would tie.

    Objects and long doubles may also overflow to infinity, and a score of -inf means "not in the ranking".
    """
    array = original.ravel()
    if array.dtype.kind in "iu":
        if not array.size or -EXACT <= int(array.min()) <= int(array.max()) <= EXACT:
            return
        bad = (array > EXACT) | (array < -EXACT)
    elif array.dtype.kind == "O" or array.dtype.itemsize > values.itemsize:
        bad, order = np.isinf(values) & (array != values), np.argsort(values, kind="stable")
        tied = values[order[1:]] == values[order[:-1]]
        bad[order[1:]] |= tied & (array[order[1:]] != array[order[:-1]])
    else:
        return
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"row {row} is {array[row]!s}, which a double cannot hold exactly"
        raise NotNumericError(name, problem).at(row)


def numbers_from_objects(array: NDArray[Any], name: str) -> FloatArray:
    """Convert numeric objects (Decimal, mixed types) to floats; text is refused even if numeric."""
    if array.dtype.kind in "mM":
        raise NotNumericError(name, f"it holds {array.dtype}")
    numbers = np.empty(len(array))
    for row, value in enumerate(array.tolist()):
        if isinstance(value, (complex, Iterable)) or not hasattr(value, "__float__"):  # text, lists
            raise NotNumericError(name, f"row {row} is {value!r}").at(row)
        try:
            numbers[row] = float(value)
        except (OverflowError, TypeError, ValueError) as error:  # 10**400, datetime64, a signalling NaN
            raise NotNumericError(name, f"row {row} is {str(value)[:40]}").at(row) from error
    return numbers


def feature_labels(n_features: int) -> list[str]:
    """Return labels for unnamed features, for messages and reports.

    >>> feature_labels(2)
    ['column 0 (LETOR 1)', 'column 1 (LETOR 2)']
    """
    return [f"column {number} (LETOR {number + 1})" for number in range(n_features)]


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_nonnegative(values: ArrayLike, name: str, unit: str) -> FloatArray:
    """Return finite numbers >= 0, one per unit (row, query, preference)."""
    numbers = check_column(values, name)
    bad = ~np.isfinite(numbers) | (numbers < 0)
    if bad.any():
        first, hint = int(np.argmax(bad)), f"{name} are finite and >= 0."
        raise NonFiniteError(name, float(numbers[first]), f"{unit} {first}", int(bad.sum()), hint)
    return numbers


def check_ids(values: ArrayLike, name: str = "qid") -> NDArray[Any]:
    """Return one id per row, integers or text; raise if ids are missing or mix numbers and text."""
    if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
        values = np.array(values, dtype=object)  # numpy would convert numbers and None to text
    array = as_numpy(values, name)
    if array.ndim != 1:
        raise ShapeError(name, array.shape, "one id per row")
    if array.dtype.kind in "OT":
        ids = array.tolist()
        if set(map(type, ids)) != {str}:  # text alone is the usual case, and valid
            _refuse_mixed(ids, name)
        _refuse_nul(ids, name)
        array = np.asarray(ids)  # a common type makes ids comparable
    if array.ndim != 1 or array.dtype.kind not in "biufUSMm":
        raise LabelError(f"{name} is neither numbers nor text", "give each row one number or text as its id.")
    if array.dtype.kind in "fMm":
        _refuse_inexact(array, name)
    return _decode_ids(array, name) if array.dtype.kind == "S" else array


def _decode_ids(array: NDArray[Any], name: str) -> NDArray[Any]:
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        row = next(row for row, id_bytes in enumerate(array.tolist()) if id_bytes == error.object)
        problem = f"{name} is {error.object!r} at row {row}, not UTF-8"
        raise LabelError(problem, "give ids as text.") from error


def _refuse_nul(ids: list[Any], name: str) -> None:
    """Raise on NUL characters: numpy and Arrow end text there, so different ids would become equal."""
    for row, value in enumerate(ids):
        if (isinstance(value, str) and "\0" in value) or (isinstance(value, bytes) and b"\0" in value):
            raise LabelError(f"{name} has a NUL character at row {row}", "drop it from the id.")


def _refuse_mixed(ids: list[Any], name: str) -> None:
    """Check that ids are scalars of a single type and that none is missing."""
    for row, value in enumerate(ids):
        if not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
            problem = f"{name} is {repr(value)[:40]} at row {row}, neither numbers nor text"
            raise LabelError(problem, "give each row one number or text as its id.")
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:  # noqa: PLR0124
            raise missing_id_error(name, row)
        if (kind := _id_type(value)) != (first := _id_type(ids[0])):
            both = " and ".join(sorted((kind, first), reverse=True))
            problem = f"{name} mixes {both}: row 0 is {ids[0]!r}, row {row} is {value!r}"
            raise LabelError(problem, "give every id as the same type.")


def _id_type(value: Any) -> str:
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "numbers"


def _refuse_inexact(array: NDArray[Any], name: str) -> None:
    """Raise if ids are missing, or floats so large that different ids become equal."""
    missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    if missing.any():
        raise missing_id_error(name, int(np.argmax(missing)))
    if array.dtype.kind != "f":
        return
    exact = min(EXACT, 2 ** (np.finfo(array.dtype).nmant + 1))
    if (large := ~(np.abs(array) < exact)).any():
        kind = "a double" if exact == EXACT else str(array.dtype)
        problem = f"{name} is {array[large][0]} at row {np.argmax(large)}, which {kind} cannot hold exactly"
        raise LabelError(problem, "give large ids as text.")


def concatenate_ids(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Concatenate two id columns in a type that preserves every id.

    >>> concatenate_ids(np.array([1], dtype=np.uint64), np.array([2])).dtype
    dtype('int64')
    """
    kinds = [id_kind(ids) for ids in (first, second)]
    if kinds[0] != kinds[1]:
        problem = f"the ids of one column are {kinds[0]}, of the other {kinds[1]}: they mix text and numbers"
        problem = problem if "text" in kinds else problem.partition(": ")[0]
        raise LabelError(problem, "give every id as the same type.")
    if {first.dtype.kind, second.dtype.kind} == {"i", "u"}:  # numpy would convert them to doubles
        highest = max(int(ids.max(initial=0)) for ids in (first, second))
        lowest = min(int(ids.min(initial=0)) for ids in (first, second))
        if highest > np.iinfo(np.int64).max and lowest < 0:
            problem = f"ids from {lowest} to {highest} do not fit into 64-bit integers"
            raise LabelError(problem, "give large ids as text.")
        kind = np.int64 if highest <= np.iinfo(np.int64).max else np.uint64
        return np.concatenate((first.astype(kind), second.astype(kind)))
    ids_of_both = np.concatenate((first, second))
    if ids_of_both.dtype.kind == "f":
        for ids in (first, second):
            if ids.dtype.kind in "iu" and (large := (ids > EXACT) | (ids < -EXACT)).any():
                problem = f"an id is {ids[large][0]}, others are doubles, which cannot hold it exactly"
                raise LabelError(problem, "give large ids as text.")
        _refuse_inexact(ids_of_both, "an id")
    return ids_of_both


def id_kind(ids: NDArray[Any]) -> str:
    """Return "text", "numbers" or "times"; ids of different kinds are never equal."""
    return "text" if ids.dtype.kind in "US" else "times" if ids.dtype.kind in "mM" else "numbers"


def missing_id_error(name: str, row: int) -> LabelError:
    """Build the error for a row without an id."""
    return LabelError(f"{name} has no id at row {row}", "give every row an id, or drop it.")


def check_lengths(reference: str, n_rows: int, /, **columns: Sized | None) -> None:
    """Check that columns have one entry per row."""
    for name, column in columns.items():
        if column is None:
            continue
        try:
            length = len(column)
        except TypeError as error:  # a scalar
            raise ShapeError(name, (), "one entry per row") from error
        if length != n_rows:
            raise LengthMismatchError(name, length, n_rows, reference)


def refuse(bad: BoolArray, values: FloatArray, name: str, hint: str = "") -> None:
    """Raise NonFiniteError for the first bad row."""
    row = int(np.argmax(bad))
    raise NonFiniteError(name, float(values[row]), f"row {row}", int(bad.sum()), hint).at(row)


def check_grades(y: ArrayLike, name: str = "y") -> FloatArray:
    """Return finite grades >= 0, one per row.

    >>> check_grades([0, -1])
    Traceback (most recent call last):
    concordant.exceptions.GradeError: grade -1 at row 1 is negative.
    Hint: grades start at 0; TREC's negative judgements become 0 by np.maximum(y, 0).
    """
    return check_grades_and_highest(y, name)[0]


def check_grades_and_highest(y: ArrayLike, name: str = "y") -> tuple[FloatArray, float]:
    """Return checked grades and the highest grade, which metrics need and which costs a pass."""
    grades = check_column(y, name)
    if not grades.size:
        raise EmptyDataError(name)
    lowest, highest = grades.min(), float(grades.max())  # NaN if any grade is NaN
    if not (lowest >= 0 and highest < np.inf):
        if (bad := ~np.isfinite(grades)).any():
            refuse(bad, grades, name, "drop unjudged rows or give them grade 0.")
        row = int(np.argmin(grades))
        hint = "grades start at 0; TREC's negative judgements become 0 by np.maximum(y, 0)."
        raise GradeError(float(grades[row]), f"row {row}", "is negative", hint).at(row)
    return grades, highest


def check_scores(scores: ArrayLike, n_rows: int | None = None, reference: str = "y") -> FloatArray:
    """Return one score per row; `-inf` means "not in the ranking", NaN and `+inf` raise."""
    exact = as_exact(scores, "scores")
    values = check_column(exact, "scores")
    if n_rows is not None:
        check_lengths(reference, n_rows, scores=values)
    refuse_rounded(exact, values, "scores")
    if values.size and not values.max() < np.inf:
        hint = "a ranking needs comparable scores; -inf marks items that are not in the ranking."
        refuse(np.isnan(values) | np.isposinf(values), values, "scores", hint)
    return values
