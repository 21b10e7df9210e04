"""Splits in the order of time: no training row is as late as a validation row."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit, cross_val_score

from concordant.evaluation import TimeShares, between
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    ParameterError,
    ShapeError,
)

SHARES = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4)
ZONED = [datetime(2001, 5, 1, tzinfo=UTC)]
DAYS = np.array(["2001-01-31", "2001-05-01", "2001-04-30", "2000-12-31"], dtype="datetime64[D]")


def check_no_look_ahead(splitter, time):
    """Every row is in one part, and every training row is earlier than every validation row."""
    time, n_splits = np.asarray(time), 0
    for train, test in splitter.split(np.zeros((len(time), 1))):
        assert sorted([*train, *test]) == list(range(len(time))), "a row is in both parts, or in none"
        assert time[train].max() < time[test].min(), "a training row is not earlier"
        assert (np.diff(time[train]) >= 0).all(), "training rows are not in the order of time"
        n_splits += 1
    assert n_splits == splitter.get_n_splits()


@given(
    st.lists(st.integers(0, 12), min_size=2, max_size=30), SHARES, st.sampled_from(["int", "float", "day"])
)
def test_nothing_is_learned_from_later_or_equal_times(time, shares, kind):
    moments = np.array(time).astype({"int": "int64", "float": "float64", "day": "datetime64[D]"}[kind])
    splitter = TimeShares(shares, time=moments)
    ordered = sorted(time)
    cuts = [ordered[min(int(share * len(time) + 1e-9), len(time) - 1)] for share in shares]
    if min(cuts) == ordered[0]:  # the first moment reaches beyond the share
        with pytest.raises(LabelError, match="leaves no row to train on"):
            splitter.split(moments)
        return
    check_no_look_ahead(splitter, moments)
    for (train, test), cut in zip(splitter.split(moments), cuts, strict=True):
        assert sorted(np.array(time)[train].tolist()) == [t for t in ordered if t < cut]
        assert len(test) == sum(t >= cut for t in time)


@pytest.mark.parametrize("wrong", [KFold(3), KFold(3, shuffle=True, random_state=0), TimeSeriesSplit(3)])
def test_the_check_rejects_other_splitters(wrong):
    with pytest.raises(AssertionError):
        check_no_look_ahead(wrong, np.arange(12))


def test_the_check_rejects_a_cut_through_equal_times():
    by_rows = TimeShares((0.5,))  # which takes the rows to be at different times
    check_no_look_ahead(by_rows, np.arange(8))
    with pytest.raises(AssertionError, match="not earlier"):
        check_no_look_ahead(by_rows, [0, 0, 1, 2, 2, 2, 3, 4])


def test_the_shares_of_the_paper():
    sizes = [(len(train), len(test)) for train, test in TimeShares().split(np.zeros((100, 2, 3)))]
    assert sizes == [(50, 50), (75, 25), (80, 20), (85, 15)]
    assert [len(train) for train, _ in TimeShares((0.29, 0.999)).split(np.zeros(100))] == [29, 99]


def test_as_cv_of_a_grid_search():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(60, 2)), rng.permutation(60)
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=TimeShares(time=time)).fit(X, y)
    assert search.n_splits_ == 4
    by_groups = cross_val_score(LogisticRegression(), X, y, cv=TimeShares(), groups=time)
    assert (
        by_groups.tolist() == cross_val_score(LogisticRegression(), X, y, cv=TimeShares(time=time)).tolist()
    )
    halves = [(between(time, 0, 30), between(time, 30, 60))]
    assert GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=halves).fit(X, y).n_splits_ == 1


def test_time_at_construction_goes_before_groups():
    splitter = TimeShares((0.5,), time=[4, 3, 2, 1])
    train, _ = next(splitter.split(np.zeros(4), groups=[1, 2, 3, 4]))
    assert train.tolist() == [3, 2]


@given(st.lists(st.integers(-5, 5), max_size=12), st.integers(-6, 6), st.integers(1, 8))
def test_windows_neither_overlap_nor_leave_a_gap(time, start, length):
    moments, end = np.array(time, dtype=float), start + length
    inside = between(moments, start, end)
    assert sorted(inside.tolist()) == [row for row, t in enumerate(time) if start <= t < end]
    assert (np.diff(moments[inside]) >= 0).all()
    parts = [between(moments, None, start), inside, between(moments, end)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(time)))


@pytest.mark.parametrize(
    "time",
    [
        DAYS,
        DAYS.astype("datetime64[s]"),
        [day.item() for day in DAYS],
        DAYS.astype(str),
        [str(day) for day in DAYS],
        pl.Series(DAYS.astype(str)),
        [datetime.combine(day.item(), datetime.min.time()) for day in DAYS],
        pd.Series(DAYS.astype("datetime64[ns]")),
        pl.Series(DAYS),
    ],
)
@pytest.mark.parametrize("start", ["2001", date(2001, 1, 1), np.datetime64("2001-01-01")])
def test_calendars(time, start):
    assert between(time, start, "2001-05").tolist() == [0, 2]
    assert between(time).tolist() == [3, 0, 2, 1]
    assert next(TimeShares((0.5,), time=time).split(DAYS))[0].tolist() == [3, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: TimeShares(()), ParameterError, "shares"),
        (lambda: TimeShares((0.5, 1.0)), ParameterError, "> 0 and < 1"),
        (lambda: TimeShares((0.0,)), ParameterError, "> 0 and < 1"),
        (lambda: TimeShares((np.nan,)), ParameterError, "> 0 and < 1"),
        (lambda: TimeShares(time=[1.0, np.nan]), LabelError, "row 1"),
        (lambda: TimeShares(time=[1.0, np.inf]), LabelError, "row 1"),
        (lambda: TimeShares(time=np.array(["2001", "NaT"], dtype="M8[D]")), LabelError, "NaT at row 1"),
        (lambda: TimeShares(time=["2001-05-01", "2001-04-31"]), LabelError, "'2001-04-31' at row 1"),
        (lambda: TimeShares(time=["2001-05-01", "20010502"]), LabelError, "row 1, which is not a date"),
        (lambda: TimeShares(time=["2001-05-01T10:00Z"]), LabelError, "without a time zone"),
        (lambda: TimeShares(time=[date(2001, 5, 1), None]), LabelError, "None at row 1"),
        (lambda: TimeShares(time=[pd.NaT, pd.Timestamp("2001-05-01")]), LabelError, "row 0"),
        (lambda: TimeShares(time=[datetime(2001, 5, 1, tzinfo=UTC)]), LabelError, "without a time zone"),
        (lambda: TimeShares(time=[True, False]), LabelError, "neither numbers nor dates"),
        (lambda: TimeShares(time=[1, True]), LabelError, "row 0 is a number, row 1 is True"),
        (
            lambda: TimeShares(time=[np.datetime64("2001-05-01"), 5]),
            LabelError,
            "row 0 is a date, row 1 is 5",
        ),
        (lambda: TimeShares(time=["2001-05-01", 5]), LabelError, "row 0 is a text, row 1 is 5"),
        (lambda: TimeShares(time=["20010501", "20010502"]), LabelError, "row 0, which is not a date"),
        (lambda: TimeShares(time=pd.Series(ZONED)), LabelError, "time zone"),
        (lambda: TimeShares(time=pl.Series(ZONED)), LabelError, "time zone"),
        (lambda: TimeShares(time=pa.array(ZONED)), LabelError, "time zone"),
        (lambda: TimeShares(time=[10**400, 1]), LabelError, "too large for float64"),
        (lambda: TimeShares(time=[1j, 2j]), LabelError, "neither numbers nor dates"),
        (lambda: between(DAYS, "20010502"), ParameterError, "a date"),
        (lambda: between(DAYS, datetime(2001, 5, 1, tzinfo=UTC)), ParameterError, "a date"),
        (lambda: between([1, 2], True), ParameterError, "a finite number"),
        (lambda: TimeShares(time=[[1, 2]]), ShapeError, "one moment per row"),
        (lambda: TimeShares(time=[1, 2]).split(np.zeros(3)), LengthMismatchError, "time has 2"),
        (lambda: TimeShares().split(np.zeros(1)), LabelError, "no row to train on"),
        (lambda: TimeShares().split(np.zeros((0, 2))), EmptyDataError, "X has no rows"),
        (lambda: TimeShares().split(None), EmptyDataError, "X has no rows"),
        (lambda: TimeShares(time=[1, 1, 1, 1]).split(np.zeros(4)), LabelError, "1 different times"),
        (lambda: between(DAYS, 3), ParameterError, "start must be a date, .* got 3"),
        (lambda: between(DAYS, "spring"), ParameterError, "a date"),
        (lambda: between(DAYS, np.datetime64("NaT")), ParameterError, "a date"),
        (lambda: between([1, 2], "2001"), ParameterError, "a finite number"),
        (lambda: between([1, 2], np.nan), ParameterError, "a finite number"),
        (lambda: between([1, 2], 2, 2), ParameterError, "later than start"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_times_are_kept_when_the_column_changes():
    time = np.array([3, 1, 2, 2])
    splitter = TimeShares((0.5,), time=time)
    time[:] = [0, 1, 2, 3]
    (train, test), *_ = splitter.split(np.zeros((4, 2)))
    assert (train.tolist(), test.tolist()) == ([1], [2, 3, 0])


def test_bounds_that_doubles_round_choose_the_same_rows():
    time = 10**18 + np.arange(-3, 4)
    assert between(time, Decimal(10**18 + 1)).tolist() == [4, 5, 6]
    assert between(time, 1e18 - 1000, 1e18).tolist() == [0, 1, 2]
    assert between(time, 10**17, 10**20).tolist() == list(range(7))


def test_times_that_doubles_cannot_hold_apart_are_refused():
    for call in (lambda time: TimeShares(time=time), between):
        with pytest.raises(
            LabelError,
            match=f"time is {10**20} at row 0 and {10**20 + 1} at row 1, which are the same float64",
        ):
            call([10**20, 10**20 + 1])
