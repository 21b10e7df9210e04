"""What all commands share: options, results as tables, JSON and files, progress, notes and errors."""

from __future__ import annotations

import csv
import errno
import functools
import inspect
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol
from warnings import WarningMessage

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from concordant.exceptions import ConcordantError, ParameterError

if TYPE_CHECKING:
    from rich.live import Live

COMPILING = "(slow the first time: it is compiled)"
SILENT = {"--quiet", "-q", "--json", "--help", "-h"}  # with these a command starts without a spinner
PIPED_WIDTH = 100_000  # a file or a pipe has no right margin: nothing is wrapped or cut


def option(names: str, metavar: str, text: str, panel: str | None = None, **more: Any) -> Any:
    """Create a typer option; its names are separated by blanks, as in "--output -o"."""
    return typer.Option(*names.split(), metavar=metavar, help=text, rich_help_panel=panel, **more)


def switch(names: str, text: str, panel: str | None = None, **more: Any) -> Any:
    """Create a typer option without a value."""
    return option(names, "", text, panel, **more)


def argument(metavar: str, text: str) -> Any:
    """Create a typer argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


AsJson = Annotated[bool, switch("--json", "Print JSON instead of tables.")]
DataFolder = Annotated[
    Path | None,
    option(
        "--folder",
        "FOLDER",
        "Folder that holds the datasets. Default: CONCORDANT_DATA, else the user's cache folder.",
    ),
]
Quiet = Annotated[bool, switch("--quiet -q", "Show the tables only: no progress, no notes.")]


def console(*, stderr: bool = False) -> Console:
    """Return the console of standard output (or error): as wide as the terminal, or unlimited in a pipe.

    It is called before anything is shown, and ends the spinner of `starting`.
    """
    _stop_starting()
    return _new_console(stderr=stderr)


def _new_console(*, stderr: bool) -> Console:
    # Ids and file names are printed as they are: "[b]" and ":x:" in them are neither markup nor emoji.
    screen = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not screen.is_terminal:
        screen.width = PIPED_WIDTH
    return screen


def examples(*commands: str) -> str:
    """Build the epilog of a help page; blank lines, since typer joins adjacent ones.

    >>> print(examples("concordant demo"))
    [bold]Examples[/bold]
    <BLANKLINE>
    [cyan]concordant demo[/cyan]
    """
    return "\n\n".join(
        ["[bold]Examples[/bold]", *(f"[cyan]{escape(command)}[/cyan]" for command in commands)]
    )


def new_table(
    title: str, *columns: str, numeric: Iterable[str] = (), rows: Iterable[Iterable[str | Text]] = ()
) -> Table:
    """Create a table; numeric columns are aligned right and never cut."""
    table = Table(title=Text(title), box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    right = set(numeric)
    for column in columns:
        table.add_column(
            Text(column),
            justify="right" if column in right else "left",
            no_wrap=column in right,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


def number(value: float) -> str:
    """Format a value for a table: four decimals, or a dash if it is undefined.

    >>> number(0.25), number(float("nan"))
    ('0.2500', '-')
    """
    return "-" if math.isnan(value) else f"{value:.4f}"


def plural(count: int, singular: str, many: str) -> str:
    """Format a count with its noun.

    >>> plural(1, "query", "queries"), plural(1200, "query", "queries")
    ('1 query', '1,200 queries')
    """
    return f"{count:,} {singular if count == 1 else many}"


class CommandResult(Protocol):
    """What a command has found: tables for people, plain values for programs."""

    def tables(self) -> Iterable[tuple[Table, Sequence[str]]]:
        """Yield each table with the remarks below it."""

    def to_dict(self) -> Any:
        """Return plain values for JSON."""


@dataclass(frozen=True)
class TableResult:
    """A result of at most one table, built beside its plain values."""

    values: Any
    table: Table | None = None
    remarks: Sequence[str] = ()

    def tables(self) -> Iterator[tuple[Table, Sequence[str]]]:
        """Yield the table with its remarks, if there is one."""
        if self.table is not None:
            yield self.table, self.remarks

    def to_dict(self) -> Any:
        """Return the plain values."""
        return self.values


@dataclass(frozen=True)
class Display:
    """How a command shows what it finds: as JSON or as tables, with notes and progress or without."""

    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def is_bare(self) -> bool:
        """True if nothing is shown but the result."""
        return self.as_json or self.quiet

    def present(self, result: CommandResult) -> None:
        """Print a result as JSON, or table by table; quiet leaves the remarks out."""
        if self.as_json:
            print_json(result.to_dict())
            return
        for table, remarks in result.tables():
            show(table, () if self.quiet else remarks)

    def notes(self, lines: Iterable[str]) -> None:
        """Print notes on standard error, unless quiet."""
        for line in () if self.quiet else lines:
            note(line)

    def working(self, message: str) -> AbstractContextManager[object]:
        """Show a spinner while the block runs, unless quiet."""
        return working(message, quiet=self.quiet)


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make an option of each field of parameters that are dataclasses; the command gets them filled in.

    Commands share options by such groups; their help is that of the options one by one.
    """
    parameters, groups = [], {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if isinstance(group, type) and is_dataclass(group):
            members = inspect.signature(group, eval_str=True).parameters
            parameters += [member.replace(kind=parameter.KEYWORD_ONLY) for member in members.values()]
            groups[parameter.name] = group, list(members)
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def expanded(**values: Any) -> None:
        filled = {
            name: group(**{member: values.pop(member) for member in members})
            for name, (group, members) in groups.items()
        }
        command(**values, **filled)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def show(table: Table, remarks: Iterable[str] = ()) -> None:
    """Print a table, remarks below it and an empty line; a pipe gets no blanks at the ends of lines."""
    out = console()
    title, table.title = table.title, None  # as a title it would be folded to the width of the table
    with out.capture() as captured:
        out.print(title, style="bold")
        out.print(table)
        for remark in remarks:
            out.print(Text(remark, style="dim"))
    text = captured.get()
    if not out.is_terminal:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    out.file.write(f"{text}\n")


def print_json(value: Any) -> None:
    """Print plain JSON and nothing else; NaN, which JSON does not have, becomes null."""
    typer.echo(json.dumps(without_nan(value), indent=2, allow_nan=False))


def without_nan(value: Any) -> Any:
    """Replace NaN and infinities by None.

    >>> without_nan({"a": [float("nan"), 1.0]})
    {'a': [None, 1.0]}
    """
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def working(message: str, *, quiet: bool = False) -> AbstractContextManager[object]:
    """Show a spinner on standard error while the block runs, if that is a terminal."""
    screen = console(stderr=True)
    return nullcontext() if quiet or not screen.is_terminal else screen.status(message)


STARTING: list[Live] = []  # the spinner that is shown until a command shows something itself


def _is_silent(args: Sequence[str]) -> bool:
    return any(word in SILENT or re.fullmatch(r"-[a-zA-Z]*q[a-zA-Z]*", word) for word in args)


@contextmanager
def starting(args: Sequence[str]) -> Iterator[None]:
    """Show a spinner on a terminal from the start of a command until it shows something itself.

    Imports and the first kernels take seconds; `args` are those of the command.
    """
    screen = _new_console(stderr=True)
    if screen.is_terminal and not STARTING and not _is_silent(args):
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots", f"Starting {COMPILING}")
        # What is printed meanwhile goes where it would go.
        live = Live(spinner, console=screen, transient=True, redirect_stdout=False, redirect_stderr=False)
        STARTING.append(live)
        live.start(refresh=True)
    try:
        yield
    finally:
        _stop_starting()


def _stop_starting() -> None:
    while STARTING:
        STARTING.pop().stop()


@contextmanager
def progress(first: str, *, total: int, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a bar on standard error while the block runs; calling the yielded function names the next step."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    screen = console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    shown = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())  # the ends move during long steps, too
    with Progress(*shown, console=screen, transient=True, disable=quiet or not screen.is_terminal) as bar:
        task = bar.add_task(first, total=total)
        yield lambda description: bar.update(task, description=description, advance=1)


def check_target(path: Path, *others: Path | None) -> None:
    """Raise before the work if a file cannot be written, or is one of the others."""
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    for other in others:
        if other is not None and same_file(path, other):
            reason = "it would overwrite a file that is read or written here too; give it another name"
            raise FileExistsError(errno.EEXIST, reason, str(path))


def check_table(path: Path | None, *others: Path | None, flag: str = "--output") -> None:
    """Raise before the work if a table cannot be written, or its suffix is not that of commas or tabs."""
    if path is None:
        return
    check_target(path, *others)
    if written_as(path) not in (".csv", ".tsv"):
        allowed = "a file that ends in .csv or .tsv, optionally followed by .gz, .xz, .bz2 or .zst"
        raise ParameterError(flag, str(path), allowed)


def written_as(path: Path) -> str:
    """Return the suffix of a file, without that of a compression.

    >>> written_as(Path("board.tsv.gz"))
    '.tsv'
    """
    from concordant._base.files import COMPRESSED

    return Path(path.stem if path.suffix in COMPRESSED else path.name).suffix.lower()


def same_file(path: Path, other: Path) -> bool:
    """True if two paths are one file: by the file system if both exist, else by name."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def separator(path: Path) -> str:
    """Return what stands between the cells of a text table: a tab in .tsv, else a comma."""
    return "\t" if written_as(path) == ".tsv" else ","


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a header and one line per row, whole or not at all; unknown numbers are left empty."""
    from concordant._base.files import write_atomically

    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), delimiter=separator(path), lineterminator="\n")
    writer.writeheader()
    writer.writerows(without_nan(dict(row)) for row in rows)
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())


def note(text: str) -> None:
    """Print a note in yellow on standard error."""
    console(stderr=True).print(Text(f"note: {in_flags(text)}", style="yellow"))


def warning_messages(caught: Iterable[WarningMessage]) -> list[str]:
    """Return the messages of warnings, each once, in the words of the command line."""
    return list(dict.fromkeys(in_flags(str(warning.message)).partition("\n")[0] for warning in caught))


def show_error(error: Exception) -> None:
    """Print an error in red, and its hint below it, on standard error."""
    name, reason = getattr(error, "filename", None), getattr(error, "strerror", None)
    text = f"{name}: {reason}" if name and reason else in_flags(str(error))
    if isinstance(error, MemoryError) and not isinstance(error, ConcordantError):
        text = f"not enough memory. {text}".rstrip()
    problem, _, hint = text.partition("\n")
    screen = console(stderr=True)
    screen.print(Text(f"error: {problem}", style="red"))
    if hint:
        screen.print(Text(hint))


# Messages of the library in the words of the command line: flags in place of keyword arguments.

FLAGS: ContextVar[dict[str, str]] = ContextVar("flags")  # keyword -> metavar, of the command that runs
VALUE = r"'[^']*'|\"[^\"]*\"|\[\.{3}\]|\.{3}|True|False|inf|-?\d[\d.e+-]*+"
KEYWORD = re.compile(  # not in a path, such as seed=1/part.csv
    rf"(?<!--set )(?<![\w\[({{,'\"=./\\-])([A-Za-z_]\w*)=({VALUE})(?![\w)/\\])"
)
PARAMETER = re.compile(r"\A([A-Za-z_]\w*)(?= must be .*, got | was given, but )", re.DOTALL)


def _certify_command(match: re.Match[str]) -> str:
    """Return the command that prints what a fitted certificate would."""
    metric, options = (
        match["metric"],
        [f"--{name} {match[name]}" for name in ("decoder", "labels") if match[name]],
    )
    words = ("concordant certify", metric and f"'{metric}'", match["surrogate"], *options)
    return f"See `{' '.join(filter(None, words))}`"


PYTHON: dict[
    str, str | Callable[[re.Match[str]], str]
] = {  # advice in Python that no flag replaces -> advice for the command line
    r"See print\(model\.certificate_\)( and cc\.certify\('(?P<metric>[^']+)', "
    r"(model\.surrogate_|'(?P<surrogate>\w+)', '(?P<decoder>[\w-]+)')(, labels='(?P<labels>\w+)')?\))?": (
        _certify_command
    ),
    r"(?s)cc\.certify\('([^']+)', [^)]*search=True\)": r"`concordant certify '\1' SURROGATE --search`",
    r"; model\.risk_bound\(X, y, qid=qid\)": "",
    r"pass zero_based=True if this file counts from 0": "rewrite a file that counts from 0 in Python, by "
    "cc.read_letor (its zero_based) and cc.write_letor",
    r"for raw counts use gain='linear'": "raw counts need a linear gain, as in 'ndcg@10[gain=linear]'",
    r"set max_grade in the convention: metric\('err', convention='max_grade=\.\.\.'\)": "write the highest "
    "grade that there can be into the metric, as in 'err[max_grade=5]'",
    r"BoostedRanker takes NaN": "--model boosted takes NaN",
    r"Use it with cc\.Comparer, .*": "`concordant compare fit` trains on pairs.",
    r"LinearRanker trains for": "--model linear trains for",
    r"LinearRanker\(surrogate=\.\.\.\)": "--model linear",
    r"PairRanker\(\"(\w+)\"\)": r"--model pairs --metric \1",
    r"If there are no ties, pass 2 \* y - 1 .*": "Use --outcomes score if 1 is the left's win and 0 its "
    "loss.",
    r"rows of yours \(golden\)": "rows of yours, --golden DATA",
    r"by np\.maximum\(y, 0\)": "before they are ranked",
    r"cc\.write_parquet\([^)]*\) (writes|converts)": r"`concordant convert` \1",
    r", or load it with verify=False": "",
    r"fit kernel='linear'": "fit it with --kernel linear",
    r"fit with booster='(\w+)'": r"train with --set booster=\1",
    r"features=\[\.{3}\] gives (?:the names that they have|them names)": "--features A,B,... names them",
}


def read_flags(command: Any) -> None:
    """Remember the options of the command that runs."""
    flags = ((flag, str(param.metavar or "")) for param in command.params for flag in param.opts)
    FLAGS.set({flag[2:].replace("-", "_"): metavar for flag, metavar in flags if flag.startswith("--")})


def in_flags(message: str) -> str:
    """Return a message of the library in the words of the command line."""
    for python, words in PYTHON.items():
        message = re.sub(python, words, message)
    message = PARAMETER.sub(lambda match: _flag_of(match[1]) or match[1], message)
    return KEYWORD.sub(_flagged, message)


def _flag_of(name: str) -> str:
    """Return the flag of a keyword argument; empty if the command that runs has none."""
    return f"--{name.replace('_', '-')}" if name in FLAGS.get({}) else ""


def _flagged(match: re.Match[str]) -> str:
    """Return a keyword argument as a flag, or unchanged if the command has none."""
    flags, (name, value) = FLAGS.get({}), match.groups()
    bare = value.strip("'\"")
    if flag := _flag_of(name):
        argument = f" {flags[name] if value in ('...', '[...]') else bare}" * (value not in ("True", "False"))
        return f"{flag}{argument}"
    quoted = value != bare or value in ("True", "False")
    return f"--set {name}={bare}" if "set" in flags and quoted else match[0]
