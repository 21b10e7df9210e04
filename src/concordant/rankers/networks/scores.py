"""What a network gives: scores, the mean loss of them, and what they are worth to a metric. Needs torch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concordant.metrics.metric import Metric
from concordant.rankers.base import mean_score
from concordant.rankers.folds import Rows
from concordant.rankers.networks.batches import LossOfBatch, Pool, room_for
from concordant.scorers.neural import CHUNK, NeuralScorer, whole_queries
from concordant.supervision.queries import Queries
from concordant.types import FloatArray, IntArray

__all__ = ["all_scores", "mean_loss", "predicted", "validation"]

ROWS_AT_ONCE = 2**18  # scored at a time where nothing is learned


def all_scores(scorer: NeuralScorer, inputs: Tensor) -> Tensor:
    """Give the scores of all rows, on the device of the weights; nothing is learned or dropped."""
    weight = scorer.weights[0]
    scorer.eval()
    with torch.no_grad():
        pieces = torch.split(inputs, ROWS_AT_ONCE)
        parts = [scorer.scores(rows.to(weight.device, weight.dtype)) for rows in pieces]
    return torch.cat(parts)


def mean_loss(loss: LossOfBatch, pool: Pool, scorer: NeuralScorer | None = None) -> float:
    """Give the mean over queries of the loss; without a scorer that of scores 0."""
    whole = pool.whole()
    scores = torch.zeros_like(whole.labels) if scorer is None else all_scores(scorer, pool.inputs)
    values, _ = loss(scores.to(whole.labels.dtype), whole)
    return float(values.sum(dtype=torch.float64)) / int((pool.sizes > 0).sum())


def validation(
    scorer: NeuralScorer, held: Rows, metric: Metric, device: torch.device, dtype: torch.dtype
) -> Callable[[], float]:
    """Give the score of the network as it is, on these rows."""
    queries = Queries.of(held.qid, held.X.shape[0], "X")
    store = room_for(held.X.shape[0], scorer.widths[0], dtype, device)
    inputs = scorer.inputs(queries.gather(held.X), queries.offsets, device=store, dtype=dtype)

    def score() -> float:
        scores = queries.scatter(all_scores(scorer, inputs).double().cpu().numpy())
        if not np.isfinite(scores).all():
            return -math.inf
        return mean_score(metric, held.y, scores, queries, held.query_weight)

    return score


def predicted(scorer: NeuralScorer, X: Any, offsets: IntArray | None, device: Any) -> FloatArray:
    """Give the scores of features, rows of each query adjacent; on the CPU where the device is not there.

    Computed in doubles and rounded, so that a row's score does not depend on the rows beside it.
    """
    named = "cuda" if str(device) == "auto" else str(device)
    place = named if torch.cuda.is_available() else "cpu"
    exact, n_rows = copy.deepcopy(scorer).double().to(place), X.shape[0]
    edges = np.r_[0:n_rows:CHUNK, n_rows] if offsets is None else offsets
    scores, most = np.empty(n_rows, dtype=np.float32), float(np.finfo(np.float32).max)
    for first, last in whole_queries(np.diff(edges), CHUNK):
        rows = slice(edges[first], edges[last])
        inputs = exact.inputs(X[rows], edges[first : last + 1] - edges[first])
        scores[rows] = all_scores(exact, inputs).clamp(-most, most).cpu().numpy()
    return scores.astype(np.float64)
