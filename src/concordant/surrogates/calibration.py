"""Calibration: what a low-rank surrogate guarantees, in numbers, with a test that tries to break it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.supervision.columns import check_nonnegative
from concordant.types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from concordant.surrogates.lowrank import LowRankSurrogate

__all__ = ["Calibration", "blocks", "centred", "threshold"]

BLOCK = 2**22  # numbers of a table that is only looked through, 32 MiB
MOST_COMPARED = 10_000  # predictions whose distances are all measured
EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # below it digits are lost
REFERENCE = "Ramaswamy, Agarwal and Tewari (2013), Theorem 3, with costs and levels"


@dataclass(frozen=True, eq=False)
class Calibration:
    """The smaller the regret of a surrogate, the smaller that of the decoded prediction, by a known factor.

    For labels with probabilities p, let U = sum_y p_y targets[y]. The mean squared distance of u from
    targets[y] exceeds its least value by that of u from U, the surrogate regret. Let t be decoded from u, and
    t* be best. If the losses are <targets[y], directions[t]> + costs[t] + levels[y], t is worse than t* by

        <U, directions[t] - directions[t*]> + costs[t] - costs[t*]
        <= <U - u, directions[t] - directions[t*]>        (t has the least <u, directions> + costs)
        <= (distance of u from U) * diameter              (Cauchy and Schwarz).

    Where they are so only up to `residual`, either expected loss is off by that at most: it is added twice.
    The square root is concave: the bound holds for means over instances, too.

    Attributes
    ----------
    statement, reference
        The theorem, in words, and where it is from.
    dimension
        How many numbers u has.
    smallest_dimension
        The least number for these losses: their rank once the mean of each row and column is taken out.
    matrix_rank
        Rank of the losses as they are, at the same threshold; the theorem as published needs that many
        numbers, or one less by its constant.
    residual
        Largest difference between the losses and what the parts make up.
    diameter
        Largest distance between two directions; above 10,000 predictions twice the largest distance from
        their mean, which is no less.
    exact_diameter
        Whether it is the largest distance itself.
    surrogate
        What is calibrated.
    """

    statement: str
    reference: str
    dimension: int
    smallest_dimension: int
    matrix_rank: int
    residual: float
    diameter: float
    exact_diameter: bool
    surrogate: LowRankSurrogate = field(repr=False)

    @classmethod
    def of(cls, surrogate: LowRankSurrogate) -> Calibration:
        """Measure a surrogate against its losses."""
        losses = surrogate.losses
        made = surrogate.targets @ surrogate.directions.T + surrogate.costs
        residual = float(np.abs(surrogate.net_losses - made).max())
        diameter, exact = spread(surrogate.directions)
        sizes = [singular_values(matrix) for matrix in (centred(losses)[0], losses)]
        least = threshold(sizes[0], losses, surrogate.tol)  # centring makes no singular value larger
        smallest, rank = (int((values > least).sum()) for values in sizes)
        about = f" up to {2.0 * residual:.3g}" if residual > rounding_of(losses) else ""
        statement = (
            "For every distribution of the labels, the u of least mean |u - targets[y]|^2, decoded as the "
            f"t of least <u, directions[t]> + costs[t], has the least expected loss{about}."
        )
        numbers = (surrogate.dimension, smallest, rank, residual, diameter, exact)
        return cls(statement, REFERENCE, *numbers, surrogate)

    def regret_bound(self, surrogate_regret: ArrayLike) -> Any:
        """Give diameter * sqrt(surrogate regret) + 2 * residual: no decoded loss is further from the best.

        Parameters
        ----------
        surrogate_regret
            A number >= 0, or a column of them: mean squared distance of u from targets[y] beyond its least.
        """
        given = check_nonnegative(np.atleast_1d(surrogate_regret), "surrogate_regret", "row")
        bound: FloatArray = self.diameter * np.sqrt(given) + 2.0 * self.residual
        return bound if np.ndim(surrogate_regret) else float(bound[0])

    def verify(self, n_draws: int = 2_000, seed: int = 0) -> float:
        """Give the largest regret found, as a share of its bound: at most 1 where the bound holds.

        Labels are certain, one of up to three, or any; u is the best one, near it, or the nearest from which
        another prediction is decoded. Rounding errors of the comparison itself are not counted.

        Parameters
        ----------
        n_draws
            How many distributions and u.
        seed
            Of the random numbers.
        """
        if not (isinstance(n_draws, Integral) and n_draws >= 1):
            raise ParameterError("n_draws", n_draws, "a whole number >= 1")
        rng, chosen = np.random.default_rng(seed), self.surrogate
        probs = distributions(rng, n_draws, chosen.n_labels)
        best = probs @ chosen.targets
        u = best + moves(rng, chosen, best)
        regret = chosen.regret(probs, u) - self.rounding(u)
        bound = self.regret_bound(chosen.surrogate_regret(probs, u))
        with np.errstate(divide="ignore"):
            shares = np.divide(regret, bound, out=np.zeros(n_draws), where=regret > 0)
        return float(shares.max())

    def rounding(self, u: FloatArray) -> FloatArray:
        """How far the computed regret of each u, and its bound, may be off: sums of as many terms, twice.

        And squares of distances, which are 0 in doubles where they are too small.
        """
        parts = self.surrogate
        longest = np.linalg.norm(parts.directions, axis=1).max()
        scores = np.linalg.norm(u, axis=1) * longest + np.abs(parts.costs).max()
        losses = (parts.n_labels + 2) * np.abs(parts.net_losses).max()
        lost = self.diameter * np.sqrt(parts.dimension * TINY) + TINY
        total: FloatArray = 4.0 * EPSILON * ((parts.dimension + 2) * scores + losses) + lost
        return total


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Rows in pieces, such that a table of them, this wide, has at most `BLOCK` numbers (or one row)."""
    step = max(1, BLOCK // max(1, width))
    return (slice(first, first + step) for first in range(0, n_rows, step))


def centred(losses: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the losses less the mean of each row and column; what was taken from each column, and each row.

    >>> rest, costs, levels = centred(np.array([[1.0, 2.0], [3.0, 6.0]]))
    >>> rest.tolist(), costs.tolist(), levels.tolist()
    ([[0.5, -0.5], [-0.5, 0.5]], [-1.0, 1.0], [1.5, 4.5])
    """
    levels = np.zeros(len(losses))
    for _ in range(2):  # the second time takes the rounding of large means
        levels += (losses - levels[:, None]).mean(axis=1)
    rest = losses - levels[:, None]
    costs: FloatArray = rest.mean(axis=0)
    return rest - costs, costs, levels


def rounding_of(losses: FloatArray) -> float:
    """The largest singular value that rounding the losses may bring about."""
    return float(4.0 * EPSILON * np.sqrt(losses.size) * np.abs(losses).max())


def singular_values(matrix: FloatArray) -> FloatArray:
    """Singular values, falling."""
    return np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)


def threshold(sizes: FloatArray, losses: FloatArray, tol: float) -> float:
    """Up to where singular values of the losses count as 0, from those of the centred ones."""
    return max(tol * float(sizes[0]), rounding_of(losses))


def spread(points: FloatArray) -> tuple[float, bool]:
    """Give the largest distance between two points, or a bound on it where there are many; and which."""
    moved = points - points.mean(axis=0)
    if not (unit := float(np.abs(moved).max(initial=0.0))):
        return 0.0, True
    moved /= unit  # squares of tiny numbers would be 0
    squares = (moved**2).sum(axis=1)
    if len(points) > MOST_COMPARED:
        return 2.0 * unit * float(np.sqrt(squares.max())), False
    largest = max(
        (squares[rows, None] + squares - 2.0 * moved[rows] @ moved.T).max()
        for rows in blocks(len(points), len(points))
    )
    return unit * float(np.sqrt(largest)), True


def distributions(rng: np.random.Generator, n_draws: int, n_labels: int) -> FloatArray:
    """Give probabilities of the labels: one is certain, up to three share, or all do, in turn."""
    weights = rng.standard_exponential((n_draws, n_labels))
    for start, n_likely in ((0, 1), (1, 3)):
        likely = rng.integers(0, n_labels, (len(weights[start::3]), n_likely))
        kept = np.zeros_like(weights[start::3])
        np.put_along_axis(kept, likely, 1.0, axis=1)
        weights[start::3] *= kept
    probs: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return probs


def moves(rng: np.random.Generator, surrogate: LowRankSurrogate, best: FloatArray) -> FloatArray:
    """Give steps away from the best u: none, random ones of many sizes, or just across a border."""
    n, directions, costs = len(best), surrogate.directions, surrogate.costs
    reach = float(np.abs(surrogate.targets).max(initial=0.0))
    steps = rng.standard_normal(best.shape) * 10.0 ** rng.uniform(-6, 1, (n, 1)) * reach
    decoded, other = surrogate.decode(best), rng.integers(0, len(costs), n)
    apart = directions[other] - directions[decoded]
    behind = (best * apart).sum(axis=1) + costs[other] - costs[decoded]
    squares = (apart**2).sum(axis=1)
    near = np.abs(behind) < 1e3 * reach * np.sqrt(squares)  # borders further away matter to nobody
    share = np.divide(-behind * (1.0 + 1e-6), squares, out=np.zeros(n), where=near)
    kind = rng.integers(0, 3, (n, 1))
    chosen: FloatArray = np.where(kind == 0, 0.0, np.where(kind == 1, steps, share[:, None] * apart))
    return chosen
