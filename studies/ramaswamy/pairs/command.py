"""`python -m studies pairs`: scores of pairs and exact decoders on data, beside sorting by one score."""

from __future__ import annotations

from typing import Annotated

import typer

from concordant._internals import COMPILING, AsJson, DataFolder, Quiet, examples, progress
from studies.ramaswamy.pairs.report import PairsReport
from studies.shared.output import QuickLook, present

EXAMPLES = examples(
    "python -m studies pairs --data mq2008",
    "python -m studies pairs --data ohsumed --json",
    "python -m studies pairs --data mq2007 --quick",
)


def pairs(
    *,
    data: Annotated[
        str, typer.Option("--data", metavar="NAME", help="mq2007, mq2008 or ohsumed.", show_default=False)
    ],
    folder: DataFolder = None,
    quick: QuickLook = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Scores of pairs, decoded exactly or quickly, against linear rankers: AP and PD, with paired tests."""
    from studies.ramaswamy.pairs.study import n_steps, reproduce

    steps = n_steps(data, folder=folder, quick=quick)
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        result = reproduce(data, folder=folder, quick=quick, step=step)
    present(PairsReport(result), as_json=as_json, quiet=quiet)
