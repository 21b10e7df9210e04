"""`python -m studies consistency`: exact regret against training queries, on known label distributions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concordant._internals import AsJson, Quiet, check_target, examples, progress
from studies.consistency.report import ConsistencyReport
from studies.shared.output import present

if TYPE_CHECKING:
    from studies.consistency.study import Consistency

EXAMPLES = examples(
    "python -m studies consistency --quick",
    "python -m studies consistency --output consistency.html",
)
QUICK_SEEDS, SEEDS = 5, 50

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
    from studies.consistency.study import METHODS, QUICK_SIZES, SIZES, run

    n_seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    with progress("Starting", total=3 * len(METHODS), quiet=quiet) as step:
        result = run(sizes=QUICK_SIZES if quick else SIZES, n_seeds=n_seeds, step=step)
    draw_and_present(result, output, as_json=as_json, quiet=quiet)


def draw_and_present(result: Consistency, output: Path | None, *, as_json: bool, quiet: bool) -> None:
    """Draw the plot, if a file is named, and print the numbers."""
    if output is not None:
        from studies.consistency.plots import plot_consistency

        plot_consistency(result, output)
    present(ConsistencyReport(result), as_json=as_json, quiet=quiet)


def check_output(output: Path) -> None:
    """Raise before the work if the file cannot be written or the plot cannot be drawn."""
    from concordant._internals import need_plotly

    check_target(output)
    need_plotly()
