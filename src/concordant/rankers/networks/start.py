"""From parameters and a lesson to what is trained: network, data and loss on the device. Needs torch."""

from __future__ import annotations

import copy
import secrets
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.devices.losses import levelled, torch_device
from concordant.rankers.folds import Rows
from concordant.rankers.networks.batches import Pool, loss_of_batch
from concordant.rankers.networks.checkpoint import Checkpoint, digest
from concordant.rankers.networks.graph import recorder_for
from concordant.rankers.networks.lesson import Lesson
from concordant.rankers.networks.scores import validation
from concordant.rankers.networks.training import Course, Trainer
from concordant.scorers.neural import NeuralScorer, check_transforms, fitted_transforms

__all__ = ["checkpoint_of", "course_of", "is_mixed", "network", "place_of", "trainer_of"]

Parameters = Mapping[str, Any]
FITTED_ROWS = 100_000  # rows, drawn at random, that transforms are fitted to
REMEMBERED = (  # by a checkpoint: what else the weights depend on is data
    "assume", "hidden", "transforms", "context", "dropout", "weight_decay", "learning_rate", "batch_rows",
    "amp", "random_state",
)  # fmt: skip


def place_of(device: Any) -> torch.device:
    """Give the device of this name; "auto" is a GPU, if there is one.

    >>> place_of("cpu")
    device(type='cpu')
    """
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch_device(device)


def is_mixed(amp: Any, device: torch.device) -> bool:
    """Whether layers are computed in bfloat16."""
    if isinstance(amp, str):
        return device.type == "cuda" and bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(amp)


def checkpoint_of(
    given: Parameters, lesson: Lesson, held: Rows | None, last: NeuralScorer | None
) -> Checkpoint | None:
    """Give the checkpoint of this training, if there is to be one; `last`: the network it begins with."""
    if given["checkpoint"] is None:
        return None
    start = [] if last is None else [part.numpy() for part in last.state_dict().values()]
    data = digest(lesson.X, lesson.labels, lesson.weights, lesson.queries.offsets, *(held or ()), *start)
    told = {name: repr(given[name]) for name in REMEMBERED}
    told["metric"], told["surrogate"] = str(lesson.claim.metric), repr(lesson.surrogate)
    fraction = None if given["early_stopping"] is None else given["validation_fraction"]
    return Checkpoint(given["checkpoint"], {**told, "validation_fraction": repr(fraction)}, data)


def course_of(given: Parameters, checkpoint: Checkpoint | None) -> Course:
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
    told = lesson.labels, lesson.mean_weights, lesson.queries.offsets
    pool = Pool.of(scorer, lesson.X, *told, device, kind)
    if not bool(pool.inputs.isfinite().all()):
        wanted = "such that features of this size become single precision: 'standard', say"
        raise ParameterError("transforms", given["transforms"], wanted)
    return Trainer(
        scorer=scorer,
        pool=pool,
        loss=loss_of_batch(lesson.surrogate, device),
        validate=None if held is None else validation(scorer, held, metric, device, kind),
        learning_rate=float(given["learning_rate"]),
        weight_decay=float(given["weight_decay"]),
        batch_rows=int(given["batch_rows"]),
        amp=mixed,
        recorder=recorder_for(lesson.surrogate, pool),
    )


def wake(device: torch.device) -> None:
    """Let torch make itself at home on a GPU: the first product of its other threads would warn."""
    if device.type == "cuda":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            one = torch.ones((1, 1), device=device, requires_grad=True)
            (one @ one).sum().backward()


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
        chosen = lesson.X[np.sort(rng.choice(n_rows, FITTED_ROWS, replace=False))]
    dense = chosen.toarray() if hasattr(chosen, "toarray") else chosen
    transforms = fitted_transforms(check_transforms(given["transforms"]), dense)
    how = {"context": shape[2], "level": level}
    return NeuralScorer(transforms, int(n_features), widths, float(given["dropout"]), **how, rng=rng)
