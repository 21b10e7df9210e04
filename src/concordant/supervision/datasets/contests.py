"""Readers of comparison sets: a table of contests -> comparisons with outcomes -1, 0, +1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.supervision.datasets.dataset import ComparisonData, Dataset, Options
from concordant.supervision.datasets.loaders import table_of
from concordant.supervision.labels import Comparisons
from concordant.supervision.readers.tables import read_comparisons
from concordant.types import FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "read_cems",
    "read_chess",
    "read_football",
    "read_icehockey",
    "read_pudding",
    "read_springall",
    "read_svmcompare",
    "read_votes",
    "read_worldcup",
]


def read_chess(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Games, white on the left; features: rating before the game, and who has the first move."""
    games = table_of(paths[0])
    outcome = 1 - 2 * column(games, "white_score")
    return chess(games, outcome, "white_elo", "black_elo")


def read_worldcup(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Games, white on the left; features as for the other chess set."""
    games = table_of(paths[0])
    outcome = read_comparisons(games, left="white", right="black", outcome="result").outcome
    return chess(games, outcome, "whiteelo", "blackelo")


def chess(games: Any, outcome: NDArray[Any], white_elo: str, black_elo: str) -> ComparisonData:
    """Games with ratings."""
    comparisons = Comparisons(column(games, "white"), column(games, "black"), outcome)
    elo = np.stack((column(games, white_elo), column(games, black_elo)), axis=1).astype(np.float64)
    pairs = np.stack((elo, np.tile([1.0, 0.0], (len(elo), 1))), axis=2)
    return ComparisonData(comparisons, pairs, ("elo", "white"), {"rows": games})


def read_football(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Matches, home team on the left; feature: plays at home (0 for both on neutral ground)."""
    matches, names = table_of(paths[0]), table_of(paths[1])
    outcome = np.sign(column(matches, "away_score") - column(matches, "home_score"))
    comparisons = Comparisons(column(matches, "home_team"), column(matches, "away_team"), outcome)
    pairs = home_side(~column(matches, "neutral").astype(bool), side=0)
    return ComparisonData(comparisons, pairs, ("home",), {"rows": matches, "former_names": names})


def read_icehockey(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Games, visitor on the left; feature: plays on home ice."""
    games = table_of(paths[0])
    outcome = 1 - 2 * column(games, "result")
    comparisons = Comparisons(column(games, "visitor"), column(games, "opponent"), outcome)
    pairs = home_side(column(games, "home.ice").astype(bool), side=1)
    return ComparisonData(comparisons, pairs, ("home",), {"rows": games})


def read_cems(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Students compare schools; comparisons that a student left out are dropped."""
    choices, schools, students = (table_of(path) for path in paths)
    outcome = column(choices, "win2") - column(choices, "win1")  # NaN where missing
    seen = np.isfinite(outcome)
    kept = choices.filter(seen)
    comparisons = Comparisons(column(kept, "school1"), column(kept, "school2"), outcome[seen])
    return ComparisonData(comparisons, extras={"rows": kept, "schools": schools, "students": students})


def read_springall(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Counts become single comparisons; features: flavour and gel of the mixtures."""
    contests, mixtures = (table_of(path) for path in paths)
    counts = [column(contests, name) for name in ("win", "tie", "loss")]
    left, right = column(contests, "row"), column(contests, "col")
    comparisons = repeated(left.astype(np.int64), right.astype(np.int64), counts)
    names = ("flav", "gel")
    features = np.stack([column(mixtures, name) for name in names], axis=1)
    order = np.argsort(column(mixtures, "item"))  # comparisons number their items in ascending order
    extras = {"contests": contests, "mixtures": mixtures}
    return ComparisonData(comparisons, comparisons.pairs(features[order]), names, extras)


def read_pudding(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Counts of wins and ties between brands become single comparisons."""
    contests = table_of(paths[0])
    counts = [column(contests, name) for name in ("w_ij", "t_ij", "w_ji")]
    return ComparisonData(
        repeated(column(contests, "i"), column(contests, "j"), counts), extras={"contests": contests}
    )


def read_votes(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Judgements between the answers of two models to one prompt."""
    votes = table_of(paths[0])
    return ComparisonData(read_comparisons(votes, outcome="winner"), extras={"rows": votes})


def read_svmcompare(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Points of the plane: pair k compares items 2k and 2k + 1; "splits" has the published ones."""
    pool, splits = (table_of(path) for path in paths)
    number = np.arange(len(pool))
    comparisons = Comparisons(2 * number, 2 * number + 1, column(pool, "y"))
    names = ("x1", "x2")
    sides = [np.stack([column(pool, name) for name in side], axis=1) for side in (names, ("xp1", "xp2"))]
    return ComparisonData(comparisons, np.stack(sides, axis=1), names, {"rows": pool, "splits": splits})


def column(table: Any, name: str) -> NDArray[Any]:
    """Give a column of a pyarrow table; missing numbers are NaN."""
    values: NDArray[Any] = table[name].to_numpy()
    return values


def home_side(at_home: NDArray[np.bool_], side: int) -> FloatArray:
    """Give 1 for the side that plays at home, else 0, shape (n, 2, 1)."""
    pairs = np.zeros((len(at_home), 2, 1))
    pairs[:, side, 0] = at_home
    return pairs


def repeated(left: NDArray[Any], right: NDArray[Any], counts: list[NDArray[Any]]) -> Comparisons:
    """Write out each contest as often as it was counted: left wins, then ties, then right wins."""
    times = np.concatenate(counts)
    outcome = np.repeat([-1, 0, 1], len(left))
    rows = np.repeat(np.tile(np.arange(len(left)), 3), times)
    return Comparisons(left[rows], right[rows], np.repeat(outcome, times))
