"""From parameters and a training set to network, data and loss on the device. Needs torch."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concordant.exceptions import ModelFileError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.device_losses import reads_level
from concordant.rankers.folds import FitRows
from concordant.rankers.networks.batches import (
    Pool,
    is_beyond,
    is_mixed,
    loss_of_batch,
    mean_loss,
    read_device,
    validation,
    wake,
)
from concordant.rankers.networks.epochs import Course, Trainer, Weights, epoch_callback, recorder_for
from concordant.rankers.networks.network import NeuralScorer, as_tensor, check_transforms, fitted_transforms
from concordant.rankers.networks.network_training_set import NetworkTrainingSet
from concordant.rankers.recipe import metric_fingerprint, surrogate_fingerprint
from concordant.solvers.checkpoint import ANEW, Checkpoint, Snapshot, check_folder, digest
from concordant.types import FloatArray, IntArray

# Checkpoints of a network: everything that the next epoch depends on, and the best weights. Needs torch.

MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # AdamW's state per parameter
KINDS = {"seed": int, "losses": list, "scores": list, "best_epoch": int}  # types of a saved course's fields


@dataclass(frozen=True)
class NetworkCheckpoint:
    """File, replaced as a whole, to which a training is written after each epoch."""

    file: Snapshot

    def write(self, trainer: Trainer, course: Course) -> None:
        """Replace the file."""
        facts = {name: getattr(course, name) for name in (*KINDS, "start_score")}
        state = _training_state(trainer, course.best)
        self.file.write(facts, {name: part.cpu().numpy() for name, part in state.items()})

    def seed(self) -> int | None:
        """Return the seed of the saved training; None without a file."""
        saved = self.read()
        return None if saved is None else int(saved[0]["seed"])

    def restore(self, trainer: Trainer, course: Course) -> None:
        """Restore network, optimizer and course from the file; do nothing without a file."""
        if (saved := self.read()) is None:
            return
        facts, arrays = saved
        course.seed, course.losses, course.scores = facts["seed"], facts["losses"], facts["scores"]
        course.best_epoch, course.best = facts["best_epoch"], trainer.weights()
        course.start_score = facts["start_score"]
        _begin_optimizer(trainer)
        for name, part in _training_state(trainer, course.best).items():
            if name not in arrays or arrays[name].shape != tuple(part.shape):
                raise ModelFileError(self.file.path, f"it has no {name} of this network", ANEW)
            with torch.no_grad():
                part.copy_(as_tensor(arrays[name]))

    def read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the saved facts and arrays after checking them; None without a file."""
        if (saved := self.file.read()) is None:
            return None
        facts = saved[0]
        is_valid = all(isinstance(facts.get(name), kind) for name, kind in KINDS.items())
        if not (is_valid and isinstance(facts.get("start_score", ""), (float, type(None)))):
            raise ModelFileError(self.file.path, "it does not record the progress of the training", ANEW)
        return saved


def _training_state(trainer: Trainer, best: Weights) -> dict[str, Tensor]:
    """Return by name every tensor that the next epoch depends on, and the best weights."""
    network = {f"now.{name}": part for name, part in trainer.scorer.layers.state_dict().items()}
    moments = {
        f"optimizer.{number}.{name}": moments_of_part[name]
        for number, moments_of_part in enumerate(trainer.optimizer.state.values())
        for name in MOMENTS
    }
    return network | moments | {f"best.{name}": part for name, part in best.items()}


def _begin_optimizer(trainer: Trainer) -> None:
    """Make the optimizer create its moments, by a step with zero gradients and rate 0."""
    rates = [group["lr"] for group in trainer.optimizer.param_groups]
    for group in trainer.optimizer.param_groups:
        group["lr"] = 0.0
    for part in trainer.scorer.layers.parameters():
        part.grad = torch.zeros_like(part)
    trainer.optimizer.step()
    for group, rate in zip(trainer.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


Parameters = Mapping[str, Any]
FITTED_ROWS = 100_000  # number of random rows to which transforms are fitted
# Parameters in a checkpoint's fingerprint -> their normal form. All else that the weights depend on is data.
REMEMBERED: Mapping[str, Any] = {
    "assume": lambda value: value,
    "hidden": lambda value: tuple(int(width) for width in value),
    "transforms": check_transforms,
    "context": bool,
    "dropout": float,
    "weight_decay": float,
    "learning_rate": float,
    "batch_rows": int,
    "amp": lambda value: value if isinstance(value, str) else bool(value),
    "random_state": lambda value: None if value is None else int(value),
}


def build_checkpoint(
    params: Parameters, training_set: NetworkTrainingSet, heldout: FitRows | None, last: NeuralScorer | None
) -> NetworkCheckpoint | None:
    """Build the checkpoint of this training, if requested; `last`: network of a warm start."""
    if params["checkpoint"] is None:
        return None
    folder = check_folder(params["checkpoint"])
    metric = training_set.claim.metric
    data = [training_set.X, training_set.labels, training_set.weights, training_set.queries.offsets]
    if heldout is not None:
        data += [heldout.X, *heldout.labels_and_queries(metric)]
    fingerprint = {name: repr(normalize(params[name])) for name, normalize in REMEMBERED.items()}
    fingerprint["metric"] = metric_fingerprint(metric)
    fingerprint["surrogate"] = surrogate_fingerprint(training_set.surrogate)
    fraction = str(float(params["validation_fraction"]))
    if heldout is not None or params["early_stopping"] is None:
        fraction = f"None ({'eval_set' if heldout is not None else 'early_stopping=None'})"
    start = "" if last is None else digest(*(part.numpy() for part in last.state_dict().values()))
    fingerprint |= {"validation_fraction": fraction, "estimator": "NeuralRanker"}
    return NetworkCheckpoint(Snapshot(Checkpoint(folder, fingerprint, digest(*data), start)))


def begin_course(params: Parameters, checkpoint: NetworkCheckpoint | None) -> Course:
    """Start a course, with the checkpoint's seed if there is a checkpoint."""
    seed = checkpoint.seed() if checkpoint is not None else None
    fresh = secrets.randbits(63) if params["random_state"] is None else int(params["random_state"])
    return Course(fresh if seed is None else seed)


def build_trainer(
    params: Parameters,
    metric: Metric,
    training_set: NetworkTrainingSet,
    heldout: FitRows | None,
    course: Course,
    last: NeuralScorer | None,
) -> Trainer:
    """Build network, data and loss on the device."""
    device = read_device(params["device"])
    wake(device)
    mixed = is_mixed(params["amp"], device)
    scorer = _build_network(params, training_set, course, last).to(device)
    # Layers computed in bfloat16 would round their inputs each time.
    kind = torch.bfloat16 if mixed and device.type == "cuda" else torch.float32
    labels, weights, unit = training_set.in_units()
    offsets = training_set.queries.offsets
    pool = Pool.from_rows(scorer, training_set.X, labels, weights, offsets, device, kind, unit)
    if bool(is_beyond(pool.inputs).any()):
        raise ParameterError.because(
            f"Some features are too large for single precision with transforms={params['transforms']!r}. Try "
            "transforms='standard'."
        )
    return Trainer(
        scorer=scorer,
        pool=pool,
        loss=loss_of_batch(training_set.surrogate, device),
        validate=None if heldout is None else validation(scorer, heldout, metric, device, kind),
        learning_rate=float(params["learning_rate"]),
        weight_decay=float(params["weight_decay"]),
        batch_rows=min(int(params["batch_rows"]), max(training_set.X.shape[0], 1)),
        amp=mixed,
        recorder=recorder_for(training_set.surrogate, pool),
        warm=last is not None,
    )


def train(
    params: Parameters, trainer: Trainer, course: Course, checkpoint: NetworkCheckpoint | None
) -> tuple[float, str]:
    """Train, resuming from a checkpoint if there is one; return the initial mean loss and the stop reason."""
    first = mean_loss(trainer.loss, trainer.pool, trainer.scorer)
    if checkpoint is not None:
        checkpoint.restore(trainer, course)

    def save_checkpoint(course: Course) -> None:
        if checkpoint is not None:
            checkpoint.write(trainer, course)

    patience = None if params["early_stopping"] is None else int(params["early_stopping"])
    max_epochs = int(params["max_epochs"])
    with epoch_callback(max_epochs, params["verbose"], params["callback"]) as on_epoch:
        return first, trainer.run(course, max_epochs, patience, on_epoch, save_checkpoint)


def _build_network(
    params: Parameters, training_set: NetworkTrainingSet, course: Course, last: NeuralScorer | None
) -> NeuralScorer:
    """Build the network before its first epoch: a new network, or a copy of the last."""
    n_rows, n_features = training_set.X.shape
    widths, level = tuple(int(width) for width in params["hidden"]), reads_level(training_set.surrogate)
    shape = int(n_features), widths, bool(params["context"]), level
    if last is not None:
        if last.shape != shape:
            raise ParameterError.because(
                "warm_start needs the network of the last fit, whose (features, hidden, context, level) is "
                f"{last.shape}, got {shape}. Set warm_start=False."
            )
        scorer = copy.deepcopy(last)
        scorer.set_dropout(float(params["dropout"]))
        return scorer
    rng, rows = course.generator(0), training_set.X
    if n_rows > FITTED_ROWS:
        rows = _sample_rows(training_set.X, np.sort(rng.choice(n_rows, FITTED_ROWS, replace=False)))
    transforms = fitted_transforms(check_transforms(params["transforms"]), dense(rows))
    options = {"context": shape[2], "level": level}
    return NeuralScorer(transforms, int(n_features), widths, float(params["dropout"]), **options, rng=rng)


def _sample_rows(X: Any, rows: IntArray) -> FloatArray:
    """Return these rows, and rows with minimum and maximum of each feature that is constant in them."""
    sample = dense(X[rows])
    constant = np.flatnonzero((sample == sample[0]).all(axis=0))
    flat_columns = dense(X[:, constant])
    ends = np.unique([flat_columns.argmin(axis=0), flat_columns.argmax(axis=0)])
    return np.concatenate([sample, dense(X[np.setdiff1d(ends, rows)])])


def dense(X: Any) -> FloatArray:
    """Return features as a dense array."""
    array: FloatArray = X.toarray() if hasattr(X, "toarray") else X
    return array
