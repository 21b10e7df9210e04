"""`concordant reproduce pairs`: scores of pairs and exact decoders on data, beside sorting by one score."""

from __future__ import annotations

from typing import Annotated

import typer

from concordant.cli.output import COMPILING, AsJson, DataFolder, Quiet, examples, print_json, progress
from concordant.cli.pairs_results import as_dict, show_all

__all__ = ["EXAMPLES", "pairs"]

EXAMPLES = examples(
    "concordant reproduce pairs --data mq2008",
    "concordant reproduce pairs --data ohsumed --json",
    "concordant reproduce pairs --data mq2007 --quick",
)


def pairs(
    *,
    data: Annotated[
        str, typer.Option("--data", metavar="NAME", help="mq2007, mq2008 or ohsumed.", show_default=False)
    ],
    folder: DataFolder = None,
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="A look: one fold, few penalties. Not for reporting.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Scores of pairs, decoded exactly or quickly, against linear rankers: AP and PD, with paired tests."""
    from concordant.evaluation.reproduction.pairs import n_steps, reproduce

    steps = n_steps(data, folder=folder, quick=quick)
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        result = reproduce(data, folder=folder, quick=quick, step=step)
    if as_json:
        print_json(as_dict(result))
    else:
        show_all(result, quiet=quiet)
