"""A leaderboard as one HTML page: table and dot plot, for small and large screens, light and dark."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from concordant.cli.compare_board import Board
from concordant.cli.compare_results import board_lines, board_text
from concordant.evaluation.report.page import base_layout, figure, page, short, table
from concordant.evaluation.report.style import BLUE
from concordant.supervision.readers.text import write_atomically

__all__ = ["write_board"]

MOST_DOTS = 40  # items of the plot, so that the table is not far; that one has all
ROW, MARGIN = 24, 40  # pixels
TEXT, WIDE = ("item",), ("votes", "wins", "ties", "losses")  # columns: words, and what phones do without


def write_board(path: Path, title: str, board: Board, top: int | None) -> None:
    """Write the page, whole or not at all; it asks for nothing else."""
    columns, rows = board_text(board, top)
    shown = len(rows)
    lines = board_lines(board, top)
    if shown > MOST_DOTS:
        lines.append(f"plot: the best {MOST_DOTS}")
    cells = [[escape(text) for text in row] for row in rows]
    body = [f"<main>\n<h1>{escape(title)}</h1>", *(f'<p class="dim">{escape(line)}</p>' for line in lines)]
    label = f"Ratings of {min(shown, MOST_DOTS)} items, the best on top"
    listed = table(columns, cells, text=TEXT, wide=WIDE, caption="Leaderboard")
    told = f"Dots: {board.unit}" + ("; lines: intervals" if board.intervals else "")
    drawn = figure("plot-board", label, told)
    body.append(f"<section>{drawn}\n{listed}</section>\n</main>")
    made = page(title, "\n".join(body), {"plot-board": dots(board, min(shown, MOST_DOTS))})
    with write_atomically(path) as stream:
        stream.write(made.encode())


def dots(board: Board, shown: int) -> dict[str, Any]:
    """Give ratings as dots, intervals as lines."""
    rows = board.table.rows[:shown]
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [float(row.rating) for row in rows],
        "y": list(range(shown)),
        "marker": {"color": BLUE, "size": 9},
        "customdata": [[escape(str(row.item)), float(row.low), float(row.high)] for row in rows],
        "hovertemplate": hover(board),
    }
    if board.intervals:
        above, below = ([float(one) for one in ends] for ends in zip(*map(around, rows), strict=True))
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


def around(row: Any) -> tuple[float, float]:
    """Give how far the ends of the interval are above and below the rating."""
    return row.high - row.rating, row.rating - row.low


def hover(board: Board) -> str:
    """Give what is said of a dot."""
    ends = " (%{customdata[1]:.4g} to %{customdata[2]:.4g})" if board.intervals else ""
    return f"%{{customdata[0]}}: %{{x:.4g}}{ends}<extra></extra>"
