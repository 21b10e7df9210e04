"""Leaderboards of `compare rank`: ratings with their intervals, a Comparer with intervals by refits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.comparisons.ratings.leaderboard import Leaderboard, Row, leaderboard, overlapping_ranks
from concordant.comparisons.ratings.votes import Counts, read_votes
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.compare.pair_tables import ItemTable, PairTable
    from concordant.types import FloatArray


MOST_ITEMS = 5000  # of intervals from the information matrix
MEANING = "ranks: those that the votes leave open, right for all items together at this level"
OVERLAP = "ranks: 1 + the items whose intervals are wholly above, to n - those wholly below"


@dataclass(frozen=True, eq=False)
class Board:
    """A leaderboard, how its intervals were computed, and notes.

    Attributes
    ----------
    table
        The leaderboard.
    intervals
        How the intervals were computed, in words; empty without intervals.
    notes
        Remarks on the ranking.
    unit
        Unit of the ratings.
    """

    table: Leaderboard
    intervals: str
    notes: tuple[str, ...]
    unit: str

    @property
    def has_votes(self) -> bool:
        """True if wins, ties and losses are known."""
        return all(np.isfinite(row.votes) for row in self.table)

    def rows(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the best rows as plain values; without intervals the shared ranks are None."""
        unknown = {} if self.intervals else {"best_rank": None, "worst_rank": None}
        return [row | unknown for row in self.table.to_dict()["rows"][:top]]


def rate_items(model: Any, level: float, bootstrap: int | None, scale: str, seed: int) -> Board:
    """Build the leaderboard of a rating model."""
    from concordant.comparisons.ratings.strength import StrengthModel

    strengths = isinstance(model, StrengthModel)
    if strengths and bootstrap is None and len(model.items_) > MOST_ITEMS:
        raise ParameterError.because(
            f"Intervals for more than {MOST_ITEMS:,} items need --bootstrap, for example --bootstrap 200."
        )
    interval_options = (
        {} if bootstrap is None else {"method": "bootstrap", "n_resamples": bootstrap, "random_state": seed}
    )
    table = model.leaderboard(level, **interval_options, **({"scale": scale} if strengths else {}))
    unit = "log-strength, of mean 0" if strengths and scale == "natural" else "points"
    return Board(table, _describe_intervals(model, bootstrap), (MEANING, *component_notes(model)), unit)


def _describe_intervals(model: Any, bootstrap: int | None) -> str:
    if bootstrap is not None:
        return f"{bootstrap:,} resamples of the votes"
    default = {"Elo": "500 resamples of the votes", "Glicko": "the deviations of the ratings"}
    return default.get(type(model).__name__, "the curvature of the likelihood")


def component_notes(model: Any) -> list[str]:
    """Warn if wins do not connect all items."""
    components = model.components_
    if len(components) == 1:
        return []
    text = f"the votes leave {len(components)} components: between any two, wins go one way or there are none"
    return [f"{text}; ratings are comparable only as far as the model's own assumptions go"]


def score_items(
    model: Any,
    items: ItemTable,
    data: PairTable | None,
    level: float,
    resamples: int,
    seed: int,
    tell: Callable[[str], None],
) -> Board:
    """Build the leaderboard of a Comparer: scores of mean 0, with intervals if there are pairs."""
    scores = _center_scores(model.rank_score(items.values))
    n_items = len(scores)
    unknown = np.full(n_items, np.nan)
    notes = [
        f"a difference of more than {model.threshold_:.3g} is predicted to be seen, a smaller one to be a tie"
    ]
    ends, intervals, ranks = (unknown, unknown), "", (np.ones(n_items, np.int64), np.full(n_items, n_items))
    if data is None:
        notes.append("no intervals, and so no shared ranks: --pairs PAIRS refits to resamples of the pairs")
    else:
        drawn = _refit_scores(model, items.values, data, resamples, seed, tell)
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
    empty = Counts(n_items, sided=False, first=nobody, second=nobody, cells=np.zeros((0, 3)))
    table = leaderboard(np.array(items.ids), scores, ends, ranks, empty, level)
    return Board(_with_records(table, data), intervals, tuple(notes), "score, of mean 0")


def _center_scores(scores: FloatArray) -> FloatArray:
    """Shift the scores to mean 0, since only differences count."""
    result: FloatArray = scores - scores.mean()
    return result


def _refit_scores(
    model: Any, items: FloatArray, data: PairTable, resamples: int, seed: int, tell: Callable[[str], None]
) -> FloatArray:
    """Refit to resampled pairs and score the items; refits in another unit are left out."""
    from sklearn.base import clone

    rng = np.random.default_rng(seed)
    weight = np.ones(data.n) if data.weight is None else data.weight
    total = float(weight.sum())
    draws = max(1, round(total))  # as many as there are votes, however many rows hold them
    scores = []
    for _ in range(resamples):
        refit = clone(model).set_params(calibration=0)
        times = rng.multinomial(draws, weight / total) * (total / draws)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refit.fit(data.pairs, data.outcome, sample_weight=times)
        if refit.note_ == model.note_:
            scores.append(_center_scores(refit.rank_score(items)))
        tell("Fitting to resamples of the pairs")
    return np.array(scores).reshape(-1, len(items))


def _with_records(table: Leaderboard, data: PairTable | None) -> Leaderboard:
    """Add to each row what the item won, tied and lost in the pairs; NaN without ids."""
    if data is None or data.left is None or data.outcome is None:
        return replace(table, rows=tuple(_with_record(row, [np.nan] * 3) for row in table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes of the data and of the fit state it
        votes = read_votes(data.left, data.right, data.outcome, data.weight)
    names, records = map(str, votes.items.names.tolist()), Counts.from_votes(votes).records.tolist()
    by_name = dict(zip(names, records, strict=True))
    rows = (_with_record(row, by_name.get(str(row.item), [0.0, 0.0, 0.0])) for row in table)
    return replace(table, rows=tuple(rows))


def _with_record(row: Row, record: list[float]) -> Row:
    wins, ties, losses = record
    return replace(row, votes=sum(record), wins=wins, ties=ties, losses=losses)
