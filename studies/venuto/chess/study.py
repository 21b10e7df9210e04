"""Figure 6 of "Support vector comparison machines": outcomes of chess games, by machines and by ratings.

Venuto, Hocking, Sphanurattana and Sugiyama find linear machines on 16 statistics of the players better than
Elo and Glicko alone, on Chessmetrics' games of 1999 to 2006. Here are the same years of The Week in Chess,
with three questions added: how much of the gain is the first move, which ratings alone do not know; what the
rating printed with each game is worth, of which ratings that restart every January know nothing; and whether
the statistics add anything to it.

The paper's machine, with the hinge, has no weights at its exact optimum on these games, whatever the C
(`ChessPoint.collapsed`): it ignores all features and predicts a draw always. What areas it has are those of
the direction in which its weights vanish, and change with the tolerance. So the logistic loss, which does not
collapse, stands for the linear machine; it was chosen before any test result of a smooth machine was seen.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from concordant._internals import n_threads, one_blas_thread
from concordant.evaluation import PairedAUC, evaluate_outcomes, paired_auc
from concordant.exceptions import GuaranteeWarning, ParameterError
from studies.venuto.chess.data import YEARS, Season, load, season
from studies.venuto.chess.machines import area_at, machine
from studies.venuto.chess.models import KERNELS, TRIVIAL, Answer, Model, models
from studies.venuto.chess.ratings import rating, trivial
from studies.venuto.chess.results import OURS, AtTolerance, ChessPoint, ChessStudy, Within, YearOfGames

WITHIN = ("Elo", "Glicko", "printed", "logistic, 2 + move")  # with which it is compared within each year, too
HINGE = "linear, 16"
TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-8)
COST = 1e-6  # of the look at tolerances
RESAMPLES = 1000


def study(
    *,
    folder: str | os.PathLike[str] | None = None,
    years: Iterable[int] = YEARS,
    kernels: Sequence[str] = KERNELS,
    step: Callable[[str], object] | None = None,
    max_games: int | None = None,
    history: str = "kept",
    seed: int = 0,
) -> ChessStudy:
    """Train on January to April of each year, test on May to December: Figure 6.

    Players have at least ten games in the training months, and no game is anybody's first. Parameters are
    chosen by the mean ROC area on the paper's time splits of January to March: C from 1e-12 to 1 by hundreds
    for the hinge (the paper begins at 1e-20) and from 1e-6 to 100 by tens for other losses; degrees 1 to 4;
    gamma .01, .1, 1 and 10 on scaled features (the paper has the last three). Search and training have the
    same tolerance: 1e-6, and 1e-3 for kernels, by 200 landmarks.

    Parameters
    ----------
    folder
        Folder of the datasets, as for `datasets.load`.
    years
        Of 1999 to 2006.
    kernels
        Of "linear", "poly", "rbf".
    step
        Called with what was done, once a year.
    max_games
        Training and test games of a year at most, of each: for a look.
    history
        Which games the players' statistics are made of: "kept", as published, or "year", all of the year.
    seed
        Of landmarks, folds and resamples.
    """
    year_numbers, machines = tuple(dict.fromkeys(years)), models(tuple(dict.fromkeys(kernels)))
    if not year_numbers:
        raise ParameterError("years", year_numbers, "at least one year")
    games = load(folder)
    seasons = [season(games, year, history=history, max_games=max_games, seed=seed) for year in year_numbers]
    points, within, tolerances = list[ChessPoint](), list[Within](), list[AtTolerance]()
    with warnings.catch_warnings(), one_blas_thread(), ThreadPoolExecutor(n_threads()) as threads:
        # That a machine has no threshold, or predicts draws only, is in the results. The filters are those of
        # all threads.
        warnings.simplefilter("ignore", GuaranteeWarning)
        asked = [
            [threads.submit(answer, year_season, model, seed) for model in machines]
            for year_season in seasons
        ]
        try:
            for year_season, jobs in zip(seasons, asked, strict=True):
                answers = {model.name: job.result() for model, job in zip(machines, jobs, strict=True)}
                points += [_measure(year_season, model, said) for model, said in answers.items()]
                within += _contrasts_within(year_season, answers, seed)
                tolerances += _areas_by_tolerance(year_season, machines)
                if step is not None:
                    n_train, n_test = len(year_season.train), len(year_season.test)
                    step(f"{year_season.year}: {n_train} games train, {n_test} test")
        finally:
            threads.shutdown(cancel_futures=True)
    years_of_games = tuple(_count_games(year_season) for year_season in seasons)
    return ChessStudy(tuple(points), years_of_games, tuple(within), games.impossible, tuple(tolerances))


def answer(season: Season, model: Model, seed: int = 0) -> Answer:
    """Train a model on January to April, and ask it about May to December."""
    if model.kernel:
        return machine(season, model, seed)
    return trivial(season) if model.name == TRIVIAL else rating(season, model.name)


def _measure(season: Season, model: str, said: Answer) -> ChessPoint:
    """Measure answers against the outcomes of the test games."""
    y = season.y[season.test]
    report = evaluate_outcomes(y, said.decision, probabilities=said.probabilities)
    wrong, drawn = float(np.mean(said.predicted != y)), float(np.mean(said.predicted == 0))
    choices = said.C, said.degree, said.gamma, said.validation, drawn, said.collapsed
    return ChessPoint(season.year, model, report.auc, report.auc_unsigned, wrong, report.log_loss, *choices)


def _contrasts_within(season: Season, answers: Mapping[str, Answer], seed: int) -> list[Within]:
    """Compare the linear machine on all statistics with some others, on the games of one year."""
    if OURS not in answers:
        return []
    y, event, ours = season.y[season.test], season.event[season.test], answers[OURS].decision

    def test(name: str) -> PairedAUC:
        theirs = answers[name].decision
        return paired_auc(y, ours, theirs, n_resamples=RESAMPLES, seed=seed, clusters=event)

    return [Within(season.year, name, test(name)) for name in WITHIN]


def _areas_by_tolerance(season: Season, machines: Sequence[Model]) -> list[AtTolerance]:
    """Train the linear machines on all statistics to several tolerances, with C = 1e-6."""
    asked = [model for model in machines if model.name in (OURS, HINGE)]
    return [
        AtTolerance(season.year, model.name, tol, area_at(season, model, COST, tol))
        for model in asked
        for tol in TOLERANCES
    ]


def _count_games(season: Season) -> YearOfGames:
    """Count the games of a year."""
    sizes = len(season.y), len(season.train), len(season.search), len(season.test)
    return YearOfGames(season.year, *sizes, float(np.mean(season.y == 0)))
