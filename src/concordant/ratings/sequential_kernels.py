"""Elo and Glicko over votes in order; every vote is foretold before it is learned.

A kernel goes through the votes once and changes the state of the two items of each vote. `levels` sums up
what the tie parameter is fitted to: see `sequential.fit_tie`. Importing this imports numba.
"""

from __future__ import annotations

import math

from concordant._segments import kernel
from concordant.types import FloatArray, IntArray

__all__ = [
    "ELITE",
    "UNSEEN",
    "elo_votes",
    "fide_step",
    "fide_votes",
    "glicko_votes",
    "learned",
    "odds",
    "shrink",
]

PER_UNIT = 128.0  # levels a unit of the logarithm of the odds
ELITE = 2400.0  # FIDE's K is smaller from there
UNSEEN = -(2**63)  # the period of items without votes


@kernel
def odds(difference: float) -> float:
    """Share of the points that goes to who is better by so much, in natural logarithms of the odds."""
    return 1.0 / (1.0 + math.exp(-difference))


@kernel
def fide_step(games: int, elite: bool) -> float:
    """FIDE's K: 10 for whoever once reached 2400, 30 for others in their first 30 games, else 15."""
    if elite:
        return 10.0
    return 30.0 if games < 30 else 15.0


@kernel
def note(difference: float, outcome: int, weight: float, levels: FloatArray) -> None:
    """Add the vote to its level of the difference's size: its weight, that of a tie, and the size."""
    size = abs(difference)
    place = size * PER_UNIT  # huge or NaN, it is no whole number
    level = int(place) if place < len(levels) else len(levels) - 1
    levels[level, 0] += weight  # a view of the row would take twice as long
    levels[level, 1] += weight * (1 - outcome * outcome)
    levels[level, 2] += weight * size


@kernel
def elo_votes(
    left: IntArray,
    right: IntArray,
    outcome: IntArray,
    weights: FloatArray,
    times: IntArray,
    k: float,
    unit: float,
    advantage: float,
    ratings: FloatArray,
    levels: FloatArray,
) -> None:
    """Move both ratings by k times (points - foretold points).

    `weights` and `times` may be empty: all 1. A vote with times 0 is left out, one with 2 is learned twice.
    """
    for vote in range(len(left)):
        a, b = left[vote], right[vote]
        weight = weights[vote] if len(weights) else 1.0
        for _ in range(times[vote] if len(times) else 1):
            difference = unit * (ratings[a] + advantage - ratings[b])
            note(difference, outcome[vote], weight, levels)
            step = k * weight * (0.5 - 0.5 * outcome[vote] - odds(difference))
            ratings[a] += step
            ratings[b] -= step


@kernel
def fide_votes(
    left: IntArray,
    right: IntArray,
    outcome: IntArray,
    weights: FloatArray,
    times: IntArray,
    unit: float,
    advantage: float,
    ratings: FloatArray,
    games: IntArray,
    best: FloatArray,
    levels: FloatArray,
) -> None:
    """As `elo_votes`, by FIDE's K of each item: it depends on its votes so far, and on its best rating."""
    for vote in range(len(left)):
        a, b = left[vote], right[vote]
        weight = weights[vote] if len(weights) else 1.0
        for _ in range(times[vote] if len(times) else 1):
            difference = unit * (ratings[a] + advantage - ratings[b])
            note(difference, outcome[vote], weight, levels)
            step = weight * (0.5 - 0.5 * outcome[vote] - odds(difference))
            ratings[a] += fide_step(games[a], best[a] >= ELITE) * step
            ratings[b] -= fide_step(games[b], best[b] >= ELITE) * step
            for item in (a, b):
                games[item] += 1
                best[item] = max(best[item], ratings[item])


@kernel
def shrink(variance: float, unit: float) -> float:
    """Glicko's g: how much a difference counts where a rating is uncertain."""
    return 1.0 / math.sqrt(1.0 + 3.0 * variance * (unit / math.pi) ** 2)


@kernel
def learned(
    rating: float, variance: float, points: float, information: float, unit: float, least: float
) -> tuple[float, float]:
    """Rating and variance at the end of a period: `points` and `information` are its sums."""
    after = 1.0 / (1.0 / variance + information)
    return rating + unit * after * points, max(after, least)


@kernel
def settle(
    item: int,
    period: int,
    alone: bool,
    c: float,
    most: float,
    least: float,
    unit: float,
    ratings: FloatArray,
    variances: FloatArray,
    points: FloatArray,
    information: FloatArray,
    last: IntArray,
) -> None:
    """Bring an item to the start of a period: close the one of its last vote, and let time pass.

    alone: a period of the vote's own, one after the item's last.
    """
    if last[item] == UNSEEN:
        last[item] = 0 if alone else period
        return
    elapsed = 1 if alone else period - last[item]
    if elapsed > 0:
        closed = learned(ratings[item], variances[item], points[item], information[item], unit, least)
        ratings[item], variances[item] = closed[0], min(closed[1] + c * c * elapsed, most)
        points[item] = information[item] = 0.0
        last[item] += elapsed


@kernel
def glicko_votes(
    left: IntArray,
    right: IntArray,
    outcome: IntArray,
    weights: FloatArray,
    times: IntArray,
    periods: IntArray,
    c: float,
    most: float,
    least: float,
    unit: float,
    advantage: float,
    ratings: FloatArray,
    variances: FloatArray,
    points: FloatArray,
    information: FloatArray,
    last: IntArray,
    levels: FloatArray,
) -> None:
    """Add each vote to the sums of its period; a period is closed when the item votes in a later one.

    So all votes of a period start from the ratings before it, and no vote costs more than any other.
    `weights` and `times` as in `elo_votes`; `periods` may be empty: every vote is a period of its own.
    """
    for vote in range(len(left)):
        a, b = left[vote], right[vote]
        alone, period = len(periods) == 0, periods[vote] if len(periods) else 0
        weight = weights[vote] if len(weights) else 1.0
        for _ in range(times[vote] if len(times) else 1):
            for item in (a, b):
                settle(
                    item, period, alone, c, most, least, unit, ratings, variances, points, information, last
                )
            difference = unit * (ratings[a] + advantage - ratings[b])
            note(shrink(variances[a] + variances[b], unit) * difference, outcome[vote], weight, levels)
            score = 0.5 - 0.5 * outcome[vote]
            for item, other, sign, won in ((a, b, 1.0, score), (b, a, -1.0, 1.0 - score)):
                trust = shrink(variances[other], unit)
                share = odds(sign * trust * difference)
                points[item] += weight * trust * (won - share)
                information[item] += weight * (unit * trust) ** 2 * share * (1.0 - share)
