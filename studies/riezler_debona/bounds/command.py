"""`python -m studies bounds`: risk bounds and their proofs, measured where the risk is known."""

from __future__ import annotations

from typing import Annotated

import typer

from concordant._internals import AsJson, Quiet, examples, progress
from studies.riezler_debona.bounds.report import BoundsReport
from studies.shared.output import present

EXAMPLES = examples(
    "python -m studies bounds",
    "python -m studies bounds --queries 400 --draws 5000 --seed 1",
)


def bounds(
    *,
    queries: Annotated[
        int, typer.Option("--queries", "-n", min=1, metavar="N", help="Queries of a draw.")
    ] = 100,
    draws: Annotated[
        int,
        typer.Option("--draws", min=1, metavar="N", help="Samples drawn; with few, wrong constants pass."),
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the random numbers.")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Risk bounds where the risk is known: none is broken, and wrong constants are caught."""
    from studies.riezler_debona.bounds.study import STEPS, run

    with progress("Starting", total=STEPS, quiet=quiet) as step:
        result = run(n=queries, draws=draws, seed=seed, step=step)
    present(BoundsReport(result), as_json=as_json, quiet=quiet)
