"""`concordant reproduce boosting`: boosted trees by the boosters' objectives and by consistent surrogates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from concordant.cli.boosting_results import as_dict, show_all
from concordant.cli.output import COMPILING, AsJson, DataFolder, Quiet, examples, print_json, progress

__all__ = ["EXAMPLES", "boosting"]

EXAMPLES = examples(
    "concordant reproduce boosting --cache runs",
    "concordant reproduce boosting --data mq2008 -m ap -m p@10",
    "concordant reproduce boosting --quick --json",
)


def boosting(
    *,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME",
            help="mq2008, mq2007 or ohsumed; may be repeated. Default: all.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="ndcg@10, dcg@10, ap or p@10; may be repeated. Default: all.",
            show_default=False,
        ),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(
            "--trees",
            metavar="N",
            help="Trees to grow; how many are used is chosen on validation queries. Default: 400.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="FOLDER",
            help="Keep each training's result there, and go on from what is there.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", help="Trainings at a time. Default: one a core.", show_default=False
        ),
    ] = None,
    folder: DataFolder = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", metavar="", help="A look: one set, one fold, few trees. Not for reporting."),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Boosted trees by LightGBM's, XGBoost's and CatBoost's objectives and by ours, with paired tests."""
    from concordant._segments import n_threads
    from concordant.evaluation.reproduction.boosting import DATA, n_steps, reproduce
    from concordant.evaluation.reproduction.boosting_runs import METRICS

    names, wanted = tuple(data or DATA), tuple(dict.fromkeys(metrics or METRICS))
    steps = n_steps(names, wanted, folder=folder, quick=quick)
    at_once = jobs if jobs is not None else 1 if quick else n_threads()
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        study = reproduce(
            names, wanted, trees=trees, folder=folder, cache=cache, jobs=at_once, quick=quick, step=step
        )
    if as_json:
        print_json(as_dict(study))
    else:
        show_all(study, quiet=quiet)
