"""A leaderboard as one HTML page: table and dot plot, for small and large screens, light and dark."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from concordant.cli.compare_board import Board
from concordant.cli.compare_results import board_lines, board_text
from concordant.supervision.readers.text import write_atomically

__all__ = ["write_board"]

MOST_DOTS = 40  # items of the plot, so that the table is not far; that one has all
ROW, MARGIN = 24, 70  # pixels
BLUE = "#2b7bba"  # seen on white and on black
GREY = "#808080"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --text: #1c1c1c; --dim: #5c5c5c; --page: #ffffff; --line: #dddddd; --stripe: #f5f6f8; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e8e8e8; --dim: #a6a6a6; --page: #16181c; --line: #3a3d42; --stripe: #1e2126; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 960px; margin: 0 auto; padding: 1rem; }}
h1 {{ font-size: 1.4rem; overflow-wrap: anywhere; }}
p {{ color: var(--dim); font-size: 0.9rem; margin: 0.2rem 0; }}
.scroll {{ overflow-x: auto; margin-top: 1.2rem; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; }}
tr {{ border-bottom: 1px solid var(--line); }}
th {{ color: var(--dim); font-weight: 600; }}
th.item, td.item {{ text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }}
tbody tr:nth-child(even) {{ background: var(--stripe); }}
.plot {{ overflow: hidden; }}
.plot text {{ fill: var(--text) !important; }}
.plot .gridlayer path, .plot .zerolinelayer path {{ stroke: var(--line) !important; }}
@media (max-width: 600px) {{
  body {{ padding: 0.6rem; }}
  th, td {{ padding: 0.25rem 0.3rem; font-size: 0.8rem; }}
  th.item, td.item {{ min-width: 5rem; }}
  .votes, .wins, .ties, .losses {{ display: none; }}
}}
</style>
</head>
<body>
<h1>{title}</h1>
{lines}
<div class="plot">{plot}</div>
<div class="scroll">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
</body>
</html>
"""


def write_board(path: Path, title: str, board: Board, top: int | None) -> None:
    """Write the page, whole or not at all; it asks for nothing else."""
    columns, rows = board_text(board, top)
    shown = len(rows)
    lines = board_lines(board, top)
    if shown > MOST_DOTS:
        lines.append(f"plot: the best {MOST_DOTS}")
    page = PAGE.format(
        title=escape(title),
        lines="\n".join(f"<p>{escape(line)}</p>" for line in lines),
        plot=plot(board, min(shown, MOST_DOTS)),
        head=cells("th", columns, columns),
        body="\n".join(f"<tr>{cells('td', columns, row)}</tr>" for row in rows),
    )
    with write_atomically(path) as stream:
        stream.write(page.encode())


def cells(tag: str, columns: list[str], texts: list[str]) -> str:
    """Give the cells of a row; the class names the column."""
    pairs = zip(columns, texts, strict=True)
    return "".join(f'<{tag} class="{column}">{escape(text)}</{tag}>' for column, text in pairs)


def plot(board: Board, shown: int) -> str:
    """Give the dot plot, the best on top, with plotly itself: the page works offline."""
    figure = dots(board, shown)
    made = figure.to_html(
        full_html=False, include_plotlyjs=True, config={"displayModeBar": False, "responsive": True}
    )
    return str(made)


def dots(board: Board, shown: int) -> Any:
    """Give ratings as dots, intervals as lines."""
    from plotly.graph_objects import Figure, Scatter

    rows = board.table.rows[:shown]
    ratings = [row.rating for row in rows]
    bars = None
    if board.intervals:
        above = [row.high - row.rating for row in rows]
        below = [row.rating - row.low for row in rows]
        bars = {
            "type": "data",
            "array": above,
            "arrayminus": below,
            "color": BLUE,
            "thickness": 2,
            "width": 0,
        }
    trace = Scatter(
        x=ratings,
        y=list(range(shown)),
        error_x=bars,
        mode="markers",
        marker={"color": BLUE, "size": 9},
        customdata=[[escape(str(row.item)), row.low, row.high] for row in rows],
        hovertemplate=hover(board),
    )
    figure = Figure(trace)
    figure.update_layout(
        height=MARGIN + ROW * shown,
        margin={"t": 60, "b": 10, "l": 10, "r": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        showlegend=False,
        font={"color": GREY, "size": 13},
    )
    labels = [short(str(row.item)) for row in rows]
    ends = [shown - 0.4, -0.6]
    figure.update_yaxes(
        tickvals=list(range(shown)),
        ticktext=labels,
        range=ends,
        automargin=True,
        fixedrange=True,
        zeroline=False,
    )
    figure.update_xaxes(title=board.unit, fixedrange=True, gridcolor=GREY, zerolinecolor=GREY, side="top")
    return figure


def hover(board: Board) -> str:
    """Give what is said of a dot."""
    ends = " (%{customdata[1]:.4g} to %{customdata[2]:.4g})" if board.intervals else ""
    return f"%{{customdata[0]}}: %{{x:.4g}}{ends}<extra></extra>"


def short(name: str, most: int = 22) -> str:
    """Give a name that leaves room for the plot; plotly would read < as a tag.

    >>> short("a very long name of some model")
    'a very long name of s…'
    """
    return escape(name if len(name) <= most else f"{name[: most - 1]}…")
