"""`concordant compare`: fit models of pairs, apply them, and turn them into leaderboards."""

from __future__ import annotations

import typer

from concordant.cli.compare import compare_fit, compare_predict, compare_rank
from concordant.cli.shared.output import examples, expand_groups

EXAMPLES = examples(
    "concordant compare fit votes.csv -o votes.cmp",
    "concordant compare predict votes.cmp next.csv",
    "concordant compare rank votes.cmp --html leaderboard.html",
)
app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=EXAMPLES)


@app.callback()
def compare() -> None:
    """Models of pairs, with ties: fit them to votes or games, predict others, rank the items."""


app.command(epilog=compare_fit.EXAMPLES)(expand_groups(compare_fit.fit))
app.command(epilog=compare_predict.EXAMPLES)(expand_groups(compare_predict.predict))
app.command(epilog=compare_rank.EXAMPLES)(expand_groups(compare_rank.rank))
