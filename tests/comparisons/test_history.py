"""Player statistics: their definitions, and that no game looks ahead."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from concordant.comparisons.ratings.history import NAMES, to_features
from concordant.comparisons.ratings.models import Elo
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    ParameterError,
    ShapeError,
)
from tests import oracles

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore:no outcome is -1")]

game = st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from([-1, 0, 1]), st.integers(0, 8)).map(
    lambda g: (g[0], g[1] + (g[1] >= g[0]), g[2], g[3])
)
games = st.lists(game, min_size=1, max_size=25)


def columns(played):
    return [np.array(column) for column in zip(*played, strict=True)]


@given(games, st.sampled_from([1200.0, 2395.0]))
@settings(max_examples=60)
def test_statistics_are_their_definitions(played, initial):
    """The oracle is a list of games, gone through anew for every row; the rows may come in any order."""
    left, right, outcome, time = columns(played)
    history = to_features(left, right, outcome, time=time, initial=initial)
    assert history.pairs == pytest.approx(
        np.array(oracles.player_statistics(played, initial)), rel=1e-9, abs=1e-9
    )


@given(games)
@settings(max_examples=30)
def test_without_time_every_row_is_a_moment(played):
    left, right, outcome, _ = columns(played)
    rows = [(a, b, y, row) for row, (a, b, y, _) in enumerate(played)]
    expected = np.array(oracles.player_statistics(rows))
    assert to_features(left, right, outcome).pairs == pytest.approx(expected, rel=1e-9, abs=1e-9)


def check_no_look_ahead(features, left, right, outcome, time, now):
    """Whatever happens at `now` or later changes no row of `now` or before."""
    now = max(now, time.min())
    rows = time <= now
    changed = np.where(time >= now, np.roll([-1, 0, 1], 1)[outcome + 1], outcome)
    before = features(left, right, outcome, time)[rows]
    assert before.tolist() == features(left, right, changed, time)[rows].tolist()
    earlier = time < now  # without the later games
    until_now = earlier | (time == now)
    alone = features(left[until_now], right[until_now], outcome[until_now], time[until_now])
    assert before.tolist() == alone.tolist()


def honest(left, right, outcome, time):
    history = to_features(left, right, outcome, time=time)
    return np.concatenate((history.pairs.reshape(len(left), -1), history.foretold), axis=1)


@given(games, st.integers(0, 8))
@settings(max_examples=60)
def test_no_game_looks_ahead(played, now):
    check_no_look_ahead(honest, *columns(played), now)


def same_day(left, right, outcome, time):
    """Learns from the games of a day while it describes them."""
    order = np.argsort(time, kind="stable")
    rows = to_features(left[order], right[order], outcome[order]).pairs.reshape(len(left), -1)
    return rows[np.argsort(order)]


def final_ratings(left, right, outcome, _time):
    """Describes all games by the ratings at the end."""
    model = Elo().fit(left, right, outcome)
    return np.stack((model.ratings_[model.codes(left, right)[0]], left), axis=1)


@pytest.mark.parametrize("leaking", [same_day, final_ratings])
def test_the_check_sees_leaks(leaking):
    left, right, outcome = np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([-1, 1, -1])
    check_no_look_ahead(honest, left, right, outcome, np.array([0, 1, 1]), 1)
    with pytest.raises(AssertionError):
        check_no_look_ahead(leaking, left, right, outcome, np.array([0, 1, 1]), 1)


def test_elo_is_that_of_the_model():
    rng = np.random.default_rng(0)
    left = rng.integers(20, size=500)
    right, outcome = (left + rng.integers(1, 20, size=500)) % 20, rng.integers(-1, 2, size=500)
    history = to_features(left, right, outcome)
    model = Elo("fide", initial=1200.0).fit(left[:-1], right[:-1], outcome[:-1])
    a, b = model.codes(left[-1:], right[-1:])
    assert history.column("elo")[-1].tolist() == [model.ratings_[a[0]], model.ratings_[b[0]]]
    assert history.foretold[-1, 0] == pytest.approx(model.shares(a, b)[0])
    assert len(history) == 500
    assert history.names == NAMES
    assert len(NAMES) == 16


def test_first_move():
    votes = ["a", "b"], ["b", "c"], [-1, 0]
    for first, expected in (
        ("left", [[1, 0], [1, 0]]),
        ("right", [[0, 1], [0, 1]]),
        (None, [[0, 0], [0, 0]]),
        ([True, False], [[1, 0], [0, 1]]),
    ):
        assert to_features(*votes, first=first).column("first_move").tolist() == expected


def test_dates_are_days():
    dates = np.array(["2006-01-30", "2006-02-02", "2006-02-02"], dtype="datetime64[D]")
    history = to_features(["a", "a", "b"], ["b", "c", "c"], [0, 0, 0], time=dates)
    assert history.column("days").tolist() == [[0, 0], [3, 0], [3, 0]]


def test_bad_input():
    votes = ["a", "b"], ["b", "c"], [-1, 0]
    for options, error in (
        ({"time": [1]}, LengthMismatchError),
        ({"time": [1, np.nan]}, LabelError),
        ({"time": ["20060101", "20060102"]}, LabelError),
        ({"initial": "high"}, ParameterError),
        ({"first": "white"}, ParameterError),
        ({"first": [True]}, ShapeError),
        ({"first": [1, 0]}, ParameterError),
        ({"initial": np.nan}, ParameterError),
        ({"elite": np.inf}, ParameterError),
    ):
        with pytest.raises(error):
            to_features(*votes, **options)
    with pytest.raises(EmptyDataError):
        to_features([], [], [])
    with pytest.raises(LabelError):
        to_features(["a"], ["a"], [0])
    with pytest.raises(ParameterError):
        to_features(*votes).column("age")
    assert to_features(["a"], ["b"], [0]).pairs.shape == (1, 2, 16)
