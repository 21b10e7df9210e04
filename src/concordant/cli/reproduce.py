"""`concordant reproduce`: experiments, run again; one file an experiment."""

from __future__ import annotations

import typer

from concordant.cli import (
    boosting,
    bounds_simulation,
    buffoni,
    consistency,
    exactness,
    maxmargin,
    pairs,
    svmcompare,
)
from concordant.cli.output import examples

__all__ = ["app"]

EXAMPLES = examples("concordant reproduce consistency --quick", "concordant reproduce svmcompare --figure 4")
app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=EXAMPLES)


@app.callback()
def reproduce() -> None:
    """Experiments of papers and of the documentation, run again."""


app.command(epilog=boosting.EXAMPLES)(boosting.boosting)
app.command("bounds", epilog=bounds_simulation.EXAMPLES)(bounds_simulation.bounds)
app.command(epilog=buffoni.EXAMPLES)(buffoni.buffoni)
app.command(epilog=consistency.EXAMPLES)(consistency.consistency)
app.command(epilog=exactness.EXAMPLES)(exactness.exactness)
app.command(epilog=maxmargin.EXAMPLES)(maxmargin.maxmargin)
app.command(epilog=pairs.EXAMPLES)(pairs.pairs)
app.command(epilog=svmcompare.EXAMPLES)(svmcompare.svmcompare)
