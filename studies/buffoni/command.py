"""`python -m studies buffoni`: preorder against consistent losses, as in Tables 1 and 2 of the paper."""

from __future__ import annotations

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
from studies.buffoni.report import BuffoniReport
from studies.shared.output import CsvFile, QuickLook, present, write_csv

EXAMPLES = examples(
    "python -m studies buffoni --data mq2008",
    "python -m studies buffoni --data mq2007 --csv mq2007.csv",
    "python -m studies buffoni --data ohsumed --quick --json",
)


def buffoni(
    *,
    data: Annotated[
        str,
        typer.Option("--data", metavar="NAME", help="mq2007, mq2008, ohsumed or yahoo.", show_default=False),
    ],
    folder: DataFolder = None,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--no-scale",
            help="Penalise features divided by their spread within queries. Default: on ohsumed only.",
            show_default=False,
        ),
    ] = None,
    quick: QuickLook = False,
    csv: CsvFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Preorder against consistent losses: Tables 1 and 2 of Buffoni et al. (2011), with paired tests."""
    if csv is not None:
        check_target(csv)
    from studies.buffoni.study import n_steps, reproduce

    steps = n_steps(data, folder=folder, quick=quick)
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        result = reproduce(data, folder=folder, scaled=scale, quick=quick, step=step)
    report = BuffoniReport(result)
    if csv is not None:
        write_csv(csv, report)
    present(report, as_json=as_json, quiet=quiet)
