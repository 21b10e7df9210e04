"""The objective of every linear ranker: mean over queries of the surrogate, plus alpha/2 |w|^2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from concordant._segments import cut_queries, run_chunks
from concordant.exceptions import LengthMismatchError, ShapeError
from concordant.scorers.linear import LinearScorer
from concordant.scorers.spread import ROUNDING
from concordant.supervision.columns import frozen
from concordant.surrogates.surrogate import Loss
from concordant.types import FloatArray, IntArray

__all__ = ["LinearObjective", "Objective"]

MOST_PARTS = 32  # sums of gradients that are added up at the end
PART_ROWS = 1000


class Objective(Protocol):
    """What `lbfgs` and `whitening` ask of an objective; the other solvers take a `LinearObjective`.

    Attributes
    ----------
    alpha, n_features, scale
        As of `LinearObjective`.
    n_gradients
        Passes over X so far.
    """

    alpha: float
    n_features: int
    scale: FloatArray
    n_gradients: int

    @property
    def offsets(self) -> IntArray:
        """Where each query starts."""

    @property
    def sparse(self) -> bool:
        """Whether X has compressed rows."""

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Give the objective and its gradient."""

    def at_rest(self) -> float:
        """Give the objective at weights 0."""

    def taken(self, rows: IntArray) -> Any:
        """Give some rows of X."""

    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Summed curvature of the loss in each score, and in the levels of whole queries."""


class LinearObjective:
    """Summed values of a loss at scores X @ w, plus alpha/2 times the squared length of w.

    One pass over X gives value and gradient: block by block, scores, loss and pulled-back gradient.

    Parameters
    ----------
    loss
        A bound surrogate, whose row weights hold the 1/n_queries of the mean.
    X
        Features, rows of each query adjacent.
    alpha
        Penalty.
    scale
        Divisor of each feature, None for 1: the weights are those of X / scale.
    """

    def __init__(self, loss: Loss, X: Any, alpha: float, scale: FloatArray | None = None) -> None:
        self.loss, self.alpha = loss, float(alpha)
        self.scorer = LinearScorer(X)
        self.n_features = self.scorer.n_features
        self.scale = np.ones(self.n_features) if scale is None else scale
        if self.scorer.n_rows != int(loss.offsets[-1]):  # kernels do not look
            raise LengthMismatchError("the loss", int(loss.offsets[-1]), self.scorer.n_rows)
        if self.scale.shape != (self.n_features,):
            raise ShapeError("scale", self.scale.shape, f"one number for each of {self.n_features} features")
        self.n_gradients = 0
        self.scores = np.zeros(self.scorer.n_rows)  # of the weights evaluated last
        self.moves = np.zeros(self.scorer.n_rows)  # change of the scores along the last direction
        self.rows = np.zeros(self.scorer.n_rows)  # gradient or Hessian product in the scores
        self.values = np.zeros(len(loss.offsets) - 1)
        n_parts = min(max(self.scorer.n_rows // PART_ROWS, 1), MOST_PARTS)
        self.edges = cut_queries(loss.offsets, n_parts)

    @property
    def offsets(self) -> IntArray:
        """Where each query starts."""
        return self.loss.offsets

    @property
    def sparse(self) -> bool:
        """Whether X has compressed rows."""
        return self.scorer.sparse

    def taken(self, rows: IntArray) -> Any:
        """Give some rows of X."""
        return self.scorer.X[rows]

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Give the objective and its gradient; the scores are kept for `hessian_product` and `along`."""
        read = frozen(self.scores)

        def work(first: int, last: int) -> None:
            self.loss.chunk(read, first, last, self.values, self.rows)

        grad = self.fused(w, self.scores, work)
        return float(self.values.sum() + 0.5 * self.alpha * (w @ w)), grad + self.alpha * w

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Give the (generalised) Hessian at the weights evaluated last, times the direction."""
        scores, moves = frozen(self.scores), frozen(self.moves)

        def work(first: int, last: int) -> None:
            self.loss.product_chunk(scores, moves, first, last, self.rows)

        return self.fused(direction, self.moves, work) + self.alpha * direction

    def along(self, moves: FloatArray, length: float) -> float:
        """Summed values at the last scores + length * moves; X is not read."""
        values, _ = self.loss.value_and_grad(self.scores + length * moves)
        return float(values.sum())

    def at_rest(self) -> float:
        """Give the objective at weights 0; X is not read."""
        values, _ = self.loss.value_and_grad(np.zeros(self.scorer.n_rows))
        return float(values.sum())

    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Summed curvature of the loss in each score, and in the levels of whole queries.

        At scores of spread 1, where pairs matter, and not at 0: at equal scores a margin may be straight.
        """
        loss = self.loss
        scores, vector = rng.standard_normal((2, self.scorer.n_rows))
        bend = float(vector @ loss.hessian_product(scores, vector))
        if not bend > 0.0:  # a hinge bends at corners only: how the gradient changes on the way
            bend = float(vector @ (loss.value_and_grad(scores + vector)[1] - loss.value_and_grad(scores)[1]))
        level = float(loss.hessian_product(scores, np.ones(len(scores))).sum())
        bend = max(bend, 0.0)
        return bend, level if level > ROUNDING * bend else 0.0

    def fused(self, w: FloatArray, scores: FloatArray, work: Callable[[int, int], None]) -> FloatArray:
        """Fill the scores, work on them, and pull `rows` back to the weights, in one pass over X."""
        totals = np.zeros((len(self.edges) - 1, self.n_features))
        weights, offsets = w / self.scale, self.loss.offsets

        def body(first: int, last: int) -> None:
            for part in range(first, last):
                for start, stop in self.blocks(int(self.edges[part]), int(self.edges[part + 1])):
                    own = int(offsets[start]), int(offsets[stop])
                    self.scorer.scores(weights, *own, scores)
                    work(start, stop)
                    self.scorer.pull(self.rows, *own, totals[part])

        # Parts depend on the data alone: whatever the number of threads, equal runs give equal bits.
        run_chunks(offsets[self.edges], body)
        self.n_gradients += 1
        total: FloatArray = totals.sum(axis=0)
        return total / self.scale

    def blocks(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Cut queries `first` to `last` where their rows fill the cache."""
        offsets, start = self.loss.offsets, first
        while start < last:
            fits = int(np.searchsorted(offsets, offsets[start] + self.scorer.block_rows, side="right")) - 1
            stop = min(last, max(start + 1, fits))
            yield start, stop
            start = stop
