"""`concordant reproduce buffoni`: preorder against consistent losses, as in Tables 1 and 2 of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from concordant.cli.buffoni_results import as_dict, remarks, table, write_csv
from concordant.cli.output import (
    COMPILING,
    AsJson,
    DataFolder,
    Quiet,
    check_target,
    examples,
    print_json,
    progress,
    show,
)

__all__ = ["EXAMPLES", "buffoni"]

EXAMPLES = examples(
    "concordant reproduce buffoni --data mq2008",
    "concordant reproduce buffoni --data mq2007 --csv mq2007.csv",
    "concordant reproduce buffoni --data ohsumed --quick --json",
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
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="A look: one fold, few penalties. Not for reporting.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Also write all numbers to this file, as CSV."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Preorder against consistent losses: Tables 1 and 2 of Buffoni et al. (2011), with paired tests."""
    if csv is not None:
        check_target(csv)
    from concordant.evaluation.reproduction.buffoni import n_steps, reproduce

    steps = n_steps(data, folder=folder, quick=quick)
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        result = reproduce(data, folder=folder, scaled=scale, quick=quick, step=step)
    if csv is not None:
        write_csv(csv, result)
    if as_json:
        print_json(as_dict(result))
    else:
        show(table(result), [] if quiet else remarks(result))
