"""Epochs of a network: descent on minibatches, the best epoch kept, everything resumable. Needs torch."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concordant._base.validate import is_verbose
from concordant._base.warn import warn_caller
from concordant.rankers.fit_progress import open_status_bar
from concordant.rankers.networks.batches import Batch, EpochOrder, LossOfBatch, Pool
from concordant.rankers.networks.network import NeuralScorer, as_tensor
from concordant.surrogates import Pairwise, Softmax, Squared, Surrogate
from concordant.surrogates.margins import LOGISTIC
from concordant.torch.lists import Lists
from concordant.types import IntArray

# Training steps on a GPU, recorded once and replayed: launching small kernels would take most of the time.
#
# A recording has fixed shapes. Minibatches are padded by rows of weight 0 in separate lists, which change
# neither values nor gradients. Needs torch.

LEAST = 8  # least number of minibatches per epoch for which a recording is worthwhile
RECORDING = threading.Lock()
WARM_UP = 3  # steps before a recording: libraries choose and compile their kernels in them


def recorder_for(surrogate: Surrogate, pool: Pool) -> Recorder | None:
    """Return a recorder if the data is on a GPU and the loss needs nothing from the host."""
    logistic = isinstance(surrogate, Pairwise) and surrogate.shape.kind == LOGISTIC
    is_supported = isinstance(surrogate, (Pairwise, Softmax, Squared)) and not logistic
    return Recorder() if is_supported and pool.inputs.is_cuda else None


def filled_offsets(plan: EpochOrder, n_rows: int, n_lists: int, longest: int) -> IntArray:
    """Return the list offsets of each minibatch, padded to `n_rows` and `n_lists`; `longest`: longest list.

    >>> edges = np.array([0, 2, 5, 7])
    >>> plan = EpochOrder(torch.arange(7), torch.tensor(edges), edges, [(0, 2), (2, 3)])
    >>> filled_offsets(plan, 6, 4, 3).tolist()
    [[0, 2, 5, 6, 6], [0, 2, 5, 6, 6]]
    """
    first, last = np.array(plan.runs).T[:, :, None]
    numbers = first + np.arange(n_lists + 1)
    lengths = plan.edges[np.minimum(numbers, last)] - plan.edges[first]
    filled: IntArray = np.minimum(lengths + longest * np.maximum(numbers - last, 0), n_rows)
    return filled


class Recorder:
    """Records a training step when it is first needed, and again if steps outgrow the recording."""

    def __init__(self) -> None:
        self.recording: Recording | None = None
        self.works = True

    def replay(self, trainer: Trainer, plan: EpochOrder) -> Callable[[int], bool] | None:
        """Return a function that replays a numbered minibatch's step, if recorded; None if nothing can be."""
        counts = np.diff(plan.edges[np.array(plan.runs)], axis=1)[:, 0]
        fits = counts <= trainer.batch_rows
        if not self.works or fits.sum() < LEAST:
            return None
        longest = min(int(trainer.pool.sizes.max()), trainer.batch_rows)
        most = max(last - first for (first, last), fit in zip(plan.runs, fits, strict=True) if fit)
        n_lists = most + -(-trainer.batch_rows // longest) + 1
        if self.recording is None or self.recording.n_lists < n_lists:
            self.recording = self.record_step(trainer, n_lists + n_lists // 4, longest)
        if self.recording is None:
            return None
        return self.recording.steps(plan, counts, fits)

    def record_step(self, trainer: Trainer, n_lists: int, longest: int) -> Recording | None:
        """Record a step without changing the training; None, with a warning, if recording fails."""
        state = _copy_state(trainer)
        try:
            recording = Recording(trainer, n_lists, longest)
        except RuntimeError as error:
            self.works, recording = False, None
            reason = str(error).partition("\n")[0]
            warn_caller(f"Training is slower, because its steps cannot be recorded as a CUDA graph: {reason}")
        _restore_state(trainer, state)
        return recording


class Recording:
    """Training step on a minibatch of fixed shape, as a CUDA graph.

    Attributes
    ----------
    index, offsets
        Inputs of a replay: the rows of the minibatch, -1 for padding, and the list offsets.
    """

    def __init__(self, trainer: Trainer, n_lists: int, longest: int) -> None:
        device = trainer.pool.device
        self.pool, self.n_lists, self.longest = trainer.pool, n_lists, longest
        self.n_rows = trainer.batch_rows
        self.index = torch.full((self.n_rows,), -1, dtype=torch.int64, device=device)
        ends = np.minimum(longest * np.arange(n_lists + 1), self.n_rows)
        self.offsets = as_tensor(ends).to(device)
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(trainer.generator)  # replays continue its random numbers
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                trainer.step(self.batch())
        torch.cuda.current_stream(device).wait_stream(aside)
        trainer.optimizer.zero_grad(set_to_none=True)
        # Not torch's stream, which may be on another device; one recording at a time, other threads may work.
        options: Any = {"stream": aside, "capture_error_mode": "thread_local"}
        with RECORDING, torch.cuda.graph(self.graph, **options):
            trainer.step(self.batch())

    def batch(self) -> Batch:
        """Gather the rows of the index; padding rows have weight 0."""
        batch = self.pool.gather(self.index.clamp(min=0), Lists(self.offsets, self.longest, self.n_rows))
        return Batch(batch.inputs, batch.labels, batch.weights * (self.index >= 0), batch.lists)

    def steps(self, plan: EpochOrder, counts: IntArray, fits: IntArray) -> Callable[[int], bool]:
        """Return a function that replays a step of this plan."""
        list_offsets = filled_offsets(plan, self.n_rows, self.n_lists, self.longest)
        offsets = as_tensor(list_offsets).to(self.pool.device)
        begins = plan.edges[[first for first, _ in plan.runs]]

        def step(number: int) -> bool:
            if not fits[number]:
                return False
            begin, count = int(begins[number]), int(counts[number])
            self.index[:count].copy_(plan.rows[begin : begin + count])
            self.index[count:].fill_(-1)
            self.offsets.copy_(offsets[number])
            self.graph.replay()
            return True

        return step


def _copy_state(trainer: Trainer) -> dict[str, list[Tensor]]:
    weights, moments = list(trainer.scorer.layers.parameters()), _moments(trainer)
    parts = {"weights": weights, "moments": moments, "total": [trainer.total]}
    return {name: [part.detach().clone() for part in tensors] for name, tensors in parts.items()}


def _restore_state(trainer: Trainer, state: dict[str, list[Tensor]]) -> None:
    """Restore the copied tensors; moments that did not exist yet are set to 0."""
    with torch.no_grad():
        for part, saved in zip(trainer.scorer.layers.parameters(), state["weights"], strict=True):
            part.copy_(saved)
        for number, part in enumerate(_moments(trainer)):
            part.copy_(state["moments"][number]) if state["moments"] else part.zero_()
        trainer.total.copy_(state["total"][0])


def _moments(trainer: Trainer) -> list[Tensor]:
    states = trainer.optimizer.state.values()
    return [moment for state in states for moment in state.values()]


Weights = dict[str, Tensor]
LARGEST = 1e9  # larger weights mean that the learning rate is too high


@dataclass(frozen=True)
class Epoch:
    """State after an epoch, as passed to callbacks.

    Attributes
    ----------
    epoch
        Number of the epoch, from 1.
    loss
        Mean training loss during the epoch, while the weights changed.
    score
        Metric on the validation queries, as from `score`; None without such queries.
    best_epoch
        Epoch whose weights would be kept.
    """

    epoch: int
    loss: float
    score: float | None
    best_epoch: int


@dataclass
class Course:
    """Progress of a training, saved entirely in checkpoints."""

    seed: int  # of all random choices; each epoch has separate generators
    losses: list[float] = field(default_factory=list)  # of each epoch
    scores: list[float] = field(default_factory=list)  # of each epoch; none without validation queries
    best_epoch: int = 0  # the first; without scores the last epoch; 0: the weights before the first
    start_score: float | None = None  # of the weights before the first epoch, for a warm start
    best: Weights = field(default_factory=dict)  # after the best epoch

    def generator(self, purpose: int, epoch: int = 0) -> np.random.Generator:
        """Return the random generator of a purpose in an epoch."""
        return np.random.default_rng([self.seed, purpose, epoch])

    def stop_reason(self, max_epochs: int, patience: int | None) -> str:
        """Return why there is no next epoch; empty if there is one."""
        if len(self.losses) >= max_epochs:
            return "limit"
        n_waited = len(self.scores) - self.best_epoch
        return "early_stopping" if self.scores and patience is not None and n_waited >= patience else ""

    def record(self, loss: float, score: float | None, weights: Weights) -> Epoch:
        """Record an epoch, and keep its weights if they are the best."""
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
    """Network, optimizer and training data."""

    scorer: NeuralScorer
    pool: Pool
    loss: LossOfBatch
    validate: Callable[[], float] | None  # scores the validation queries; None: there are none
    learning_rate: float
    weight_decay: float
    batch_rows: int  # of a minibatch, approximately
    amp: bool  # True if layers are computed in bfloat16
    recorder: Recorder | None = None  # replays steps on a GPU; None: every step is launched kernel by kernel
    warm: bool = False  # True if the weights before the first epoch may be the best

    def __post_init__(self) -> None:
        self.generator = torch.Generator(self.pool.device)  # for dropout
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
        """Return a copy of the weights."""
        return {name: part.detach().clone() for name, part in self.scorer.layers.state_dict().items()}

    def run(
        self,
        course: Course,
        max_epochs: int,
        patience: int | None,
        on_epoch: Callable[[Epoch], object],
        save_checkpoint: Callable[[Course], None],
    ) -> str:
        """Train until a stop reason occurs, and return it; the scorer then has the best weights.

        `on_epoch` is called after each epoch, and stops training by a true result; `save_checkpoint` is
        called before that.
        """
        if not course.best:
            course.best = self.weights()
            if self.warm and self.validate is not None:
                course.start_score = self.validate()
        try:
            while not (reason := course.stop_reason(max_epochs, patience)):
                loss = self.epoch(course)
                if not (math.isfinite(loss) and self.is_sound()):
                    reason = "divergence"
                    break
                score = self.validate() if self.validate is not None else None
                epoch = course.record(loss, score, self.weights())
                save_checkpoint(course)
                if on_epoch(epoch):
                    reason = "callback"
                    break
        except KeyboardInterrupt:
            reason = "interrupt"
        self.optimizer.zero_grad(set_to_none=True)
        self.scorer.layers.load_state_dict(course.best)
        return reason

    def epoch(self, course: Course) -> float:
        """Pass over the queries in random order; return their mean loss during the pass."""
        number, pool = len(course.losses), self.pool
        order = course.generator(1, number).permutation(np.flatnonzero(pool.sizes))
        plan = pool.plan(order, self.batch_rows)
        self.total.zero_()
        self.scale.fill_(len(plan.runs) / len(order))
        self.scorer.train()
        replay = self.recorder.replay(self, plan) if self.recorder is not None else None
        self.generator.manual_seed(int(course.generator(2, number).integers(2**63)))
        for batch_number, run in enumerate(plan.runs):
            if replay is None or not replay(batch_number):
                self.step(pool.batch(plan, *run))
        return float(self.total) / len(order) * pool.unit

    def step(self, batch: Batch) -> None:
        """Update the weights by the mean loss of a minibatch, times its share of the batches."""
        with torch.autocast(self.pool.device.type, torch.bfloat16, enabled=self.amp, cache_enabled=False):
            scores = self.scorer.scores(batch.inputs, self.generator)
        scores = scores.to(batch.labels.dtype)
        values, grad = self.loss(scores.detach(), batch)
        self.optimizer.zero_grad(set_to_none=True)
        scores.backward(grad * self.scale)
        self.optimizer.step()
        self.total += values.sum(dtype=torch.float64)

    def is_sound(self) -> bool:
        """True if every weight is finite and of reasonable size."""
        with torch.no_grad():
            sizes = torch.stack([part.abs().max() for part in self.scorer.layers.parameters()])
        return bool((sizes < LARGEST).all())


@contextmanager
def epoch_callback(max_epochs: int, verbose: int, callback: Any) -> Iterator[Callable[[Epoch], object]]:
    """Yield a callback for epochs that moves the progress bar and calls the user's callback."""
    if not is_verbose(verbose):
        yield callback or (lambda _: None)
        return
    with open_status_bar("epochs", max_epochs) as (_, update):

        def report_epoch(epoch: Epoch) -> object:
            best = f" (best: epoch {epoch.best_epoch})"
            score = "" if epoch.score is None else f", score {epoch.score:.4f}{best}"
            update(epoch.epoch, f"{epoch.epoch}: loss {epoch.loss:.6g}{score}")
            return callback(epoch) if callback is not None else None

        yield report_epoch
