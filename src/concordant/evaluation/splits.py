"""Splits in the order of time: no training row is as late as any validation row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.validate import EXACT, check_lengths, freeze, has_rows, refuse_misaligned
from concordant.data.times import check_time
from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.types import ArrayLike, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

YEAR = re.compile(r"\d{4}", re.ASCII)


@dataclass(frozen=True, eq=False)
class TimeShares:
    """Splitter by time: for each share, the earliest rows train and the rest validates.

    A scikit-learn splitter: pass it as `cv=` to `GridSearchCV`. Every training row is earlier than every
    validation row. Rows of equal time stay together: those with the time of the first validation row
    validate too, since a model that is used at that time could not know them; so the training part may be
    smaller than its share, which is rounded down to whole rows. Both parts are in the order of time.

    Parameters
    ----------
    shares
        Between 0 and 1, both excluded. The default is the paper's, for games of chess.
    time
        One number or date per row. None: the `groups` passed to `split`, else the rows are in the order of
        time, all at different times.

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
    _labelled: Any = field(init=False, repr=False)  # times with an index, compared with that of the rows

    def __post_init__(self) -> None:
        shares = np.atleast_1d(np.asarray(self.shares, dtype=np.float64))
        if shares.ndim != 1 or not shares.size or not ((shares > 0) & (shares < 1)).all():
            raise ParameterError("shares", self.shares, "numbers > 0 and < 1")
        object.__setattr__(self, "shares", tuple(shares.tolist()))
        object.__setattr__(self, "_labelled", self.time.copy() if has_rows(self.time) else None)
        if self.time is not None:
            object.__setattr__(self, "time", freeze(check_time(self.time).copy()))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of shares."""
        del X, y, groups
        return len(self.shares)

    def split(self, X: Any, y: Any = None, groups: ArrayLike = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Iterate over (training rows, validation rows), one split per share; `groups` may hold the times."""
        n_rows = _row_count(X, y)
        refuse_misaligned(X=X, y=y, groups=groups)
        refuse_misaligned(X=X, y=y, time=self._labelled)
        time = self.time if self.time is not None else groups
        moments = np.arange(n_rows) if time is None else check_time(time)
        check_lengths("X", n_rows, time=moments)
        order = np.argsort(moments, kind="stable")
        cuts = [
            _find_cut(moments[order], share) for share in self.shares
        ]  # all before the first split is used, to raise early
        return iter([(order[:n_train], order[n_train:]) for n_train in cuts])


def _row_count(X: Any, y: Any) -> int:
    """Return the number of rows to split, at least one."""
    rows = y if X is None else X
    count = 0 if rows is None else int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
    if not count:
        raise EmptyDataError("X")
    return count


def _find_cut(moments: NDArray[Any], share: float) -> int:
    """Return the number of sorted moments that train; equal moments stay together, on the later side."""
    position = min(int(share * len(moments) + 1e-9), len(moments) - 1)  # 0.29 * 100 is less than 29
    n_earlier = int(np.searchsorted(moments, moments[position], side="left")) if position > 0 else 0
    if n_earlier == 0:
        counts = f"{len(moments)} rows at {len(np.unique(moments))} different times"
        raise LabelError(f"a share of {share:g} of {counts} leaves no row to train on", "give larger shares.")
    return n_earlier


def between(time: ArrayLike, start: Any = None, end: Any = None) -> IntArray:
    """Return the rows with start <= time < end, in the order of time; possibly none.

    The end is excluded, so that consecutive windows neither overlap nor leave a gap. scikit-learn accepts a
    list `[(between(time, a, b), between(time, b, c)), ...]` as `cv=`.

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
    first, last = _as_moment(start, moments, "start"), _as_moment(end, moments, "end")
    if first is not None and last is not None and not first < last:
        raise ParameterError("end", end, f"later than start={start!r}")
    inside = np.ones(len(moments), dtype=bool)
    if first is not None:
        inside &= moments >= first
    if last is not None:
        inside &= moments < last
    rows = np.flatnonzero(inside)
    return rows[np.argsort(moments[rows], kind="stable")]


def _as_moment(value: Any, moments: NDArray[Any], name: str) -> Any:
    """Convert a bound to the type of the times; raise for a number among dates or a date among numbers."""
    if value is None:
        return None
    text = f"{value}-01" if isinstance(value, str) and YEAR.fullmatch(value) else value
    try:
        moment = check_time([text], name)
    except LabelError:  # no date, a time zone, a bound that is missing, True
        moment = np.empty(0)
    dates = moments.dtype.kind == "M"
    if moment.dtype.kind == "f" and moments.dtype.kind in "iu" and (abs(moment) >= EXACT).any():
        return math.ceil(value)  # integer times compare with the ceiling as with the number
    if moment.size and (moment.dtype.kind == "M") == dates:
        return moment[0]
    allowed = "a date, as datetime64 or text like '2001-05'" if dates else "a finite number, as the times are"
    raise ParameterError(name, value, allowed)
