"""Times of rows: numbers or dates, of the same kind in a column; no digit strings, flags or time zones."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant._base.validate import EXACT, as_exact
from concordant.exceptions import LabelError, ShapeError
from concordant.types import ArrayLike, FloatArray

ISO = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)?", re.ASCII)
HINT = "give numbers, datetime64, or dates as text like '2001-05-31'."
FINER = "use coarser times, or numbers that begin at 0."
ZONE = "convert all times to one zone, and drop the zone."


def check_time(time: ArrayLike, name: str = "time") -> NDArray[Any]:
    """Return one finite number or datetime64 per row; Python dates and dates as text become datetime64.

    Raise on columns of mixed kinds, on booleans, on times with a zone (which would be dropped), and on text
    that is not a date like 2001-05-31: "20010531" may be a date or a number.

    >>> check_time([date(2001, 5, 1), date(2001, 4, 30)]).dtype.kind, check_time(["2001-05-01"]).dtype.kind
    ('M', 'M')
    >>> check_time(["2001-04-31"])
    Traceback (most recent call last):
    concordant.exceptions.LabelError: time is '2001-04-31' at row 0, which is not a date (1 such ...
    """
    _refuse_zone(time, name)
    moments = as_exact(_as_objects(time) if isinstance(time, (list, tuple)) else time, name)
    if moments.ndim != 1:
        raise ShapeError(name, moments.shape, "one moment per row")
    if moments.dtype.kind in "OUT":
        moments = _convert_single_kind(moments.tolist(), name)
    if moments.dtype.kind not in "iufM":
        raise LabelError(f"{name} holds {moments.dtype}, neither numbers nor dates", HINT)
    missing = np.isnat(moments) if moments.dtype.kind == "M" else ~np.isfinite(moments)
    if missing.any():
        row = int(np.argmax(missing))
        problem = f"{name} is {moments[row]} at row {row} ({int(missing.sum())} such value(s) in all)"
        raise LabelError(problem, "every row needs a moment: drop the others.")
    return moments


def days_since_1970(moments: NDArray[Any]) -> FloatArray:
    """Convert checked times to numbers: dates to days since 1970, including fractions of days.

    >>> days_since_1970(np.array(["1970-01-02T12"], dtype="M8[h]")).tolist()
    [1.5]
    """
    if moments.dtype.kind != "M":
        return moments.astype(np.float64)
    whole = moments.astype("datetime64[D]")
    days: FloatArray = whole.astype(np.float64) + (moments - whole) / np.timedelta64(1, "D")
    return days


def refuse_merged(moments: NDArray[Any], numbers: FloatArray, name: str) -> None:
    """Raise if different times are equal as doubles: the order of their rows would be lost."""
    if moments.dtype.kind in "iuM":
        doubtful = bool(np.abs(moments.astype(np.float64)).max(initial=0.0) >= EXACT)
    else:
        doubtful = moments.dtype.itemsize > numbers.itemsize or moments.dtype.kind == "O"
    if not doubtful:
        return
    order = np.argsort(numbers, kind="stable")
    same = numbers[order[1:]] == numbers[order[:-1]]
    if (lost := np.flatnonzero(same & (moments[order[1:]] != moments[order[:-1]]))).size:
        row, other = sorted(order[lost[0] : lost[0] + 2].tolist())
        both = f"{moments[row]!s} at row {row} and {moments[other]!s} at row {other}"
        problem = f"{name} is {both}, which are the same float64"
        raise LabelError(problem, FINER)


def _as_objects(time: list[Any] | tuple[Any, ...]) -> Any:
    """Convert values of several types to objects; numpy would make flags numbers, and numbers dates."""
    types = set(map(type, time))
    if len(types) < 2 or types & {list, tuple, np.ndarray}:
        return time
    return np.array(time, dtype=object)


def _refuse_zone(time: ArrayLike, name: str) -> None:
    """Raise on frame columns whose type has a time zone: as arrays they would become UTC."""
    kind = getattr(time, "dtype", getattr(time, "type", None))
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    if zone is not None:
        raise LabelError(f"{name} has the time zone {zone}", ZONE)


def _value_kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, (date, np.datetime64)):
        return "date"
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    return "number" if isinstance(value, (Real, Decimal)) else "neither numbers nor dates"


def _convert_single_kind(values: list[Any], name: str) -> NDArray[Any]:
    """Convert numbers to numbers and dates to datetime64; raise if the kinds are mixed."""
    kinds = [_value_kind(value) for value in values]
    present_kinds = [kind for kind, value in zip(kinds, values, strict=True) if value is not None]
    first = present_kinds[0] if present_kinds else "date"
    for row, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        if kind != first and value is not None:
            problem = f"{name} mixes kinds: row {kinds.index(first)} is a {first}, row {row} is {value!r}"
            raise LabelError(problem, HINT)
    if first == "number" and None not in values:
        return _as_numbers(values, name)
    if first in ("text", "date", "number"):
        return _parse_dates(values, name)
    type_name = "bool" if first == "boolean" else type(values[0]).__name__
    raise LabelError(f"{name} holds {type_name}, neither numbers nor dates", HINT)


def _as_numbers(values: list[Any], name: str) -> NDArray[Any]:
    """Convert numeric objects to numbers; raise if different values become equal as doubles."""
    objects = np.array(values, dtype=object)
    try:
        numbers = np.array(values)
        if numbers.dtype.kind in "iu":
            return numbers
        if numbers.dtype.kind != "f":
            numbers = np.array([float(value) for value in values])
    except (OverflowError, ValueError) as error:  # 10**400, a signalling NaN
        raise LabelError(f"{name} holds a number too large for float64", HINT) from error
    refuse_merged(objects, numbers, name)
    return numbers


def _parse_dates(values: list[Any], name: str) -> NDArray[Any]:
    """Convert dates to datetime64; raise on values that are not dates or have a time zone."""
    parsed = {value: _as_date(value) for value in dict.fromkeys(values)}
    wrong = [row for row, value in enumerate(values) if parsed[value] is None]
    if wrong:
        value, row = values[wrong[0]], wrong[0]
        problem = f"{name} is {value!r} at row {row}, which is not a date ({len(wrong)} such value(s) in all)"
        hint = "write dates like '2001-05-31', without a time zone; drop rows without one."
        raise LabelError(problem, hint)
    return np.array([parsed[value] for value in values], dtype="datetime64[us]")


def _as_date(value: Any) -> np.datetime64 | None:
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    if zoned or not (_value_kind(value) == "date" or (isinstance(value, str) and ISO.fullmatch(value))):
        return None
    try:
        moment = np.datetime64(value, "us")
    except (TypeError, ValueError):  # NaT of pandas, the 31st of April
        return None
    return None if np.isnat(moment) else moment
