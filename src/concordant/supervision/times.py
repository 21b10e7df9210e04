"""Times of rows: numbers or dates, one kind in a column; never text of digits, flags, or time zones."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import LabelError, ShapeError
from concordant.supervision.columns import as_numpy
from concordant.types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_time", "days_since_1970"]

ISO = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)?", re.ASCII)
HINT = "give numbers, datetime64, or dates as text like '2001-05-31'."
ZONE = "give all times in one zone, and leave the zone out."


def check_time(time: ArrayLike, name: str = "time") -> NDArray[Any]:
    """Give one finite number or datetime64 per row; dates of Python, and dates as text, become datetime64.

    A column of several kinds is refused, and so are booleans, times with a zone (which would be forgotten),
    and text that is no date like 2001-05-31: "20010531" may be a date or a number.

    >>> check_time([date(2001, 5, 1), date(2001, 4, 30)]).dtype.kind, check_time(["2001-05-01"]).dtype.kind
    ('M', 'M')
    >>> check_time(["2001-04-31"])
    Traceback (most recent call last):
    concordant.exceptions.LabelError: time is '2001-04-31' at row 0, which is no date (1 such ...
    """
    refuse_zone(time, name)
    moments = as_numpy(as_objects(time) if isinstance(time, (list, tuple)) else time, name)
    if moments.ndim != 1:
        raise ShapeError(name, moments.shape, "one moment per row")
    if moments.dtype.kind in "OU":
        moments = of_one_kind(moments.tolist(), name)
    if moments.dtype.kind not in "iufM":
        raise LabelError(f"{name} holds {moments.dtype}, neither numbers nor dates", HINT)
    missing = np.isnat(moments) if moments.dtype.kind == "M" else ~np.isfinite(moments)
    if missing.any():
        row = int(np.argmax(missing))
        problem = f"{name} is {moments[row]} at row {row} ({int(missing.sum())} such value(s) in all)"
        raise LabelError(problem, "every row needs a moment: drop the others.")
    return moments


def days_since_1970(moments: NDArray[Any]) -> FloatArray:
    """Give checked times as numbers: of dates the days since 1970, parts of days included.

    >>> days_since_1970(np.array(["1970-01-02T12"], dtype="M8[h]")).tolist()
    [1.5]
    """
    if moments.dtype.kind != "M":
        return moments.astype(np.float64)
    whole = moments.astype("datetime64[D]")
    days: FloatArray = whole.astype(np.float64) + (moments - whole) / np.timedelta64(1, "D")
    return days


def as_objects(time: list[Any] | tuple[Any, ...]) -> Any:
    """Give values of several types as objects: numpy itself would make flags numbers, and numbers dates."""
    types = set(map(type, time))
    if len(types) < 2 or types & {list, tuple, np.ndarray}:
        return time
    return np.array(time, dtype=object)


def refuse_zone(time: ArrayLike, name: str) -> None:
    """Refuse columns of frames whose type has a time zone: as arrays they would be in Greenwich's."""
    kind = getattr(time, "dtype", getattr(time, "type", None))
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    if zone is not None:
        raise LabelError(f"{name} has the time zone {zone}", ZONE)


def kind_of(value: Any) -> str:
    """Say what a value is: text, date, boolean, number, or something else."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, (date, np.datetime64)):
        return "date"
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    return "number" if isinstance(value, (Real, Decimal)) else "neither numbers nor dates"


def of_one_kind(values: list[Any], name: str) -> NDArray[Any]:
    """Give numbers as numbers and dates as datetime64; of two kinds, which row has the other one is said."""
    kinds = [kind_of(value) for value in values]
    known = [kind for kind, value in zip(kinds, values, strict=True) if value is not None]
    first = known[0] if known else "date"
    for row, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        if kind != first and value is not None:
            problem = f"{name} mixes kinds: row {kinds.index(first)} is a {first}, row {row} is {value!r}"
            raise LabelError(problem, HINT)
    if first == "number" and None not in values:
        return as_numbers(values, name)
    if first in ("text", "date", "number"):
        return dates(values, name)
    seen = "bool" if first == "boolean" else type(values[0]).__name__
    raise LabelError(f"{name} holds {seen}, neither numbers nor dates", HINT)


def as_numbers(values: list[Any], name: str) -> NDArray[Any]:
    """Give objects that are numbers as such."""
    numbers = np.array(values)
    if numbers.dtype.kind in "iuf":
        return numbers
    try:
        return np.array([float(value) for value in values])
    except (OverflowError, ValueError) as error:  # 10**400, a signalling NaN
        raise LabelError(f"{name} holds a number that no double can hold", HINT) from error


def dates(values: list[Any], name: str) -> NDArray[Any]:
    """Give dates as datetime64; what is none, or has a time zone, which would be forgotten, is refused."""
    known = {value: as_date(value) for value in dict.fromkeys(values)}
    wrong = [row for row, value in enumerate(values) if known[value] is None]
    if wrong:
        value, row = values[wrong[0]], wrong[0]
        problem = f"{name} is {value!r} at row {row}, which is no date ({len(wrong)} such value(s) in all)"
        hint = "write dates like '2001-05-31', without a time zone; drop rows without one."
        raise LabelError(problem, hint)
    return np.array([known[value] for value in values], dtype="datetime64[us]")


def as_date(value: Any) -> np.datetime64 | None:
    """Give one date, or None where it is none."""
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    if zoned or not (kind_of(value) == "date" or (isinstance(value, str) and ISO.fullmatch(value))):
        return None
    try:
        found = np.datetime64(value, "us")
    except (TypeError, ValueError):  # NaT of pandas, the 31st of April
        return None
    return None if np.isnat(found) else found
