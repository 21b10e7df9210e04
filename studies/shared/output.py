"""Output of the studies: tables with remarks, plain values, and CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from concordant._internals import print_json, show, write_rows

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

CsvFile = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Also write all numbers to this file, as CSV.")
]
QuickLook = Annotated[
    bool, typer.Option("--quick", metavar="", help="A look: one fold, few penalties. Not for reporting.")
]

RemarkedTable = tuple["Table", Sequence[str]]


class Report(Protocol):
    """A result in the forms in which a command gives it out."""

    def tables(self) -> Iterable[RemarkedTable]:
        """Return the tables for the terminal, each with the remarks below it."""

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, for `--json`."""


class RowReport(Report, Protocol):
    """A report that can be written as CSV."""

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the lines of the CSV file."""


def present(
    report: Report,
    *,
    as_json: bool,
    quiet: bool,
    settings: Mapping[str, Any] | None = None,
    remarks: Sequence[str] = (),
) -> None:
    """Print a report as JSON, or as tables with their remarks.

    Parameters
    ----------
    report
        The report.
    as_json
        Print plain values; else tables.
    quiet
        Print tables without remarks.
    settings
        Values that stand in the JSON before those of the report.
    remarks
        Remarks below every table, after its own.
    """
    if as_json:
        print_json({**(settings or {}), **report.to_dict()})
        return
    for table, table_remarks in report.tables():
        show(table, () if quiet else (*table_remarks, *remarks))


def write_csv(path: Path, report: RowReport) -> None:
    """Write the rows of a report, whole or not at all; numbers that are unknown are left empty."""
    rows = report.rows()
    write_rows(path, list(rows[0]), rows)


def add_blocks(table: Table, rows: Iterable[tuple[str, Sequence[str | Text]]]) -> None:
    """Add rows (block, cells), and a line between rows of different blocks."""
    last = None
    for block, cells in rows:
        if last not in (None, block):
            table.add_section()
        last = block
        table.add_row(*cells)
