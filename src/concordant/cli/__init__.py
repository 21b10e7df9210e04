"""The command line: each command is one file, from arguments over public calls to tables or JSON.

Only typer and rich load here: numba and the rest load inside the commands, so that `concordant --help` is
fast.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from concordant.cli import (
    aggregate,
    bounds,
    certify,
    compare,
    compare_models,
    convert,
    datasets,
    demo,
    evaluate,
    explain,
    export,
    rank,
    report,
    rerun,
)
from concordant.cli.shared.output import examples, expand_groups, read_flags, show_error, starting
from concordant.cli.train import train as train_command
from concordant.cli.tune import tune as tune_command
from concordant.exceptions import ConcordantError

__all__ = ["Commands", "app", "main", "run"]

BAD_INPUT = 2  # as for wrong usage: the caller can correct both
INTERRUPTED = 130  # 128 + SIGINT, what shells expect
STUDIES = "Reproductions of the papers and other studies: python -m studies, in the source repository."
UNREAD = 141  # 128 + SIGPIPE, of a command whose reader has gone


class Commands(TyperGroup):
    """Command group that turns bad input into an error message and an exit status."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command and remember its flags, which error messages use."""
        name, command, rest = resolved = super().resolve_command(ctx, args)
        del name
        if not ctx.resilient_parsing:  # completion of the shell
            ctx.with_resource(starting(rest))
        words = list(rest)
        while words and words[0] in getattr(command, "commands", ()):
            command = command.commands[words.pop(0)]  # type: ignore[union-attr]
        read_flags(command)
        return resolved

    def invoke(self, ctx: Any) -> Any:
        """Run the command; bad input, unreadable files and lost output end it without a traceback."""
        try:
            value = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise typer.Exit(UNREAD) from error
        except (ConcordantError, OSError, MemoryError) as error:
            show_error(error)
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt as stop:
            raise typer.Exit(INTERRUPTED) from stop
        return value


app = typer.Typer(
    cls=Commands,
    name="concordant",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"{STUDIES}\n\n"
    + examples(
        "concordant demo",
        "concordant train train.txt --test test.txt -o runs/linear",
        "concordant evaluate --qrels test.qrels --run bm25.run",
    ),
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from concordant import __version__

        typer.echo(f"concordant {__version__}")
        raise typer.Exit


@app.callback()
def concordant(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Learning to rank with guarantees: rankers, what they are worth, and what is proven of them."""
    del version  # the callback has answered


COMMANDS = {  # of each panel of the help: the module and the name of its function
    "Rankers": {train_command: "train", tune_command: "tune", rank: "rank", rerun: "rerun", export: "export"},
    "Worth": {evaluate: "evaluate", compare_models: "compare_models", report: "report", explain: "explain"},
    "Theory": {certify: "certify", bounds: "bounds"},
    "Votes and pairs": {aggregate: "aggregate"},
    "More": {demo: "demo", convert: "convert", datasets: "datasets"},
}
for panel, commands in COMMANDS.items():
    for module, name in commands.items():
        command = expand_groups(getattr(module, name))
        app.command(name.replace("_", "-"), epilog=module.EXAMPLES, rich_help_panel=panel)(command)
app.add_typer(compare.app, name="compare", rich_help_panel="Votes and pairs")


def main() -> None:
    """Run the command line; the entry point `concordant`."""
    run(app, "concordant")


def run(program: typer.Typer, name: str) -> None:
    """Run a program of `Commands`: lost output ends it without a traceback, also after the last command."""
    _prepare_streams()
    try:
        program(prog_name=name)
    except OSError as error:  # of a help page; commands have shown their own errors
        show_error(error)
        sys.exit(BAD_INPUT)
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # already reported; Python would flush again at exit, and report it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_streams() -> None:
    """Stop if standard output is closed; escape characters that its encoding lacks; write whole or fail."""
    if sys.stderr is None:  # closed: the next file opened would get what libraries print there
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        show_error(OSError(errno.EBADF, "it is closed; > /dev/null discards results", "standard output"))
        sys.exit(BAD_INPUT)
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return
    sys.stdout.reconfigure(errors="backslashreplace")  # as standard error is
    if isinstance(raw := sys.stdout.buffer, io.RawIOBase):  # PYTHONUNBUFFERED: a write may be cut unnoticed
        encoding = sys.stdout.encoding
        sys.stdout.detach()
        stream = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(stream, encoding, "backslashreplace", line_buffering=True)
