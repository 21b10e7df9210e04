"""Trees grown some rounds at a time, each time from what was written down: so that a killed fit goes on.

A library's trainer keeps more than its trees: what it drew, and scores with their rounding. CatBoost writes
all of it, and goes on as if nothing had been. The others give it to nobody. Therefore each fit of theirs with
a checkpoint begins anew at each edge between segments, killed or not, from the trees in the file. The two are
then equal by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ModelFileError
from concordant.rankers.boosters.watch import Watch
from concordant.rankers.told import told_metric, told_surrogate
from concordant.solvers.checkpoint import ANEW, Checkpoint, Snapshot, digest, spelled
from concordant.supervision.queries import Queries

if TYPE_CHECKING:
    from concordant.rankers.boosters.booster import Booster, Data, Trees
    from concordant.rankers.boosters.plan import Plan
    from concordant.rankers.folds import Rows

__all__ = ["SEGMENT", "Segment", "digest_of", "facts_of", "in_segments"]

SEGMENT = 100  # rounds between two edges at least: at each one, features are binned and trees added up anew
GROWTH = (
    2  # later, a segment has one round for so many before: else the adding up would grow with their square
)
OWN_ENDS = "limit", "early_stopping", "no_split"  # that are the fit's own: another one is gone past next time


@dataclass(frozen=True, eq=False)
class Segment:
    """Rounds between two edges.

    Attributes
    ----------
    start
        Trees of an earlier fit; None: none.
    contents
        What was written at the edge before; empty: nothing.
    begun, rounds
        Rounds before it, and its own.
    folder
        Of the checkpoint.
    """

    start: Any
    contents: bytes
    begun: int
    rounds: int
    folder: Path


def facts_of(plan: Plan, trees: Trees, version: str) -> dict[str, str]:
    """What the trees depend on besides data, as texts."""
    told = {name: spelled(value) for name, value in (vars(plan) | vars(trees)).items()}
    told |= {"metric": told_metric(plan.metric), "surrogate": told_surrogate(plan.surrogate)}
    return told | {trees.library: version}


def digest_of(plan: Plan, data: Data, held: Rows | None) -> str:
    """Of everything that is trained on, and held out."""
    arrays = [data.X, data.labels, data.query_weights, data.row_weights, data.offsets]
    if held is not None:
        queries = Queries.of(held.qid, held.X.shape[0], "X")
        arrays += [held.X, plan.metric.read_labels(held.y), queries.order, queries.offsets, held.query_weight]
    return digest(*arrays)


def in_segments(
    booster: Booster, trees: Trees, data: Data, watch: Watch, start: Any, checkpoint: Checkpoint
) -> Any:
    """Grow the rounds that are missing; the file holds what the next segment begins with."""
    file = Snapshot(checkpoint)
    with file.held():
        return grown(booster, trees, data, watch, start, file)


def grown(booster: Booster, trees: Trees, data: Data, watch: Watch, start: Any, file: Snapshot) -> Any:
    """Grow segment by segment."""
    folder = file.checkpoint.folder
    wanted = trees.n_estimators - (0 if start is None else booster.n_trees(start))
    contents, done, ended = restored(file, watch)
    while not ended:
        rounds = min(max(SEGMENT, done // GROWTH), wanted - done)
        segment = Segment(start, contents, done, rounds, folder)
        model, contents = booster.segment(trees, data, watch, segment)
        if watch.trained is not None:  # else it would be added up again for the loss at the end
            watch.losses[booster.n_trees(model)] = float(data.loss.value_and_grad(watch.trained)[0].sum())
        watch.trained = None  # of a model that was read nothing is remembered
        if watch.stopped_by not in OWN_ENDS:
            return model
        done += rounds
        ended = done == wanted or watch.stopped_by != "limit"
        about = {"rounds": done, "stopped_by": watch.stopped_by, "ended": ended}
        about |= {"history": watch.history, "losses": [*watch.losses.items()]}
        file.write(about, {"contents": np.frombuffer(contents, dtype=np.uint8)})
    return booster.read(contents)


def restored(file: Snapshot, watch: Watch) -> tuple[bytes, int, bool]:
    """Give what the file holds, the rounds that took, and whether they were all; nothing without a file."""
    if (known := file.read()) is None:
        return b"", 0, False
    about, arrays = known
    try:
        history, losses = [*map(float, about["history"])], {int(n): float(v) for n, v in about["losses"]}
        found = arrays["contents"].tobytes(), int(about["rounds"]), bool(about["ended"])
        stopped_by = OWN_ENDS[OWN_ENDS.index(about["stopped_by"])]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(file.path, "it does not say how far the training came", ANEW) from error
    watch.rewind(history)
    watch.losses, watch.stopped_by = losses, stopped_by
    return found
