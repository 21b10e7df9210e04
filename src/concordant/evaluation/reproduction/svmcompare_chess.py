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
from pathlib import Path

import numpy as np

from concordant._segments import n_threads, one_blas_thread
from concordant.evaluation.outcomes import evaluate_outcomes
from concordant.evaluation.paired_areas import PairedAUC, paired_auc
from concordant.evaluation.reproduction.svmcompare_chess_data import YEARS, Season, load, season
from concordant.evaluation.reproduction.svmcompare_chess_machines import area_at, machine
from concordant.evaluation.reproduction.svmcompare_chess_models import (
    KERNELS,
    TRIVIAL,
    Answer,
    Model,
    models,
)
from concordant.evaluation.reproduction.svmcompare_chess_ratings import rating, trivial
from concordant.evaluation.reproduction.svmcompare_chess_results import (
    OURS,
    AtTolerance,
    ChessPoint,
    ChessStudy,
    Within,
    YearOfGames,
)
from concordant.exceptions import GuaranteeWarning, ParameterError

__all__ = ["YEARS", "ChessStudy", "answer", "figure6", "study"]

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
    chosen, machines = tuple(dict.fromkeys(years)), models(tuple(dict.fromkeys(kernels)))
    if not chosen:
        raise ParameterError("years", chosen, "at least one year")
    games = load(folder)
    seasons = [season(games, year, history=history, max_games=max_games, seed=seed) for year in chosen]
    points, within, tolerances = list[ChessPoint](), list[Within](), list[AtTolerance]()
    with warnings.catch_warnings(), one_blas_thread(), ThreadPoolExecutor(n_threads()) as threads:
        # That a machine has no threshold, or predicts draws only, is in the results. The filters are those of
        # all threads.
        warnings.simplefilter("ignore", GuaranteeWarning)
        asked = [[threads.submit(answer, one, model, seed) for model in machines] for one in seasons]
        try:
            for one, jobs in zip(seasons, asked, strict=True):
                found = {model.name: job.result() for model, job in zip(machines, jobs, strict=True)}
                points += [measured(one, model, said) for model, said in found.items()]
                within += contrasts_within(one, found, seed)
                tolerances += by_tolerance(one, machines)
                if step is not None:
                    step(f"{one.year}: {len(one.train)} games train, {len(one.test)} test")
        finally:
            threads.shutdown(cancel_futures=True)
    years_of_games = tuple(counted(one) for one in seasons)
    return ChessStudy(tuple(points), years_of_games, tuple(within), games.impossible, tuple(tolerances))


def answer(season: Season, model: Model, seed: int = 0) -> Answer:
    """Train a model on January to April, and ask it about May to December."""
    if model.kernel:
        return machine(season, model, seed)
    return trivial(season) if model.name == TRIVIAL else rating(season, model.name)


def measured(one: Season, model: str, said: Answer) -> ChessPoint:
    """Measure answers against the outcomes of the test games."""
    y = one.y[one.test]
    report = evaluate_outcomes(y, said.decision, probabilities=said.probabilities)
    wrong, drawn = float(np.mean(said.predicted != y)), float(np.mean(said.predicted == 0))
    chosen = said.C, said.degree, said.gamma, said.validation, drawn, said.collapsed
    return ChessPoint(one.year, model, report.auc, report.auc_unsigned, wrong, report.log_loss, *chosen)


def contrasts_within(one: Season, found: Mapping[str, Answer], seed: int) -> list[Within]:
    """Compare the linear machine on all statistics with some others, on the games of one year."""
    if OURS not in found:
        return []
    y, event, ours = one.y[one.test], one.event[one.test], found[OURS].decision

    def test(name: str) -> PairedAUC:
        theirs = found[name].decision
        return paired_auc(y, ours, theirs, n_resamples=RESAMPLES, seed=seed, clusters=event)

    return [Within(one.year, name, test(name)) for name in WITHIN]


def by_tolerance(one: Season, machines: Sequence[Model]) -> list[AtTolerance]:
    """Train the linear machines on all statistics to several tolerances, with C = 1e-6."""
    asked = [model for model in machines if model.name in (OURS, HINGE)]
    return [
        AtTolerance(one.year, model.name, tol, area_at(one, model, COST, tol))
        for model in asked
        for tol in TOLERANCES
    ]


def counted(one: Season) -> YearOfGames:
    """Count the games of a year."""
    sizes = len(one.y), len(one.train), len(one.search), len(one.test)
    return YearOfGames(one.year, *sizes, float(np.mean(one.y == 0)))


def figure6(found: ChessStudy, path: str | Path) -> None:
    """Draw the areas of all models as one HTML file."""
    from concordant.evaluation.reproduction.svmcompare_chess_plots import plot_chess

    plot_chess(found, path)
