"""Leaderboards of `compare rank`: of ratings by their own intervals, of a Comparer by refits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.ratings.counts import Counts
from concordant.ratings.leaderboard import Leaderboard, Row, leaderboard, overlapping_ranks
from concordant.ratings.votes import read_votes

if TYPE_CHECKING:
    from concordant.cli.compare_inputs import ItemTable, PairTable
    from concordant.types import FloatArray

__all__ = ["Board", "rated", "scored"]

MOST_ITEMS = 5000  # of intervals from the information matrix
MEANING = "ranks: those that the votes leave open, right for all items together at this level"
OVERLAP = "ranks: 1 + the items whose intervals are wholly above, to n - those wholly below"


@dataclass(frozen=True, eq=False)
class Board:
    """A leaderboard and how it came about.

    Attributes
    ----------
    table
        The rows.
    intervals
        What the intervals are, in words; empty where there are none.
    notes
        What a reader should know.
    unit
        What ratings are measured in.
    """

    table: Leaderboard
    intervals: str
    notes: tuple[str, ...]
    unit: str

    @property
    def has_votes(self) -> bool:
        """Whether records are known."""
        return all(np.isfinite(row.votes) for row in self.table)


def rated(model: Any, level: float, bootstrap: int | None, scale: str, seed: int) -> Board:
    """Give the leaderboard of a model of ratings."""
    from concordant.ratings.strength import StrengthModel

    strengths = isinstance(model, StrengthModel)
    if strengths and bootstrap is None and len(model.items_) > MOST_ITEMS:
        raise ParameterError("--bootstrap", None, f"given (200, say) for more than {MOST_ITEMS:,} items")
    how = {} if bootstrap is None else {"method": "bootstrap", "n_resamples": bootstrap, "random_state": seed}
    found = model.leaderboard(level, **how, **({"scale": scale} if strengths else {}))
    named = "log-strength, of mean 0" if strengths and scale == "natural" else "points"
    return Board(found, told_intervals(model, bootstrap), (MEANING, *parts(model)), named)


def told_intervals(model: Any, bootstrap: int | None) -> str:
    """Say where the intervals come from."""
    if bootstrap is not None:
        return f"{bootstrap:,} resamples of the votes"
    default = {"Elo": "500 resamples of the votes", "Glicko": "the deviations of the ratings"}
    return default.get(type(model).__name__, "the curvature of the likelihood")


def parts(model: Any) -> list[str]:
    """Warn where some items were never compared with others, if through others."""
    found = model.components_
    if len(found) == 1:
        return []
    text = f"the votes leave {len(found)} components: between any two, wins go one way or there are none"
    return [f"{text}; ratings are comparable only as far as the model's own assumptions go"]


def scored(
    model: Any,
    items: ItemTable,
    data: PairTable | None,
    level: float,
    resamples: int,
    seed: int,
    tell: Callable[[str], None],
) -> Board:
    """Give the leaderboard of a Comparer: scores of mean 0, with intervals where there are pairs to refit."""
    scores = centred(model.rank_score(items.values))
    nothing = np.full(len(scores), np.nan)
    notes = [
        f"a difference of more than {model.threshold_:.3g} is predicted to be seen, a smaller one to be a tie"
    ]
    ends, intervals, ranks = (nothing, nothing), "", unknown_ranks(len(scores))
    if data is None:
        notes.append("no intervals, and so no shared ranks: --pairs PAIRS refits to resamples of the pairs")
    else:
        drawn = refits(model, items.values, data, resamples, seed, tell)
        if len(drawn) < resamples:
            notes.append(
                f"{resamples - len(drawn)} of {resamples} refits were left out: they were trained otherwise"
            )
        if len(drawn) > 1:
            tails = [0.5 - level / 2.0, 0.5 + level / 2.0]
            low, high = np.quantile(drawn, tails, axis=0)
            ends, ranks, intervals = (low, high), overlapping_ranks(low, high), f"{len(drawn):,} refits"
            notes.append(OVERLAP)
    nobody = np.zeros(0, np.int64)
    empty = Counts(len(scores), sided=False, first=nobody, second=nobody, cells=np.zeros((0, 3)), n_votes=0)
    found = leaderboard(np.array(items.ids), scores, ends, ranks, empty, level)
    return Board(with_records(found, data), intervals, tuple(notes), "score, of mean 0")


def centred(scores: FloatArray) -> FloatArray:
    """Give scores of mean 0: only differences count."""
    result: FloatArray = scores - scores.mean()
    return result


def unknown_ranks(n_items: int) -> Any:
    """Give ranks of which nothing is known."""
    return np.ones(n_items, np.int64), np.full(n_items, n_items)


def refits(
    model: Any, items: FloatArray, data: PairTable, resamples: int, seed: int, tell: Callable[[str], None]
) -> FloatArray:
    """Give scores by fits to pairs drawn again; those of another kind, so of another unit, are left out."""
    from sklearn.base import clone

    rng = np.random.default_rng(seed)
    weight = np.ones(data.n) if data.weight is None else data.weight
    total = float(weight.sum())
    draws = max(1, round(total))  # as many as there are votes, however many rows hold them
    drawn = []
    for _ in range(resamples):
        one = clone(model).set_params(calibration=0)
        times = rng.multinomial(draws, weight / total) * (total / draws)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.fit(data.pairs, data.outcome, sample_weight=times)
        if one.note_ == model.note_:
            drawn.append(centred(one.rank_score(items)))
        tell("Fitting to resamples of the pairs")
    return np.array(drawn).reshape(-1, len(items))


def with_records(table: Leaderboard, data: PairTable | None) -> Leaderboard:
    """Give the rows with what each item won, tied and lost in the pairs; not known without ids."""
    if data is None or data.left is None or data.outcome is None:
        return replace(table, rows=tuple(recorded(row, [np.nan] * 3) for row in table))
    votes = read_votes(data.left, data.right, data.outcome, data.weight)
    records = dict(zip(map(str, votes.items.names.tolist()), Counts.of(votes).records.tolist(), strict=True))
    return replace(
        table, rows=tuple(recorded(row, records.get(str(row.item), [0.0, 0.0, 0.0])) for row in table)
    )


def recorded(row: Row, record: list[float]) -> Row:
    """Give the row with wins, ties and losses."""
    wins, ties, losses = record
    return replace(row, votes=sum(record), wins=wins, ties=ties, losses=losses)
