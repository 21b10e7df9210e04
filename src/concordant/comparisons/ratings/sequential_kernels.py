"""Kernels of Elo and Glicko over votes in order; every vote is predicted before it is learned.

A kernel passes over the votes once and updates the state of the two items of each vote. `levels` accumulates
the statistics that the tie parameter is fitted to: see `sequential.fit_tie`. Importing this imports numba.
"""

from __future__ import annotations

import math

from concordant._base.segments import kernel
from concordant.types import FloatArray, IntArray

PER_UNIT = 128.0  # levels a unit of the logarithm of the odds
ELITE = 2400.0  # FIDE's K is smaller from there
UNSEEN = -(2**63)  # the period of items without votes


@kernel
def _odds(difference: float) -> float:
    """Expected share of the points at a difference in natural logarithms of the odds."""
    return 1.0 / (1.0 + math.exp(-difference))


@kernel
def _fide_step(games: int, elite: bool) -> float:
    """FIDE's K: 10 for players who once reached 2400, 30 for others in their first 30 games, else 15."""
    if elite:
        return 10.0
    return 30.0 if games < 30 else 15.0


@kernel
def _add_to_level(difference: float, outcome: int, weight: float, levels: FloatArray) -> None:
    """Add a vote to the bin of the size of its difference: its weight, that of a tie, and the size."""
    size = abs(difference)
    position = size * PER_UNIT  # huge or NaN, it is no whole number
    level = int(position) if position < len(levels) else len(levels) - 1
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
            _add_to_level(difference, outcome[vote], weight, levels)
            step = k * weight * (0.5 - 0.5 * outcome[vote] - _odds(difference))
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
    """Same as `elo_votes`, with FIDE's K of each item, by its votes so far and its best rating."""
    for vote in range(len(left)):
        a, b = left[vote], right[vote]
        weight = weights[vote] if len(weights) else 1.0
        for _ in range(times[vote] if len(times) else 1):
            difference = unit * (ratings[a] + advantage - ratings[b])
            _add_to_level(difference, outcome[vote], weight, levels)
            step = weight * (0.5 - 0.5 * outcome[vote] - _odds(difference))
            ratings[a] += _fide_step(games[a], best[a] >= ELITE) * step
            ratings[b] -= _fide_step(games[b], best[b] >= ELITE) * step
            for item in (a, b):
                games[item] += 1
                best[item] = max(best[item], ratings[item])


@kernel
def shrink(variance: float, unit: float) -> float:
    """Glicko's g: factor that shrinks a difference for an uncertain rating."""
    return 1.0 / math.sqrt(1.0 + 3.0 * variance * (unit / math.pi) ** 2)


@kernel
def _close_rating(
    rating: float, variance: float, points: float, information: float, unit: float, least: float
) -> tuple[float, float]:
    """Rating and variance at the end of a period: `points` and `information` are its sums."""
    after = 1.0 / (1.0 / variance + information)
    return rating + unit * after * points, max(after, least)


@kernel
def _settle(
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
    """Move an item to the start of a period: close that of its last vote, and let time pass.

    alone: a separate period for the vote, one after the item's last.
    """
    if last[item] == UNSEEN:
        last[item] = 0 if alone else period
        return
    elapsed = 1 if alone else period - last[item]
    if elapsed > 0:
        closed = _close_rating(ratings[item], variances[item], points[item], information[item], unit, least)
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
    """Add each vote to the sums of its period; a period is closed when the item votes in a later period.

    So all votes of a period start from the ratings before it, and the cost per vote is constant. `weights`
    and `times` as in `elo_votes`; `periods` may be empty: every vote is a separate period.
    """
    for vote in range(len(left)):
        a, b = left[vote], right[vote]
        alone, period = len(periods) == 0, periods[vote] if len(periods) else 0
        weight = weights[vote] if len(weights) else 1.0
        for _ in range(times[vote] if len(times) else 1):
            for item in (a, b):
                _settle(
                    item, period, alone, c, most, least, unit, ratings, variances, points, information, last
                )
            difference = unit * (ratings[a] + advantage - ratings[b])
            _add_to_level(
                shrink(variances[a] + variances[b], unit) * difference, outcome[vote], weight, levels
            )
            score = 0.5 - 0.5 * outcome[vote]
            for item, other, sign, won in ((a, b, 1.0, score), (b, a, -1.0, 1.0 - score)):
                trust = shrink(variances[other], unit)
                share = _odds(sign * trust * difference)
                points[item] += weight * trust * (won - share)
                information[item] += weight * (unit * trust) ** 2 * share * (1.0 - share)


# Statistics of both players before each game, in one pass. Importing this imports numba.

FIELDS = 14  # of a player's record
ELO, BEST, GLICKO, VARIANCE, GAMES, WINS, DRAWS, LOSSES = range(8)
STRONGER, UPSETS, WEAKER, SLIPS, GAPS, LAST = range(8, FIELDS)


@kernel
def share(part: float, whole: float) -> float:
    """Share of a whole; one half if the whole is 0."""
    return part / whole if whole > 0.0 else 0.5


@kernel
def _describe(player: FloatArray, now: float, elite: float, row: FloatArray) -> None:
    """Fill a row, except for the first move (2) and the head-to-head score (15)."""
    games = player[GAMES]
    row[0], row[1] = player[ELO], player[GLICKO]
    row[3], row[4], row[5], row[6] = games, player[WINS], player[DRAWS], player[LOSSES]
    row[7] = share(player[WINS] + player[DRAWS], games)
    row[8], row[9] = player[UPSETS], share(player[UPSETS], player[STRONGER])
    row[10], row[11] = player[SLIPS], share(player[SLIPS], player[WEAKER])
    row[12] = player[GAPS] / games if games > 0.0 else 0.0
    row[13] = now - player[LAST] if games > 0.0 else 0.0
    row[14] = 1.0 if player[BEST] >= elite else 0.0


@kernel
def record(player: FloatArray, points: float, gap: float, now: float) -> None:
    """Add a game to a player's record; `gap` is the opponent's Elo rating minus the player's."""
    player[GAMES] += 1.0
    player[WINS] += 1.0 if points == 1.0 else 0.0
    player[DRAWS] += 1.0 if points == 0.5 else 0.0
    player[LOSSES] += 1.0 if points == 0.0 else 0.0
    if gap > 0.0:
        player[STRONGER] += 1.0
        player[UPSETS] += 1.0 if points == 1.0 else 0.0
    elif gap < 0.0:
        player[WEAKER] += 1.0
        player[SLIPS] += 1.0 if points == 0.0 else 0.0
    player[GAPS] += gap
    player[LAST] = now


@kernel
def rate(
    a: FloatArray, b: FloatArray, points: float, unit: float, elite: float, c: float, most: float
) -> None:
    """Update the Elo ratings of both players by FIDE's K, and the Glicko ratings by a period of one game."""
    step = points - _odds(unit * (a[ELO] - b[ELO]))
    gap, first, second = unit * (a[GLICKO] - b[GLICKO]), shrink(a[VARIANCE], unit), shrink(b[VARIANCE], unit)
    for player, trust, sign in ((a, second, 1.0), (b, first, -1.0)):
        player[ELO] += sign * _fide_step(int(player[GAMES]), player[BEST] >= elite) * step
        player[BEST] = max(player[BEST], player[ELO])
        foretold = _odds(sign * trust * gap)
        won = trust * ((points if sign > 0.0 else 1.0 - points) - foretold)
        information = (unit * trust) ** 2 * foretold * (1.0 - foretold)
        player[GLICKO], variance = _close_rating(
            player[GLICKO], player[VARIANCE], won, information, unit, 0.0
        )
        player[VARIANCE] = min(variance + c * c, most)


@kernel
def describe_games(
    left: IntArray,
    right: IntArray,
    outcome: IntArray,
    times: FloatArray,
    moments: IntArray,
    first: FloatArray,
    meeting: IntArray,
    unit: float,
    elite: float,
    c: float,
    most: float,
    records: FloatArray,
    met: FloatArray,
    pairs: FloatArray,
    foretold: FloatArray,
) -> None:
    """Describe all games of a moment, then learn from them, moment by moment (`moments` are offsets).

    `met` holds, for each pair of players, how often they met and the points of the lower-numbered player.
    """
    for moment in range(len(moments) - 1):
        games = range(moments[moment], moments[moment + 1])
        for game in games:
            a, b, now = records[left[game]], records[right[game]], times[game]
            _describe(a, now, elite, pairs[game, 0])
            _describe(b, now, elite, pairs[game, 1])
            low = share(met[meeting[game], 1], met[meeting[game], 0])
            for side in range(2):
                pairs[game, side, 2] = first[game, side]
                pairs[game, side, 15] = low if (side == 0) == (left[game] < right[game]) else 1.0 - low
            foretold[game, 0] = _odds(unit * (a[ELO] - b[ELO]))
            trust = shrink(a[VARIANCE] + b[VARIANCE], unit)
            foretold[game, 1] = _odds(unit * trust * (a[GLICKO] - b[GLICKO]))
        for game in games:
            a, b, points = records[left[game]], records[right[game]], 0.5 - 0.5 * outcome[game]
            gap = b[ELO] - a[ELO]
            rate(a, b, points, unit, elite, c, most)
            record(a, points, gap, times[game])
            record(b, 1.0 - points, -gap, times[game])
            met[meeting[game], 0] += 1.0
            met[meeting[game], 1] += points if left[game] < right[game] else 1.0 - points
