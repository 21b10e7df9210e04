"""Training data of a network on its device, cut into minibatches of whole queries. Needs torch."""

from __future__ import annotations

import copy
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from concordant._base.validate import list_words
from concordant.exceptions import NonFiniteError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.device_losses import FORMS, device_loss, torch_device, working_on
from concordant.rankers.folds import FitRows, bind_evaluation
from concordant.rankers.networks.network import CHUNK, LIMIT, NeuralScorer, as_tensor, whole_queries
from concordant.surrogates import Surrogate
from concordant.torch.lists import Lists
from concordant.types import FloatArray, IntArray

# The device of a network, independent of what the caller has set in torch. Needs torch.


def read_device(device: Any) -> torch.device:
    """Return the device of this name, with its number; "auto" is a GPU if there is one.

    >>> read_device("cpu")
    device(type='cpu')
    """
    name = device
    if isinstance(device, str) and device == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        resolved = torch_device(name)
    except ParameterError:
        hint = f"torch {torch.__version__} sees {torch.cuda.device_count()} GPUs."
        raise ParameterError("device", device, "'auto', 'cpu', 'cuda' or 'cuda:0'", hint=hint) from None
    if resolved.type == "cuda" and resolved.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return resolved


def _available_device(device: Any) -> torch.device:
    """Return the device of this name, or the CPU if it is a GPU that is not available.

    >>> _available_device("cuda:99")
    device(type='cpu')
    """
    try:
        return read_device(device)
    except ParameterError:
        if not re.fullmatch(r"cuda|(cuda:)?\d+", str(device)):
            raise
        return torch.device("cpu")


def is_mixed(amp: Any, device: torch.device) -> bool:
    """True if layers are computed in bfloat16."""
    if isinstance(amp, str):
        return device.type == "cuda" and bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(amp)


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Work on this device with gradients, and without the caller's inference_mode, no_grad and autocast."""
    with torch.inference_mode(mode=False), torch.enable_grad(), working_on(device):
        yield


def wake(device: torch.device) -> None:
    """Initialize torch on a GPU: otherwise the first product in another thread would warn."""
    if device.type == "cuda":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            matrix = torch.ones((1, 1), device=device, requires_grad=True)
            (matrix @ matrix).sum().backward()


SHARE = 0.7  # of a device's free memory that the data may take; the rest is working memory


@dataclass(frozen=True, eq=False)
class Batch:
    """Some whole queries on the device; rows of each query are adjacent."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    lists: Lists


@dataclass(frozen=True, eq=False)
class EpochOrder:
    """Order of the queries in an epoch."""

    rows: Tensor  # of all queries in this order, on the device
    places: Tensor  # the queries' offsets in them, on the device
    edges: IntArray  # `places`, on the host
    runs: list[tuple[int, int]]  # first and last query (exclusive) of each minibatch


LossOfBatch: TypeAlias = Callable[[Tensor, Batch], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Pool:
    """Training data of a network."""

    inputs: Tensor  # of the layers, rows of each query adjacent; in host memory if the device has no room
    labels: Tensor  # on the device
    weights: Tensor  # on the device
    offsets: IntArray  # of the queries
    device: torch.device  # that does the work
    unit: float = 1.0  # loss in the caller's units that a loss of 1 stands for

    @classmethod
    def from_rows(
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
        storage = room_for(X.shape[0], scorer.widths[0], dtype, device)
        inputs = scorer.inputs(X, offsets, device=storage, dtype=dtype)
        kind = torch.promote_types(dtype, torch.float32)
        label_column, weight_column = (as_tensor(column).to(device, kind) for column in (labels, weights))
        return cls(inputs, label_column, weight_column, offsets, device, unit)

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each query."""
        return np.diff(self.offsets)

    def plan(self, order: IntArray, n_rows: int) -> EpochOrder:
        """Cut queries, in this order, into minibatches of at most `n_rows` rows; longer queries are alone."""
        sizes, starts = self.sizes[order], self.offsets[order]
        edges = np.r_[0, sizes.cumsum()]
        shifts = as_tensor(starts - edges[:-1]).to(self.device)
        counts = as_tensor(sizes).to(self.device)
        rows = shifts.repeat_interleave(counts, output_size=int(edges[-1]))
        rows += torch.arange(len(rows), device=self.device)
        places = as_tensor(edges).to(self.device)
        return EpochOrder(rows, places, edges, list(whole_queries(sizes, n_rows)))

    def batch(self, plan: EpochOrder, first: int, last: int) -> Batch:
        """Gather the queries numbered from `first` to `last` in the plan."""
        begin, end = int(plan.edges[first]), int(plan.edges[last])
        longest = int(np.diff(plan.edges[first : last + 1]).max(initial=0))
        lists = Lists(plan.places[first : last + 1] - begin, longest, end - begin)
        return self.gather(plan.rows[begin:end], lists)

    def gather(self, rows: Tensor, lists: Lists) -> Batch:
        """Gather rows, which form these lists."""
        inputs = self.inputs.index_select(0, rows.to(self.inputs.device)).to(self.device)
        return Batch(inputs, self.labels.index_select(0, rows), self.weights.index_select(0, rows), lists)

    def whole(self) -> Batch:
        """Return all queries as a batch, with the inputs where they are stored."""
        offsets = as_tensor(self.offsets).to(self.device)
        sizes = self.sizes
        lists = Lists(offsets, int(sizes.max(initial=0)), int(self.offsets[-1]))
        return Batch(self.inputs, self.labels, self.weights, lists)


def room_for(n_rows: int, width: int, dtype: torch.dtype, device: torch.device) -> torch.device:
    """Return the device if these inputs fit there, else the host."""
    if device.type != "cuda":
        return device
    free, _ = torch.cuda.mem_get_info(device)
    fits = n_rows * (width * dtype.itemsize + 64) < SHARE * free
    return device if fits else torch.device("cpu")


def loss_of_batch(surrogate: Surrogate, device: torch.device) -> LossOfBatch:
    """Return a function (scores, batch) -> (values, grad): in torch if possible, else on the host."""
    if type(surrogate) in FORMS:
        torch_loss = device_loss(surrogate)
        return lambda scores, batch: torch_loss(scores, batch.labels, batch.weights, batch.lists)
    if device.type != "cpu":
        names = list_words(sorted(kind.name for kind in FORMS))
        raise ParameterError("surrogate", surrogate, f"{names} on a GPU", hint="device='cpu' takes all.")

    def on_host(scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        labels, weights = (column.double().numpy() for column in (batch.labels, batch.weights))
        loss = surrogate.attach(labels, batch.lists.offsets.numpy(), weights)
        values, grad = loss.value_and_grad(scores.double().numpy())
        return as_tensor(values), as_tensor(grad).to(scores.dtype)

    return on_host


# Outputs of a network: scores, their mean loss, and their metric. Needs torch.

ROWS_AT_ONCE = 2**18  # scored at a time without training


def _all_scores(scorer: NeuralScorer, inputs: Tensor) -> Tensor:
    """Return the scores of all rows, on the device of the weights, without gradients or dropout."""
    weight = scorer.weights[0]
    scorer.eval()
    with torch.no_grad():
        pieces = torch.split(inputs, ROWS_AT_ONCE)
        parts = [scorer.scores(rows.to(weight.device, weight.dtype)) for rows in pieces]
    return torch.cat(parts)


def mean_loss(loss: LossOfBatch, pool: Pool, scorer: NeuralScorer) -> float:
    """Return the mean loss over queries."""
    whole = pool.whole()
    values, _ = loss(_all_scores(scorer, pool.inputs).to(whole.labels.dtype), whole)
    return float(values.sum(dtype=torch.float64)) / int((pool.sizes > 0).sum()) * pool.unit


def validation(
    scorer: NeuralScorer, heldout: FitRows, metric: Metric, device: torch.device, dtype: torch.dtype
) -> Callable[[], float]:
    """Return a function that scores held-out rows by the network; minus infinity if scores overflow."""
    queries, evaluate = heldout.queries, bind_evaluation(metric, heldout, "eval_set")
    store = room_for(heldout.X.shape[0], scorer.widths[0], dtype, device)
    inputs = scorer.inputs(queries.gather(heldout.X), queries.offsets, device=store, dtype=dtype)
    if n_clipped := int((clipped := is_beyond(inputs)).sum()):
        row = queries.scatter(clipped.cpu().numpy()).argmax()
        where = f"row {row} of eval_set, or of the queries held out"
        hint = "remove outliers, or take 'log1p' or 'quantile' as transforms."
        raise NonFiniteError("X, transformed,", math.inf, where, n_clipped, hint)

    def score() -> float:
        scores = queries.scatter(_all_scores(scorer, inputs).double().cpu().numpy())
        if not np.isfinite(scores).all():
            return -math.inf
        return evaluate(scores)

    return score


def is_beyond(inputs: Tensor) -> Tensor:
    """Return for each row whether a feature was clipped."""
    most = 0.99 * LIMIT  # bfloat16 rounds the limit
    return torch.cat([(rows.abs() >= most).any(dim=1) for rows in torch.split(inputs, ROWS_AT_ONCE)])


def predict_scores(scorer: NeuralScorer, X: Any, offsets: IntArray | None, device: Any) -> FloatArray:
    """Return the scores of rows, grouped by query; computed on the CPU if the device is not available.

    Computed in double precision and rounded, so that a row's score does not depend on the other rows.
    """
    work_device, n_rows = _available_device(device), X.shape[0]
    edges = np.r_[0:n_rows:CHUNK, n_rows] if offsets is None else offsets
    scores, most = np.empty(n_rows, dtype=np.float32), float(np.finfo(np.float32).max)
    with undisturbed(work_device):
        exact = copy.deepcopy(scorer).double().to(work_device)
        for first, last in whole_queries(np.diff(edges), CHUNK):
            rows = slice(edges[first], edges[last])
            inputs = exact.inputs(X[rows], edges[first : last + 1] - edges[first])
            scores[rows] = _all_scores(exact, inputs).clamp(-most, most).cpu().numpy()
    return scores.astype(np.float64)
