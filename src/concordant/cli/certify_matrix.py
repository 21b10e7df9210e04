"""The table of `concordant certify --matrix`: a word and a colour for every metric and surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from concordant.cli.output import console, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from concordant.theory.matrix import Cell, Matrix, Row

__all__ = ["matrix_table", "remarks", "show_matrix", "style_of"]

Marks: TypeAlias = dict[tuple[str, tuple[str, ...]], str]  # of status and conditions
TITLE = "What is known of each metric with each surrogate"
COLOURS = {"proven": "green", "conditional": "cyan", "refuted": "red", "open": "magenta", "misfit": "dim"}
UNDER = "yellow"  # refuted, but for a condition
GAPS = (1, 2)  # between columns: the wider one where it costs no further table
SHORT = 6  # letters of a fraction that is shown as it is
LOST = 1e-6  # a larger regret, not verified, is shown as a doubt


def show_matrix(known: Matrix, *, quiet: bool = False) -> None:
    """Print the matrix as wide as the screen allows, then what the words mean."""
    show(matrix_table(known, console().width), [] if quiet else remarks(known))


def matrix_table(known: Matrix, width: int) -> Table:
    """Give the matrix and its legend; surrogates that do not fit beside the others stand below them."""
    marks = marks_of(known)
    whole = Table.grid()
    whole.title = Text(TITLE)
    whole.add_row("")
    dense, airy = (blocks(known, marks, width, gap) for gap in GAPS)
    gap, shares = (GAPS[1], airy) if len(airy) == len(dense) else (GAPS[0], dense)
    for columns in shares:
        whole.add_row(block(known, marks, columns, gap))
        whole.add_row("")
    whole.add_row(legend(known, marks))
    return whole


def style_of(status: str, holds_under: Sequence[str]) -> str:
    """Give the colour of an answer."""
    return UNDER if status == "refuted" and holds_under else COLOURS[status]


def marks_of(known: Matrix) -> Marks:
    """Number the conditions, in the order of their appearance."""
    met = dict.fromkeys((cell.status, cell.holds_under) for cell in known.cells if cell.holds_under)
    return {held: f"if {number}" for number, held in enumerate(met, start=1)}


def word(cell: Cell, marks: Marks) -> str:
    """Give the answer in a word."""
    return "-" if cell.certificate is None else marks.get((cell.status, cell.holds_under), cell.status)


def evidence(cell: Cell) -> str | None:
    """Give what the counterexample loses, else how often the answer was tried; None if it was not.

    A regret that was seen, but not verified in exact arithmetic, has a question mark.
    """
    from concordant.theory.exact.enclosure import low

    if cell.certificate is None or cell.certificate.tried is None:
        return None
    found, tried = cell.certificate.counterexample, cell.certificate.tried
    if found is not None:
        lost = low(found.regret)
        return f"-{lost}" if len(str(lost)) <= SHORT else f"-{float(lost):.2g}"
    return f"0/{tried.distributions:,}" if tried.worst < LOST else f"?{tried.worst:.2g}"


def shown(cell: Cell, marks: Marks) -> Text:
    """Give a cell: the word, coloured, and below it the evidence."""
    seen = evidence(cell)
    answer = Text(word(cell, marks), style=style_of(cell.status, cell.holds_under))
    return answer if seen is None else Text("\n").join([answer, Text(seen, style="dim")])


def heading(surrogate: str) -> str:
    """Break a name into short lines.

    >>> heading("plackett_luce").split(), heading("pairwise(hinge)").split()
    (['plackett', '_luce'], ['pairwise', '(hinge)'])
    """
    return surrogate.replace("_", "\n_").replace("(", "\n(")


def row_names(row: Row) -> tuple[str, str]:
    """Give the metric and its labels, the space that is tried first."""
    return row.metric, "/".join(row.spaces)


def blocks(known: Matrix, marks: Marks, width: int, gap: int) -> list[list[int]]:
    """Share the columns among as few tables as fit the width, about equally."""
    rows = list(known.rows())
    names = [*map(row_names, rows), ("metric", "labels")]
    left = sum(max(longest(pair[side]) for pair in names) + gap for side in (0, 1))
    sizes = [
        max(longest(heading(name)), *(longest(shown(row.cells[column], marks).plain) for row in rows)) + gap
        for column, name in enumerate(known.surrogates)
    ]
    for count in range(1, len(sizes) + 1):
        shares = [list(share) for share in shared(len(sizes), count)]
        if all(left + sum(sizes[column] for column in share) - gap <= width for share in shares):
            break
    return shares


def shared(total: int, count: int) -> Iterator[range]:
    """Cut a range into parts whose lengths differ by at most 1.

    >>> list(shared(5, 2))
    [range(0, 3), range(3, 5)]
    """
    short, longer = divmod(total, count)
    first = 0
    for part in range(count):
        last = first + short + (part < longer)
        yield range(first, last)
        first = last


def longest(text: str) -> int:
    """Give the length of the longest line."""
    return max(map(len, text.split("\n")))


def block(known: Matrix, marks: Marks, columns: Sequence[int], gap: int) -> RenderableType:
    """Give some columns of the matrix as a table."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for name in ("metric", "labels", *(heading(known.surrogates[column]) for column in columns)):
        table.add_column(Text(name), no_wrap=True, vertical="top")
    for row in known.rows():
        names = (Text(name) for name in row_names(row))
        table.add_row(*names, *(shown(row.cells[column], marks) for column in columns))
    return table


def legend(known: Matrix, marks: Marks) -> RenderableType:
    """Say what the words mean that the matrix uses."""
    from concordant.theory.matrix import MISFIT
    from concordant.theory.theorem import STATUSES

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    used = {cell.status for cell in known.cells if not cell.holds_under}
    for status, meaning in STATUSES.items():
        if status in used:
            table.add_row(Text(status, style=COLOURS[status]), Text(meaning))
    for (status, held), mark in marks.items():
        table.add_row(Text(mark, style=style_of(status, held)), Text(under(status, held)))
    if MISFIT in used:
        table.add_row(Text("-", style=COLOURS[MISFIT]), Text("The parts do not fit together."))
    table.add_row("")
    return table


def under(status: str, held: Sequence[str]) -> str:
    """Say what conditions do, and what they are."""
    from concordant.theory.catalogue import MEANINGS

    told = "; or under ".join(f"{name}: {MEANINGS[name]}" for name in held)
    beyond = "Refuted" if status == "refuted" else "Unknown"
    return f"{beyond} in general; consistent under {told}."


def remarks(known: Matrix) -> Iterator[str]:
    """Say what the matrix leaves out, what was tried, and where the reasons are."""
    yield "Items are sorted by their scores; scores of pairs are decoded exactly."
    if len({cell.metric for cell in known.cells}) > 1:
        yield "Two grades (binary) have a row of their own only where they have an answer of their own."
        yield "Other cutoffs share a row: ndcg@10 that of ndcg, p@10 that of p@2, ap@10 that of ap@2."
    seen = [cell.certificate.tried for cell in known.cells if cell.certificate and cell.certificate.tried]
    if seen:
        items = max(max(tried.n_items) for tried in seen)
        yield (
            "Below each: -x is what a counterexample loses, verified in exact arithmetic; 0/n means that "
            "nothing was lost on any of n label distributions; ?x is a loss that was not verified. Tried: up "
            f"to {items} items, seed {seen[0].seed}, the first labels of a row."
        )
    yield "Why: concordant certify METRIC SURROGATE; with --search, the counterexample."
