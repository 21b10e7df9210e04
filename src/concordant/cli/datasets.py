"""`concordant datasets`: what is known about public datasets, and which are on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from concordant.cli.output import AsJson, DataFolder, Quiet, examples, new_table, print_json, show

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["EXAMPLES", "datasets"]

EXAMPLES = examples("concordant datasets", "concordant datasets mslr-web10k", "concordant datasets --json")
COUNTS = ("queries", "documents", "features")


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One dataset, in detail.", show_default=False)
    ] = None,
    *,
    folder: DataFolder = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Public datasets: size, licence, where to get them, and which are on this machine."""
    import concordant as cc

    rows = cc.datasets.table(folder)
    if name is not None:
        show_one(detail(name, rows, folder), as_json=as_json)
    elif as_json:
        print_json(rows)
    else:
        root = cc.datasets.data_folder(folder)
        show(table_of(rows), [] if quiet else [f"folder: {root}", "details: concordant datasets NAME"])


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Give the table of all sets."""
    table = new_table("datasets", "name", "kind", *COUNTS, "here", numeric=COUNTS)
    for row in rows:
        counts = (f"{row[key]:,}" if row[key] is not None else "" for key in COUNTS)
        table.add_row(row["name"], row["kind"], *counts, yes_or_no(row["present"]))
    return table


def yes_or_no(answer: bool) -> Text:
    """Give the answer in its colour."""
    return Text("yes", style="green") if answer else Text("no", style="dim")


def detail(name: str, rows: list[dict[str, Any]], folder: Path | None) -> dict[str, Any]:
    """Give all that is known about one set."""
    import concordant as cc
    from concordant.supervision.datasets.files import file_names

    dataset = cc.datasets.get(name)
    (row,) = (row for row in rows if row["name"] == name)
    root = cc.datasets.data_folder(folder)
    layouts = [file_names(layout, 1, layout) for layout in dataset.layouts]
    return row | {
        "title": dataset.title,
        "folders": [str(root / home) for home in dataset.folders],
        "files": [[file for part in layout.values() for file in part] for layout in layouts],
    }


def show_one(facts: dict[str, Any], *, as_json: bool) -> None:
    """Print one set in detail."""
    if as_json:
        print_json(facts)
        return
    table = new_table(f"{facts['name']}: {facts['title']}", "", "")
    table.show_header = False
    for key in ("kind", *COUNTS, "grades", "folds", "licence", "source"):
        value = facts[key]
        if value not in (None, "", 0):
            table.add_row(key, f"{value:,}" if isinstance(value, int) else value)
    table.add_row("folder", " or\n".join(facts["folders"]))
    table.add_row("files", " or\n".join(", ".join(files) for files in facts["files"]))
    table.add_row("here", yes_or_no(facts["present"]))
    show(table)
