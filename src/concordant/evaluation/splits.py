"""Splits in the order of time: nothing is learned from what comes after, or from the same moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError, ShapeError
from concordant.supervision.columns import as_numpy, check_lengths
from concordant.types import ArrayLike, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TimeShares", "between", "check_time"]

ISO = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)?")


@dataclass(frozen=True, eq=False)
class TimeShares:
    """One split for each share: the first share of the rows in the order of time trains, the rest validates.

    A splitter of scikit-learn: give it as `cv=` to `GridSearchCV`. Every training row is earlier than every
    validation row. Rows of equal time are never parted: those that share the time of the first validation row
    validate too, since a model that is used at that time could not know them; so the training part may be
    smaller than its share, which is rounded down to whole rows. Both parts are given in the order of time.

    Parameters
    ----------
    shares
        Between 0 and 1, both excluded. The default is the paper's, for games of chess.
    time
        One number or date per row. None: the `groups` that `split` is given, else the rows
        stand in the order of time, all at different times.

    References
    ----------
    Venuto et al., Support vector comparison machines, section 5.2.

    Examples
    --------
    >>> splitter = TimeShares((0.5, 0.75), time=[3, 1, 2, 2])
    >>> [(train.tolist(), test.tolist()) for train, test in splitter.split(np.zeros((4, 2)))]
    [([1], [2, 3, 0]), ([1, 2, 3], [0])]
    """

    shares: tuple[float, ...] = (0.5, 0.75, 0.8, 0.85)
    time: ArrayLike = None

    def __post_init__(self) -> None:
        shares = np.atleast_1d(np.asarray(self.shares, dtype=np.float64))
        if shares.ndim != 1 or not shares.size or not ((shares > 0) & (shares < 1)).all():
            raise ParameterError("shares", self.shares, "numbers between 0 and 1, both excluded")
        object.__setattr__(self, "shares", tuple(shares.tolist()))
        if self.time is not None:
            object.__setattr__(self, "time", check_time(self.time))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Give the number of shares."""
        del X, y, groups
        return len(self.shares)

    def split(self, X: Any, y: Any = None, groups: ArrayLike = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Give (training rows, validation rows) for each share; `groups` may hold the times."""
        n_rows = row_count(X, y)
        time = self.time if self.time is not None else groups
        moments = np.arange(n_rows) if time is None else check_time(time)
        check_lengths("X", n_rows, time=moments)
        order = np.argsort(moments, kind="stable")
        cuts = [cut(moments[order], share) for share in self.shares]  # all, before the first is used
        return iter([(order[:place], order[place:]) for place in cuts])


def row_count(X: Any, y: Any) -> int:
    """Give the number of rows of whatever is to be split, at least one."""
    rows = y if X is None else X
    count = 0 if rows is None else int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
    if not count:
        raise EmptyDataError("X")
    return count


def cut(moments: NDArray[Any], share: float) -> int:
    """Give how many of the sorted moments train; equal ones stay together, on the later side."""
    place = min(int(share * len(moments) + 1e-9), len(moments) - 1)  # 0.29 * 100 is less than 29
    earlier = int(np.searchsorted(moments, moments[place], side="left")) if place > 0 else 0
    if earlier == 0:
        seen = f"{len(moments)} rows at {len(np.unique(moments))} different times"
        raise LabelError(f"a share of {share:g} of {seen} leaves no row to train on", "give larger shares.")
    return earlier


def between(time: ArrayLike, start: Any = None, end: Any = None) -> IntArray:
    """Give the rows with start <= time < end, in the order of time; none is a result too.

    The end is excluded, so that windows which follow one another neither overlap nor leave a gap. A list
    `[(between(time, a, b), between(time, b, c)), ...]` is what scikit-learn takes as `cv=`.

    Parameters
    ----------
    time
        One number or date per row: numbers, datetime64, or text like "2001-05-31".
    start, end
        Numbers; or dates, which may be written as "2001-05", the first moment of that month. None: no bound.

    Examples
    --------
    >>> days = np.array(["2001-01-31", "2001-05-01", "2001-04-30", "2000-12-31"], dtype="datetime64[D]")
    >>> between(days, "2001", "2001-05").tolist(), between(days, "2001-05", "2002").tolist()
    ([0, 2], [1])
    """
    moments = check_time(time)
    first, last = as_moment(start, moments, "start"), as_moment(end, moments, "end")
    if first is not None and last is not None and not first < last:
        raise ParameterError("end", end, f"later than the start, {start!r}")
    inside = np.ones(len(moments), dtype=bool)
    if first is not None:
        inside &= moments >= first
    if last is not None:
        inside &= moments < last
    rows = np.flatnonzero(inside)
    return rows[np.argsort(moments[rows], kind="stable")]


def as_moment(value: Any, moments: NDArray[Any], name: str) -> Any:
    """Give a bound in the kind of the times; a number among dates, or a date among numbers, is refused."""
    if value is None:
        return None
    dates = moments.dtype.kind == "M"
    fits = isinstance(value, (str, date, np.datetime64)) if dates else isinstance(value, Real)
    try:
        if fits:
            return check_time(np.array([np.datetime64(value) if dates else value]), name)[0]
    except ValueError:  # text that is no date, a bound that is missing
        pass
    allowed = "a date: datetime64, or text like '2001-05'" if dates else "a finite number, as the times are"
    raise ParameterError(name, value, allowed)


def check_time(time: ArrayLike, name: str = "time") -> NDArray[Any]:
    """Give one finite number or datetime64 per row; dates of Python, and dates as text, become datetime64.

    >>> check_time([date(2001, 5, 1), date(2001, 4, 30)]).dtype.kind, check_time(["2001-05-01"]).dtype.kind
    ('M', 'M')
    >>> check_time(["2001-04-31"])
    Traceback (most recent call last):
    concordant.exceptions.LabelError: time is '2001-04-31' at row 0, which is no date (1 such ...
    """
    moments = as_numpy(time, name)
    if moments.ndim != 1:
        raise ShapeError(name, moments.shape, "one moment per row")
    if moments.dtype.kind in "OU" and moments.size:
        moments = dates(moments.tolist(), name)
    if moments.dtype.kind not in "iufM":
        problem = f"{name} holds {moments.dtype}, neither numbers nor dates"
        raise LabelError(problem, "give numbers, datetime64, or dates as text like '2001-05-31'.")
    missing = np.isnat(moments) if moments.dtype.kind == "M" else ~np.isfinite(moments)
    if missing.any():
        row = int(np.argmax(missing))
        problem = f"{name} is {moments[row]} at row {row} ({int(missing.sum())} such value(s) in all)"
        raise LabelError(problem, "every row needs a moment: drop the others.")
    return moments


def dates(values: list[Any], name: str) -> NDArray[Any]:
    """Give dates as datetime64; what is none, or has a time zone, which would be forgotten, is refused."""
    known = {value: as_date(value) for value in dict.fromkeys(values)}
    wrong = [row for row, value in enumerate(values) if known[value] is None]
    if wrong:
        value, row = values[wrong[0]], wrong[0]
        problem = f"{name} is {value!r} at row {row}, which is no date ({len(wrong)} such value(s) in all)"
        raise LabelError(
            problem, "write dates like '2001-05-31', without a time zone; drop rows without one."
        )
    return np.array([known[value] for value in values])


def as_date(value: Any) -> np.datetime64 | None:
    """Give one date, or None where it is none."""
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    if zoned or not (isinstance(value, date) or (isinstance(value, str) and ISO.fullmatch(value))):
        return None
    try:
        return np.datetime64(value, "us")
    except (TypeError, ValueError):  # NaT of pandas, the 31st of April
        return None
