"""Epochs of a network: descent on minibatches, the best epoch kept, everything resumable. Needs torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from concordant.rankers.networks.batches import Batch, LossOfBatch, Pool
from concordant.rankers.progress import is_wanted, shown
from concordant.scorers.neural import NeuralScorer

if TYPE_CHECKING:
    from concordant.rankers.networks.graph import Recorder

__all__ = ["Course", "Epoch", "Trainer", "reported"]

Weights = dict[str, Tensor]
LARGEST = 1e9  # a weight beyond it comes from a learning rate that is too high


@dataclass(frozen=True)
class Epoch:
    """What a callback is told after each epoch.

    Attributes
    ----------
    epoch
        Its number, from 1 on.
    loss
        Mean training loss, while its weights were moving.
    score
        The metric on the validation queries, as `score` gives it; None without such queries.
    best_epoch
        The epoch whose weights would be kept.
    """

    epoch: int
    loss: float
    score: float | None
    best_epoch: int


@dataclass
class Course:
    """How far a training came: all of it is in a checkpoint.

    Attributes
    ----------
    seed
        Of every random choice; epochs draw from generators of their own.
    losses, scores
        Of each epoch; no scores without validation queries.
    best_epoch
        The first one of the best score; the last one without scores; 0: the weights before the first.
    start_score
        Of these weights, where a warm start was scored.
    best
        The weights after that epoch.
    """

    seed: int
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = 0
    start_score: float | None = None
    best: Weights = field(default_factory=dict)

    def generator(self, purpose: int, epoch: int = 0) -> np.random.Generator:
        """Give the generator of one purpose in one epoch."""
        return np.random.default_rng([self.seed, purpose, epoch])

    def stopped(self, max_epochs: int, patience: int | None) -> str:
        """Say why there is no next epoch; empty where there is one."""
        if len(self.losses) >= max_epochs:
            return "limit"
        waited = len(self.scores) - self.best_epoch
        return "early_stopping" if self.scores and patience is not None and waited >= patience else ""

    def record(self, loss: float, score: float | None, weights: Weights) -> Epoch:
        """Note an epoch; keep its weights where they are the best."""
        before = self.scores if self.start_score is None else [self.start_score, *self.scores]
        better = score is None or score > max(before, default=-math.inf)
        self.losses.append(loss)
        if score is not None:
            self.scores.append(score)
        if better:
            self.best_epoch, self.best = len(self.losses), weights
        return Epoch(len(self.losses), loss, score, self.best_epoch)


@dataclass(eq=False)
class Trainer:
    """A network, its optimiser and its data.

    Attributes
    ----------
    scorer, pool, loss
        What is trained, on what, by which loss.
    validate
        The score on validation queries; None: there are none.
    batch_rows
        Rows of a minibatch, about.
    amp
        Whether layers are computed in bfloat16.
    recorder
        What replays steps on a GPU; None: each one is launched anew.
    warm
        Whether the weights before the first epoch may be the best.
    """

    scorer: NeuralScorer
    pool: Pool
    loss: LossOfBatch
    validate: Callable[[], float] | None
    learning_rate: float
    weight_decay: float
    batch_rows: int
    amp: bool
    recorder: Recorder | None = None
    warm: bool = False

    def __post_init__(self) -> None:
        self.generator = torch.Generator(self.pool.device)  # what dropout draws from
        self.optimizer = torch.optim.AdamW(
            self.scorer.layers.parameters(),
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            fused=True,
            capturable=self.pool.device.type == "cuda",
        )
        self.total = torch.zeros((), dtype=torch.float64, device=self.pool.device)
        self.scale = torch.ones((), dtype=self.pool.labels.dtype, device=self.pool.device)

    def weights(self) -> Weights:
        """Give a copy of the weights."""
        return {name: part.detach().clone() for name, part in self.scorer.layers.state_dict().items()}

    def run(
        self,
        course: Course,
        max_epochs: int,
        patience: int | None,
        told: Callable[[Epoch], object],
        kept: Callable[[Course], None],
    ) -> str:
        """Train until something ends it, and say what; the scorer has the best weights then.

        `told` hears of each epoch, and ends the work by a true answer; `kept` writes the checkpoint.
        """
        if not course.best:
            course.best = self.weights()
            if self.warm and self.validate is not None:
                course.start_score = self.validate()
        try:
            while not (reason := course.stopped(max_epochs, patience)):
                loss = self.epoch(course)
                if not (math.isfinite(loss) and self.sound()):
                    reason = "divergence"
                    break
                score = self.validate() if self.validate is not None else None
                news = course.record(loss, score, self.weights())
                kept(course)
                if told(news):
                    reason = "callback"
                    break
        except KeyboardInterrupt:
            reason = "interrupt"
        self.optimizer.zero_grad(set_to_none=True)
        self.scorer.layers.load_state_dict(course.best)
        return reason

    def epoch(self, course: Course) -> float:
        """Go once through the queries, in a random order; give their mean loss on the way."""
        number, pool = len(course.losses), self.pool
        order = course.generator(1, number).permutation(np.flatnonzero(pool.sizes))
        plan = pool.plan(order, self.batch_rows)
        self.total.zero_()
        self.scale.fill_(len(plan.runs) / len(order))
        self.scorer.train()
        replay = self.recorder.replay(self, plan) if self.recorder is not None else None
        self.generator.manual_seed(int(course.generator(2, number).integers(2**63)))
        for place, run in enumerate(plan.runs):
            if replay is None or not replay(place):
                self.step(pool.batch(plan, *run))
        return float(self.total) / len(order) * pool.unit

    def step(self, batch: Batch) -> None:
        """Move the weights by the mean loss of a minibatch, times the share of the batches that it is."""
        with torch.autocast(self.pool.device.type, torch.bfloat16, enabled=self.amp, cache_enabled=False):
            scores = self.scorer.scores(batch.inputs, self.generator)
        scores = scores.to(batch.labels.dtype)
        values, grad = self.loss(scores.detach(), batch)
        self.optimizer.zero_grad(set_to_none=True)
        scores.backward(grad * self.scale)
        self.optimizer.step()
        self.total += values.sum(dtype=torch.float64)

    def sound(self) -> bool:
        """Tell whether every weight is a number, of a size that a training can have meant."""
        with torch.no_grad():
            sizes = torch.stack([part.abs().max() for part in self.scorer.layers.parameters()])
        return bool((sizes < LARGEST).all())


@contextmanager
def reported(max_epochs: int, verbose: int, callback: Any) -> Iterator[Callable[[Epoch], object]]:
    """Give what hears of each epoch: the bar, and then the caller's own."""
    if not is_wanted(verbose):
        yield callback or (lambda _: None)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    told_column = TextColumn("{task.fields[told]}")
    with shown(TextColumn("{task.description}"), BarColumn(), told_column, TimeElapsedColumn()) as bar:
        task = bar.add_task("epochs", total=max_epochs, told="")

        def told(news: Epoch) -> object:
            score = "" if news.score is None else f", score {news.score:.4f} (best: epoch {news.best_epoch})"
            bar.update(task, completed=news.epoch, told=f"{news.epoch}: loss {news.loss:.6g}{score}")
            return callback(news) if callback is not None else None

        yield told
