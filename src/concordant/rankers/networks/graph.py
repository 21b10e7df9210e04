"""Training steps on a GPU, recorded once and replayed: launching small kernels would take most of the time.

A recording has fixed shapes. Minibatches are filled up by rows of weight 0 in lists of their own, which
change neither values nor gradients. Needs torch.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from concordant.rankers.networks.batches import Batch, Plan, Pool
from concordant.scorers.neural_transforms import tensor_of
from concordant.surrogates import Pairwise, Softmax, Squared, Surrogate
from concordant.surrogates.margins import LOGISTIC
from concordant.torch.lists import Lists
from concordant.types import IntArray

if TYPE_CHECKING:
    from concordant.rankers.networks.training import Trainer

__all__ = ["Recorder", "Recording", "filled_offsets", "recorder_for"]

LEAST = 8  # minibatches of an epoch for which a recording is worth while
RECORDING = threading.Lock()
WARM_UP = 3  # steps before a recording: libraries choose and compile their kernels in them


def recorder_for(surrogate: Surrogate, pool: Pool) -> Recorder | None:
    """Give a recorder, where the data are on a GPU and the loss asks the host for nothing."""
    logistic = isinstance(surrogate, Pairwise) and surrogate.shape.kind == LOGISTIC
    known = isinstance(surrogate, (Pairwise, Softmax, Squared)) and not logistic
    return Recorder() if known and pool.inputs.is_cuda else None


def filled_offsets(plan: Plan, n_rows: int, n_lists: int, longest: int) -> IntArray:
    """Give the offsets of each minibatch, filled up to so many rows and lists by lists of at most `longest`.

    >>> plan = Plan(torch.arange(7), torch.tensor([0, 2, 5, 7]), np.array([0, 2, 5, 7]), [(0, 2), (2, 3)])
    >>> filled_offsets(plan, 6, 4, 3).tolist()
    [[0, 2, 5, 6, 6], [0, 2, 5, 6, 6]]
    """
    first, last = np.array(plan.runs).T[:, :, None]
    numbers = first + np.arange(n_lists + 1)
    inside = plan.edges[np.minimum(numbers, last)] - plan.edges[first]
    filled: IntArray = np.minimum(inside + longest * np.maximum(numbers - last, 0), n_rows)
    return filled


class Recorder:
    """Records the steps of a training when it first sees them, and again where they outgrow the recording."""

    def __init__(self) -> None:
        self.recording: Recording | None = None
        self.works = True

    def replay(self, trainer: Trainer, plan: Plan) -> Callable[[int], bool] | None:
        """Give what takes the step of the minibatch of a number, and tells whether it did; None: nothing."""
        counts = np.diff(plan.edges[np.array(plan.runs)], axis=1)[:, 0]
        fits = counts <= trainer.batch_rows
        if not self.works or fits.sum() < LEAST:
            return None
        longest = min(int(trainer.pool.sizes.max()), trainer.batch_rows)
        most = max(last - first for (first, last), fit in zip(plan.runs, fits, strict=True) if fit)
        wanted = most + -(-trainer.batch_rows // longest) + 1
        if self.recording is None or self.recording.n_lists < wanted:
            self.recording = self.recorded(trainer, wanted + wanted // 4, longest)
        if self.recording is None:
            return None
        return self.recording.steps(plan, counts, fits)

    def recorded(self, trainer: Trainer, n_lists: int, longest: int) -> Recording | None:
        """Record a step; the training stays where it is. None, with a warning, where that fails."""
        kept = copies_of(trainer)
        try:
            recording = Recording(trainer, n_lists, longest)
        except RuntimeError as error:
            self.works, recording = False, None
            told = str(error).partition("\n")[0]
            warnings.warn(
                f"steps are launched one by one, which is slower: {told}", UserWarning, stacklevel=2
            )
        put_back(trainer, kept)
        return recording


class Recording:
    """One step on a minibatch of fixed shape, as a CUDA graph.

    Attributes
    ----------
    index, offsets
        What a replay reads: the rows of the minibatch, -1 where it is filled up, and its lists.
    """

    def __init__(self, trainer: Trainer, n_lists: int, longest: int) -> None:
        device = trainer.pool.device
        self.pool, self.n_lists, self.longest = trainer.pool, n_lists, longest
        self.n_rows = trainer.batch_rows
        self.index = torch.full((self.n_rows,), -1, dtype=torch.int64, device=device)
        ends = np.minimum(longest * np.arange(n_lists + 1), self.n_rows)
        self.offsets = tensor_of(ends).to(device)
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(trainer.generator)  # replays draw on, from where it stands
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                trainer.step(self.batch())
        torch.cuda.current_stream(device).wait_stream(aside)
        trainer.optimizer.zero_grad(set_to_none=True)
        # Not torch's own stream, which may be on another device; one at a time, and let other threads work.
        how: Any = {"stream": aside, "capture_error_mode": "thread_local"}
        with RECORDING, torch.cuda.graph(self.graph, **how):
            trainer.step(self.batch())

    def batch(self) -> Batch:
        """Gather the rows of the index; those that fill it up have weight 0."""
        found = self.pool.gathered(self.index.clamp(min=0), Lists(self.offsets, self.longest, self.n_rows))
        return Batch(found.inputs, found.labels, found.weights * (self.index >= 0), found.lists)

    def steps(self, plan: Plan, counts: IntArray, fits: IntArray) -> Callable[[int], bool]:
        """Give what takes one step of this plan."""
        told = filled_offsets(plan, self.n_rows, self.n_lists, self.longest)
        offsets = tensor_of(told).to(self.pool.device)
        begins = plan.edges[[first for first, _ in plan.runs]]

        def step(place: int) -> bool:
            if not fits[place]:
                return False
            begin, count = int(begins[place]), int(counts[place])
            self.index[:count].copy_(plan.rows[begin : begin + count])
            self.index[count:].fill_(-1)
            self.offsets.copy_(offsets[place])
            self.graph.replay()
            return True

        return step


def copies_of(trainer: Trainer) -> dict[str, list[Tensor]]:
    """Give copies of what a step changes."""
    moments = [part for held in trainer.optimizer.state.values() for part in held.values()]
    parts = {
        "weights": list(trainer.scorer.layers.parameters()),
        "moments": moments,
        "total": [trainer.total],
    }
    return {name: [part.detach().clone() for part in some] for name, some in parts.items()}


def put_back(trainer: Trainer, kept: dict[str, list[Tensor]]) -> None:
    """Give everything its value of before; moments that were not there yet are 0."""
    moments = [part for held in trainer.optimizer.state.values() for part in held.values()]
    with torch.no_grad():
        for part, then in zip(trainer.scorer.layers.parameters(), kept["weights"], strict=True):
            part.copy_(then)
        for place, part in enumerate(moments):
            part.copy_(kept["moments"][place]) if kept["moments"] else part.zero_()
        trainer.total.copy_(kept["total"][0])
