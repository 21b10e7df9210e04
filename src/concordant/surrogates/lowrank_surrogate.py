"""Low-rank surrogates: least squares in a few dimensions, calibrated for any finite loss matrix.

>>> import numpy as np
>>> losses = np.abs(np.arange(10)[:, None] - np.arange(10))  # how far the predicted digit is off
>>> surrogate = LowRankSurrogate.from_loss_matrix(losses)
>>> surrogate
LowRankSurrogate(10 labels, 10 predictions, dimension 9)
>>> LowRankSurrogate.from_loss_matrix(losses**2)
LowRankSurrogate(10 labels, 10 predictions, dimension 1)
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from concordant._base.validate import (
    check_column,
    check_counts,
    check_lengths,
    check_nonnegative,
    check_number,
    freeze,
)
from concordant.data.check import check_features
from concordant.data.labels import check_whole_column
from concordant.data.synthetic.distribution import check_probabilities
from concordant.exceptions import NonFiniteError, ShapeError
from concordant.types import ArrayLike, FloatArray, IntArray

# Checks of the parts of a low-rank surrogate: tables, losses, columns, a tolerance.

LARGEST = 1e100  # sums of squares of such numbers are finite
LARGEST_LOSS = 1e99  # differences of such losses are no larger


def _check_table(values: ArrayLike, name: str, largest: float = LARGEST) -> FloatArray:
    """Check a table of finite numbers, small enough that sums of squares do not overflow."""
    features = check_features(values.toarray() if hasattr(values, "toarray") else values, name)
    table = np.asarray(features, dtype=np.float64)
    if (large := ~(np.abs(table) <= largest)).any():
        row, column = np.argwhere(large)[0]
        hint = f"rescale the numbers to at most {largest:g} in size."
        where = f"row {row}, column {column}"
        raise NonFiniteError(name, float(table[row, column]), where, int(large.sum()), hint)
    return table


def _check_losses(values: ArrayLike, name: str) -> FloatArray:
    losses = _check_table(values, name, LARGEST_LOSS)
    if not losses.shape[1]:
        raise ShapeError(name, losses.shape, "a row per label, a column per prediction")
    return losses


def _check_each(values: ArrayLike, name: str, count: int) -> FloatArray:
    """Check a column of `count` finite numbers; zeros if None."""
    if values is None:
        return np.zeros(count)
    column = _check_table(check_column(values, name)[:, None], name)[:, 0]
    if len(column) != count:
        raise ShapeError(name, column.shape, f"{count} numbers")
    return column


# Calibration: the quantitative guarantee of a low-rank surrogate, with a test that tries to break it.

BLOCK = 2**22  # numbers in a temporary table, 32 MiB
MOST_COMPARED = 10_000  # predictions up to which all distances are computed
EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # below it digits are lost
REFERENCE = "Ramaswamy, Agarwal and Tewari (2013), Theorem 3, with costs and levels"


@dataclass(frozen=True, eq=False)
class LossCalibration:
    """Bound on the regret of the decoded prediction by the regret of the surrogate.

    The surrogate regret is the squared distance of u from the mean of targets[y]; the regret is at most its
    root times `diameter` (docs/theory.md, "Low-rank surrogates and scores of pairs"). If the losses are
    <targets[y], directions[t]> + costs[t] + levels[y] only up to `residual`, each of the two expected losses
    is off by at most that: it is added twice. The square root is concave: the bound also holds for means over
    instances.

    Attributes
    ----------
    statement, reference
        The theorem, in words, and its source.
    dimension
        Length of u.
    smallest_dimension
        The smallest dimension for these losses: their rank after subtracting the mean of each row and column.
    matrix_rank
        Rank of the losses themselves, at the same threshold; the published theorem needs that many
        dimensions, or one less because of its constant.
    residual
        Largest difference between the losses and those computed from the parts.
    diameter
        Largest distance between two directions; above 10,000 predictions, twice the largest distance from
        their mean, which is an upper bound.
    exact_diameter
        True if `diameter` is the largest distance itself.
    surrogate
        The calibrated surrogate.
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
    def from_surrogate(cls, surrogate: LowRankSurrogate) -> LossCalibration:
        """Measure a surrogate against its losses."""
        losses = surrogate.losses
        reconstruction = surrogate.targets @ surrogate.directions.T + surrogate.costs
        residual = float(np.abs(surrogate.net_losses - reconstruction).max())
        diameter, exact = _largest_distance(surrogate.directions)
        sizes = [_singular_values(matrix) for matrix in (centre_losses(losses)[0], losses)]
        least = _singular_threshold(sizes[0], losses, surrogate.tol)  # centring increases no singular value
        smallest, rank = (int((values > least).sum()) for values in sizes)
        about = f" up to {2.0 * residual:.3g}" if residual > _rounding_error(losses) else ""
        statement = (
            "For every distribution of the labels, the u of least mean |u - targets[y]|^2, decoded as the "
            f"t of least <u, directions[t]> + costs[t], has the least expected loss{about}."
        )
        numbers = (surrogate.dimension, smallest, rank, residual, diameter, exact)
        return cls(statement, REFERENCE, *numbers, surrogate)

    def regret_bound(self, surrogate_regret: ArrayLike) -> Any:
        """Return diameter * sqrt(surrogate regret) + 2 * residual, an upper bound on the regret.

        Parameters
        ----------
        surrogate_regret
            A number >= 0, or a column of them: mean squared distance of u from targets[y] minus its minimum.
        """
        regrets = check_nonnegative(np.atleast_1d(surrogate_regret), "surrogate_regret", "row")
        bound: FloatArray = self.diameter * np.sqrt(regrets) + 2.0 * self.residual
        return bound if np.ndim(surrogate_regret) else float(bound[0])

    def verify(self, n_draws: int = 2_000, seed: int = 0) -> float:
        """Return the largest regret found, as a fraction of its bound: at most 1 if the bound holds.

        Labels are certain, one of up to three, or arbitrary; u is the best one, near it, or the nearest from
        which another prediction is decoded. Rounding errors of the comparison itself are not counted.

        Parameters
        ----------
        n_draws
            Number of distributions and u.
        seed
            Seed of the random numbers.
        """
        check_counts(n_draws=n_draws)
        rng, surrogate = np.random.default_rng(seed), self.surrogate
        probs = _draw_distributions(rng, n_draws, surrogate.n_labels)
        best = probs @ surrogate.targets
        u = best + _draw_steps(rng, surrogate, best)
        regret = surrogate.regret(probs, u) - self.rounding(u)
        bound = self.regret_bound(surrogate.surrogate_regret(probs, u))
        with np.errstate(divide="ignore"):
            shares = np.divide(regret, bound, out=np.zeros(n_draws), where=regret > 0)
        return float(shares.max())

    def rounding(self, u: FloatArray) -> FloatArray:
        """Bound on the rounding error of each computed regret and its bound: sums of as many terms, twice.

        Includes squares of distances, which underflow to 0 if too small.
        """
        parts = self.surrogate
        longest = np.linalg.norm(parts.directions, axis=1).max()
        scores = np.linalg.norm(u, axis=1) * longest + np.abs(parts.costs).max()
        losses = (parts.n_labels + 2) * np.abs(parts.net_losses).max()
        lost = self.diameter * np.sqrt(parts.dimension * TINY) + TINY
        total: FloatArray = 4.0 * EPSILON * ((parts.dimension + 2) * scores + losses) + lost
        return total


def _row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows into pieces, such that a table of this width has at most `BLOCK` numbers (or a single row)."""
    step = max(1, BLOCK // max(1, width))
    return (slice(first, first + step) for first in range(0, n_rows, step))


def centre_losses(losses: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the losses minus the mean of each row and column, the column means, and the row means.

    >>> rest, costs, levels = centre_losses(np.array([[1.0, 2.0], [3.0, 6.0]]))
    >>> rest.tolist(), costs.tolist(), levels.tolist()
    ([[0.5, -0.5], [-0.5, 0.5]], [-1.0, 1.0], [1.5, 4.5])
    """
    levels = np.zeros(len(losses))
    for _ in range(2):  # the second pass removes the rounding of large means
        levels += (losses - levels[:, None]).mean(axis=1)
    rest = losses - levels[:, None]
    costs: FloatArray = rest.mean(axis=0)
    return rest - costs, costs, levels


def _rounding_error(losses: FloatArray) -> float:
    """Return the largest singular value that may result from rounding the losses."""
    return float(4.0 * EPSILON * np.sqrt(losses.size) * np.abs(losses).max())


def _singular_values(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)


def _singular_threshold(sizes: FloatArray, losses: FloatArray, tol: float) -> float:
    """Return the value up to which singular values of the losses count as 0, given the centred ones."""
    return max(tol * float(sizes[0]), _rounding_error(losses))


def _largest_distance(points: FloatArray) -> tuple[float, bool]:
    """Return the largest distance between two points, or a bound if there are many; and if it is exact."""
    moved = points - points.mean(axis=0)
    if not (unit := float(np.abs(moved).max(initial=0.0))):
        return 0.0, True
    moved /= unit  # squares of tiny numbers would be 0
    squares = (moved**2).sum(axis=1)
    if len(points) > MOST_COMPARED:
        return 2.0 * unit * float(np.sqrt(squares.max())), False
    largest = max(
        (squares[rows, None] + squares - 2.0 * moved[rows] @ moved.T).max()
        for rows in _row_blocks(len(points), len(points))
    )
    return unit * float(np.sqrt(largest)), True


def _draw_distributions(rng: np.random.Generator, n_draws: int, n_labels: int) -> FloatArray:
    """Draw label probabilities: in turn a single certain label, up to three labels, or all labels."""
    weights = rng.standard_exponential((n_draws, n_labels))
    for start, n_likely in ((0, 1), (1, 3)):
        likely = rng.integers(0, n_labels, (len(weights[start::3]), n_likely))
        mask = np.zeros_like(weights[start::3])
        np.put_along_axis(mask, likely, 1.0, axis=1)
        weights[start::3] *= mask
    probs: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return probs


def _draw_steps(rng: np.random.Generator, surrogate: LowRankSurrogate, best: FloatArray) -> FloatArray:
    """Draw steps from the best u: none, random ones of many sizes, or just across a decision border."""
    n, directions, costs = len(best), surrogate.directions, surrogate.costs
    reach = float(np.abs(surrogate.targets).max(initial=0.0))
    steps = rng.standard_normal(best.shape) * 10.0 ** rng.uniform(-6, 1, (n, 1)) * reach
    decoded, other = surrogate.decode(best), rng.integers(0, len(costs), n)
    apart = directions[other] - directions[decoded]
    behind = (best * apart).sum(axis=1) + costs[other] - costs[decoded]
    squares = (apart**2).sum(axis=1)
    near = np.abs(behind) < 1e3 * reach * np.sqrt(squares)  # borders further away are irrelevant
    share = np.divide(-behind * (1.0 + 1e-6), squares, out=np.zeros(n), where=near)
    kind = rng.integers(0, 3, (n, 1))
    drawn_steps: FloatArray = np.where(kind == 0, 0.0, np.where(kind == 1, steps, share[:, None] * apart))
    return drawn_steps


@dataclass(frozen=True, eq=False, repr=False)
class LowRankSurrogate:
    """Squared loss in a few dimensions, and the decoder that makes it calibrated for a loss matrix.

    loss(y, t) = <targets[y], directions[t]> + costs[t] + levels[y]. A model learns u = E targets[y] by least
    squares; the t that minimises <u, directions[t]> + costs[t] has the smallest expected loss, since

        E loss(y, t) = <E targets[y], directions[t]> + costs[t] + a constant independent of t.

    The paper's Theorem 3 has a constant in place of costs and levels; its proof still applies. They save
    dimensions: the common part of a row or column of the matrix need not be learned. Centring rows and
    columns removes both, so that no factorisation of this kind has fewer dimensions than the rank of the
    doubly centred matrix: at most n_labels - 1 and n_predictions - 1, and no more than the rank of the matrix
    itself.

    Parameters
    ----------
    targets
        Regression targets of u, (n_labels, dimension).
    directions
        Directions that u is multiplied by, (n_predictions, dimension).
    costs
        One number per prediction; default 0.
    levels
        One number per label; default 0. Predictions do not depend on them.
    losses
        The exact loss matrix (n_labels, n_predictions); by default computed from the other parts.
    tol
        Singular values up to this fraction of the largest count as 0.

    References
    ----------
    Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices.

    Examples
    --------
    Four labels, three predictions, and an expensive mistake: two dimensions are learned.

    >>> losses = [[0, 1, 9], [1, 0, 3], [2, 1, 0], [2, 1, 0]]
    >>> surrogate = LowRankSurrogate.from_loss_matrix(losses)
    >>> surrogate
    LowRankSurrogate(4 labels, 3 predictions, dimension 2)
    >>> u = [[0.1, 0.0, 0.4, 0.5]] @ surrogate.targets  # the best u for these probabilities of the labels
    >>> surrogate.decode(u).tolist(), (np.array([0.1, 0.0, 0.4, 0.5]) @ losses).tolist()
    ([2], [1.8, 1.0, 0.9])
    """

    targets: ArrayLike
    directions: ArrayLike
    costs: ArrayLike = None
    levels: ArrayLike = None
    losses: ArrayLike = None
    tol: float = 1e-9

    def __post_init__(self) -> None:
        targets = _check_table(self.targets, "targets")
        directions = _check_table(self.directions, "directions")
        if targets.shape[1] != directions.shape[1]:
            raise ShapeError("directions", directions.shape, f"{targets.shape[1]} columns, as targets has")
        shape = len(targets), len(directions)
        costs, levels = (
            _check_each(self.costs, "costs", shape[1]),
            _check_each(self.levels, "levels", shape[0]),
        )
        arrays = {"targets": targets, "directions": directions, "costs": costs, "levels": levels}
        for name, array in arrays.items():
            object.__setattr__(self, name, freeze(array.copy()))
        losses = self.loss_matrix() if self.losses is None else _check_losses(self.losses, "losses")
        if losses.shape != shape:
            raise ShapeError("losses", losses.shape, f"{shape}: a row per label, a column per prediction")
        object.__setattr__(self, "losses", freeze(losses.copy()))
        object.__setattr__(self, "tol", check_number("tol", self.tol, least=0.0, below=1.0))

    @classmethod
    def from_loss_matrix(cls, L: ArrayLike, tol: float = 1e-9) -> Self:
        """Build the surrogate of smallest dimension from the singular values of the doubly centred matrix.

        Singular values up to `tol` times the largest, or up to the rounding error of the entries, are
        dropped: `proof.residual` is the resulting error in L, and enters the guarantee. A larger `tol` gives
        a smaller dimension. The square root of each value goes to the targets, the other to the directions.
        Levels are the means of the rows, costs the means of the remaining columns; the mean target is 0, so
        that u = 0 corresponds to equally probable labels.

        Parameters
        ----------
        L
            Finite losses, one row per label, one column per prediction.
        tol
            A number >= 0 and < 1.

        Examples
        --------
        >>> same = LowRankSurrogate.from_loss_matrix([[3, 1, 2], [4, 2, 3]])  # 1 is best, whatever the label
        >>> same.dimension, same.decode(np.empty((2, 0))).tolist()
        (0, [1, 1])
        """
        losses = _check_losses(L, "L")
        rest, costs, levels = centre_losses(losses)
        left, sizes, right = np.linalg.svd(rest, full_matrices=False)
        is_kept = sizes > _singular_threshold(sizes, losses, check_number("tol", tol, least=0.0, below=1.0))
        share = np.sqrt(sizes[is_kept])
        return cls(left[:, is_kept] * share, right[is_kept].T * share, costs, levels, losses, tol)

    @classmethod
    def general(cls, L: ArrayLike) -> Self:
        """Build the surrogate for an arbitrary matrix: u is the probability of each label except the last.

        Its dimension is n_labels - 1; `from_loss_matrix` improves on it. Directions and costs are the
        published ones minus the mean of each row of L, which changes no prediction and saves digits.

        References
        ----------
        Ramaswamy and Agarwal (2012), Classification calibration dimension for general multiclass losses.
        """
        losses = _check_losses(L, "L")
        _, _, levels = centre_losses(losses)
        rest = losses - levels[:, None]
        return cls(np.eye(len(losses))[:, :-1], (rest[:-1] - rest[-1]).T, rest[-1], levels, losses)

    @property
    def dimension(self) -> int:
        """Length of u."""
        return int(self.targets.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.targets)

    @property
    def n_predictions(self) -> int:
        """Number of predictions."""
        return len(self.directions)

    @functools.cached_property
    def proof(self) -> LossCalibration:
        """Guarantee with its numbers; `proof.verify()` tries to break it."""
        return LossCalibration.from_surrogate(self)

    @functools.cached_property
    def net_losses(self) -> FloatArray:
        """Losses minus the levels, which no prediction changes and which may be much larger."""
        net: FloatArray = self.losses - self.levels[:, None]
        return freeze(net)

    def loss_matrix(self) -> FloatArray:
        """Return the losses computed from the parts, (n_labels, n_predictions).

        `concordant.theory.lowrank.loss_matrix` has those of a ranking metric, from its definition.
        """
        losses: FloatArray = self.targets @ self.directions.T + self.costs + self.levels[:, None]
        return losses

    def __call__(self, u: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the squared distance of u from targets[y] per row, and its gradient.

        Parameters
        ----------
        u
            Outputs of a model, (n, dimension); a plain column is accepted if the dimension is 1.
        y
            Label numbers, from 0.

        Examples
        --------
        >>> LowRankSurrogate([[0.0, 1.0]], [[1.0, 1.0]])([[3.0, 0.0]], [0])
        (array([10.]), array([[ 6., -2.]]))
        """
        outputs = self.read_outputs(u)
        hint = f"labels are numbered from 0; there are {self.n_labels}."
        labels = check_whole_column(y, "y", 0, self.n_labels - 1, hint)
        check_lengths("u", len(outputs), y=labels)
        difference = outputs - self.targets[labels]
        values: FloatArray = (difference**2).sum(axis=1)
        return values, 2.0 * difference

    def decode(self, u: ArrayLike) -> IntArray:
        """Return the prediction for each row: the first t that minimises <u, directions[t]> + costs[t].

        At most 2^22 of those numbers (32 MiB), or those of a single row, are in memory at a time.
        """
        outputs = self.read_outputs(u)
        decoded = np.empty(len(outputs), dtype=np.int64)
        for rows in _row_blocks(len(outputs), self.n_predictions):
            decoded[rows] = (outputs[rows] @ self.directions.T + self.costs).argmin(axis=1)
        return decoded

    def regret(self, probs: ArrayLike, u: ArrayLike) -> FloatArray:
        """Return the expected loss of the decoded prediction minus that of the best one.

        Parameters
        ----------
        probs
            Probabilities of the labels, (n, n_labels).
        u
            As in `decode`.
        """
        outputs = self.read_outputs(u)
        shares = check_probabilities(probs, (len(outputs), self.n_labels))
        decoded, regret = self.decode(outputs), np.empty(len(outputs))
        for rows in _row_blocks(len(outputs), self.n_predictions):
            expected = shares[rows] @ self.net_losses
            decoded_losses = np.take_along_axis(expected, decoded[rows, None], axis=1)[:, 0]
            regret[rows] = decoded_losses - expected.min(axis=1)
        return regret

    def surrogate_regret(self, probs: ArrayLike, u: ArrayLike) -> FloatArray:
        """Return the expected surrogate minus its minimum; parameters as in `regret`."""
        outputs = self.read_outputs(u)
        shares = check_probabilities(probs, (len(outputs), self.n_labels))
        beyond: FloatArray = ((outputs - shares @ self.targets) ** 2).sum(axis=1)
        return beyond

    def read_outputs(self, u: ArrayLike) -> FloatArray:
        """Check the outputs of a model, one row per instance."""
        if self.dimension == 1 and np.ndim(u) == 1:  # regressors return a single target as a column
            u = check_column(u, "u")[:, None]
        outputs = _check_table(u, "u")
        if outputs.shape[1] != self.dimension:
            raise ShapeError("u", outputs.shape, f"{self.dimension} columns, one per number of a target")
        return outputs

    def __repr__(self) -> str:
        counts = f"{self.n_labels} labels, {self.n_predictions} predictions, dimension {self.dimension}"
        return f"LowRankSurrogate({counts})"
