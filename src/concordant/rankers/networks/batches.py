"""Training data of a network where it computes, cut into minibatches of whole queries. Needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from concordant.exceptions import ParameterError
from concordant.rankers.devices.losses import FORMS, device_loss
from concordant.scorers.neural import NeuralScorer, whole_queries
from concordant.scorers.neural_transforms import tensor_of
from concordant.surrogates import Surrogate
from concordant.torch.lists import Lists
from concordant.types import FloatArray, IntArray

__all__ = ["Batch", "LossOfBatch", "Plan", "Pool", "loss_of_batch", "room_for"]

SHARE = 0.7  # of a device's free memory that the data may take; the rest is for the work


@dataclass(frozen=True, eq=False)
class Batch:
    """Some whole queries on the device: rows of each are adjacent."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    lists: Lists


@dataclass(frozen=True, eq=False)
class Plan:
    """The order of an epoch.

    Attributes
    ----------
    rows, places
        On the device: the rows of all queries in this order, and where each query begins in them.
    edges
        `places`, on the host.
    runs
        First and last query of each minibatch.
    """

    rows: Tensor
    places: Tensor
    edges: IntArray
    runs: list[tuple[int, int]]


LossOfBatch: TypeAlias = Callable[[Tensor, Batch], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Pool:
    """What a network is trained on.

    Attributes
    ----------
    inputs
        What its layers read, one row per item, rows of each query adjacent; on the device where there is
        room, else in the host's memory.
    labels, weights
        Of each row, on the device: what the surrogate reads, and how much it counts.
    offsets
        Where each query begins, and last the number of rows.
    device
        Where the work is done.
    unit
        What a loss of 1 by these labels and weights stands for.
    """

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    offsets: IntArray
    device: torch.device
    unit: float = 1.0

    @classmethod
    def of(
        cls,
        scorer: NeuralScorer,
        X: Any,
        labels: FloatArray,
        weights: FloatArray,
        offsets: IntArray,
        device: torch.device,
        dtype: torch.dtype,
        unit: float = 1.0,
    ) -> Pool:
        """Transform the features once; keep them on the device if there is room."""
        store = room_for(X.shape[0], scorer.widths[0], dtype, device)
        inputs = scorer.inputs(X, offsets, device=store, dtype=dtype)
        kind = torch.promote_types(dtype, torch.float32)
        told, counted = (tensor_of(column).to(device, kind) for column in (labels, weights))
        return cls(inputs, told, counted, offsets, device, unit)

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each query."""
        return np.diff(self.offsets)

    def plan(self, order: IntArray, n_rows: int) -> Plan:
        """Cut queries, in this order, into minibatches of so many rows at most; longer ones stand alone."""
        sizes, starts = self.sizes[order], self.offsets[order]
        edges = np.r_[0, sizes.cumsum()]
        shifts = tensor_of(starts - edges[:-1]).to(self.device)
        counts = tensor_of(sizes).to(self.device)
        rows = shifts.repeat_interleave(counts, output_size=int(edges[-1]))
        rows += torch.arange(len(rows), device=self.device)
        places = tensor_of(edges).to(self.device)
        return Plan(rows, places, edges, list(whole_queries(sizes, n_rows)))

    def batch(self, plan: Plan, first: int, last: int) -> Batch:
        """Gather the queries that stand from `first` to `last` in the plan."""
        begin, end = int(plan.edges[first]), int(plan.edges[last])
        longest = int(np.diff(plan.edges[first : last + 1]).max(initial=0))
        lists = Lists(plan.places[first : last + 1] - begin, longest, end - begin)
        return self.gathered(plan.rows[begin:end], lists)

    def gathered(self, rows: Tensor, lists: Lists) -> Batch:
        """Give some rows, that are these lists."""
        inputs = self.inputs.index_select(0, rows.to(self.inputs.device)).to(self.device)
        return Batch(inputs, self.labels.index_select(0, rows), self.weights.index_select(0, rows), lists)

    def whole(self) -> Batch:
        """Give all queries at once, the inputs where they are."""
        offsets = tensor_of(self.offsets).to(self.device)
        sizes = self.sizes
        lists = Lists(offsets, int(sizes.max(initial=0)), int(self.offsets[-1]))
        return Batch(self.inputs, self.labels, self.weights, lists)


def room_for(n_rows: int, width: int, dtype: torch.dtype, device: torch.device) -> torch.device:
    """Give the device, if so many inputs have room there; else the host."""
    if device.type != "cuda":
        return device
    free, _ = torch.cuda.mem_get_info(device)
    fits = n_rows * (width * dtype.itemsize + 64) < SHARE * free
    return device if fits else torch.device("cpu")


def loss_of_batch(surrogate: Surrogate, device: torch.device) -> LossOfBatch:
    """Give (scores, batch) -> (values, grad): in torch where there is such a form, else on the host."""
    if type(surrogate) in FORMS:
        known = device_loss(surrogate)
        return lambda scores, batch: known(scores, batch.labels, batch.weights, batch.lists)
    if device.type != "cpu":
        names = ", ".join(sorted(kind.name for kind in FORMS))
        raise ParameterError("surrogate", surrogate, f"one of {names} on a GPU; device='cpu' takes all")

    def on_host(scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        columns = (column.double().numpy() for column in (batch.labels, batch.weights))
        labels, weights = columns
        loss = surrogate.attach(labels, batch.lists.offsets.numpy(), weights)
        values, grad = loss.value_and_grad(scores.double().numpy())
        return tensor_of(values), tensor_of(grad).to(scores.dtype)

    return on_host
