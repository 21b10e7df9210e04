"""Ratings as models of chess games, with and without a constant for the first move; and the trivial model."""

from __future__ import annotations

import math

import numpy as np

from concordant._internals import davidson, fit_tie
from concordant.types import FloatArray, IntArray
from studies.venuto.chess.data import Season
from studies.venuto.chess.models import Answer

UNIT = math.log(10.0) / 400.0
MOVE = " + first move"


def trivial(season: Season) -> Answer:
    """The sign commoner in training, always; probabilities are the shares of the outcomes in training."""
    counts, n = np.bincount(season.y[season.train] + 1, minlength=3), len(season.test)
    sign = 1.0 if counts[2] > counts[0] else -1.0
    likeliest = np.full(n, int(np.argmax(counts)) - 1)
    return Answer(np.full(n, sign), np.tile(counts / counts.sum(), (n, 1)), likeliest)


def rating(season: Season, name: str) -> Answer:
    """The difference of ratings; a draw has Davidson's probability, its parameter fitted in training."""
    base = name.removesuffix(MOVE)
    difference = {
        "Elo": season.pairs[:, 1, 0] - season.pairs[:, 0, 0],
        "Glicko": season.pairs[:, 1, 1] - season.pairs[:, 0, 1],
        "printed": season.printed[:, 1] - season.printed[:, 0],
    }[base]
    if base != name:
        return _fit_first_move(season, difference)
    odds = -UNIT * difference
    if name == "Glicko":  # the share knows the deviations too
        odds = np.log(season.foretold[:, 1] / (1.0 - season.foretold[:, 1]))
    drawn = (season.y[season.train] == 0).astype(np.float64)
    nu = fit_tie(np.ones(len(drawn)), drawn, np.abs(odds[season.train]))
    table = davidson(1.0 / (1.0 + np.exp(-odds[season.test])), nu)
    return Answer(difference[season.test], table, likeliest_of(table))


def _fit_first_move(season: Season, difference: FloatArray) -> Answer:
    """Davidson's model of a multiple of the difference plus a constant for White, most likely in training."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    row, won = np.arange(len(season.train)), season.y[season.train] + 1

    def logits(point: FloatArray, rows: IntArray) -> FloatArray:
        decision = point[0] * UNIT * difference[rows] - point[1]
        return np.stack((-0.5 * decision, np.full(len(rows), point[2]), 0.5 * decision), axis=1)

    def surprise(point: FloatArray) -> float:
        return -float(log_softmax(logits(point, season.train), axis=1)[row, won].mean())

    best = minimize(surprise, np.array([1.0, 0.0, 0.0])).x  # convex, of three numbers
    table: FloatArray = np.exp(log_softmax(logits(best, season.test), axis=1))
    return Answer(best[0] * UNIT * difference[season.test] - best[1], table, likeliest_of(table))


def likeliest_of(table: FloatArray) -> IntArray:
    """Outcome of largest probability; a draw where it ties with another."""
    outcomes: IntArray = np.array([0, -1, 1])[np.argmax(table[:, [1, 0, 2]], axis=1)]
    return outcomes
