"""`concordant datasets`: facts on public datasets, and which of them are on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from rich.text import Text

from concordant.cli.shared.output import DataFolder, Display, TableResult, argument, examples, new_table

EXAMPLES = examples("concordant datasets", "concordant datasets mslr-web10k", "concordant datasets --json")
COUNTS = ("queries", "documents", "features")


def datasets(
    name: Annotated[str | None, argument("NAME", "One dataset, in detail.")] = None,
    *,
    folder: DataFolder = None,
    display: Display,
) -> None:
    """Public datasets: size, licence, where to get them, and which are on this machine."""
    import concordant as cc

    rows = cc.datasets.table(folder)
    if name is not None:
        result = _describe_dataset(name, rows, folder)
    else:
        remarks = [f"folder: {cc.datasets.data_folder(folder)}", "details: concordant datasets NAME"]
        result = TableResult(rows, _dataset_table(rows), remarks)
    display.present(result)


def _dataset_table(rows: list[dict[str, Any]]) -> Table:
    table = new_table("datasets", "name", "kind", *COUNTS, "here", numeric=COUNTS)
    for row in rows:
        counts = (f"{row[key]:,}" if row[key] is not None else "" for key in COUNTS)
        table.add_row(row["name"], row["kind"], *counts, _yes_or_no(row["present"]))
    return table


def _yes_or_no(answer: bool) -> Text:
    return Text("yes", style="green") if answer else Text("no", style="dim")


def _describe_dataset(name: str, rows: list[dict[str, Any]], folder: Path | None) -> TableResult:
    import concordant as cc
    from concordant.data.datasets.dataset import file_names

    dataset = cc.datasets.get(name)
    (row,) = (row for row in rows if row["name"] == name)
    root = cc.datasets.data_folder(folder)
    layouts = [file_names(layout, 1, layout) for layout in dataset.layouts]
    facts = row | {
        "title": dataset.title,
        "folders": [str(root / home) for home in dataset.folders],
        "files": [[file for part in layout.values() for file in part] for layout in layouts],
    }
    table = new_table(f"{name}: {dataset.title}", "", "")
    table.show_header = False
    for key in ("kind", *COUNTS, "grades", "folds", "licence", "source"):
        value = facts[key]
        if value not in (None, "", 0):
            table.add_row(key, f"{value:,}" if isinstance(value, int) else value)
    table.add_row("folder", " or\n".join(facts["folders"]))
    table.add_row("files", " or\n".join(", ".join(files) for files in facts["files"]))
    table.add_row("here", _yes_or_no(facts["present"]))
    return TableResult(facts, table)
