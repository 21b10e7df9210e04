"""`python -m studies maxmargin`: max-margin rankers on data, bounds and test losses side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from concordant._internals import (
    COMPILING,
    AsJson,
    DataFolder,
    Quiet,
    check_target,
    examples,
    progress,
)
from studies.riezler_debona.maxmargin.report import MaxMarginReport
from studies.shared.output import present, write_csv

EXAMPLES = examples(
    "python -m studies maxmargin --data mq2008",
    "python -m studies maxmargin --data ohsumed --csv ohsumed.csv",
    "python -m studies maxmargin --data mq2008 --folds 1 --json",
)


def maxmargin(
    *,
    data: Annotated[
        str, typer.Option("--data", metavar="NAME", help="mq2008 or ohsumed.", show_default=False)
    ],
    folder: DataFolder = None,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            min=1,
            max=5,
            metavar="N",
            help="Run the first N folds only. Default: all.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option("--delta", metavar="P", help="Probability that a bound fails.")
    ] = 0.05,
    tol: Annotated[
        float, typer.Option("--tol", min=0.0, metavar="X", help="Share of the objective at which fits end.")
    ] = 1e-7,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Also write every fold and penalty to this file, as CSV."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Max-margin rankers, what bounds say and what tests say: the validation Riezler and De Bona ask for."""
    if csv is not None:
        check_target(csv)
    from studies.riezler_debona.maxmargin.study import n_steps, reproduce

    steps = n_steps(data, folds)
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        result = reproduce(data, folder=folder, folds=folds, delta=delta, tol=tol, step=step)
    report = MaxMarginReport(result)
    if csv is not None:
        write_csv(csv, report)
    present(report, as_json=as_json, quiet=quiet)
