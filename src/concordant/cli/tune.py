"""`concordant tune`: parameters chosen on held-out queries, and a ranker of them, in a run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from concordant.cli.data import DocidColumn, FeatureColumns, LabelColumn, QidColumn
from concordant.cli.output import AsJson, Quiet, examples
from concordant.cli.train_options import (
    Checkpoint,
    ConfigFile,
    Convention,
    Evaluated,
    ModelKind,
    OptionalData,
    Overwrite,
    RunOption,
    Seed,
    Settings,
    TestFiles,
    TrainMetric,
    ValidationFile,
    configured,
)

if TYPE_CHECKING:
    from concordant.cli.tune_fit import Tuned

__all__ = ["EXAMPLES", "show_tuned", "tune"]

EXAMPLES = examples(
    "concordant tune train.txt --test test.txt -o runs/path",
    "concordant tune train.txt --model boosted --trials 50 --prune -o runs/trees",
    "concordant tune train.txt --model boosted --space l2=0.1:50:log --set subsample=0.8 -o runs/l2",
    "concordant train --config runs/trees/best.toml -o runs/best",
)
SEARCH = "Search"
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials",
        min=1,
        metavar="N",
        help="Parameters to try, by an Optuna study. Default: 30; of linear rankers the path of 15 penalties "
        "instead.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        min=2,
        metavar="N",
        help="Folds of whole queries, unless there is --validation. Default: 5.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
Spaces = Annotated[
    list[str] | None,
    typer.Option(
        "--space",
        metavar="NAME=VALUES",
        help="What to try: low:high, low:high:log, or a list of values; repeat. What --set gives is fixed.",
        rich_help_panel=SEARCH,
    ),
]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune",
        metavar="",
        help="End trials that are below the median after as many folds.",
        rich_help_panel=SEARCH,
    ),
]


def tune(
    data: OptionalData = None,
    *,
    output: RunOption,
    model: ModelKind = None,
    metric: TrainMetric = None,
    convention: Convention = None,
    evaluate: Evaluated = None,
    settings: Settings = None,
    seed: Seed = None,
    config: ConfigFile = None,
    trials: Trials = None,
    folds: Folds = None,
    space: Spaces = None,
    prune: Prune = False,
    validation: ValidationFile = None,
    test: TestFiles = None,
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    checkpoint: Checkpoint = True,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose parameters on held-out queries, and train with the best: the penalty's path, or a study.

    An interrupted search goes on by the same command; a finished study, with more --trials.
    """
    from concordant.cli.runs import RunFolder
    from concordant.cli.tune_fit import tune_run

    run = configured(
        config,
        settings,
        (label, qid, docid, features),
        data=data,
        validation=validation,
        test=test,
        kind=model,
        metric=metric,
        convention=convention,
        seed=seed,
        metrics=evaluate,
        tune={"trials": trials, "folds": folds, "prune": prune or None, "space": space or []},
    )
    folder = RunFolder(output)
    if overwrite:
        folder.spare(config)
    done = tune_run(run, folder, overwrite=overwrite, checkpoint=checkpoint, quiet=quiet or as_json)
    show_tuned(done, as_json=as_json, quiet=quiet)


def show_tuned(done: Tuned, *, as_json: bool, quiet: bool) -> None:
    """Print what was tried and what is best, and then as `train` does."""
    from concordant.cli.output import note, print_json, show
    from concordant.cli.train_results import as_plain, show_run
    from concordant.cli.tune_results import plain_trials, remarks, trial_table

    if as_json:
        print_json({**as_plain(done.trained), **plain_trials(done)})
        return
    for line in [] if quiet else remarks(done):
        note(line)
    show(trial_table(done))
    show_run(done.trained, quiet=quiet)
