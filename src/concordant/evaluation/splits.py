"""Splits in the order of time: nothing is learned from what comes after, or from the same moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.columns import check_lengths
from concordant.supervision.times import check_time
from concordant.types import ArrayLike, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TimeShares", "between", "check_time"]

YEAR = re.compile(r"\d{4}", re.ASCII)


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
    written = f"{value}-01" if isinstance(value, str) and YEAR.fullmatch(value) else value
    try:
        moment = check_time([written], name)
    except LabelError:  # no date, a time zone, a bound that is missing, True
        moment = np.empty(0)
    dates = moments.dtype.kind == "M"
    if moment.size and (moment.dtype.kind == "M") == dates:
        return moment[0]
    allowed = "a date: datetime64, or text like '2001-05'" if dates else "a finite number, as the times are"
    raise ParameterError(name, value, allowed)
