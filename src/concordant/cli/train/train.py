"""`concordant train`: train a ranker, measure and certify it, and keep it in a run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from concordant.cli.shared.compute_target import ComputeTarget, LocalWorkers, Memory, Scheduler
from concordant.cli.shared.output import Display, console, examples, in_flags
from concordant.cli.shared.row_options import TrainingColumns
from concordant.cli.train.train_options import (
    FolderOptions,
    HeldOutFiles,
    OptionalData,
    RankerOptions,
    build_config,
)

if TYPE_CHECKING:
    from concordant.cli.train.train_fit import TrainedRun


def show_run(done: TrainedRun, display: Display) -> None:
    """Present a run; unless bare, also its notes and its certificate."""
    if not display.is_bare:
        resumed = [f"{done.folder.path} was interrupted, and has gone on where it was"] * done.resumed
        display.notes([*resumed, *done.notes])
    display.present(done)
    if not display.is_bare:
        screen = console()
        screen.print(Text(in_flags(str(done.model.certificate_))))
        screen.print(Text(f"\nrun: {done.folder.path} ({done.facts['seconds']:.1f} s)", style="dim"))


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
    ranker: RankerOptions,
    held_out: HeldOutFiles,
    columns: TrainingColumns,
    scheduler: Scheduler = None,
    local_cluster: LocalWorkers = None,
    memory: Memory = None,
    keep: FolderOptions,
    display: Display,
) -> None:
    """Train a ranker: name the metric; the loss that is consistent with it is minimised."""
    from concordant.cli.runs.run_folder import RunFolder
    from concordant.cli.train.train_fit import train_run

    target = ComputeTarget.from_options(scheduler, local_cluster, memory)
    run, folder = build_config(data, ranker, held_out, columns), RunFolder(ranker.output)
    if keep.overwrite:
        folder.spare(ranker.config)
    done = train_run(run, folder, **vars(keep), quiet=display.is_bare, target=target)
    show_run(done, display)
