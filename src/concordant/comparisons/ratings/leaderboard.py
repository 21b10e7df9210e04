"""Leaderboard: items by rating, with intervals, possible ranks, and records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.comparisons.ratings.votes import Counts
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = ("rank", "ranks", "item", "rating", "low", "high", "votes", "wins", "ties", "losses")


@dataclass(frozen=True)
class Row:
    """One item of a leaderboard.

    Attributes
    ----------
    rank
        Rank by rating, from 1.
    best_rank, worst_rank
        The range of ranks that the votes leave open: 1 + the number of items shown to be better, and the
        number of items minus those shown to be worse.
    item
        Name of the item.
    rating, low, high
        The rating, and the ends of its confidence interval.
    votes, wins, ties, losses
        Weight of the votes of the item.
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
        One `Row` per item.
    level
        Confidence of the intervals and of the ranks.
    """

    rows: tuple[Row, ...]
    level: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: the level, and one dictionary per row."""
        return {"level": self.level, "rows": [asdict(row) for row in self.rows]}

    def cells(self) -> list[tuple[str, ...]]:
        """Format the cells of each row as text."""
        width = max((row.high - row.low for row in self.rows if np.isfinite(row.high - row.low)), default=0.0)
        digits = 0 if width >= 10.0 else 2
        lines = []
        for row in self.rows:
            ranks = f"{row.best_rank}-{row.worst_rank}" if row.best_rank != row.worst_rank else row.best_rank
            ratings = (f"{number:.{digits}f}" for number in (row.rating, row.low, row.high))
            weights = (f"{number:.10g}" for number in (row.votes, row.wins, row.ties, row.losses))
            lines.append((str(row.rank), str(ranks), str(row.item), *ratings, *weights))
        return lines

    def __str__(self) -> str:
        lines = [COLUMNS, *self.cells()]
        wide = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
        align = [str.ljust if name == "item" else str.rjust for name in COLUMNS]
        return "\n".join(
            "  ".join(pad(text, w) for pad, text, w in zip(align, line, wide, strict=True)) for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        lines = ("".join(f"<td>{escape(text)}</td>" for text in line) for line in self.cells())
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def overlapping_ranks(low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray]:
    """Best and worst rank of each item, from intervals alone: an item is better if its interval is above.

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
    """Build the leaderboard; items of equal rating keep their order."""
    order = np.argsort(-ratings, kind="stable")
    names, wins_ties_losses = items.tolist(), counts.records
    columns = np.stack((ratings, *interval, wins_ties_losses.sum(axis=1)), axis=1)[order].tolist()
    rows = tuple(
        Row(rank, int(ranks[0][i]), int(ranks[1][i]), names[i], *numbers, *wins_ties_losses[i].tolist())
        for rank, (i, numbers) in enumerate(zip(order.tolist(), columns, strict=True), 1)
    )
    return Leaderboard(rows, level)
