"""Elo and Glicko: their definitions, that updates go on where fitting stopped, and the chance of a tie."""

import datetime as dt
import math
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from concordant.comparisons.ratings.intervals import open_ranks
from concordant.comparisons.ratings.models import Elo, Glicko
from concordant.comparisons.ratings.sequential import davidson, fit_tie
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    UnknownNameError,
)
from tests import oracles

pytestmark = pytest.mark.filterwarnings("ignore:no outcome is -1")

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


def test_glicko_with_its_deviation_held():
    """Where the floor is the first deviation, every game is learned as if it were both players' first."""
    left, right, outcome = random_games(300)
    model = Glicko(deviation=200.0, floor=200.0).fit(left, right, outcome)
    q = math.log(10) / 400
    g = 1 / math.sqrt(1 + 3 * (q * 200 / math.pi) ** 2)
    ratings = np.full(6, 1500.0)
    for a, b, won in zip(left, right, 0.5 - 0.5 * outcome, strict=True):
        share = 1 / (1 + 10 ** (-g * (ratings[a] - ratings[b]) / 400))
        step = q * g * (won - share) / (1 / 200**2 + (q * g) ** 2 * share * (1 - share))
        ratings[[a, b]] += step, -step
    assert (model.deviations_ == 200.0).all()
    assert model.ratings_ == pytest.approx(ratings, rel=1e-12)


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
    straight = clone(model).fit(left, right, outcome, time=time)
    other = clone(model).set_params(advantage=-model.advantage).fit(right, left, -outcome, time=time)
    assert straight.ratings_ == pytest.approx(other.ratings_, rel=1e-12)
    assert straight.predict_proba(left, right) == pytest.approx(other.predict_proba(right, left)[:, ::-1])
    assert straight.predict_proba(left, right).sum(axis=1) == pytest.approx(1.0)
    assert set(straight.predict(left, right).tolist()) <= {-1, 0, 1}


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_time_orders_the_votes(model):
    left, right, outcome = random_games(100)
    times, shuffled = np.arange(100), np.random.default_rng(1).permutation(100)
    ordered = clone(model).fit(left, right, outcome, time=times)
    other = clone(model).fit(left[shuffled], right[shuffled], outcome[shuffled], time=shuffled)
    days = np.datetime64("1969-12-01") + times
    dated = clone(model).fit(left, right, outcome, time=[day.item() for day in days])
    assert ordered.ratings_.tolist() == other.ratings_.tolist()
    if not (isinstance(model, Glicko) and model.period):
        assert dated.ratings_.tolist() == ordered.ratings_.tolist()
        assert clone(model).fit(left, right, outcome).ratings_.tolist() == ordered.ratings_.tolist()
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


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        (Elo(), [1e20, 1.0]),
        (Elo("fide"), [1e20, 1.0]),
        (Elo(advantage=1e300), None),
        (Elo(k=1e200), None),
        (Elo(scale=1e-20), None),
        (Glicko(advantage=1e200), None),
        (Glicko(), [1e20, 1.0]),
    ],
    ids=str,
)
def test_no_size_is_too_large(model, weights):
    """A difference beyond all levels belongs to the last: no vote is lost, nothing is written elsewhere."""
    votes = ["a", "b"], ["b", "a"], [-1, -1]
    fitted = clone(model).fit(*votes, sample_weight=weights)
    for _ in range(50):
        fitted.update(*votes)
    assert fitted.state_.levels[:, 0].sum() == pytest.approx(100 + sum(weights or [1, 1]))
    assert (fitted.state_.levels >= 0.0).all()
    assert np.isfinite(fitted.ratings_).all()
    assert fitted.predict_proba(["a"], ["b"]).sum() == pytest.approx(1.0)


def test_ratings_that_no_double_holds_are_refused():
    many = np.zeros(100, dtype=int), np.ones(100, dtype=int), np.tile([-1, 1], 50)
    for model in (Elo(1e-9), Elo(), Glicko()):
        with pytest.raises(ParameterError, match="sample_weight"):
            clone(model).fit(*many, sample_weight=[1e308] * 100)
    heavy = Elo(1e-9).fit(["a"], ["b"], [0], sample_weight=[1.5e308])
    with pytest.raises(ParameterError, match="sample_weight"):
        heavy.update(["b"], ["a"], [0], sample_weight=[1.5e308])
    with pytest.raises(NonFiniteError, match=r"the rating is .* at item"):
        Elo().fit(*many, sample_weight=[1e308] + [1.0] * 99)
    with pytest.raises(NonFiniteError, match="the rating is nan at item 'a'"):
        Elo(scale=1e-320).fit(["a"], ["b"], [-1])
    elo = Elo().fit(["a"], ["b"], [-1])
    with pytest.raises(NonFiniteError):
        elo.update(["a"], ["b"], [1], sample_weight=[1e308])
    assert elo.ratings_.tolist() == [1516.0, 1484.0]  # as before
    assert len(elo.history_) == 1


@pytest.mark.parametrize(
    ("model", "change"),
    [(Elo(16.0), {"k": "fide"}), (Elo("fide"), {"k": 5.0}), (Elo(), {"k": -5}), (Glicko(), {"floor": 40.0})],
    ids=str,
)
def test_updates_ask_for_the_fitted_parameters(model, change):
    left, right, outcome = random_games(30)
    model = clone(model).fit(left, right, outcome)
    (name,), before, value = change, model.ratings_.tolist(), getattr(model, next(iter(change)))
    model.set_params(**change)
    for call in (
        lambda: model.update(left, right, outcome),
        lambda: model.predict(left, right),
        lambda: model.interval(method="bootstrap", n_resamples=5),
    ):
        with pytest.raises(ParameterError, match=rf"{name} must be unchanged.* fit again"):
            call()
    assert model.ratings_.tolist() == before
    model.set_params(**{name: value}).update(left, right, outcome)


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
    resamples = elo.resample_ratings(2000, random_state=3)
    assert resamples.mean(axis=0) == pytest.approx(elo.ratings_, abs=25.0)


@pytest.mark.parametrize("model", [Elo(), Elo("fide"), Glicko()], ids=str)
def test_a_bootstrap_of_one_outcome_knows_nothing(model):
    for votes in ((["a"], ["b"], [-1]), (["a"] * 9, ["b"] * 9, [-1] * 9), (["a"] * 9, ["b"] * 9, [0] * 9)):
        low, high = clone(model).fit(*votes).interval(method="bootstrap", n_resamples=20)
        assert low.tolist() == [-math.inf, -math.inf]
        assert high.tolist() == [math.inf, math.inf]
    board = clone(model).fit(["a"] * 9, ["b"] * 9, [-1] * 9).leaderboard(method="bootstrap", n_resamples=20)
    assert [(row.best_rank, row.worst_rank) for row in board] == [(1, 2), (1, 2)]
    assert "inf" in str(board)


def test_counts_of_resamples():
    left, right, outcome = random_games(60)
    for model in (Elo().fit(left, right, outcome), Glicko().fit(left, right, outcome)):
        ends = model.interval(method="bootstrap", n_resamples=np.int32(7), random_state=2)
        assert (
            np.array(ends).tolist()
            == np.array(model.interval(0.95, method="bootstrap", n_resamples=7, random_state=2)).tolist()
        )
        assert model.resample_ratings().shape == (500, 6)
        board = model.leaderboard(0.95, method="bootstrap", n_resamples=7, random_state=2)
        rows = sorted(board, key=lambda row: row.item)
        assert [row.low for row in rows] == ends[0].tolist()
        for wrong in (1, 2.5, True, "9"):
            with pytest.raises(ParameterError, match="n_resamples"):
                model.leaderboard(method="bootstrap", n_resamples=wrong)


def check_ranks(bounds, truth):
    """Tell whether the true rank of every item is among those left open."""
    best, worst = bounds
    rank = np.argsort(np.argsort(-truth)) + 1
    return bool(((best <= rank) & (rank <= worst)).all())


def foretold_games(truth, n, rng):
    left = rng.integers(len(truth), size=n)
    right = (left + rng.integers(1, len(truth), size=n)) % len(truth)
    share = 1 / (1 + 10 ** ((truth[right] - truth[left]) / 400))
    return left, right, np.where(rng.random(n) < share, -1, 1)


def test_coverage():
    """Of games that the model itself makes: intervals beside the level of all items, which no game tells."""
    rng, inside, together, bounds = np.random.default_rng(5), [], [], []
    for _ in range(60):
        truth = rng.normal(1500.0, 200.0, 10)
        model = Glicko(deviation=200.0, c=0.0).fit(*foretold_games(truth, 400, rng))
        low, high = model.interval(0.9)
        level = truth - truth.mean() + model.ratings_.mean()
        inside.append((low <= level) & (level <= high))
        bounds.append(model.rank_bounds(0.9))
        together.append(check_ranks(bounds[-1], truth))
    assert 0.85 < np.mean(inside) < 0.95
    assert np.mean(together) > 0.85
    assert np.mean([worst - best for best, worst in bounds]) < 7.0  # of 9: something is shown


def test_coverage_of_the_bootstrap():
    """Elo's intervals hold the mean of its ratings over repetitions of the same games."""
    rng, truth = np.random.default_rng(6), np.linspace(1350.0, 1650.0, 6)
    fits = [Elo(12.0).fit(*foretold_games(truth, 400, rng)) for _ in range(200)]
    centre = np.mean([model.ratings_ for model in fits], axis=0)
    ends = [model.interval(0.9, n_resamples=200) for model in fits[:40]]
    inside = np.mean([(low <= centre) & (centre <= high) for low, high in ends])
    assert 0.8 < inside < 0.96
    wrong = [not check_ranks(model.rank_bounds(0.9, n_resamples=200), truth) for model in fits[:40]]
    assert np.mean(wrong) < 0.15


def test_ranks_of_very_many_items():
    """Beyond what a matrix of all pairs can hold: as many statements as intervals at the corrected level."""
    ratings = np.arange(6000.0)
    sure, unsure = np.full(6000, 0.01), np.full(6000, 100.0)
    assert open_ranks(ratings, sure, 0.95)[0].tolist() == list(range(6000, 0, -1))
    best, worst = open_ranks(ratings, unsure, 0.95)
    assert (best[-1], worst[0]) == (1, 6000)
    assert best[0] > 4000
    silent = np.repeat(ratings[None], 3, axis=0)
    assert open_ranks(ratings, silent, 0.95)[0].tolist() == [1] * 6000


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
        ((["a"], ["b"], [0]), {"time": [math.nan]}, LabelError),
        ((["a"], ["b"], [0]), {"time": [np.datetime64("NaT")]}, LabelError),
        ((["a"], ["b"], [0]), {"time": ["soon"]}, LabelError),
        ((["a"], ["b"], [0]), {"time": ["20060501"]}, LabelError),
        ((["a"], ["b"], [0]), {"time": [True]}, LabelError),
        ((["a"], ["b"], [0]), {"time": [dt.datetime(2006, 5, 1, tzinfo=dt.UTC)]}, LabelError),
        ((["a", "a"], ["b", "b"], [0, 0]), {"time": [np.datetime64("2006-05-01"), 5]}, LabelError),
        ((["a"], ["b"], [0]), {"sample_weight": [-1]}, NonFiniteError),
    ):
        with pytest.raises(error):
            clone(model).fit(*votes, **options)
    with pytest.raises(LabelError, match="some votes"):
        model.update(["a"], ["b"], [0], time=[3])
    dated = Elo().fit(["a"], ["b"], [0], time=[dt.date(2006, 5, 1)])
    with pytest.raises(LabelError, match="before"):
        dated.update(["a"], ["b"], [0], time=[dt.date(2006, 4, 30)])
    with pytest.raises(LabelError, match="numbers, but earlier votes had dates"):
        dated.update(["a"], ["b"], [0], time=[20_000])
    with pytest.raises(UnknownNameError):
        model.predict_proba(["a"], ["z"])
    with pytest.raises(NotFittedError):
        Elo().predict_proba(["a"], ["b"])
    with pytest.raises(ParameterError, match=r"period=.* is too short"):
        Glicko(period=1e-9).fit(["a"], ["b"], [0], time=[1e12])
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError):
            model.interval(level)
    with pytest.raises(ParameterError):
        model.interval(n_resamples=1)
    for fitted in (model, Glicko().fit(["a"], ["b"], [0])):
        with pytest.raises(ParameterError):
            fitted.interval(method="information")


@pytest.mark.parametrize(
    "time",
    [
        2**53 + np.arange(4),
        (10**18 + np.arange(4)).astype("M8[ns]"),
        10**20 + np.arange(4).astype(object),
        Decimal(10**18) + np.arange(4).astype(object),
        Decimal("0.1") + np.arange(4).astype(object) * Decimal("1e-25"),
    ],
    ids=["numbers", "dates", "large numbers", "decimals", "fine decimals"],
)
@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series])
def test_times_that_doubles_cannot_hold_apart_are_refused(time, kind):
    votes = list("abca"), list("bcac"), [-1, -1, -1, 1]
    with pytest.raises(LabelError, match="the same float64"):
        Elo().fit(*votes, time=kind(time[::-1]))
    unit = 1 if time.dtype != object else time[1] - time[0]
    shifted, expected = ((time - time[0]) / unit).astype(np.int64), Elo().fit(*votes)
    assert np.array_equal(Elo().fit(*votes, time=shifted).ratings_, expected.ratings_)


@pytest.mark.parametrize("smallest", [0.5, -1], ids=["floats", "signs"])
def test_large_times_in_a_list_with_others_are_refused(smallest):
    with pytest.raises(
        LabelError, match=f"time is {2**63 + 2} at row 0 and {2**63 + 1} at row 1, which are the same float64"
    ):
        Elo().fit(list("abc"), list("bca"), [-1, -1, 0], time=[2**63 + 2, 2**63 + 1, smallest])


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long doubles are doubles here")
def test_long_doubles_that_become_one_double_are_refused():
    time = (10**18 + np.arange(3)).astype(np.longdouble)
    with pytest.raises(LabelError, match="the same float64"):
        Elo().fit(list("abc"), list("bca"), [-1, -1, 0], time=time)
    assert Elo().fit(list("abc"), list("bca"), [-1, -1, 0], time=time - time[0]).latest_ == 2.0
