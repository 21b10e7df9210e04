"""What a network gives: scores, the mean loss of them, and what they are worth to a metric. Needs torch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concordant.exceptions import NonFiniteError
from concordant.metrics.metric import Metric
from concordant.rankers.folds import Rows
from concordant.rankers.held_out import evaluation
from concordant.rankers.networks.batches import LossOfBatch, Pool, room_for
from concordant.rankers.networks.place import place_at_hand, undisturbed
from concordant.scorers.neural import CHUNK, LIMIT, NeuralScorer, whole_queries
from concordant.supervision.queries import Queries
from concordant.types import FloatArray, IntArray

__all__ = ["all_scores", "is_beyond", "mean_loss", "predicted", "validation"]

ROWS_AT_ONCE = 2**18  # scored at a time where nothing is learned


def all_scores(scorer: NeuralScorer, inputs: Tensor) -> Tensor:
    """Give the scores of all rows, on the device of the weights; nothing is learned or dropped."""
    weight = scorer.weights[0]
    scorer.eval()
    with torch.no_grad():
        pieces = torch.split(inputs, ROWS_AT_ONCE)
        parts = [scorer.scores(rows.to(weight.device, weight.dtype)) for rows in pieces]
    return torch.cat(parts)


def mean_loss(loss: LossOfBatch, pool: Pool, scorer: NeuralScorer) -> float:
    """Give the mean over queries of the loss."""
    whole = pool.whole()
    values, _ = loss(all_scores(scorer, pool.inputs).to(whole.labels.dtype), whole)
    return float(values.sum(dtype=torch.float64)) / int((pool.sizes > 0).sum()) * pool.unit


def validation(
    scorer: NeuralScorer, held: Rows, metric: Metric, device: torch.device, dtype: torch.dtype
) -> Callable[[], float]:
    """Give the score of the network as it is, on these rows; minus infinity where it is beyond numbers."""
    queries, evaluate = Queries.of(held.qid, held.X.shape[0], "X"), evaluation(metric, held, "eval_set")
    store = room_for(held.X.shape[0], scorer.widths[0], dtype, device)
    inputs = scorer.inputs(queries.gather(held.X), queries.offsets, device=store, dtype=dtype)
    if far := int((beyond := is_beyond(inputs)).sum()):
        where = (
            f"row {queries.scatter(beyond.cpu().numpy()).argmax()} of eval_set, or of the queries held out"
        )
        hint = "remove outliers, or take 'log1p' or 'quantile' as transforms."
        raise NonFiniteError("X, transformed,", math.inf, where, far, hint)

    def score() -> float:
        scores = queries.scatter(all_scores(scorer, inputs).double().cpu().numpy())
        if not np.isfinite(scores).all():
            return -math.inf
        return evaluate(scores)

    return score


def is_beyond(inputs: Tensor) -> Tensor:
    """Tell of each row whether a feature was cut off."""
    most = 0.99 * LIMIT  # bfloat16 rounds the limit
    return torch.cat([(rows.abs() >= most).any(dim=1) for rows in torch.split(inputs, ROWS_AT_ONCE)])


def predicted(scorer: NeuralScorer, X: Any, offsets: IntArray | None, device: Any) -> FloatArray:
    """Give the scores of features, rows of each query adjacent; on the CPU where the device is not there.

    Computed in doubles and rounded, so that a row's score does not depend on the rows beside it.
    """
    place, n_rows = place_at_hand(device), X.shape[0]
    edges = np.r_[0:n_rows:CHUNK, n_rows] if offsets is None else offsets
    scores, most = np.empty(n_rows, dtype=np.float32), float(np.finfo(np.float32).max)
    with undisturbed(place):
        exact = copy.deepcopy(scorer).double().to(place)
        for first, last in whole_queries(np.diff(edges), CHUNK):
            rows = slice(edges[first], edges[last])
            inputs = exact.inputs(X[rows], edges[first : last + 1] - edges[first])
            scores[rows] = all_scores(exact, inputs).clamp(-most, most).cpu().numpy()
    return scores.astype(np.float64)
