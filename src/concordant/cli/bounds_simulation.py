"""`concordant reproduce bounds`: risk bounds and their proofs, measured where the risk is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from concordant.cli.output import AsJson, Quiet, examples, new_table, number, print_json, progress, show

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.theory.bounds.sampling import Check
    from concordant.theory.bounds.simulation import Simulation

__all__ = ["EXAMPLES", "bounds"]

EXAMPLES = examples(
    "concordant reproduce bounds",
    "concordant reproduce bounds --queries 400 --draws 5000 --seed 1",
)
REMARKS = (
    "R_n and E sup are means over the draws; sup(R - Rhat), over all w, is its {level:g} quantile",
    "above: draws above the bound",
    "slack: bound / measured; broken: a mean 4 standard errors above, or more than {share:g} of the draws",
    "wrong: constants known to be wrong, to be caught; the rest must hold",
)


def bounds(
    *,
    queries: Annotated[
        int, typer.Option("--queries", "-n", min=1, metavar="N", help="Queries of a draw.")
    ] = 100,
    draws: Annotated[int, typer.Option("--draws", min=1, metavar="N", help="Samples drawn.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the random numbers.")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Risk bounds where the risk is known: none is broken, and wrong constants are caught."""
    from concordant.theory.bounds.simulation import STEPS, run

    with progress("Starting", total=STEPS, quiet=quiet) as step:
        result = run(n=queries, draws=draws, seed=seed, step=step)
    if as_json:
        print_json(result.as_dict())
    else:
        show(check_table(result), [] if quiet else remarks(result))


def check_table(result: Simulation) -> Table:
    """Give one row an inequality, a section a loss."""
    title = f"{result.draws:,} draws of {result.n:,} queries, B = M = 1, delta = {result.delta:g}"
    numeric = ("measured", "bound", "slack", "above")
    table = new_table(title, "loss", "inequality", *numeric, "verdict", numeric=numeric)
    last = ""
    for check in result.checks:
        if last and check.loss != last:
            table.add_section()
        above = "" if check.exceeded is None else f"{check.exceeded:,}"
        slack = "-" if math.isnan(check.slack) else f"{check.slack:.2f}"
        name = check.loss if check.loss != last else ""
        measured, bound = number(check.measured), number(check.bound)
        table.add_row(name, check.inequality, measured, bound, slack, above, verdict(check))
        last = check.loss
    return table


def verdict(check: Check) -> str:
    """Give what the measurements say, and whether that is what they should."""
    if check.wrong:
        return "broken: wrong, caught" if check.broken else "wrong, NOT caught"
    return "BROKEN" if check.broken else "holds"


def remarks(result: Simulation) -> list[str]:
    """Give how to read the table, and the verdict on the whole."""
    broken = sum(check.broken for check in result.checks if not check.wrong)
    wrong = [check for check in result.checks if check.wrong]
    caught = sum(check.broken for check in wrong)
    lines = [line.format(level=1 - result.delta, share=result.delta) for line in REMARKS]
    return [*lines, f"{broken} bounds broken; {caught} of {len(wrong)} wrong constants caught"]
