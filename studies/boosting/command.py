"""`python -m studies boosting`: boosted trees by the boosters' objectives and by consistent surrogates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from concordant._internals import COMPILING, AsJson, DataFolder, Quiet, examples, progress
from studies.boosting.report import BoostingReport
from studies.shared.output import present

EXAMPLES = examples(
    "python -m studies boosting --cache runs",
    "python -m studies boosting --data mq2008 -m ap -m p@10",
    "python -m studies boosting --quick --json",
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
    from concordant._internals import n_threads
    from studies.boosting.runs import METRICS
    from studies.boosting.study import DATA, n_steps, reproduce

    names, metric_names = tuple(data or DATA), tuple(dict.fromkeys(metrics or METRICS))
    steps = n_steps(names, metric_names, folder=folder, quick=quick)
    at_once = jobs if jobs is not None else 1 if quick else n_threads()
    with progress(f"Reading {COMPILING}", quiet=quiet, total=steps) as step:
        study = reproduce(
            names, metric_names, trees=trees, folder=folder, cache=cache, jobs=at_once, quick=quick, step=step
        )
    present(BoostingReport(study), as_json=as_json, quiet=quiet)
