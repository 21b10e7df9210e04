"""`to_features`: statistics of both players before each game, from a history of games."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concordant._base.validate import as_numpy, check_number, list_words, refuse_misaligned
from concordant.comparisons.ratings.sequential import check_times
from concordant.comparisons.ratings.votes import Votes, read_votes
from concordant.exceptions import ParameterError, ShapeError
from concordant.types import ArrayLike, FloatArray, IntArray

NAMES = (
    "elo",
    "glicko",
    "first_move",
    "games",
    "wins",
    "draws",
    "losses",
    "unbeaten_share",
    "upsets",
    "upset_share",
    "slips",
    "slip_share",
    "opposition",
    "days",
    "elite",
    "head_to_head",
)
UNIT = math.log(10.0) / 400.0
DEVIATION, DRIFT = 350.0, 15.0  # of the Glicko ratings: at the start, and per game
SIDES = {"left": (1.0, 0.0), "right": (0.0, 1.0), None: (0.0, 0.0)}


@dataclass(frozen=True, eq=False)
class History:
    """Statistics of both players before each game.

    Attributes
    ----------
    pairs
        Shape (n_games, 2, 16): left and right player, in the order of the rows of the games.
    names
        Names of the 16 statistics.
    foretold
        Share of the points that the ratings predict for the left player, by Elo and by Glicko: shape
        (n_games, 2).
    """

    pairs: FloatArray
    names: tuple[str, ...]
    foretold: FloatArray

    def __len__(self) -> int:
        return len(self.pairs)

    def column(self, name: str) -> FloatArray:
        """Return one statistic, shape (n_games, 2)."""
        if name not in self.names:
            raise ParameterError("name", name, list_words(map(repr, self.names)))
        return self.pairs[:, :, self.names.index(name)]


def to_features(
    left: ArrayLike,
    right: ArrayLike = None,
    outcome: ArrayLike = None,
    *,
    time: ArrayLike = None,
    first: ArrayLike = "left",
    initial: float = 1200.0,
    elite: float = 2400.0,
) -> History:
    """Describe both players of each game by statistics of earlier games only.

    The 16 statistics of a player:

    - elo, glicko: ratings that start at `initial`; Elo's moves by FIDE's K, Glicko's by periods of one game,
    - first_move: 1 for the player with the first move,
    - games, wins, draws, losses; unbeaten_share: of wins and draws among the games,
    - upsets: wins over players of higher Elo rating; upset_share: among the games against such players,
    - slips: losses to players of lower Elo rating; slip_share: among the games against such players,
    - opposition: mean of the opponent's Elo rating minus the player's, at the time of each game,
    - days: since the player's last game (in the unit of `time` where that is no date),
    - elite: 1 from when the Elo rating first reached `elite` (by ratings that start at 1200, hardly ever),
    - head_to_head: the player's share of the points of the games against this opponent.

    Shares of nothing are 1/2; means and days of nothing are 0. One pass, the same work for every game.

    Parameters
    ----------
    left, right, outcome
        Ids of the players, and -1 where the left won, +1 where the right won, 0 for a draw. `left` may be a
        `Comparisons`, alone.
    time
        When each game was played: dates or numbers, in any order. Games of the same moment (the same day, for
        dates) do not affect each other: each is described by the games before that moment; then they are
        learned in the order of the rows. None: every row is a separate moment, in the order of the rows.
    first
        Side with the first move: "left", "right", None (neither), or a column of True where the left has it.
    initial
        Rating of a newcomer.
    elite
        Elo rating from which a player counts as elite, for the statistic and in FIDE's K.

    References
    ----------
    Venuto, Hocking, Sphanurattana and Sugiyama, Support vector comparison machines, section 5.1.

    Examples
    --------
    >>> history = to_features(["ann", "bob", "ann"], ["bob", "cat", "bob"], [-1, 0, 1])
    >>> history.pairs.shape, history.column("elo")[2].tolist()
    ((3, 2, 16), [1215.0, 1185.6471...])
    >>> history.column("head_to_head").tolist()
    [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
    """
    from concordant.comparisons.ratings.sequential_kernels import FIELDS, describe_games

    votes = read_votes(left, right, outcome)
    columns = {"left": left, "right": right, "outcome": outcome, "first": first}
    refuse_misaligned(**columns)
    for name, value in (("initial", initial), ("elite", elite)):
        check_number(name, value)
    times, _ = check_times(time, len(votes), **columns)
    days = np.arange(len(votes), dtype=np.float64) if times is None else times
    order = np.argsort(days, kind="stable")
    now, played = days[order], (votes.left[order], votes.right[order], votes.outcome[order])
    moments = np.r_[0, np.flatnonzero(np.diff(now)) + 1, len(now)].astype(np.int64)
    pairs, foretold = np.empty((len(votes), 2, len(NAMES))), np.empty((len(votes), 2))
    records = np.zeros((len(votes.items), FIELDS))
    records[:, :4] = initial, initial, initial, DEVIATION**2
    meeting = _meetings(votes)
    met = np.zeros((meeting.max() + 1, 2))
    games = *played, now, moments, _first_moves(first, len(votes))[order], meeting[order]
    describe_games(*games, UNIT, float(elite), DRIFT, DEVIATION**2, records, met, pairs, foretold)
    back = np.argsort(order)
    return History(pairs[back], NAMES, foretold[back])


def _meetings(votes: Votes) -> IntArray:
    """Number of the pair of players of each game."""
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    _, numbers = np.unique(low * len(votes.items) + high, return_inverse=True)
    return numbers.astype(np.int64)


def _first_moves(first: ArrayLike, n_games: int) -> FloatArray:
    """Indicator of the side with the first move: shape (n_games, 2)."""
    if first is None or isinstance(first, str):
        if first not in SIDES:
            raise ParameterError("first", first, "'left', 'right', None or a column of booleans")
        return np.tile(SIDES[first], (n_games, 1))
    flags = as_numpy(first, "first")
    if flags.shape != (n_games,):
        raise ShapeError("first", flags.shape, f"one True or False for each of the {n_games} games")
    if flags.dtype.kind != "b":
        raise ParameterError("first", flags[:5].tolist(), "'left', 'right', None or a column of booleans")
    return np.stack((flags, ~flags), axis=1).astype(np.float64)
