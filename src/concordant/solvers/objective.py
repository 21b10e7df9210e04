"""The objective of every linear ranker: mean over queries of the surrogate, plus alpha/2 |w|^2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concordant._base.segments import cut_queries, run_chunks
from concordant._base.validate import freeze
from concordant.exceptions import LengthMismatchError, ShapeError
from concordant.solvers.linear_scores import ROUNDING, LinearScorer
from concordant.solvers.precondition import rows_from, sampled_queries
from concordant.surrogates.surrogate import Loss
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Random numbers of rows: they depend on the query and the position in it, not on where a row is stored.

STEP, FIRST, SECOND = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
LONGEST = np.uint64(32)  # bits of a position in a query


def row_noise(ranks: IntArray, offsets: IntArray) -> FloatArray:
    """Draw two independent standard normal numbers for each row, (2, n_rows).

    Parameters
    ----------
    ranks
        Number of each query among all queries: a part's queries have their numbers in the whole.
    offsets
        Where each query starts.

    Examples
    --------
    >>> whole = row_noise(np.array([0, 1]), np.array([0, 2, 5]))
    >>> bool((whole[:, 2:] == row_noise(np.array([1]), np.array([0, 3]))).all())
    True
    """
    sizes = np.diff(offsets)
    positions = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    keys = (np.repeat(ranks, sizes).astype(np.uint64) << LONGEST) + positions.astype(np.uint64)
    first, second = (uniform(np.uint64(2) * keys + np.uint64(turn)) for turn in (0, 1))
    length, angle = np.sqrt(-2.0 * np.log(first)), 2.0 * np.pi * second  # Box and Muller
    return np.stack((length * np.cos(angle), length * np.sin(angle)))


def uniform(keys: NDArray[np.uint64]) -> FloatArray:
    """Map integers to numbers in (0, 1), by splitmix64."""
    mixed = (keys + np.uint64(1)) * STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


Route = list[tuple[int, IntArray]]
"""Numbers of parts, in the order of a walk, and in which order the queries of each are taken."""

MOST_PARTS = 32  # gradient sums, which are added up at the end
PART_ROWS = 1000


class Objective(Protocol):
    """What `lbfgs` and `whitening` need of an objective; the other solvers take a `LinearObjective`.

    Attributes
    ----------
    alpha, n_features, scale
        As in `LinearObjective`.
    n_gradients
        Passes over X so far.
    """

    alpha: float
    n_features: int
    scale: FloatArray
    n_gradients: int

    @property
    def sparse(self) -> bool:
        """True if X has compressed rows."""

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Evaluate the objective and its gradient."""

    def at_rest(self) -> float:
        """Evaluate the objective at weights 0."""

    def sample(self, rng: np.random.Generator) -> tuple[Any, IntArray]:
        """Rows of X of random whole queries, and where each query starts among them: `sampled_rows`."""

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
    ranks
        Number of each query among all nonempty queries; None: these are all.
    """

    def __init__(
        self,
        loss: Loss,
        X: Any,
        alpha: float,
        scale: FloatArray | None = None,
        ranks: IntArray | None = None,
    ) -> None:
        self.loss, self.alpha = loss, float(alpha)
        # Empty queries are not counted: with or without them the weights are the same.
        self.ranks = np.cumsum(np.diff(loss.offsets) > 0) - 1 if ranks is None else ranks
        self.scorer = LinearScorer(X)
        self.n_features = self.scorer.n_features
        self.scale = np.ones(self.n_features) if scale is None else scale
        if self.scorer.n_rows != int(loss.offsets[-1]):  # kernels do not check
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
        """True if X has compressed rows."""
        return self.scorer.sparse

    def sample(self, rng: np.random.Generator) -> tuple[Any, IntArray]:
        """Rows of X of random whole queries, and where each query starts among them."""
        queries, counts = sampled_queries(self.offsets, self.n_features, rng, sparse=self.sparse)
        return self.scorer.X[rows_from(self.offsets[queries], counts)], np.cumsum([0, *counts])

    @property
    def slopes(self) -> float:
        """Summed sizes of the slopes in the scores, at the weights evaluated last."""
        return float(np.abs(self.rows).sum())

    def widest(self) -> FloatArray:
        """Return the largest absolute value of each feature."""
        return self.scorer.widest()

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Evaluate the objective and its gradient; `hessian_product` and `along` reuse the scores."""
        read = freeze(self.scores)

        def work(first: int, last: int) -> None:
            self.loss.chunk(read, first, last, self.values, self.rows)

        grad = self.fused(w, self.scores, work)
        return float(self.values.sum() + 0.5 * self.alpha * (w @ w)), grad + self.alpha * w

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Multiply the (generalised) Hessian at the weights evaluated last by the direction."""
        scores, moves = freeze(self.scores), freeze(self.moves)

        def work(first: int, last: int) -> None:
            self.loss.product_chunk(scores, moves, first, last, self.rows)

        return self.fused(direction, self.moves, work) + self.alpha * direction

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.values)

    def route(self, rng: np.random.Generator, most: int | None = None) -> Route:
        """Return a random order of the queries, or of `most` of them."""
        return [(0, rng.permutation(self.n_queries)[:most])]

    def visits(self, route: Route) -> Iterator[tuple[LinearObjective, IntArray]]:
        """Iterate over the route: objectives of queries in memory together, and the queries' order."""
        return ((self, order) for _, order in route)

    def query_slope(self, q: int, w: FloatArray) -> FloatArray:
        """Compute the gradient of a query's loss, in the weights of the unscaled X."""
        rows, slope = (int(self.offsets[q]), int(self.offsets[q + 1])), np.zeros(self.n_features)
        self.scorer.scores(w, *rows, self.scores)
        self.loss.chunk(freeze(self.scores), q, q + 1, self.values, self.rows)
        self.scorer.pull(self.rows, *rows, slope)
        return slope

    def along(self, moves: FloatArray, length: float) -> float:
        """Return the summed values at the last scores + length * moves; X is not read."""
        values, _ = self.loss.value_and_grad(self.scores + length * moves)
        return float(values.sum())

    def at_rest(self) -> float:
        """Evaluate the objective at weights 0; X is not read."""
        values, _ = self.loss.value_and_grad(np.zeros(self.scorer.n_rows))
        return float(values.sum())

    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Summed curvature of the loss in each score, and in the levels of whole queries."""
        del rng
        noise = self.noise()
        bend, level = self.bends(noise)
        return clip_curvatures(bend, level, lambda: self.bends_between(noise)[0])

    def noise(self) -> FloatArray:
        """Scores of spread 1, and a vector to move them by, (2, n_rows)."""
        return row_noise(self.ranks, self.offsets)

    def bends(self, noise: FloatArray) -> FloatArray:
        """Sum the curvature in the scores, and in the level of each query's scores.

        At scores of spread 1, where pairs matter, not at 0: at equal scores a loss may have no curvature.
        """
        scores, vector = noise
        bend = vector @ self.loss.hessian_product(scores, vector)
        return np.array([bend, self.loss.hessian_product(scores, np.ones(len(scores))).sum()])

    def bends_between(self, noise: FloatArray) -> FloatArray:
        """Measure how the gradient changes between scores of spread 1: a hinge bends at corners only."""
        scores, vector = noise
        ahead, behind = (self.loss.value_and_grad(trial)[1] for trial in (scores + vector, scores))
        return np.array([vector @ (ahead - behind)])

    def fused(self, w: FloatArray, scores: FloatArray, work: Callable[[int, int], None]) -> FloatArray:
        """Fill the scores, call `work` on them, and pull `rows` back to the weights, in one pass over X."""
        totals = np.zeros((len(self.edges) - 1, self.n_features))
        weights, offsets = w / self.scale, self.loss.offsets

        def body(first: int, last: int) -> None:
            for part in range(first, last):
                for start, stop in self.blocks(int(self.edges[part]), int(self.edges[part + 1])):
                    rows = int(offsets[start]), int(offsets[stop])
                    self.scorer.scores(weights, *rows, scores)
                    work(start, stop)
                    self.scorer.pull(self.rows, *rows, totals[part])

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


def clip_curvatures(bend: float, level: float, between: Callable[[], float]) -> tuple[float, float]:
    """Clip summed curvatures at 0; `between` is called if there is none in the scores."""
    bend = max(float(bend if bend > 0.0 else between()), 0.0)
    return bend, float(level) if level > ROUNDING * bend else 0.0
