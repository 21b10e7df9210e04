"""What `train` found: as tables and sentences, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant.cli.output import console, new_table, note, show
from concordant.cli.results import mean_tables, remarks
from concordant.cli.train_kinds import defaults_of

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.cli.train_fit import Trained

__all__ = ["as_plain", "data_table", "show_run", "spelled"]


def show_run(done: Trained, *, quiet: bool) -> None:
    """Print the run; without notes and certificate where nothing but tables is asked for."""
    if not quiet:
        if done.resumed:
            note(f"{done.folder.path} was interrupted, and has gone on where it was")
        for line in done.notes:
            note(line)
    show(data_table(done))
    tables = mean_tables(done.results)
    for table in tables[:-1]:
        show(table)
    rankings = list({id(one.ranking): one.ranking for one in done.results}.values())
    show(tables[-1], [] if quiet else remarks(rankings, done.results))
    if not quiet:
        screen = console()
        screen.print(Text(done.model.certificate_.paragraph()))
        screen.print(Text(f"\nrun: {done.folder.path} ({done.facts['seconds']:.1f} s)", style="dim"))


def data_table(done: Trained) -> Table:
    """Give the sizes of the sets, under the name of the ranker."""
    title = f"{done.config.kind} for {done.config.metric}{changes(done)}"
    table = new_table(title, "data", "rows", "queries", "features", "file")
    for part, facts in done.facts["data"].items():
        counts = (f"{facts[key]:,}" for key in ("rows", "queries", "features"))
        table.add_row(part, *counts, done.config.files[part].name)
    for column in table.columns[1:4]:
        column.justify = "right"
    return table


def changes(done: Trained) -> str:
    """Give the parameters that are not the default ones."""
    defaults = defaults_of(done.config.kind)
    said = [
        f"{key}={spelled(value)}" for key, value in done.config.parameters.items() if value != defaults[key]
    ]
    return f" ({', '.join(said)})" if said else ""


def spelled(value: Any) -> str:
    """Give a parameter in few digits.

    >>> spelled(0.0316227766), spelled(31), spelled((16, 8))
    ('0.03162', '31', '(16, 8)')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def as_plain(done: Trained) -> dict[str, Any]:
    """Give all of it as plain values."""
    return {
        "run": str(done.folder.path),
        "resumed": done.resumed,
        "config": done.config.sections(),
        **done.facts,
        **done.metrics(),
        "certificate": done.model.certificate_.to_dict(),
    }
