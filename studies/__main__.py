"""`python -m studies NAME`: papers run again, and other studies, one command each."""

from __future__ import annotations

import typer

from concordant._internals import Commands, examples, run
from studies.boosting import command as boosting
from studies.buffoni import command as buffoni
from studies.consistency import command as consistency
from studies.defaults import command as defaults
from studies.ramaswamy.exactness import command as exactness
from studies.ramaswamy.pairs import command as pairs
from studies.riezler_debona.bounds import command as bounds
from studies.riezler_debona.maxmargin import command as maxmargin
from studies.venuto.svmcompare import command as svmcompare

PROGRAM = "python -m studies"
PAPERS, OTHERS = "Papers", "Other studies"

app = typer.Typer(
    cls=Commands,
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("python -m studies consistency --quick", "python -m studies svmcompare --figure 4"),
)


@app.callback()
def studies() -> None:
    """Papers run again, and other studies. Run from the root of concordant's source repository."""


app.command(epilog=buffoni.EXAMPLES, rich_help_panel=PAPERS)(buffoni.buffoni)
app.command(epilog=maxmargin.EXAMPLES, rich_help_panel=PAPERS)(maxmargin.maxmargin)
app.command(epilog=bounds.EXAMPLES, rich_help_panel=PAPERS)(bounds.bounds)
app.command(epilog=svmcompare.EXAMPLES, rich_help_panel=PAPERS)(svmcompare.svmcompare)
app.command(epilog=pairs.EXAMPLES, rich_help_panel=PAPERS)(pairs.pairs)
app.command(epilog=exactness.EXAMPLES, rich_help_panel=PAPERS)(exactness.exactness)
app.command(epilog=consistency.EXAMPLES, rich_help_panel=OTHERS)(consistency.consistency)
app.command(epilog=boosting.EXAMPLES, rich_help_panel=OTHERS)(boosting.boosting)
app.command(epilog=defaults.CHOICE, rich_help_panel=OTHERS)(defaults.choice)
app.command("tree_choice", epilog=defaults.TREE_CHOICE, rich_help_panel=OTHERS)(defaults.tree_choice)


def main() -> None:
    """Run the command line."""
    run(app, PROGRAM)


if __name__ == "__main__":
    main()
