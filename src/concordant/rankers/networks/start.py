"""From parameters and a lesson to what is trained: network, data and loss on the device. Needs torch."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.devices.losses import levelled
from concordant.rankers.folds import Rows
from concordant.rankers.networks.batches import Pool, loss_of_batch
from concordant.rankers.networks.checkpoint import NetworkCheckpoint
from concordant.rankers.networks.graph import recorder_for
from concordant.rankers.networks.lesson import Lesson
from concordant.rankers.networks.place import is_mixed, place_of, wake
from concordant.rankers.networks.scores import is_beyond, mean_loss, validation
from concordant.rankers.networks.training import Course, Trainer, reported
from concordant.rankers.told import told_metric, told_surrogate
from concordant.scorers.neural import NeuralScorer
from concordant.scorers.neural_transforms import check_transforms, fitted_transforms
from concordant.solvers.checkpoint import Checkpoint, Snapshot, checked_folder, digest
from concordant.supervision.queries import Queries
from concordant.types import FloatArray, IntArray

__all__ = ["checkpoint_of", "course_of", "network", "trained", "trainer_of"]

Parameters = Mapping[str, Any]
FITTED_ROWS = 100_000  # rows, drawn at random, that transforms are fitted to
REMEMBERED: Mapping[str, Any] = {  # by a checkpoint, in one spelling: what else the weights depend on is data
    "assume": lambda given: given,
    "hidden": lambda given: tuple(int(width) for width in given),
    "transforms": check_transforms,
    "context": bool,
    "dropout": float,
    "weight_decay": float,
    "learning_rate": float,
    "batch_rows": int,
    "amp": lambda given: given if isinstance(given, str) else bool(given),
    "random_state": lambda given: None if given is None else int(given),
}


def checkpoint_of(
    given: Parameters, lesson: Lesson, held: Rows | None, last: NeuralScorer | None
) -> NetworkCheckpoint | None:
    """Give the checkpoint of this training, if there is to be one; `last`: the network it begins with."""
    if (folder := checked_folder(given["checkpoint"])) is None:
        return None
    metric = lesson.claim.metric
    data = [lesson.X, lesson.labels, lesson.weights, lesson.queries.offsets]
    if held is not None:
        queries = Queries.of(held.qid, held.X.shape[0], "X")
        data += [held.X, metric.read_labels(held.y), queries.order, queries.offsets]
    told = {name: repr(spelled(given[name])) for name, spelled in REMEMBERED.items()}
    told["metric"], told["surrogate"] = told_metric(metric), told_surrogate(lesson.surrogate)
    fraction = str(float(given["validation_fraction"]))
    if held is not None or given["early_stopping"] is None:
        fraction = f"None ({'eval_set' if held is not None else 'early_stopping=None'})"
    start = "" if last is None else digest(*(part.numpy() for part in last.state_dict().values()))
    told |= {"validation_fraction": fraction, "estimator": "NeuralRanker"}
    return NetworkCheckpoint(Snapshot(Checkpoint(folder, told, digest(*data), start)))


def course_of(given: Parameters, checkpoint: NetworkCheckpoint | None) -> Course:
    """Give the course that begins, with the seed of the checkpoint if there is one."""
    seed = checkpoint.seed() if checkpoint is not None else None
    fresh = secrets.randbits(63) if given["random_state"] is None else int(given["random_state"])
    return Course(fresh if seed is None else seed)


def trainer_of(
    given: Parameters,
    metric: Metric,
    lesson: Lesson,
    held: Rows | None,
    course: Course,
    last: NeuralScorer | None,
) -> Trainer:
    """Give network, data and loss on the device."""
    device = place_of(given["device"])
    wake(device)
    mixed, scorer = is_mixed(given["amp"], device), network(given, lesson, course, last).to(device)
    # Layers that are computed in bfloat16 would round their inputs each time.
    kind = torch.bfloat16 if mixed and device.type == "cuda" else torch.float32
    labels, weights, unit = lesson.in_units()
    pool = Pool.of(scorer, lesson.X, labels, weights, lesson.queries.offsets, device, kind, unit)
    if bool(is_beyond(pool.inputs).any()):
        wanted = "such that features of this size become single precision: 'standard', say"
        raise ParameterError("transforms", given["transforms"], wanted)
    return Trainer(
        scorer=scorer,
        pool=pool,
        loss=loss_of_batch(lesson.surrogate, device),
        validate=None if held is None else validation(scorer, held, metric, device, kind),
        learning_rate=float(given["learning_rate"]),
        weight_decay=float(given["weight_decay"]),
        batch_rows=min(int(given["batch_rows"]), max(lesson.X.shape[0], 1)),
        amp=mixed,
        recorder=recorder_for(lesson.surrogate, pool),
        warm=last is not None,
    )


def trained(
    given: Parameters, trainer: Trainer, course: Course, checkpoint: NetworkCheckpoint | None
) -> tuple[float, str]:
    """Train, from a checkpoint on if there is one; the mean loss of the first weights, and what ended it."""
    first = mean_loss(trainer.loss, trainer.pool, trainer.scorer)
    if checkpoint is not None:
        checkpoint.restore(trainer, course)

    def kept(course: Course) -> None:
        if checkpoint is not None:
            checkpoint.write(trainer, course)

    patience = None if given["early_stopping"] is None else int(given["early_stopping"])
    max_epochs = int(given["max_epochs"])
    with reported(max_epochs, given["verbose"], given["callback"]) as told:
        return first, trainer.run(course, max_epochs, patience, told, kept)


def network(given: Parameters, lesson: Lesson, course: Course, last: NeuralScorer | None) -> NeuralScorer:
    """Give the network before its first epoch: a new one, or a copy of the last."""
    n_rows, n_features = lesson.X.shape
    widths, level = tuple(int(width) for width in given["hidden"]), levelled(lesson.surrogate)
    shape = int(n_features), widths, bool(given["context"]), level
    if last is not None:
        if last.shape != shape:
            told = f"{last.shape} (features, hidden, context, level)"
            raise ParameterError("warm_start", True, f"False: the last fit has {told}, not {shape}")
        scorer = copy.deepcopy(last)
        scorer.drop(float(given["dropout"]))
        return scorer
    rng, chosen = course.generator(0), lesson.X
    if n_rows > FITTED_ROWS:
        chosen = sampled(lesson.X, np.sort(rng.choice(n_rows, FITTED_ROWS, replace=False)))
    transforms = fitted_transforms(check_transforms(given["transforms"]), dense(chosen))
    how = {"context": shape[2], "level": level}
    return NeuralScorer(transforms, int(n_features), widths, float(given["dropout"]), **how, rng=rng)


def sampled(X: Any, rows: IntArray) -> FloatArray:
    """Give these rows, and the lowest and highest of each feature that is constant in them."""
    chosen = dense(X[rows])
    flat = np.flatnonzero((chosen == chosen[0]).all(axis=0))
    rest = dense(X[:, flat])
    ends = np.unique([rest.argmin(axis=0), rest.argmax(axis=0)])
    return np.concatenate([chosen, dense(X[np.setdiff1d(ends, rows)])])


def dense(X: Any) -> FloatArray:
    """Give features as an array."""
    found: FloatArray = X.toarray() if hasattr(X, "toarray") else X
    return found
