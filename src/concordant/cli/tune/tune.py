"""`concordant tune`: choose parameters on held-out queries, and train a ranker with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from concordant.cli.shared.output import Display, examples, option, switch
from concordant.cli.shared.row_options import TrainingColumns
from concordant.cli.train.train import show_run
from concordant.cli.train.train_options import (
    FolderOptions,
    HeldOutFiles,
    OptionalData,
    RankerOptions,
    build_config,
)

EXAMPLES = examples(
    "concordant tune train.txt --test test.txt -o runs/path",
    "concordant tune train.txt --model boosted --trials 50 --prune -o runs/trees",
    "concordant tune train.txt --model boosted --space l2=0.1:50:log --set subsample=0.8 -o runs/l2",
    "concordant train --config runs/trees/best.toml -o runs/best",
)
SEARCH = "Search"


@dataclass(frozen=True)
class SearchOptions:
    """Options for the search."""

    trials: Annotated[
        int | None,
        option(
            "--trials",
            "N",
            "Parameters to try, by an Optuna study. Default: 30; of linear rankers the path of 15 penalties "
            "instead.",
            SEARCH,
            min=1,
        ),
    ] = None
    folds: Annotated[
        int | None,
        option(
            "--folds", "N", "Folds of whole queries, unless there is --validation. Default: 5.", SEARCH, min=2
        ),
    ] = None
    space: Annotated[
        list[str] | None,
        option(
            "--space",
            "NAME=VALUES",
            "What to try: low:high, low:high:log, or a list of values; repeat. What --set gives is fixed.",
            SEARCH,
        ),
    ] = None
    prune: Annotated[
        bool, switch("--prune", "End trials that are below the median after as many folds.", SEARCH)
    ] = False


def tune(
    data: OptionalData = None,
    *,
    ranker: RankerOptions,
    search: SearchOptions,
    held_out: HeldOutFiles,
    columns: TrainingColumns,
    keep: FolderOptions,
    display: Display,
) -> None:
    """Choose parameters on held-out queries, and train with the best: the penalty's path, or a study.

    An interrupted search goes on by the same command; a finished study, with more --trials.
    """
    from concordant.cli.runs.run_folder import RunFolder
    from concordant.cli.tune.tune_fit import tune_run

    tune_options = {**vars(search), "prune": search.prune or None}
    run, folder = build_config(data, ranker, held_out, columns, tune_options), RunFolder(ranker.output)
    if keep.overwrite:
        folder.spare(ranker.config)
    done = tune_run(run, folder, **vars(keep), quiet=display.is_bare)
    if display.as_json:
        display.present(done)
        return
    display.notes(done.remarks())
    display.present(done)
    show_run(done.trained, display)
