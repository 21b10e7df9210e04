"""`python -m studies exactness`: what scores of pairs reach and scores of items do not, for AP and PD."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from concordant._internals import AsJson, Quiet, examples, progress
from studies.consistency.command import (
    QUICK_SEEDS,
    SEEDS,
    Output,
    QuickRun,
    Seeds,
    check_output,
    draw_and_present,
)

EXAMPLES = examples(
    "python -m studies exactness --quick",
    "python -m studies exactness --metric pd --output pd.html",
)


def exactness(
    *,
    metric: Annotated[
        Literal["ap", "pd"],
        typer.Option("--metric", "-m", help="Average precision, or pairwise disagreement."),
    ] = "ap",
    output: Output = None,
    seeds: Seeds = None,
    quick: QuickRun = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Regret of pair scores, exactly decoded, falls to zero whatever the labels; sorted scores keep some."""
    if output is not None:
        check_output(output)
    from studies.consistency.study import QUICK_SIZES, SIZES
    from studies.ramaswamy.exactness.study import METHODS, run

    n_seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    with progress("Starting", total=3 * len(METHODS[metric]), quiet=quiet) as step:
        result = run(metric, sizes=QUICK_SIZES if quick else SIZES, n_seeds=n_seeds, step=step)
    draw_and_present(result, output, as_json=as_json, quiet=quiet)
