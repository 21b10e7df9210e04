"""`concordant compare`: models of pairs, fitted, applied, and turned into leaderboards."""

from __future__ import annotations

import typer

from concordant.cli import compare_fit, compare_predict, compare_rank
from concordant.cli.output import examples

__all__ = ["app"]

EXAMPLES = examples(
    "concordant compare fit votes.csv -o votes.cmp",
    "concordant compare predict votes.cmp next.csv",
    "concordant compare rank votes.cmp --html leaderboard.html",
)
app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=EXAMPLES)


@app.callback()
def compare() -> None:
    """Models of pairs, with ties: fit them to votes or games, predict others, rank the items."""


app.command(epilog=compare_fit.EXAMPLES)(compare_fit.fit)
app.command(epilog=compare_predict.EXAMPLES)(compare_predict.predict)
app.command(epilog=compare_rank.EXAMPLES)(compare_rank.rank)
