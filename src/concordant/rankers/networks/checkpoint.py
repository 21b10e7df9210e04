"""Checkpoints of a network: all that its next epoch depends on, and its best weights. Needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from concordant.exceptions import ModelFileError
from concordant.rankers.networks.training import Course, Trainer, Weights
from concordant.scorers.neural_transforms import tensor_of
from concordant.solvers.checkpoint import ANEW, Snapshot

__all__ = ["NetworkCheckpoint"]

MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what AdamW remembers of each part
KINDS = {"seed": int, "losses": list, "scores": list, "best_epoch": int}  # what is known of a course


@dataclass(frozen=True)
class NetworkCheckpoint:
    """Where a training is written after each epoch.

    Attributes
    ----------
    file
        One file, which is replaced as a whole.
    """

    file: Snapshot

    def write(self, trainer: Trainer, course: Course) -> None:
        """Replace the file."""
        about = {name: getattr(course, name) for name in (*KINDS, "start_score")}
        state = state_of(trainer, course.best)
        self.file.write(about, {name: part.cpu().numpy() for name, part in state.items()})

    def seed(self) -> int | None:
        """Give the seed of the training that the file holds; None where there is no file."""
        known = self.read()
        return None if known is None else int(known[0]["seed"])

    def restore(self, trainer: Trainer, course: Course) -> None:
        """Put network, optimiser and course where the file left them; without a file nothing happens."""
        if (known := self.read()) is None:
            return
        about, arrays = known
        course.seed, course.losses, course.scores = about["seed"], about["losses"], about["scores"]
        course.best_epoch, course.best = about["best_epoch"], trainer.weights()
        course.start_score = about["start_score"]
        begin_optimizer(trainer)
        for name, part in state_of(trainer, course.best).items():
            if name not in arrays or arrays[name].shape != tuple(part.shape):
                raise ModelFileError(self.file.path, f"it has no {name} of this network", ANEW)
            with torch.no_grad():
                part.copy_(tensor_of(arrays[name]))

    def read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Give facts and arrays, if they are of this training; None where there is no file."""
        if (known := self.file.read()) is None:
            return None
        about = known[0]
        sound = all(isinstance(about.get(name), kind) for name, kind in KINDS.items())
        if not (sound and isinstance(about.get("start_score", ""), (float, type(None)))):
            raise ModelFileError(self.file.path, "it does not say how far the training came", ANEW)
        return known


def state_of(trainer: Trainer, best: Weights) -> dict[str, Tensor]:
    """Give every tensor that the next epoch depends on, and the best weights, by name."""
    network = {f"now.{name}": part for name, part in trainer.scorer.layers.state_dict().items()}
    moments = {
        f"optimizer.{number}.{name}": held[name]
        for number, held in enumerate(trainer.optimizer.state.values())
        for name in MOMENTS
    }
    return network | moments | {f"best.{name}": part for name, part in best.items()}


def begin_optimizer(trainer: Trainer) -> None:
    """Let the optimiser make its moments: a step without slopes and without a rate changes no weight."""
    rates = [group["lr"] for group in trainer.optimizer.param_groups]
    for group in trainer.optimizer.param_groups:
        group["lr"] = 0.0
    for part in trainer.scorer.layers.parameters():
        part.grad = torch.zeros_like(part)
    trainer.optimizer.step()
    for group, rate in zip(trainer.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
