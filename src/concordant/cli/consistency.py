"""`concordant reproduce consistency`: exact regret against training queries, on known label distributions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concordant.cli.output import AsJson, Quiet, check_target, examples, new_table, print_json, progress, show

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.consistency import Consistency

__all__ = ["EXAMPLES", "QUICK_SEEDS", "SEEDS", "Output", "QuickRun", "Seeds", "consistency", "present"]

EXAMPLES = examples(
    "concordant reproduce consistency --quick",
    "concordant reproduce consistency --output consistency.html",
)
QUICK_SEEDS, SEEDS = 5, 50
REMARKS = (
    "mean exact {metric} regret over {seeds} training sets; a penalty of 1 / (training queries)",
    "expected loss: the limit of infinitely many training queries",
)


Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE.html", help="Write the curves as a plot to this file."),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help=f"Training sets of each size. Default: {SEEDS}, or {QUICK_SEEDS} with --quick.",
        show_default=False,
    ),
]
QuickRun = Annotated[bool, typer.Option("--quick", metavar="", help="Few sizes, few seeds.")]


def consistency(
    *,
    output: Output = None,
    seeds: Seeds = None,
    quick: QuickRun = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Regret of consistent losses falls to zero as queries become many; the preorder loss keeps its own."""
    if output is not None:
        check_output(output)
    from concordant.evaluation.consistency import METHODS, QUICK_SIZES, SIZES, run

    n_seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    with progress("Starting", total=3 * len(METHODS), quiet=quiet) as step:
        result = run(sizes=QUICK_SIZES if quick else SIZES, n_seeds=n_seeds, step=step)
    present(result, output, as_json=as_json, quiet=quiet)


def present(result: Consistency, output: Path | None, *, as_json: bool, quiet: bool) -> None:
    """Write the plot, if asked for, and print the numbers."""
    if output is not None:
        from concordant.evaluation.plots import plot_consistency

        plot_consistency(result, output)
    if as_json:
        print_json(result.as_dict())
        return
    tables = regret_tables(result)
    for table in tables[:-1]:
        show(table)
    remarks = [line.format(metric=result.metric.upper(), seeds=result.n_seeds) for line in REMARKS]
    show(tables[-1], [] if quiet else remarks)


def check_output(output: Path) -> None:
    """Refuse, before the work, a file that cannot be written or a plot that cannot be drawn."""
    from concordant.evaluation.plots import need_plotly

    check_target(output)
    need_plotly()


def regret_tables(result: Consistency) -> list[Table]:
    """Give one table a population: a row for each number of queries, a column for each method."""
    tables = []
    for name, about in result.about:
        curves = result.of(name)
        methods = [curve.method for curve in curves]
        table = new_table(about, "training queries", *methods, numeric=["training queries", *methods])
        for place, n_queries in enumerate(curves[0].n_queries):
            table.add_row(f"{n_queries:,}", *(f"{curve.mean[place]:.5f}" for curve in curves))
        table.add_section()
        table.add_row("expected loss", *(f"{curve.limit:.5f}" for curve in curves), style="bold")
        tables.append(table)
    return tables
