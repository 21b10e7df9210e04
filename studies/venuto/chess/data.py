"""Years of chess games between players of whom enough is known, each described by what came before it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant import datasets
from concordant.exceptions import LabelError, ParameterError
from concordant.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

DATA = "chess-twic"
YEARS = tuple(range(1999, 2007))
LEAST = 10  # games of a player in the training months
TRAIN, SEARCH = 4, 3  # months that train, and those by which parameters are chosen


@dataclass(frozen=True, eq=False)
class Games:
    """All games, sorted by day; white on the left.

    Attributes
    ----------
    white, black
        Players by number.
    y
        Outcomes: -1 white won, +1 black won, 0 a draw.
    days
        Dates.
    printed
        Ratings printed with the game, of white and of black: shape (n, 2).
    event
        Number of the event.
    impossible
        Games left out because there is no such date (the source has some on 31 September).
    """

    white: IntArray
    black: IntArray
    y: IntArray
    days: NDArray[np.datetime64]
    printed: FloatArray
    event: IntArray
    impossible: int

    @property
    def years(self) -> IntArray:
        """Year of each game."""
        return self.days.astype("datetime64[Y]").astype(np.int64) + 1970

    @property
    def months(self) -> IntArray:
        """Month of each game, from 1."""
        return self.days.astype("datetime64[M]").astype(np.int64) % 12 + 1


@dataclass(frozen=True, eq=False)
class Season:
    """One year's games between players with at least ten games in its training months.

    Attributes
    ----------
    year
        The year.
    y, days, event, printed
        As of `Games`.
    pairs
        The 16 statistics of both players before each game, shape (n, 2, 16), by the games of this year alone:
        all ratings start at 1200 in January. So nobody comes near 2400: `elite` is 0 throughout, and machines
        leave it out.
    foretold
        White's share of the points by Elo and by Glicko before each game, shape (n, 2).
    train, search, test
        Rows, in order of time: January to April, January to March, May to December. No game is among them
        that is a player's first.
    """

    year: int
    y: IntArray
    days: NDArray[np.datetime64]
    event: IntArray
    printed: FloatArray
    pairs: FloatArray
    foretold: FloatArray
    train: IntArray
    search: IntArray
    test: IntArray


def load(folder: str | os.PathLike[str] | None = None) -> Games:
    """Load the games of the data set, without those on days that never were."""
    data = datasets.load(DATA, folder=folder)
    rows, votes = data.extras["rows"], data.comparisons
    (texts, day), (_, event) = (_encode(rows[name]) for name in ("date", "event"))
    calendar, exists = dates(texts)
    days, real = calendar[day], exists[day]
    order = np.flatnonzero(real)[np.argsort(days[real], kind="stable")]
    return Games(
        votes.left_codes[order],
        votes.right_codes[order],
        votes.outcome[order],
        days[order],
        data.pairs[order, :, 0],
        event[order],
        int((~real).sum()),
    )


def _encode(column: Any) -> tuple[list[str], IntArray]:
    """Distinct texts of a pyarrow column, and the number of each row's."""
    dictionary = column.combine_chunks().dictionary_encode()
    return dictionary.dictionary.to_pylist(), dictionary.indices.to_numpy().astype(np.int64)


def dates(texts: list[str]) -> tuple[NDArray[np.datetime64], BoolArray]:
    """Days of texts like 2006-12-31, and which of them exist.

    >>> dates(["2004-02-29", "2005-02-29"])[1].tolist()
    [True, False]
    """
    months = np.array([text[:7] for text in texts], dtype="datetime64[M]")
    days = months.astype("datetime64[D]") + (np.array([int(text[8:]) for text in texts]) - 1)
    return days, days.astype("datetime64[M]") == months


def season(
    games: Games, year: int, *, history: str = "kept", max_games: int | None = None, seed: int = 0
) -> Season:
    """Describe the games of a year by what came before them.

    Parameters
    ----------
    games
        What `load` gave.
    year
        Of `YEARS`.
    history
        Which games the statistics are made of: "kept", those between players with enough games, as published;
        "year", all of the year.
    max_games
        Training and test games at most, of each: drawn at random, all statistics as they are.
    seed
        Of the draw.
    """
    from concordant.comparisons.ratings import to_features

    if history not in ("kept", "year"):
        raise ParameterError("history", history, "'kept' or 'year'")
    rows = np.flatnonzero(games.years == year)
    if not rows.size:
        raise LabelError(
            f"there are no games of {year}", f"the data set has {games.years.min()} to {games.years.max()}."
        )
    is_eligible = _have_enough_games(games, rows)
    used = rows[is_eligible] if history == "kept" else rows
    statistics = to_features(games.white[used], games.black[used], games.y[used], time=games.days[used])
    shown = slice(None) if history == "kept" else is_eligible
    pairs, rows = statistics.pairs[shown], rows[is_eligible]
    has_history = (statistics.column("games")[shown] > 0).all(axis=1)
    months, rng = games.months[rows], np.random.default_rng(seed)
    train = _draw_rows(np.flatnonzero(has_history & (months <= TRAIN)), max_games, rng)
    test = _draw_rows(np.flatnonzero(has_history & (months > TRAIN)), max_games, rng)
    columns = games.y[rows], games.days[rows], games.event[rows], games.printed[rows]
    return Season(
        year, *columns, pairs, statistics.foretold[shown], train, train[months[train] <= SEARCH], test
    )


def _have_enough_games(games: Games, rows: IntArray) -> BoolArray:
    """True for games between players with enough games in the training months."""
    early = rows[games.months[rows] <= TRAIN]
    n_players = int(max(games.white.max(), games.black.max())) + 1
    sides = np.concatenate((games.white[early], games.black[early]))
    played = np.bincount(sides, minlength=n_players)
    fine: BoolArray = (played[games.white[rows]] >= LEAST) & (played[games.black[rows]] >= LEAST)
    return fine


def _draw_rows(rows: IntArray, most: int | None, rng: np.random.Generator) -> IntArray:
    """Draw at most so many of the rows, and keep their order."""
    return rows if most is None or len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
