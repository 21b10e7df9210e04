"""Elo and Glicko: their definitions, that updates go on where fitting stopped, and the chance of a tie."""

import datetime as dt
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import oracles
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from concordant.ratings.elo import Elo
from concordant.ratings.glicko import Glicko
from concordant.ratings.sequential import davidson, fit_tie

game = st.tuples(st.integers(0, 5), st.integers(0, 4), st.sampled_from([-1, 0, 1])).map(
    lambda g: (g[0], g[1] + (g[1] >= g[0]), g[2])
)
games = st.lists(game, min_size=1, max_size=60)
MODELS = [
    Elo(),
    Elo("fide", initial=1200.0),
    Elo("fide", initial=2399.0, advantage=35.0),
    Elo(10.0, scale=200.0, advantage=-20.0),
    Glicko(),
    Glicko(initial=1200.0, deviation=200.0, c=0.0, floor=30.0, advantage=25.0),
    Glicko(period=2.0, c=40.0),
]


def columns(played):
    return [np.array(column) for column in zip(*played, strict=True)]


def by_name(model, values=None):
    values = model.ratings_ if values is None else values
    return dict(zip(model.items_.tolist(), values.tolist(), strict=True))


def random_games(n, n_players=6, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(n_players, size=n)
    right = (left + rng.integers(1, n_players, size=n)) % n_players
    return left, right, rng.integers(-1, 2, size=n)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (Elo(), {}),
        (Elo("fide", initial=1200.0), {"k": None, "initial": 1200.0}),
        (Elo(20.0, scale=250.0, advantage=40.0), {"k": 20.0, "scale": 250.0, "advantage": 40.0}),
    ],
)
@given(games)
@settings(max_examples=30)
def test_elo_is_its_definition(model, options, played):
    expected, shares = oracles.elo_ratings(played, **options)
    fitted = clone(model).fit(*columns(played))
    assert by_name(fitted) == pytest.approx(expected, rel=1e-12)
    ties = sum(outcome == 0 for *_, outcome in played)
    if 0 < ties < len(played):

        def unlikely(log_nu):
            return -oracles.davidson_likelihood(math.exp(log_nu), shares, columns(played)[2].tolist())

        best = minimize_scalar(unlikely, bounds=(-8, 8), method="bounded", options={"xatol": 1e-9})
        assert math.log(fitted.tie_) == pytest.approx(best.x, abs=2e-6)


def test_fide_steps():
    """30 points in the first 30 games, then 15; 10 for who has reached 2400, and for good."""
    left, right, outcome = np.zeros(31, dtype=int), np.arange(1, 32), np.full(31, 0)
    model = Elo("fide").fit(left, right, outcome)
    assert model.ratings_[0] == 1500.0
    assert model.update([0], [99], [-1]).ratings_[0] == 1507.5
    assert Elo("fide", initial=2399.0).fit(["a"], ["b"], [-1]).update(["a"], ["c"], [1]).ratings_[
        0
    ] == pytest.approx(2414.0 - 10.0 / (1 + 10 ** (-15 / 400)))


@given(games, st.sampled_from([0.0, 15.0, 60.0]))
@settings(max_examples=40)
def test_glicko_by_game_is_its_definition(played, c):
    options = {"initial": 1200.0, "deviation": 300.0, "c": c}
    ratings, deviations = oracles.glicko_by_game(played, **options)
    model = Glicko(**options).fit(*columns(played))
    assert by_name(model) == pytest.approx(ratings, rel=1e-10)
    assert by_name(model, model.deviations_) == pytest.approx(deviations, rel=1e-10)


@given(st.lists(st.tuples(game, st.integers(-3, 6)), min_size=1, max_size=50), st.sampled_from([0.0, 90.0]))
@settings(max_examples=40)
def test_glicko_by_period_is_its_definition(timed, floor):
    played, numbers = [g for g, _ in timed], [number for _, number in timed]
    periods = {number: [g for g, n in timed if n == number] for number in numbers}
    ratings, deviations = oracles.glicko_ratings(periods, c=50.0, floor=floor)
    model = Glicko(c=50.0, floor=floor, period=1).fit(*columns(played), time=numbers)
    assert by_name(model) == pytest.approx(ratings, rel=1e-10)
    assert by_name(model, model.deviations_) == pytest.approx(deviations, rel=1e-10)


def test_glicko_of_the_paper():
    """Glickman's worked example: 1500 with deviation 200 meets 1400 (30), 1550 (100) and 1700 (300)."""
    model = Glicko(c=0.0, period=1).fit(["me", "me", "me"], ["b", "c", "d"], [0, 0, 0], time=[0, 0, 0])
    state = model.newcomers(4)
    order = [model.items_.tolist().index(name) for name in ("me", "b", "c", "d")]
    state.of_items["ratings"][order] = 1500, 1400, 1550, 1700
    state.of_items["variances"][order] = 200**2, 30**2, 100**2, 300**2
    model.state_, model.latest_ = state, 0.0
    model.update(["me", "me", "me"], ["b", "c", "d"], [-1, 1, 1], time=[1, 1, 1])
    assert model.ratings_[order[0]] == pytest.approx(1464.06, abs=0.05)
    assert model.deviations_[order[0]] == pytest.approx(151.4, abs=0.05)


def test_published_glicko_is_elo():
    """Where the deviation is put back after every game, the ratings move by the same K for ever."""
    left, right, outcome = random_games(300)
    model = Glicko(deviation=200.0, floor=200.0).fit(left, right, outcome)
    assert (model.deviations_ == 200.0).all()


def check_continues(model, left, right, outcome, times, cut):
    """Fitting all is fitting some and updating by the others."""
    whole = clone(model).fit(left, right, outcome, time=times)
    first = None if times is None else times[:cut]
    parts = clone(model).fit(left[:cut], right[:cut], outcome[:cut], time=first)
    for row in range(cut, len(left)):
        part = slice(row, row + 1)
        parts.update(left[part], right[part], outcome[part], time=None if times is None else times[part])
    assert by_name(parts) == by_name(whole)
    assert parts.tie_ == whole.tie_
    assert parts.predict_proba(left, right).tolist() == whole.predict_proba(left, right).tolist()
    low, high = (m.interval(n_resamples=20) if isinstance(m, Elo) else m.interval() for m in (parts, whole))
    assert by_name(parts, low[0]) == by_name(whole, high[0])


@pytest.mark.parametrize("model", MODELS, ids=str)
@given(games, st.data())
@settings(max_examples=15)
def test_updates_go_on(model, played, data):
    cut = data.draw(st.integers(1, len(played)))
    times = np.sort(data.draw(st.lists(st.integers(0, 9), min_size=len(played), max_size=len(played))))
    timed = isinstance(model, Glicko) and model.period is not None
    check_continues(model, *columns(played), times if timed else None, cut)


class Forgetful(Elo):
    """Starts anew with every update."""

    def take_in(self, votes, times, *, fresh):
        del fresh
        return super().take_in(votes, times, fresh=True)


def test_the_check_sees_a_model_that_forgets():
    with pytest.raises((AssertionError, ConcordantError)):
        check_continues(Forgetful(), *random_games(30), None, 12)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_sides_are_alike(model):
    """Seen from the other side, everything is the same; only the advantage knows sides."""
    left, right, outcome = random_games(200)
    time = np.arange(200)
    model = clone(model)
    one = clone(model).fit(left, right, outcome, time=time)
    other = clone(model).set_params(advantage=-model.advantage).fit(right, left, -outcome, time=time)
    assert one.ratings_ == pytest.approx(other.ratings_, rel=1e-12)
    assert one.predict_proba(left, right) == pytest.approx(other.predict_proba(right, left)[:, ::-1])
    assert one.predict_proba(left, right).sum(axis=1) == pytest.approx(1.0)
    assert set(one.predict(left, right).tolist()) <= {-1, 0, 1}


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_time_orders_the_votes(model):
    left, right, outcome = random_games(100)
    times, shuffled = np.arange(100), np.random.default_rng(1).permutation(100)
    one = clone(model).fit(left, right, outcome, time=times)
    other = clone(model).fit(left[shuffled], right[shuffled], outcome[shuffled], time=shuffled)
    days = np.datetime64("1969-12-01") + times
    dated = clone(model).fit(left, right, outcome, time=[day.item() for day in days])
    assert one.ratings_.tolist() == other.ratings_.tolist()
    if not (isinstance(model, Glicko) and model.period):
        assert dated.ratings_.tolist() == one.ratings_.tolist()
        assert clone(model).fit(left, right, outcome).ratings_.tolist() == one.ratings_.tolist()
    assert (
        clone(model).fit(left, right, outcome, time=days.astype(str)).ratings_.tolist()
        == dated.ratings_.tolist()
    )


@pytest.mark.parametrize("model", [Elo(), Elo("fide"), Glicko()], ids=str)
def test_weights(model):
    """Weight 1 is no weight; a vote of weight 0 moves nothing; Glicko's weight 2 is two votes."""
    left, right, outcome = random_games(50)
    plain = clone(model).fit(left, right, outcome)
    ones = clone(model).fit(left, right, outcome, sample_weight=np.ones(50))
    assert plain.ratings_.tolist() == ones.ratings_.tolist()
    nothing = clone(model).fit(left, right, outcome, sample_weight=np.zeros(50))
    assert (nothing.ratings_ == nothing.ratings_[0]).all()
    if isinstance(model, Glicko):
        twice = clone(model).set_params(period=1).fit(["a", "a"], ["b", "b"], [-1, -1], time=[0, 0])
        heavy = clone(model).fit(["a"], ["b"], [-1], sample_weight=[2.0])
        assert heavy.ratings_ == pytest.approx(twice.ratings_, rel=1e-12)


def test_tie_is_most_likely_and_extremes_are_defined():
    left, right, _ = random_games(40)
    assert Elo().fit(left, right, np.full(40, -1)).tie_ == 0.0
    drawn = Elo().fit(left, right, np.zeros(40))
    assert drawn.tie_ == math.inf
    assert drawn.predict_proba([0], [1]).tolist() == [[0.0, 1.0, 0.0]]
    assert davidson(np.array([1.0, 0.0]), 2.0).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    certain = np.array([3.0]), np.array([1.0]), np.array([3e9])  # yet one of them is a tie
    assert math.isfinite(fit_tie(*certain))


@pytest.mark.parametrize("model", [Elo(), Glicko(), Elo("fide")], ids=str)
def test_huge_differences_stay_finite(model):
    model.fit(np.zeros(5000, dtype=int), np.ones(5000, dtype=int), np.full(5000, -1))
    extreme = clone(model).set_params(advantage=1e6).fit(["a"], ["b"], [1])
    assert np.isfinite(model.ratings_).all()
    assert np.isfinite(extreme.ratings_).all()
    assert np.isfinite(extreme.predict_proba(["a"], ["b"])).all()


def test_intervals():
    left, right, outcome = random_games(400)
    model = Glicko().fit(left, right, outcome)
    low, high = model.interval(0.95)
    assert (high - low) / model.deviations_ == pytest.approx(2 * 1.959964, rel=1e-6)
    narrow = model.interval(0.5)
    assert (narrow[0] > low).all()
    assert (narrow[1] < high).all()
    elo = Elo().fit(left, right, outcome)
    for fitted, options in ((elo, {}), (model, {"method": "bootstrap"})):
        low, high = fitted.interval(0.9, n_resamples=50, **options)
        again, _ = fitted.interval(0.9, n_resamples=50, **options)
        assert (low < high).all()
        assert low.tolist() == again.tolist()
    one = elo.resampled(2000, random_state=3)
    assert one.mean(axis=0) == pytest.approx(elo.ratings_, abs=25.0)


def test_board_and_components():
    model = Glicko().fit(["a", "b", "a"], ["b", "c", "c"], [-1, -1, -1])
    board = model.leaderboard()
    assert [row.item for row in board] == ["a", "b", "c"]
    assert len(model.components_) == 3
    assert Elo().fit(["a", "b"], ["b", "a"], [-1, -1]).leaderboard()[0].votes == 2


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (Elo("uscf"), ParameterError),
        (Elo(0.0), ParameterError),
        (Elo(math.nan), ParameterError),
        (Elo(scale=-1.0), ParameterError),
        (Elo(initial=math.inf), ParameterError),
        (Glicko(deviation=0.0), ParameterError),
        (Glicko(c=-1.0), ParameterError),
        (Glicko(floor=400.0), ParameterError),
        (Glicko(period=0), ParameterError),
        (Glicko(period=1), ParameterError),  # no time given
    ],
)
def test_bad_parameters(model, error):
    with pytest.raises(error):
        model.fit(["a"], ["b"], [0])


def test_bad_votes():
    model = Elo().fit(["a"], ["b"], [0])
    for votes, options, error in (
        (([], [], []), {}, EmptyDataError),
        ((["a"], ["b"], [2]), {}, LabelError),
        ((["a"], ["a"], [0]), {}, LabelError),
        ((["a"], ["b"], [0]), {"time": [1, 2]}, LengthMismatchError),
        ((["a"], ["b"], [0]), {"time": [math.nan]}, NonFiniteError),
        ((["a"], ["b"], [0]), {"time": [np.datetime64("NaT")]}, NonFiniteError),
        ((["a"], ["b"], [0]), {"time": ["soon"]}, NotNumericError),
        ((["a"], ["b"], [0]), {"sample_weight": [-1]}, NonFiniteError),
    ):
        with pytest.raises(error):
            clone(model).fit(*votes, **options)
    with pytest.raises(LabelError, match="some votes"):
        model.update(["a"], ["b"], [0], time=[3])
    dated = Elo().fit(["a"], ["b"], [0], time=[dt.date(2006, 5, 1)])
    with pytest.raises(LabelError, match="before"):
        dated.update(["a"], ["b"], [0], time=[dt.date(2006, 4, 30)])
    with pytest.raises(UnknownNameError):
        model.predict_proba(["a"], ["z"])
    with pytest.raises(NotFittedError):
        Elo().predict_proba(["a"], ["b"])
    with pytest.raises(ParameterError, match="longer"):
        Glicko(period=1e-9).fit(["a"], ["b"], [0], time=[1e12])
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError):
            model.interval(level)
    with pytest.raises(ParameterError):
        model.interval(n_resamples=1)
    for fitted in (model, Glicko().fit(["a"], ["b"], [0])):
        with pytest.raises(ParameterError):
            fitted.interval(method="information")
