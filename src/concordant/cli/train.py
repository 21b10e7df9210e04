"""`concordant train`: a ranker, its worth and its certificate, in a run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from concordant.cli.data import DocidColumn, FeatureColumns, LabelColumn, QidColumn
from concordant.cli.output import AsJson, Quiet, examples
from concordant.cli.place import LocalWorkers, Memory, Place, Scheduler
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
    from concordant.cli.train_fit import Trained

__all__ = ["EXAMPLES", "show_trained", "train"]

EXAMPLES = examples(
    "concordant train train.txt -o runs/linear",
    "concordant train train.txt --test test.txt --model boosted --set n_estimators=100 -o runs/boosted",
    "concordant train clicks.parquet --label grade --qid query --metric ap -o runs/ap",
    "concordant train --config experiment.toml -o runs/again",
    "concordant train clicks.parquet --memory 2GiB -o runs/large",
    "concordant train clicks.parquet --scheduler tcp://10.0.0.1:8786 -o runs/cluster",
)


def train(
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
    validation: ValidationFile = None,
    test: TestFiles = None,
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    scheduler: Scheduler = None,
    local_cluster: LocalWorkers = None,
    memory: Memory = None,
    checkpoint: Checkpoint = True,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a ranker: name the metric; the loss that is consistent with it is minimised."""
    from concordant.cli.runs import RunFolder
    from concordant.cli.train_fit import train_run

    place = Place.of(scheduler, local_cluster, memory)
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
    )
    folder = RunFolder(output)
    if overwrite:
        folder.spare(config)
    done = train_run(
        run, folder, overwrite=overwrite, checkpoint=checkpoint, quiet=quiet or as_json, place=place
    )
    show_trained(done, as_json=as_json, quiet=quiet)


def show_trained(done: Trained, *, as_json: bool, quiet: bool) -> None:
    """Print what was trained, what it is worth, what is guaranteed, and where it is."""
    from concordant.cli.output import print_json
    from concordant.cli.train_results import as_plain, show_run

    if as_json:
        print_json(as_plain(done))
    else:
        show_run(done, quiet=quiet)
