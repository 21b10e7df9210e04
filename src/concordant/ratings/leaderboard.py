"""Leaderboard: items by rating, with intervals, ranks that may be shared, and records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.ratings.counts import Counts
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Leaderboard", "Row", "leaderboard", "overlapping_ranks"]

COLUMNS = ("rank", "ranks", "item", "rating", "low", "high", "votes", "wins", "ties", "losses")


@dataclass(frozen=True)
class Row:
    """One item of a leaderboard.

    Attributes
    ----------
    rank
        Place by rating, from 1.
    best_rank, worst_rank
        The ranks that the votes leave open: 1 + the number of items that are shown to be better, and the
        number of items less those that are shown to be worse.
    item
        Its name.
    rating, low, high
        The rating, and the ends of its confidence interval.
    votes, wins, ties, losses
        Weight of its votes.
    """

    rank: int
    best_rank: int
    worst_rank: int
    item: Any
    rating: float
    low: float
    high: float
    votes: float
    wins: float
    ties: float
    losses: float


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """Items by rating, best first; `print` it.

    Attributes
    ----------
    rows
        One `Row` an item.
    level
        Confidence of the intervals and of the ranks.
    """

    rows: tuple[Row, ...]
    level: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> Row:
        return self.rows[place]

    def to_dict(self) -> dict[str, Any]:
        """Give plain Python values: the level, and one dictionary a row."""
        return {"level": self.level, "rows": [asdict(row) for row in self.rows]}

    def cells(self) -> list[tuple[str, ...]]:
        """Give what is shown of each row, as text."""
        width = max((row.high - row.low for row in self.rows if np.isfinite(row.high - row.low)), default=0.0)
        digits = 0 if width >= 10.0 else 2
        return [
            (
                str(row.rank),
                str(row.best_rank)
                if row.best_rank == row.worst_rank
                else f"{row.best_rank}-{row.worst_rank}",
                str(row.item),
                *(f"{number:.{digits}f}" for number in (row.rating, row.low, row.high)),
                *(f"{number:.10g}" for number in (row.votes, row.wins, row.ties, row.losses)),
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [COLUMNS, *self.cells()]
        wide = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
        return "\n".join(
            "  ".join(
                text.ljust(w) if i == 2 else text.rjust(w)
                for i, (text, w) in enumerate(zip(line, wide, strict=True))
            )
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in self.cells()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def overlapping_ranks(low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray]:
    """Give the best and the worst rank of each item, from intervals alone: better means wholly above.

    >>> overlapping_ranks(np.array([0.0, 2.0, 2.5]), np.array([1.0, 3.0, 4.0]))
    (array([3, 1, 1]), array([3, 2, 2]))
    """
    above = len(low) - np.searchsorted(np.sort(low), high, side="right")
    below = np.searchsorted(np.sort(high), low, side="left")
    return above + 1, len(low) - below


def leaderboard(
    items: NDArray[Any],
    ratings: FloatArray,
    interval: tuple[FloatArray, FloatArray],
    ranks: tuple[IntArray, IntArray],
    counts: Counts,
    level: float,
) -> Leaderboard:
    """Give the table; items of equal rating keep their order."""
    order = np.argsort(-ratings, kind="stable")
    names, wins_ties_losses = items.tolist(), counts.records
    columns = np.stack((ratings, *interval, wins_ties_losses.sum(axis=1)), axis=1)[order].tolist()
    rows = tuple(
        Row(place, int(ranks[0][i]), int(ranks[1][i]), names[i], *numbers, *wins_ties_losses[i].tolist())
        for place, (i, numbers) in enumerate(zip(order.tolist(), columns, strict=True), 1)
    )
    return Leaderboard(rows, level)
