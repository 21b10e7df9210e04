"""`python -m studies choice` and `tree_choice`: the comparisons that decided the default surrogates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from concordant._internals import AsJson, Quiet, examples, note, print_json, progress

CHOICE = examples("python -m studies choice", "python -m studies choice --quick --json")
TREE_CHOICE = examples("python -m studies tree_choice", "python -m studies tree_choice --quick --json")
RESULTS = Path(__file__).parent / "results"
QUICK_RESULTS = Path(__file__).parents[1] / "data" / "quick"  # ignored by git

Quick = Annotated[
    bool, typer.Option("--quick", metavar="", help="Tiny data: shows that it runs. Not for reporting.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FOLDER",
        help="Where the results are written, as Markdown and JSON. Default: studies/defaults/results, with "
        "--quick studies/data/quick.",
        show_default=False,
    ),
]


def choice(
    *, output: Output = None, quick: Quick = False, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Every surrogate of linear rankers trained for every metric: what `surrogate="auto"` is."""
    from studies.defaults import choice as study

    _present("choice", study, output, quick=quick, as_json=as_json, quiet=quiet)


def tree_choice(
    *, output: Output = None, quick: Quick = False, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Losses and lifts of boosted trees on validation queries: what `surrogate="auto"` is there."""
    from studies.defaults import tree_choice as study

    _present("tree_choice", study, output, quick=quick, as_json=as_json, quiet=quiet)


def _present(name: str, study: Any, output: Path | None, *, quick: bool, as_json: bool, quiet: bool) -> None:
    """Run a study, write its results to a folder and print them."""
    import concordant as cc
    from benchmarks.shared import tables

    here = cc.datasets.available()
    missing = (
        []
        if quick and name == "tree_choice"
        else [set_name for set_name in study.SETS if set_name not in here]
    )
    about = tables.machine() | {"quick": quick, "load_before": tables.load()}
    with progress("Starting", total=study.n_steps(quick=quick), quiet=quiet) as step:
        result_tables = study.run(quick=quick, step=step)
    about |= {"load_after": tables.load()}
    folder = output or (QUICK_RESULTS if quick else RESULTS)
    path = tables.write(folder, name, result_tables, about, kind="Study", program="studies")
    if as_json:
        print_json({"study": name, "machine": about, "tables": [table.records() for table in result_tables]})
    else:
        for table in result_tables:
            tables.show(table)
    if not quiet:
        if missing:
            note(f"left out, since they are not here (set CONCORDANT_DATA): {', '.join(missing)}")
        note(f"written: {path}")
