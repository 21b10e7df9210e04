"""The study of chess games: which games are used, that nothing looks ahead, and what it reports."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant.comparisons.machines.primal_newton import fit_margin
from concordant.exceptions import DatasetNotFoundError, LabelError, ParameterError, UnknownNameError
from concordant.metrics.comparison import comparison_roc
from studies.venuto.chess import study as chess
from studies.venuto.chess.data import LEAST, Games, dates, season
from studies.venuto.chess.machines import COSTS, SMOOTH_COSTS, TOL, hinge_collapses, machine
from studies.venuto.chess.models import FEATURES, Model, features_of, models
from studies.venuto.chess.plots import plot_chess
from studies.venuto.chess.ratings import likeliest_of
from studies.venuto.chess.results import OURS, PLANNED, PUBLISHED, ChessPoint, ChessStudy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::concordant.exceptions.GuaranteeWarning"),  # draws only: see collapsed
]


@pytest.fixture(scope="module")
def games():
    """A made-up year: 30 players of known strength, about ten games a day; printed ratings are the truth."""
    rng, n = np.random.default_rng(0), 3000
    strength = rng.normal(2300.0, 150.0, 30)
    white = rng.integers(30, size=n)
    black = (white + rng.integers(1, 30, size=n)) % 30
    days = np.datetime64("2001-01-01") + np.sort(rng.integers(0, 365, size=n))
    printed = np.stack((strength[white], strength[black]), axis=1)
    share = 1 / (1 + 10 ** ((printed[:, 1] - printed[:, 0] - 40) / 400))
    tie = 1.5 * np.sqrt(share * (1 - share))
    draw = rng.random(n) * (1 + tie)
    y = np.where(draw < share, -1, np.where(draw < share + tie, 0, 1))
    return Games(white, black, y, days, printed, rng.integers(40, size=n), 0)


@pytest.fixture(scope="module")
def year(games):
    return season(games, 2001, max_games=500)


def test_impossible_dates():
    days, real = dates(["1999-09-31", "2006-12-39", "2004-02-29", "2001-01-01"])
    assert real.tolist() == [False, False, True, True]
    assert days[real].astype(str).tolist() == ["2004-02-29", "2001-01-01"]


@pytest.mark.parametrize("history", ["kept", "year"])
def test_games_of_a_year(games, history):
    """Players with ten games, no first game; January to April train; the search sees March at the latest."""
    rare = Games(
        *(getattr(games, name).copy() for name in ("white", "black", "y", "days", "printed", "event")), 3
    )
    rare.white[::100] = 40 + np.arange(len(rare.white[::100])) % 15  # players with few games
    sample = season(rare, 2001, history=history)
    months = sample.days.astype("datetime64[M]").astype(int) % 12 + 1
    assert months[sample.train].max() == 4
    assert months[sample.search].max() == 3
    assert months[sample.test].min() == 5
    assert set(sample.search.tolist()) <= set(sample.train.tolist())
    assert (sample.pairs[np.concatenate((sample.train, sample.test)), :, 3] > 0).all()
    early = rare.months <= 4
    played = np.bincount(rare.white[early], minlength=60) + np.bincount(rare.black[early], minlength=60)
    is_regular = (played[rare.white] >= LEAST) & (played[rare.black] >= LEAST)
    assert len(sample.y) == is_regular.sum() < len(rare.y)
    assert sample.pairs[0, :, :2].tolist() == [[1200.0, 1200.0], [1200.0, 1200.0]]


def test_training_never_sees_the_test_months(games):
    """With all outcomes from May on changed, models and their features in training stay the same."""
    late = games.months > 4
    other = Games(
        games.white, games.black, np.where(late, -games.y, games.y), games.days, games.printed, games.event, 0
    )
    sample, other_sample = season(games, 2001), season(other, 2001)
    assert sample.pairs[sample.train].tolist() == other_sample.pairs[other_sample.train].tolist()
    first_day = sample.test[sample.days[sample.test] == sample.days[sample.test[0]]]
    assert sample.pairs[first_day].tolist() == other_sample.pairs[first_day].tolist()
    for model in models(("linear",)):
        if model.loss == "squared_hinge":  # as the logistic
            continue
        a, b = chess.answer(sample, model), chess.answer(other_sample, model)
        assert (a.C, a.validation) == (b.C, b.validation) or (math.isnan(a.C) and math.isnan(b.C))
        same = np.isin(sample.test, first_day)
        assert a.decision[same].tolist() == b.decision[same].tolist()


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_models_answer(year, model):
    if (
        (model.kernel in ("poly", "rbf") and model.features == "16")
        or "squared, 2" in model.name
        or (model.name == "rbf, 2")
    ):
        pytest.skip("as with others, only slower")
    said = chess.answer(year, model)
    assert said.probabilities.shape == (len(year.test), 3)
    assert said.probabilities.sum(axis=1) == pytest.approx(1.0)
    assert set(said.predicted.tolist()) <= {-1, 0, 1}
    assert math.isnan(said.C) == (not model.kernel)
    assert math.isnan(said.C) or said.C in (COSTS if model.loss == "hinge" else SMOOTH_COSTS)
    if said.collapsed:
        assert (said.predicted == 0).all()


def test_the_truth_is_best(year):
    """Printed ratings made the outcomes, and white moves first: with both known, nothing is better."""
    area = {}
    for model in models(("linear",)):
        area[model.name] = comparison_roc(year.y[year.test], chess.answer(year, model).decision).area
    assert "printed" in max(area, key=area.get)
    assert area["Elo"] < area["printed"] < area["logistic, printed + move"]


@pytest.mark.parametrize("features", ["16", "2 + move"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_smooth_machines_do_not_depend_on_the_tolerance(year, features, loss):
    model = Model("any", "linear", features, loss)
    areas = [
        comparison_roc(year.y[year.test], machine(year, model, 0, tol).decision).area
        for tol in (TOL, TOL / 100)
    ]
    assert areas[0] == pytest.approx(areas[1], abs=1e-3)


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 3), st.sampled_from([0.3, 0.6, 0.9]))
@settings(max_examples=40, deadline=None)
def test_hinge_collapses_where_no_weights_are_optimal(seed, n, p, share):
    """The objective of no weights and bias -1 is 2 C a difference: optimal, or the solver finds less."""
    rng = np.random.default_rng(seed)
    turned, tie = rng.normal(0.2, 1.0, (n, p)), rng.random(n) < share
    tie[0] = True
    fit = fit_margin(turned, tie, C=50.0, tol=1e-9)
    least, at_rest = fit.value, 2.0 * 50.0 * np.sum(~tie)
    if hinge_collapses(turned, tie):
        assert least >= at_rest * (1 - 1e-6) - 1e-6
    elif fit.converged and least >= at_rest * (1 - 1e-9):  # no better for this C, then no better at all
        assert np.abs(fit.w).max() < 1e-3


def test_hinge_collapses_in_extremes():
    assert not hinge_collapses(np.ones((3, 2)), np.zeros(3, dtype=bool))
    assert hinge_collapses(np.ones((3, 2)), np.ones(3, dtype=bool))


def test_nobody_becomes_elite(year):
    """Ratings that start at 1200 in January do not reach 2400 in December."""
    assert (year.pairs[:, :, 14] == 0.0).all()


def test_first_move(games):
    """The constant for white is most likely in training, and says what white scores between equals."""
    sample = season(games, 2001)
    plain, with_move = chess.answer(sample, Model("Elo")), chess.answer(sample, Model("Elo + first move"))
    order = np.argsort(plain.decision, kind="stable")
    assert (np.diff(with_move.decision[order]) >= 0).all()  # a constant and a scale change no order
    shift = np.median(with_move.decision[np.abs(plain.decision) < 5])
    assert -0.6 < shift < -0.1  # white has 40 points, which is -0.23
    assert np.mean(-np.log(with_move.probabilities[:, 0])[sample.y[sample.test] < 0]) < np.mean(
        -np.log(plain.probabilities[:, 0])[sample.y[sample.test] < 0]
    )


def test_warnings_are_left_as_they_were(games, monkeypatch):
    """Also where the caller's own step fails."""
    monkeypatch.setattr(chess, "load", lambda _folder: games)
    monkeypatch.setattr(chess, "models", lambda _kernels: models(())[:2])

    def fail(_text):
        raise KeyboardInterrupt

    before = list(warnings.filters)
    with pytest.raises(KeyboardInterrupt):
        chess.study(years=[2001], step=fail)
    assert warnings.filters == before
    assert chess.study(years=[2001]).models == ("trivial", "Elo")
    assert warnings.filters == before


def test_features(year):
    widths = {
        "2": 2,
        "16": 16,
        "2 + move": 3,
        "printed + move": 2,
        "2 + printed": 3,
        "2 + move + printed": 4,
        "16 + printed": 17,
    }
    assert set(widths) == set(FEATURES)
    for key, width in widths.items():
        assert features_of(year, key).shape == (len(year.y), 2, width)
    assert features_of(year, "printed + move")[0].tolist() == [
        [year.printed[0, 0], 1.0],
        [year.printed[0, 1], 0.0],
    ]
    assert likeliest_of(np.array([[0.3, 0.3, 0.4], [0.4, 0.4, 0.2], [0.5, 0.1, 0.4]])).tolist() == [1, 0, -1]


def fake_study(gain):
    points = [
        ChessPoint(
            2000 + year, model, 0.35 + 0.01 * year + gain * (model == OURS), 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 0.4
        )
        for year in range(5)
        for model in ("Elo", OURS, "printed")
    ]
    return ChessStudy(tuple(points), (), (), 0)


def test_contrasts():
    contrasts = fake_study(0.02).contrasts()
    assert [contrast.baseline for contrast in contrasts] == ["Elo", "printed"]
    assert contrasts[0].test.difference == pytest.approx(0.02)
    assert contrasts[0].adjusted < 0.05
    assert fake_study(0.0).contrasts()[0].adjusted == 1.0
    with pytest.raises(ParameterError):
        fake_study(0.0).contrasts("speed")
    assert set(PLANNED) < {model.name for model in models()}
    without = ChessStudy(tuple(p for p in fake_study(0.1).points if p.model != OURS), (), (), 0)
    assert without.contrasts() == []


def test_figure(tmp_path):
    pytest.importorskip("plotly")
    plot_chess(fake_study(0.02), tmp_path / "chess.html")
    assert "printed" in (tmp_path / "chess.html").read_text()


def test_published_values():
    """Eight years of each model that the paper has."""
    assert set(PUBLISHED) == {model.name for model in models() if model.published}
    assert {len(areas) for areas in PUBLISHED.values()} == {len(chess.YEARS)}


def test_bad_input(games, tmp_path):
    with pytest.raises(DatasetNotFoundError):
        chess.study(folder=tmp_path)
    with pytest.raises(UnknownNameError):
        chess.study(folder=tmp_path, kernels=("cubic",))
    with pytest.raises(ParameterError):
        chess.study(folder=tmp_path, years=())
    with pytest.raises(ParameterError):
        season(games, 2001, history="all")
    with pytest.raises(LabelError):
        season(games, 1950)


def test_real_games(shared_data):
    """The data set: 131 games on days that never were; the hinge ignores what ratings tell of them."""
    result = chess.study(folder=shared_data, years=[1999], kernels=("linear",), max_games=300)
    assert result.impossible == 131
    assert result.games[0].n_train == result.games[0].n_test == 300
    assert result.models == tuple(model.name for model in models(("linear",)))
    assert {contrast.baseline for contrast in result.within} == {
        "Elo",
        "Glicko",
        "printed",
        "logistic, 2 + move",
    }
    assert all(0.0 < point.auc < 1.0 for point in result.points)
    assert result.collapsed("linear, 2") == 1
    assert result.collapsed(OURS) == 0
    assert result.values("linear, 2", "predicted_draws").tolist() == [1.0]
    by_model = {
        name: [tolerance.auc for tolerance in result.tolerances if tolerance.model == name]
        for name in (OURS, "linear, 16")
    }
    assert np.ptp(by_model[OURS][1:]) < 1e-3  # from 1e-4 on
    assert len(by_model["linear, 16"]) == 4
