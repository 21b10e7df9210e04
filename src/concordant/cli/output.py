"""What every command shares: the console, tables, JSON, a sign of life, error messages."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.evaluation.significance import Comparison

__all__ = [
    "COMPILING",
    "AsJson",
    "DataFolder",
    "Quiet",
    "check_table",
    "check_target",
    "compared",
    "console",
    "examples",
    "mark",
    "new_table",
    "note",
    "number",
    "plural",
    "print_json",
    "progress",
    "show",
    "show_error",
    "significance",
    "working",
    "write_rows",
]

COMPILING = "(slow the first time: it is compiled)"
PIPED_WIDTH = 100_000  # a file or a pipe has no right margin: nothing is wrapped or cut

AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of tables.")]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="FOLDER",
        help="Folder that holds the datasets. Default: CONCORDANT_DATA, else the user's cache folder.",
        show_default=False,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", metavar="", help="Show the tables only: no progress, no notes.")
]


def console(*, stderr: bool = False) -> Console:
    """Give the console of standard output (or error): as wide as the terminal, or unlimited in a pipe."""
    # Ids and file names are printed as they are: "[b]" and ":x:" in them are neither markup nor emoji.
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = PIPED_WIDTH
    return made


def examples(*commands: str) -> str:
    """Give the epilog of a help page; blank lines, since typer joins adjacent ones.

    >>> print(examples("concordant demo"))
    [bold]Examples[/bold]
    <BLANKLINE>
    [cyan]concordant demo[/cyan]
    """
    return "\n\n".join(
        ["[bold]Examples[/bold]", *(f"[cyan]{escape(command)}[/cyan]" for command in commands)]
    )


def new_table(title: str, *columns: str, numeric: Iterable[str] = ()) -> Table:
    """Give an empty table; numeric columns stand to the right and are never cut."""
    table = Table(title=Text(title), box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    right = set(numeric)
    for column in columns:
        table.add_column(
            Text(column),
            justify="right" if column in right else "left",
            no_wrap=column in right,
            overflow="fold",
        )
    return table


def number(value: float) -> str:
    """Give a value for a table: four decimals, or a dash where it is undefined.

    >>> number(0.25), number(float("nan"))
    ('0.2500', '-')
    """
    return "-" if math.isnan(value) else f"{value:.4f}"


def mark(*, significant: bool) -> str:
    """Give an arrow, or a letter where the screen has none; a blank keeps the digits in line."""
    if not significant:
        return " "
    return "↓" if console().encoding.lower().startswith("utf") else "v"


def compared(told: Comparison) -> Text:
    """Give a mean, bold where it is the best, marked where it is significantly worse."""
    return Text(number(told.mean) + mark(significant=told.significant), style="bold" if told.best else "")


def significance(told: Iterable[Comparison], n_methods: int) -> str:
    """Say what the marks of a table mean."""
    who = f"{mark(significant=True)} is" if any(one.significant for one in told) else "no method is"
    return (
        f"{who} significantly worse than the best of its column: two-sided paired t-test over queries "
        f"at 5 %, Holm's correction over the other {n_methods - 1} methods"
    )


def plural(count: int, one: str, many: str) -> str:
    """Give a count with the noun that goes with it.

    >>> plural(1, "query", "queries"), plural(1200, "query", "queries")
    ('1 query', '1,200 queries')
    """
    return f"{count:,} {one if count == 1 else many}"


def show(table: Table, remarks: Iterable[str] = ()) -> None:
    """Print a table, remarks below it and an empty line; a pipe gets no blanks at the ends of lines."""
    out = console()
    title, table.title = table.title, None  # as a title it would be folded to the width of the table
    with out.capture() as held:
        out.print(title, style="bold")
        out.print(table)
        for remark in remarks:
            out.print(Text(remark, style="dim"))
    text = held.get()
    if not out.is_terminal:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    out.file.write(f"{text}\n")


def print_json(value: Any) -> None:
    """Print plain JSON and nothing else; NaN, which JSON does not know, becomes null."""
    typer.echo(json.dumps(without_nan(value), indent=2, allow_nan=False))


def without_nan(value: Any) -> Any:
    """Give the same value with null for NaN and infinities.

    >>> without_nan({"a": [float("nan"), 1.0]})
    {'a': [None, 1.0]}
    """
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def working(message: str, *, quiet: bool = False) -> AbstractContextManager[object]:
    """Show a spinner on standard error while the block runs; nothing where nobody watches."""
    screen = console(stderr=True)
    return nullcontext() if quiet or not screen.is_terminal else screen.status(message)


@contextmanager
def progress(first: str, *, total: int, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a bar on standard error while the block runs; calling what it gives names the next step."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    screen = console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    shown = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())  # some of it moves in long steps, too
    with Progress(*shown, console=screen, transient=True, disable=quiet or not screen.is_terminal) as bar:
        task = bar.add_task(first, total=total)
        yield lambda description: bar.update(task, description=description, advance=1)


def check_target(path: Path, *others: Path | None) -> None:
    """Refuse a file that could not be written, or that is one of the others, before minutes of work."""
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    for other in others:
        if other is not None and same_file(path, other):
            reason = "it would overwrite a file that is read or written here too; give it another name"
            raise FileExistsError(errno.EEXIST, reason, str(path))


def check_table(path: Path) -> None:
    """Refuse a table that would not be what its name says: text with commas or tabs is written."""
    if written_as(path) not in (".csv", ".tsv"):
        allowed = "a file that ends in .csv or .tsv, or in those and .gz, .xz, .bz2 or .zst"
        raise ParameterError("--output", str(path), allowed)


def written_as(path: Path) -> str:
    """Give the suffix of a file, that of a compression left out.

    >>> written_as(Path("board.tsv.gz"))
    '.tsv'
    """
    from concordant.supervision.readers.text import COMPRESSED

    return Path(path.stem if path.suffix in COMPRESSED else path.name).suffix.lower()


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths are one file: by what is there, else by name."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a header and one line a row, whole or not at all; nothing where a number is not known."""
    from concordant.supervision.readers.text import write_atomically

    text = io.StringIO()
    separator = "\t" if written_as(path) == ".tsv" else ","
    writer = csv.DictWriter(text, list(columns), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(without_nan(dict(row)) for row in rows)
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())


def note(text: str) -> None:
    """Print what a reader should know, in yellow, on standard error."""
    console(stderr=True).print(Text(f"note: {text}", style="yellow"))


def show_error(error: Exception) -> None:
    """Print what was wrong, in red, and the hint below it, on standard error."""
    name, reason = getattr(error, "filename", None), getattr(error, "strerror", None)
    problem, _, hint = (f"{name}: {reason}" if name and reason else str(error)).partition("\n")
    screen = console(stderr=True)
    screen.print(Text(f"error: {problem}", style="red"))
    if hint:
        screen.print(Text(hint))
