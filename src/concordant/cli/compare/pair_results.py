"""Results of `compare` as tables, plain values, CSV and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from concordant._base.files import write_atomically
from concordant.cli.compare.board import Board
from concordant.cli.compare.pair_models import Forecast, HeldOutCheck
from concordant.cli.compare.pair_tables import PairTable
from concordant.cli.shared.output import new_table, number, plural
from concordant.evaluation.report.page import BLUE, base_layout, render_page, short

if TYPE_CHECKING:
    from concordant.types import FloatArray, IntArray

WORDS = {-1: "left", 0: "tie", 1: "right"}
BOARD = ("rank", "ranks", "item", "rating", "low", "high", "votes", "wins", "ties", "losses")
SHOWN = 20  # predictions on the screen


@dataclass(frozen=True, eq=False)
class FittedPairs:
    """A fitted model of `compare fit` with its errors."""

    data: PairTable
    model: Any
    training_error: float
    check: HeldOutCheck | str | None
    notes: Sequence[str]
    predicted: IntArray
    output: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        check = asdict(self.check) if isinstance(self.check, HeldOutCheck) else None
        if check:
            check |= {name: _round_count(check[name]) for name in ("pairs", "unknown")}
        return {
            "file": self.data.name,
            "model": type(self.model).__name__,
            "parameters": self.model.get_params(),
            "pairs": self.data.n,
            "weight": None if self.data.weight is None else _round_count(self.data.weight.sum()),
            "outcomes": _count_outcomes(self.data.outcome, self.data.weight),
            "predicted": _count_outcomes(self.predicted, self.data.weight),
            "items": len(self.model.items_) if hasattr(self.model, "items_") else None,
            "features": list(self.data.features) if not hasattr(self.model, "items_") else None,
            "training_error": self.training_error,
            "held_out": check,
            "components": len(self.model.components_) if hasattr(self.model, "components_") else None,
            "notes": [*self.data.notes, *self.notes],
            "output": None if self.output is None else str(self.output),
        }

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of errors and log-losses, beside those of the commonest outcome."""
        names = ("training", "held out", "commonest outcome")
        table = new_table(f"{self.data.name}: {type(self.model).__name__}", "", *names, numeric=names)
        unknown = math.nan
        if isinstance(self.check, HeldOutCheck):
            check = self.check
            table.add_row("error", *map(number, (self.training_error, check.error, check.baseline_error)))
            table.add_row("log-loss", "", *map(number, (check.log_loss, check.baseline_log_loss)))
        else:
            table.add_row("error", *map(number, (self.training_error, unknown, unknown)))
        yield table, self._remarks()

    def _remarks(self) -> list[str]:
        """Describe the data, the held-out check, and what to know about both."""
        counts, weight = _count_outcomes(self.data.outcome, self.data.weight), self.data.weight
        outcomes = ", ".join(f"{counts[word]:,} {word}" for word in WORDS.values())
        fitted = hasattr(self.model, "items_")
        what = plural(len(self.model.items_), "item", "items") if fitted else ", ".join(self.data.features)
        weighing = "" if weight is None else f" that count {_round_count(weight.sum()):,} times"
        lines = [f"{plural(self.data.n, 'pair', 'pairs')}{weighing}: {outcomes}; {what}"]
        if isinstance(self.check, HeldOutCheck):
            left_out = (
                f", {_round_count(self.check.unknown):,} left out: of items not seen in the others"
                if self.check.unknown
                else ""
            )
            lines.append(f"held out: {self.check.how} ({_round_count(self.check.pairs):,} pairs{left_out})")
        elif self.check is not None:
            lines.append(self.check)
        lines.extend(self.notes)
        if len(alike := set(self.predicted.tolist())) == 1:
            lines.append(f"every training pair is predicted alike: {WORDS[alike.pop()]}")
        return lines if self.output is None else [*lines, f"the model is in {self.output}"]


def _count_outcomes(outcome: IntArray | None, weight: FloatArray | None) -> dict[str, float]:
    if outcome is None:
        return dict.fromkeys(WORDS.values(), 0)
    times = np.ones(len(outcome)) if weight is None else weight
    return {word: _round_count(times[outcome == sign].sum()) for sign, word in WORDS.items()}


def _round_count(value: float) -> float:
    """Convert whole numbers to int, round others to six decimals.

    >>> _round_count(3.0), _round_count(0.1 + 0.2)
    (3, 0.3)
    """
    return int(value) if float(value).is_integer() else round(float(value), 6)


@dataclass(frozen=True, eq=False)
class PredictedPairs:
    """Predictions of a model for a table of pairs; `quality`: their errors, if outcomes are known."""

    model: str
    data: PairTable
    forecast: Forecast
    quality: Mapping[str, float]
    output: Path | None

    def rows(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return one row per pair: ids if any, prediction, decision, and probabilities."""
        data, forecast, rows = self.data, self.forecast, []
        sides = None if data.left is None or data.right is None else (data.left.tolist(), data.right.tolist())
        predictions = zip(forecast.outcome[:top].tolist(), forecast.decision[:top].tolist(), strict=True)
        for number_of_row, (outcome, decision) in enumerate(predictions):
            row: dict[str, Any] = {"row": number_of_row}
            if sides is not None:
                row |= {"left": sides[0][number_of_row], "right": sides[1][number_of_row]}
            row |= {"prediction": WORDS[outcome], "decision": decision}
            if forecast.probabilities is not None:
                names = (f"p_{word}" for word in WORDS.values())
                row |= dict(zip(names, forecast.probabilities[number_of_row].tolist(), strict=True))
            rows.append(row)
        return rows

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of the first predictions."""
        rows = self.rows(SHOWN)
        columns = list(rows[0])
        numeric = [name for name in columns if name in ("row", "decision") or name.startswith("p_")]
        texts = (
            [number(cell) if isinstance(cell, float) else str(cell) for cell in row.values()] for row in rows
        )
        title = f"{self.data.name}: predictions of {self.model}"
        yield new_table(title, *columns, numeric=numeric, rows=texts), self._remarks()

    def _remarks(self) -> list[str]:
        """State how good the predictions are, and where the remaining ones are."""
        quality = [f"{name.replace('_', '-')} {value:.4f}" for name, value in self.quality.items()]
        lines = [", ".join(quality)] if quality else []
        if self.output is not None:
            many = plural(self.data.n, "prediction is", "predictions are")
            lines.append(f"{many} in {self.output}")
        elif self.data.n > SHOWN:
            lines.append(f"the first {SHOWN} of {self.data.n:,} pairs; --output FILE.csv writes all")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        about = {"model": self.model, "file": self.data.name, "pairs": self.data.n}
        return {**about, "notes": list(self.data.notes), **self.quality, "predictions": self.rows()}


@dataclass(frozen=True, eq=False)
class RankedItems:
    """A leaderboard under its title; `top`: how many items are shown, None for all.

    Attributes
    ----------
    about
        The file and the class of the model.
    notes
        Remarks on the pairs it was refitted to.
    written
        The files that were written.
    """

    title: str
    board: Board
    top: int | None
    about: Mapping[str, str]
    notes: Sequence[str]
    written: Sequence[Path]

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of the leaderboard."""
        columns, lines = self.text()
        numeric = [name for name in columns if name != "item"]
        written = [f"written to {path}" for path in self.written]
        table = new_table(self.title, *columns, numeric=numeric, rows=lines)
        yield table, [*self.remarks(), *written]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **self.about,
            "items": len(self.board.table),
            "level": self.board.table.level,
            "rating": self.board.unit,
            "intervals": self.board.intervals or None,
            "notes": [*self.notes, *self.board.notes],
            "rows": self.board.rows(self.top),
        }

    def text(self) -> tuple[list[str], list[list[str]]]:
        """Return the columns that are known, and the formatted cells of the best rows."""
        board, digits = self.board, _board_digits(self.board)
        unknown = [] if board.intervals else ["ranks", "low", "high"]
        unknown += [] if board.has_votes else ["votes", "wins", "ties", "losses"]
        columns = [name for name in BOARD if name not in unknown]
        lines = []
        for row, cells in zip(board.table.rows[: self.top], board.table.cells(), strict=False):
            texts = dict(zip(BOARD, cells, strict=True))
            texts |= {
                name: f"{round(getattr(row, name), digits) + 0.0:.{digits}f}"
                for name in ("rating", "low", "high")
            }
            lines.append([texts[name] for name in columns])
        return columns, lines

    def remarks(self) -> list[str]:
        """Explain the numbers of the leaderboard."""
        board, many = self.board, plural(len(self.board.table), "item", "items")
        is_cut = self.top is not None and self.top < len(board.table)
        shown = f", the best {self.top} shown" if is_cut else ""
        lines = [f"{many}{shown}; rating: {board.unit}"]
        if board.intervals:
            lines.append(f"low, high: {board.table.level:.0%} intervals from {board.intervals}")
        return [*lines, *board.notes]


def _board_digits(board: Board) -> int:
    """Return the decimals that show two digits of the intervals, or else four digits of the ratings."""
    rows = board.table.rows
    ratings = [row.rating for row in rows]
    widths = [row.high - row.low for row in rows] if board.intervals else [max(ratings) - min(ratings)]
    typical = sorted(widths)[len(widths) // 2]
    if not 0.0 < typical < math.inf:
        return 2
    n_significant = 1 if board.intervals else 3  # without intervals, any digit may matter
    return min(max(n_significant - math.floor(math.log10(typical)), 0), 12)


# A leaderboard as an HTML page: table and dot plot, for small and large screens, light and dark.

ROW, MARGIN = 24, 40  # pixels
MOST_DOTS = 40  # items of the plot, so that the table below it stays near; the table has all


def write_board(path: Path, ranked: RankedItems) -> None:
    """Write the leaderboard as an HTML page, whole or not at all."""
    board, title = ranked.board, ranked.title
    columns, rows = ranked.text()
    shown = len(rows)
    lines = ranked.remarks()
    if shown > MOST_DOTS:
        lines.append(f"plot: the best {MOST_DOTS}")
    html = render_page(
        "cli/compare/board.html",
        {"plot-board": _dots(board, min(shown, MOST_DOTS))},
        title=title,
        lines=lines,
        label=f"Ratings of {min(shown, MOST_DOTS)} items, the best on top",
        caption=f"Dots: {board.unit}" + ("; lines: intervals" if board.intervals else ""),
        columns=columns,
        rows=rows,
    )
    with write_atomically(path) as stream:
        stream.write(html.encode())


def _dots(board: Board, shown: int) -> dict[str, Any]:
    """Build the plotly figure: ratings as dots, intervals as lines."""
    rows = board.table.rows[:shown]
    ends = " (%{customdata[1]:.4g} to %{customdata[2]:.4g})" if board.intervals else ""
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [float(row.rating) for row in rows],
        "y": list(range(shown)),
        "marker": {"color": BLUE, "size": 9},
        "customdata": [[escape(str(row.item)), float(row.low), float(row.high)] for row in rows],
        "hovertemplate": f"%{{customdata[0]}}: %{{x:.4g}}{ends}<extra></extra>",
    }
    if board.intervals:
        above = [float(row.high - row.rating) for row in rows]
        below = [float(row.rating - row.low) for row in rows]
        lines = {"color": BLUE, "thickness": 2, "width": 0}
        trace["error_x"] = {"type": "data", "array": above, "arrayminus": below, "symmetric": False, **lines}
    yaxis = {
        "tickvals": list(range(shown)),
        "ticktext": [short(str(row.item)) for row in rows],
        "range": [shown - 0.4, -0.6],
        "zeroline": False,
    }
    margin = {"t": 30, "b": 10, "l": 10, "r": 10}
    layout = base_layout(MARGIN + ROW * shown, margin=margin, xaxis={"side": "top"}, yaxis=yaxis)
    return {"data": [trace], "layout": layout}
