"""What `compare` found: as tables, as plain values, as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.cli.compare_board import Board
from concordant.cli.compare_check import HeldOut
from concordant.cli.compare_inputs import PairTable
from concordant.cli.compare_models import Forecast
from concordant.cli.output import new_table, number, plural

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.types import FloatArray, IntArray

__all__ = [
    "Report",
    "board_dict",
    "board_lines",
    "board_table",
    "board_text",
    "prediction_rows",
    "prediction_table",
]

WORDS = {-1: "left", 0: "tie", 1: "right"}
BOARD = ("rank", "ranks", "item", "rating", "low", "high", "votes", "wins", "ties", "losses")


@dataclass(frozen=True, eq=False)
class Report:
    """What `compare fit` says of a fitted model."""

    data: PairTable
    model: Any
    training_error: float
    check: HeldOut | str | None
    notes: Sequence[str]
    predicted: IntArray

    def as_dict(self) -> dict[str, Any]:
        """Give plain values."""
        check = asdict(self.check) if isinstance(self.check, HeldOut) else None
        return {
            "file": self.data.name,
            "model": type(self.model).__name__,
            "parameters": self.model.get_params(),
            "pairs": self.data.n,
            "weight": None if self.data.weight is None else whole(self.data.weight.sum()),
            "outcomes": counted(self.data.outcome, self.data.weight),
            "predicted": counted(self.predicted, self.data.weight),
            "items": len(self.model.items_) if hasattr(self.model, "items_") else None,
            "features": list(self.data.features) if not hasattr(self.model, "items_") else None,
            "training_error": self.training_error,
            "held_out": check,
            "components": len(self.model.components_) if hasattr(self.model, "components_") else None,
            "notes": [*self.data.notes, *self.notes],
        }

    def table(self) -> Table:
        """Give errors and log-losses beside those of the commonest outcome."""
        names = ("training", "held out", "commonest outcome")
        table = new_table(f"{self.data.name}: {type(self.model).__name__}", "", *names, numeric=names)
        nothing = math.nan
        if isinstance(self.check, HeldOut):
            found = self.check
            table.add_row("error", *map(number, (self.training_error, found.error, found.baseline_error)))
            table.add_row("log-loss", "", *map(number, (found.log_loss, found.baseline_log_loss)))
        else:
            table.add_row("error", *map(number, (self.training_error, nothing, nothing)))
        return table

    def remarks(self, output: Path | None) -> list[str]:
        """Say what was learned from, how it was checked, and what to know."""
        counts, weight = counted(self.data.outcome, self.data.weight), self.data.weight
        said = ", ".join(f"{counts[word]:,} {word}" for word in WORDS.values())
        fitted = hasattr(self.model, "items_")
        what = plural(len(self.model.items_), "item", "items") if fitted else ", ".join(self.data.features)
        weighing = "" if weight is None else f" that count {whole(weight.sum()):,} times"
        lines = [f"{plural(self.data.n, 'pair', 'pairs')}{weighing}: {said}; {what}"]
        if isinstance(self.check, HeldOut):
            left_out = (
                f", {self.check.unknown:,} left out: of items not seen in the others"
                if self.check.unknown
                else ""
            )
            lines.append(f"held out: {self.check.how} ({self.check.pairs:,} pairs{left_out})")
        elif self.check is not None:
            lines.append(self.check)
        lines.extend(self.notes)
        if len(alike := set(self.predicted.tolist())) == 1:
            lines.append(f"every training pair is predicted alike: {WORDS[alike.pop()]}")
        return lines if output is None else [*lines, f"the model is in {output}"]


def counted(outcome: IntArray | None, weight: FloatArray | None) -> dict[str, float]:
    """Count the outcomes, each as often as it counts."""
    if outcome is None:
        return dict.fromkeys(WORDS.values(), 0)
    times = np.ones(len(outcome)) if weight is None else weight
    return {word: whole(times[outcome == sign].sum()) for sign, word in WORDS.items()}


def whole(value: float) -> float:
    """Give a count; whole numbers as such, others to six decimals.

    >>> whole(3.0), whole(0.1 + 0.2)
    (3, 0.3)
    """
    return int(value) if float(value).is_integer() else round(float(value), 6)


def prediction_rows(data: PairTable, said: Forecast) -> list[dict[str, Any]]:
    """Give a row per pair: ids where there are some, prediction, decision, and probabilities."""
    rows = []
    sides = None if data.left is None or data.right is None else (data.left.tolist(), data.right.tolist())
    for place, (outcome, decision) in enumerate(
        zip(said.outcome.tolist(), said.decision.tolist(), strict=True)
    ):
        row: dict[str, Any] = {"row": place}
        if sides is not None:
            row |= {"left": sides[0][place], "right": sides[1][place]}
        row |= {"prediction": WORDS[outcome], "decision": decision}
        if said.probabilities is not None:
            names = (f"p_{word}" for word in WORDS.values())
            row |= dict(zip(names, said.probabilities[place].tolist(), strict=True))
        rows.append(row)
    return rows


def prediction_table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    """Give the predictions."""
    columns = list(rows[0])
    numeric = [name for name in columns if name in ("row", "decision") or name.startswith("p_")]
    table = new_table(title, *columns, numeric=numeric)
    for row in rows:
        table.add_row(*(number(cell) if isinstance(cell, float) else str(cell) for cell in row.values()))
    return table


def board_columns(board: Board) -> list[str]:
    """Give the columns that have something to say."""
    unknown = [] if board.intervals else ["ranks", "low", "high"]
    unknown += [] if board.has_votes else ["votes", "wins", "ties", "losses"]
    return [name for name in BOARD if name not in unknown]


def board_text(board: Board, top: int | None) -> tuple[list[str], list[list[str]]]:
    """Give the columns and the cells of the best rows, as text."""
    columns, digits = board_columns(board), digits_of(board)
    lines = []
    for row, cells in zip(board.table.rows[:top], board.table.cells(), strict=False):
        told = dict(zip(BOARD, cells, strict=True))
        told |= {
            name: f"{round(getattr(row, name), digits) + 0.0:.{digits}f}"
            for name in ("rating", "low", "high")
        }
        lines.append([told[name] for name in columns])
    return columns, lines


def digits_of(board: Board) -> int:
    """Give the decimals that show two digits of the intervals; without them, four of the ratings' range."""
    rows = board.table.rows
    ratings = [row.rating for row in rows]
    widths = [row.high - row.low for row in rows] if board.intervals else [max(ratings) - min(ratings)]
    typical = sorted(widths)[len(widths) // 2]
    if not 0.0 < typical < math.inf:
        return 2
    wanted = 1 if board.intervals else 3  # without intervals, nothing says which digits do not matter
    return min(max(wanted - math.floor(math.log10(typical)), 0), 12)


def board_table(title: str, board: Board, top: int | None) -> Table:
    """Give the leaderboard."""
    columns, lines = board_text(board, top)
    table = new_table(title, *columns, numeric=[name for name in columns if name != "item"])
    for line in lines:
        table.add_row(*line)
    return table


def board_lines(board: Board, top: int | None) -> list[str]:
    """Say what the numbers mean."""
    shown = f", the best {top} shown" if top is not None and top < len(board.table) else ""
    lines = [f"{plural(len(board.table), 'item', 'items')}{shown}; rating: {board.unit}"]
    if board.intervals:
        lines.append(f"low, high: {board.table.level:.0%} intervals from {board.intervals}")
    return [*lines, *board.notes]


def board_dict(board: Board, top: int | None) -> dict[str, Any]:
    """Give plain values."""
    found = board.table.to_dict()
    return {
        "items": len(board.table),
        "level": found["level"],
        "rating": board.unit,
        "intervals": board.intervals or None,
        "notes": list(board.notes),
        "rows": [known_ranks(row, board) for row in found["rows"][:top]],
    }


def known_ranks(row: dict[str, Any], board: Board) -> dict[str, Any]:
    """Give a row; without intervals, no shared ranks."""
    return row if board.intervals else row | {"best_rank": None, "worst_rank": None}
