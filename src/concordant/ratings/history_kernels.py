"""Statistics of both players before each game, in one pass. Importing this imports numba."""

from __future__ import annotations

from concordant._segments import kernel
from concordant.ratings.sequential_kernels import fide_step, learned, odds, shrink
from concordant.types import FloatArray, IntArray

__all__ = ["FIELDS", "describe_games"]

FIELDS = 14  # of a player's record
ELO, BEST, GLICKO, VARIANCE, GAMES, WINS, DRAWS, LOSSES = range(8)
STRONGER, UPSETS, WEAKER, SLIPS, GAPS, LAST = range(8, FIELDS)


@kernel
def share(part: float, whole: float) -> float:
    """One half where there is nothing to share."""
    return part / whole if whole > 0.0 else 0.5


@kernel
def describe(own: FloatArray, now: float, elite: float, row: FloatArray) -> None:
    """Fill a row, but for who has the first move (2) and the head-to-head score (15)."""
    games = own[GAMES]
    row[0], row[1] = own[ELO], own[GLICKO]
    row[3], row[4], row[5], row[6] = games, own[WINS], own[DRAWS], own[LOSSES]
    row[7] = share(own[WINS] + own[DRAWS], games)
    row[8], row[9] = own[UPSETS], share(own[UPSETS], own[STRONGER])
    row[10], row[11] = own[SLIPS], share(own[SLIPS], own[WEAKER])
    row[12] = own[GAPS] / games if games > 0.0 else 0.0
    row[13] = now - own[LAST] if games > 0.0 else 0.0
    row[14] = 1.0 if own[BEST] >= elite else 0.0


@kernel
def record(own: FloatArray, points: float, gap: float, now: float) -> None:
    """Enter a game into a player's record; `gap` is the opponent's Elo rating less the player's."""
    own[GAMES] += 1.0
    own[WINS] += 1.0 if points == 1.0 else 0.0
    own[DRAWS] += 1.0 if points == 0.5 else 0.0
    own[LOSSES] += 1.0 if points == 0.0 else 0.0
    if gap > 0.0:
        own[STRONGER] += 1.0
        own[UPSETS] += 1.0 if points == 1.0 else 0.0
    elif gap < 0.0:
        own[WEAKER] += 1.0
        own[SLIPS] += 1.0 if points == 0.0 else 0.0
    own[GAPS] += gap
    own[LAST] = now


@kernel
def rate(
    a: FloatArray, b: FloatArray, points: float, unit: float, elite: float, c: float, most: float
) -> None:
    """Move the Elo ratings of both players by FIDE's K, and the Glicko ratings as by a period of one game."""
    step = points - odds(unit * (a[ELO] - b[ELO]))
    gap, first, second = unit * (a[GLICKO] - b[GLICKO]), shrink(a[VARIANCE], unit), shrink(b[VARIANCE], unit)
    for own, trust, sign in ((a, second, 1.0), (b, first, -1.0)):
        own[ELO] += sign * fide_step(int(own[GAMES]), own[BEST] >= elite) * step
        own[BEST] = max(own[BEST], own[ELO])
        foretold = odds(sign * trust * gap)
        won = trust * ((points if sign > 0.0 else 1.0 - points) - foretold)
        information = (unit * trust) ** 2 * foretold * (1.0 - foretold)
        own[GLICKO], variance = learned(own[GLICKO], own[VARIANCE], won, information, unit, 0.0)
        own[VARIANCE] = min(variance + c * c, most)


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

    `met` holds, of each pair of players, how often they met and the points of the lower-numbered one.
    """
    for moment in range(len(moments) - 1):
        games = range(moments[moment], moments[moment + 1])
        for game in games:
            a, b, now = records[left[game]], records[right[game]], times[game]
            describe(a, now, elite, pairs[game, 0])
            describe(b, now, elite, pairs[game, 1])
            low = share(met[meeting[game], 1], met[meeting[game], 0])
            for side in range(2):
                pairs[game, side, 2] = first[game, side]
                pairs[game, side, 15] = low if (side == 0) == (left[game] < right[game]) else 1.0 - low
            foretold[game, 0] = odds(unit * (a[ELO] - b[ELO]))
            trust = shrink(a[VARIANCE] + b[VARIANCE], unit)
            foretold[game, 1] = odds(unit * trust * (a[GLICKO] - b[GLICKO]))
        for game in games:
            a, b, points = records[left[game]], records[right[game]], 0.5 - 0.5 * outcome[game]
            gap = b[ELO] - a[ELO]
            rate(a, b, points, unit, elite, c, most)
            record(a, points, gap, times[game])
            record(b, 1.0 - points, -gap, times[game])
            met[meeting[game], 0] += 1.0
            met[meeting[game], 1] += points if left[game] < right[game] else 1.0 - points
