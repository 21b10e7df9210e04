"""The study of chess games: which games are used, that nothing looks ahead, and what it reports."""

import math

import numpy as np
import pytest

from concordant.evaluation.reproduction import svmcompare_chess as chess
from concordant.evaluation.reproduction.svmcompare_chess_data import LEAST, Games, dates, season
from concordant.evaluation.reproduction.svmcompare_chess_models import (
    COSTS,
    answer,
    features_of,
    likeliest_of,
    models,
)
from concordant.evaluation.reproduction.svmcompare_chess_results import (
    OURS,
    PUBLISHED,
    ChessPoint,
    ChessStudy,
)
from concordant.exceptions import DatasetNotFoundError, LabelError, ParameterError, UnknownNameError
from concordant.metrics.comparison import comparison_roc

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings(
        "ignore::concordant.exceptions.GuaranteeWarning"
    ),  # a bias >= 0: areas need none
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
    place = rng.random(n) * (1 + tie)
    y = np.where(place < share, -1, np.where(place < share + tie, 0, 1))
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
    one = season(rare, 2001, history=history)
    months = one.days.astype("datetime64[M]").astype(int) % 12 + 1
    assert months[one.train].max() == 4
    assert months[one.search].max() == 3
    assert months[one.test].min() == 5
    assert set(one.search.tolist()) <= set(one.train.tolist())
    assert (one.pairs[np.concatenate((one.train, one.test)), :, 3] > 0).all()
    early = rare.months <= 4
    played = np.bincount(rare.white[early], minlength=60) + np.bincount(rare.black[early], minlength=60)
    kept = (played[rare.white] >= LEAST) & (played[rare.black] >= LEAST)
    assert len(one.y) == kept.sum() < len(rare.y)
    assert one.pairs[0, :, :2].tolist() == [[1200.0, 1200.0], [1200.0, 1200.0]]


def test_training_never_sees_the_test_months(games):
    """With all outcomes from May on changed, models and their features in training stay the same."""
    late = games.months > 4
    other = Games(
        games.white, games.black, np.where(late, -games.y, games.y), games.days, games.printed, games.event, 0
    )
    one, two = season(games, 2001), season(other, 2001)
    assert one.pairs[one.train].tolist() == two.pairs[two.train].tolist()
    first_day = one.test[one.days[one.test] == one.days[one.test[0]]]
    assert one.pairs[first_day].tolist() == two.pairs[first_day].tolist()
    for model in models(("linear",)):
        a, b = answer(one, model), answer(two, model)
        assert (a.C, a.validation) == (b.C, b.validation) or math.isnan(a.C)
        same = np.isin(one.test, first_day)
        assert a.decision[same].tolist() == b.decision[same].tolist()


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_models_answer(year, model):
    if model.kernel in ("poly", "rbf") and model.features == "16":
        pytest.skip("as with 2 features, only slower")
    said = answer(year, model)
    assert said.probabilities.shape == (len(year.test), 3)
    assert said.probabilities.sum(axis=1) == pytest.approx(1.0)
    assert set(said.predicted.tolist()) <= {-1, 0, 1}
    assert math.isnan(said.C) == (not model.kernel)
    assert math.isnan(said.C) or said.C in COSTS


def test_the_truth_is_best(year):
    """Printed ratings made the outcomes, and white moves first: with both known, nothing is better."""
    area = {}
    for model in models(("linear",)):
        area[model.name] = comparison_roc(year.y[year.test], answer(year, model).decision).area
    assert max(area, key=area.get) in ("linear, printed + move", "linear, 16 + printed")
    assert area["Elo"] < area["printed"]


def test_features(year):
    for key, width in {"2": 2, "16": 16, "2 + move": 3, "printed + move": 2, "16 + printed": 17}.items():
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
    told = fake_study(0.02).contrasts()
    assert [one.baseline for one in told] == ["Elo", "printed"]
    assert told[0].test.difference == pytest.approx(0.02)
    assert told[0].adjusted < 0.05
    assert fake_study(0.0).contrasts()[0].adjusted == 1.0
    with pytest.raises(ParameterError):
        fake_study(0.0).contrasts("speed")
    without = ChessStudy(tuple(p for p in fake_study(0.1).points if p.model != OURS), (), (), 0)
    assert without.contrasts() == []


def test_figure(tmp_path):
    pytest.importorskip("plotly")
    chess.figure6(fake_study(0.02), tmp_path / "chess.html")
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
    """The data set: 131 games on days that never were; a look at one year runs through."""
    found = chess.study(folder=shared_data, years=[1999], kernels=("linear",), max_games=300)
    assert found.impossible == 131
    assert found.games[0].n_train == found.games[0].n_test == 300
    assert found.models == tuple(model.name for model in models(("linear",)))
    assert {one.baseline for one in found.within} == {"Elo", "Glicko", "printed", "linear, 2 + move"}
    assert all(0.0 < point.auc < 1.0 for point in found.points)
