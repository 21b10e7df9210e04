"""Checkpoints of a network: plain arrays and JSON under a checksum; reading one runs no code. Needs torch."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concordant.exceptions import ModelFileError
from concordant.rankers.networks.training import Course, Trainer, Weights
from concordant.scorers.neural_transforms import tensor_of
from concordant.supervision.readers.text import write_atomically

__all__ = ["Checkpoint", "digest"]

NAME, MAGIC, ABOUT = "checkpoint.npz", b"concordant checkpoint 1 ", "about"
OURS = "delete it, or name another folder, to begin anew."
MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what AdamW remembers of each part


@dataclass(frozen=True)
class Checkpoint:
    """Where a training is written after each epoch.

    Attributes
    ----------
    folder
        It holds one file.
    parameters, data, start
        What the training is of: texts by name, and digests of the arrays and of the weights of a warm start
        (empty: of none). Others are refused.
    """

    folder: Path
    parameters: Mapping[str, str]
    data: str
    start: str = ""

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / NAME

    def prepare(self) -> None:
        """Make the folder, and refuse one that cannot be written to before any work is done."""
        with self.named_errors("made or written to"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with write_atomically(self.folder / f".{NAME}.probe") as stream:
                stream.write(MAGIC)
            (self.folder / f".{NAME}.probe").unlink()

    @contextmanager
    def named_errors(self, done: str) -> Iterator[None]:
        """Let errors of the file system name the checkpoint."""
        try:
            yield
        except OSError as error:
            hint = "name a folder that can be written to, with room in it."
            raise ModelFileError(self.path, f"it cannot be {done} ({error})", hint) from error

    def write(self, trainer: Trainer, course: Course) -> None:
        """Replace the file, as a whole."""
        about = {
            "parameters": dict(self.parameters),
            "data": self.data,
            "start": self.start,
            "seed": course.seed,
            "start_score": course.start_score,
            "losses": course.losses,
            "scores": course.scores,
            "best_epoch": course.best_epoch,
        }
        arrays = {name: part.cpu().numpy() for name, part in state_of(trainer, course.best).items()}
        arrays[ABOUT] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        contents = io.BytesIO()
        np.savez(contents, allow_pickle=False, **arrays)
        with self.named_errors("written"), write_atomically(self.path) as stream:
            stream.write(MAGIC + hashlib.sha256(contents.getbuffer()).hexdigest().encode() + b"\n")
            stream.write(contents.getbuffer())

    def seed(self) -> int | None:
        """Give the seed of the training that the file holds; None where there is no file."""
        return None if not self.path.exists() else int(self.about(self.arrays())["seed"])

    def restore(self, trainer: Trainer, course: Course) -> None:
        """Put network, optimiser and course where the file left them; without a file nothing happens."""
        if not self.path.exists():
            return
        arrays = self.arrays()
        about = self.about(arrays)
        course.seed, course.losses, course.scores = about["seed"], about["losses"], about["scores"]
        course.best_epoch, course.best = about["best_epoch"], trainer.weights()
        course.start_score = about["start_score"]
        begin_optimizer(trainer)
        for name, part in state_of(trainer, course.best).items():
            if name not in arrays or arrays[name].shape != tuple(part.shape):
                raise ModelFileError(self.path, f"it has no {name} of this network", OURS)
            with torch.no_grad():
                part.copy_(tensor_of(arrays[name]))

    def arrays(self) -> dict[str, Any]:
        """Read the file, if its checksum is right."""
        with self.named_errors("read"):
            head, _, contents = self.path.read_bytes().partition(b"\n")
        if not head.startswith(MAGIC):
            raise ModelFileError(self.path, "this is no checkpoint that this version reads", OURS)
        if head != MAGIC + hashlib.sha256(contents).hexdigest().encode():
            raise ModelFileError(self.path, "its checksum is wrong: it is damaged or incomplete", OURS)
        try:
            with np.load(io.BytesIO(contents), allow_pickle=False) as archive:
                return dict(archive)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise ModelFileError(self.path, f"its arrays cannot be read ({error})", OURS) from error

    def about(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Give what stands beside the arrays, if it is about the same training."""
        try:
            about: dict[str, Any] = json.loads(arrays[ABOUT].tobytes())
            kinds = {"seed": int, "losses": list, "scores": list, "best_epoch": int}
            sound = all(isinstance(about[name], kind) for name, kind in kinds.items())
            then, data, start = about["parameters"], about["data"], about["start"]
            sound = sound and isinstance(about["start_score"], (float, type(None)))
        except (KeyError, ValueError, TypeError) as error:
            raise ModelFileError(self.path, "it does not say what it is of", OURS) from error
        if not sound:
            raise ModelFileError(self.path, "it does not say how far the training came", OURS)
        for name, value in self.parameters.items():
            if then.get(name) != value:
                raise ModelFileError(
                    self.path, f"it was written with {name}={then.get(name)}, not {value}", OURS
                )
        if data != self.data:
            raise ModelFileError(self.path, "it was written for other data", OURS)
        if start != self.start:
            began = "it is of a training that began with other weights than this warm start"
            raise ModelFileError(self.path, began, f"a finished fit is continued in a new folder: {OURS}")
        return about


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


def digest(*values: Any) -> str:
    """Give a digest of arrays, compressed rows, labels and None, in this order."""
    found = hashlib.blake2b(digest_size=16)
    for value in values:
        for part in parts_of(value):
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def parts_of(value: Any) -> list[Any]:
    """Give the arrays that make up a value."""
    if hasattr(value, "indptr"):
        return [value.indptr, value.indices, value.data]
    if isinstance(value, (np.ndarray, type(None))):
        return [np.asarray(value).astype("U") if value is None or value.dtype == object else value]
    if hasattr(value, "__dict__"):  # Grades, Preferences, Permutations
        return [part for one in vars(value).values() for part in parts_of(one)]
    return [np.asarray(value)]
