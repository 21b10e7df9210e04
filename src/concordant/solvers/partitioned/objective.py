"""The objective of a linear ranker over data in parts: each value and gradient is one sum over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.scorers.spread import squares_within
from concordant.solvers.objective import LinearObjective, Route, judged_bends
from concordant.solvers.partitioned.parts import Parts, StreamedParts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.solvers.precondition import rows_from
from concordant.surrogates.surrogate import Loss
from concordant.types import FloatArray, IntArray

__all__ = ["Asked", "LinearPart", "PartitionedObjective", "Survey", "surveyed"]


@dataclass(frozen=True, eq=False)
class Asked:
    """What one part alone is told.

    Attributes
    ----------
    ranks, shares
        Number of each of its queries among all, and the query's share in the mean.
    queries, counts
        Which of its queries are in the sample that `whitening` looks at, and how many rows of each.
    """

    ranks: IntArray
    shares: FloatArray
    queries: IntArray
    counts: IntArray


class LinearPart(LinearObjective):
    """The summed loss of one part's queries at scores X @ w; penalty and scale are the whole's.

    Parameters
    ----------
    loss, X
        As of `LinearObjective`, row weights holding the queries' shares in the mean over all parts.
    asked
        What the part is told.
    """

    def __init__(self, loss: Loss, X: Any, asked: Asked) -> None:
        super().__init__(loss, X, alpha=0.0, ranks=asked.ranks)
        self.asked = asked
        self.at: FloatArray | None = None  # weights of the scores that are kept

    def see(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Give value and gradient; the scores are kept."""
        found = self.value_and_grad(w)
        self.at = w.copy()
        return found

    def curved(self, w: FloatArray, direction: FloatArray) -> FloatArray:
        """Give the Hessian at these weights times the direction; the part may have seen others, or none."""
        if self.at is None or not np.array_equal(self.at, w):
            self.see(w)
        return self.hessian_product(direction)

    def survey(self) -> Survey:
        """Measure the part: what is known of it before the first gradient."""
        asked, offsets, noise = self.asked, self.offsets, self.noise()
        with one_blas_thread():  # by its threads, of which a worker has others, sums of BLAS are cut
            bends = np.concatenate((self.bends(noise), self.bends_between(noise)))
        rows = rows_from(offsets[asked.queries], asked.counts)
        squares = np.stack(squares_within(self.scorer.X, offsets, asked.shares))
        return Survey(squares, self.scorer.widest(), self.at_rest(), bends, self.scorer.X[rows])


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of some parts before the first gradient.

    Attributes
    ----------
    squares
        Sums of squares of each feature about the queries' means, and about 0; queries count by their shares.
    widest
        Largest size of each feature.
    at_rest
        Summed loss at weights 0.
    bends
        Curvature of the loss in the scores, in the levels of queries, and between scores.
    sample
        The rows that `whitening` looks at.
    """

    squares: FloatArray
    widest: FloatArray
    at_rest: float
    bends: FloatArray
    sample: FloatArray


def surveyed(surveys: list[Survey], order: IntArray, counts: IntArray) -> tuple[Survey, IntArray]:
    """Put surveys of parts together; sampled queries come in this order, each of so many rows.

    Parameters
    ----------
    surveys
        Of the parts.
    order
        Where each sampled query, part after part, stands in the sample.
    counts
        Rows of each sampled query, part after part.
    """
    rows = np.concatenate([one.sample for one in surveys])
    starts, places = np.cumsum(counts) - counts, np.argsort(order)
    whole = Survey(
        tree_sum(one.squares for one in surveys),
        np.max([one.widest for one in surveys], axis=0),
        float(tree_sum(np.array([one.at_rest]) for one in surveys)[0]),
        tree_sum(one.bends for one in surveys),
        rows[rows_from(starts[places], counts[places])],
    )
    return whole, np.cumsum([0, *counts[places]])


def slope(part: LinearPart, w: FloatArray) -> FloatArray:
    """Value, summed sizes of the slopes in the scores, and gradient of a part."""
    value, grad = part.see(w)
    return np.concatenate(([value, np.abs(part.rows).sum()], grad))


def height(part: LinearPart, w: FloatArray) -> FloatArray:
    """Value of a part."""
    return np.array([part.see(w)[0]])


def curve(part: LinearPart, w: FloatArray, direction: FloatArray) -> FloatArray:
    """Hessian of a part at these weights, times the direction."""
    return part.curved(w, direction)


class PartitionedObjective:
    """What `LinearObjective` is, summed over parts; solvers do not see the difference.

    `scores` and `moves`, which solvers only add up and hand back to `along`, are the weights evaluated last
    and the direction of the last product: where scores are not kept, X is read again.

    Parameters
    ----------
    parts
        Of which each is a `LinearPart`.
    survey, offsets
        Of all parts; and where each query of the sample starts.
    sizes
        Number of queries of each part.
    alpha, scale
        As of `LinearObjective`.
    """

    sparse = False

    def __init__(
        self,
        parts: Parts,
        survey: Survey,
        offsets: IntArray,
        sizes: IntArray,
        alpha: float,
        scale: FloatArray,
    ) -> None:
        self.parts, self.survey, self.starts, self.sizes = parts, survey, offsets, sizes
        self.n_queries = int(sizes.sum())
        self.alpha, self.scale, self.n_features, self.n_gradients = float(alpha), scale, len(scale), 0
        self.scores, self.moves, self.slopes = np.zeros(len(scale)), np.zeros(len(scale)), np.nan

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Give the objective and its gradient, by one pass over the parts."""
        value, self.slopes, *grad = self.parts.total(slope, w / self.scale)
        self.scores, self.n_gradients = w.copy(), self.n_gradients + 1
        pulled = np.array(grad) / self.scale + self.alpha * w
        return float(value + 0.5 * self.alpha * (w @ w)), pulled

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Give the (generalised) Hessian at the weights evaluated last, times the direction."""
        self.moves, self.n_gradients = direction.copy(), self.n_gradients + 1
        product = self.parts.total(curve, self.scores / self.scale, direction / self.scale)
        found: FloatArray = product / self.scale + self.alpha * direction
        return found

    def along(self, moves: FloatArray, length: float) -> float:
        """Summed values at the last weights + length * moves: a pass over the parts."""
        self.n_gradients += 1
        return float(self.parts.total(height, (self.scores + length * moves) / self.scale)[0])

    def route(self, rng: np.random.Generator, most: int | None = None) -> Route:
        """Give a random order of the parts, and of the queries of each; or so many queries of one part."""
        numbers = rng.permutation(self.parts.n_parts)[: None if most is None else 1]
        return [(int(one), rng.permutation(self.sizes[one])[:most]) for one in numbers]

    def visits(self, route: Route) -> Iterator[tuple[LinearObjective, IntArray]]:
        """Read the parts of the route, one after the other."""
        if not isinstance(self.parts, StreamedParts):
            raise ParameterError("parts", self.parts, "read by this process: a walk is of one machine")
        held = self.parts.held(np.array([number for number, _ in route]))
        return ((part, order) for part, (_, order) in zip(held, route, strict=True))

    def at_rest(self) -> float:
        """Give the objective at weights 0."""
        return self.survey.at_rest

    def widest(self) -> FloatArray:
        """Give the largest size of each feature."""
        return self.survey.widest

    def sample(self, rng: np.random.Generator) -> tuple[Any, IntArray]:
        """Rows of random whole queries, drawn when the parts were surveyed."""
        del rng
        return self.survey.sample, self.starts

    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Summed curvature of the loss in each score, and in the levels of whole queries."""
        del rng
        bend, level, between = self.survey.bends
        return judged_bends(bend, level, lambda: between)
