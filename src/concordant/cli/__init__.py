"""The command line: each command is one file, from arguments over public calls to tables or JSON.

Only typer and rich load here: numba and the rest load inside the commands, so that `concordant --help` is
quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from concordant.cli import aggregate, bounds, certify, compare, datasets, demo, evaluate, explain, reproduce
from concordant.cli.convert import EXAMPLES as CONVERT
from concordant.cli.convert import convert
from concordant.cli.export import EXAMPLES as EXPORT
from concordant.cli.export import export
from concordant.cli.model_comparison import EXAMPLES as COMPARE_MODELS
from concordant.cli.model_comparison import compare_models
from concordant.cli.output import examples, show_error
from concordant.cli.rank import EXAMPLES as RANK
from concordant.cli.rank import rank
from concordant.cli.report import EXAMPLES as REPORT
from concordant.cli.report import report
from concordant.cli.rerun import EXAMPLES as RERUN
from concordant.cli.rerun import rerun
from concordant.cli.train import EXAMPLES as TRAIN
from concordant.cli.train import train
from concordant.cli.tune import EXAMPLES as TUNE
from concordant.cli.tune import tune
from concordant.exceptions import ConcordantError

__all__ = ["app", "main"]

BAD_INPUT = 2  # as for wrong usage: both are the caller's to mend
INTERRUPTED = 130  # 128 + SIGINT, what shells expect


class Commands(TyperGroup):
    """The commands, with one place where bad input becomes a message and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; bad input and unreadable files end it without a traceback."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has gone: typer ends quietly
            raise
        except (ConcordantError, OSError) as error:
            show_error(error)
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt as stop:
            raise typer.Exit(INTERRUPTED) from stop


app = typer.Typer(
    cls=Commands,
    name="concordant",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "concordant demo",
        "concordant train train.txt --test test.txt -o runs/linear",
        "concordant evaluate --qrels test.qrels --run bm25.run",
    ),
)


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from concordant import __version__

        typer.echo(f"concordant {__version__}")
        raise typer.Exit


@app.callback()
def concordant(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Learning to rank with guarantees: rankers, what they are worth, and what is proven of them."""
    del version  # the callback has answered


RANKERS, WORTH, THEORY, PAIRS, MORE = "Rankers", "Worth", "Theory", "Votes and pairs", "More"

app.command(epilog=TRAIN, rich_help_panel=RANKERS)(train)
app.command(epilog=TUNE, rich_help_panel=RANKERS)(tune)
app.command(epilog=RANK, rich_help_panel=RANKERS)(rank)
app.command(epilog=RERUN, rich_help_panel=RANKERS)(rerun)
app.command(epilog=EXPORT, rich_help_panel=RANKERS)(export)
app.command(epilog=evaluate.EXAMPLES, rich_help_panel=WORTH)(evaluate.evaluate)
app.command("compare-models", epilog=COMPARE_MODELS, rich_help_panel=WORTH)(compare_models)
app.command(epilog=REPORT, rich_help_panel=WORTH)(report)
app.command(epilog=explain.EXAMPLES, rich_help_panel=WORTH)(explain.explain)
app.command(epilog=certify.EXAMPLES, rich_help_panel=THEORY)(certify.certify)
app.command(epilog=bounds.EXAMPLES, rich_help_panel=THEORY)(bounds.bounds)
app.command(epilog=aggregate.EXAMPLES, rich_help_panel=PAIRS)(aggregate.aggregate)
app.add_typer(compare.app, name="compare", rich_help_panel=PAIRS)
app.command(epilog=demo.EXAMPLES, rich_help_panel=MORE)(demo.demo)
app.command(epilog=CONVERT, rich_help_panel=MORE)(convert)
app.command(epilog=datasets.EXAMPLES, rich_help_panel=MORE)(datasets.datasets)
app.add_typer(reproduce.app, name="reproduce", rich_help_panel=MORE)


def main() -> None:
    """Run the command line; the entry point `concordant`."""
    app(prog_name="concordant")
