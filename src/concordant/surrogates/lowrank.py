"""Low-rank surrogates: least squares on a few numbers, calibrated for any finite loss matrix.

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
from dataclasses import dataclass
from typing import Self

import numpy as np

from concordant.exceptions import ShapeError
from concordant.supervision.columns import check_column, check_lengths, frozen
from concordant.supervision.labels import check_whole
from concordant.supervision.synthetic.distribution import check_probabilities
from concordant.surrogates.calibration import Calibration, blocks, centred, threshold
from concordant.surrogates.loss_tables import check_each, check_losses, check_table, check_tolerance
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["LowRankSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class LowRankSurrogate:
    """A squared loss on a few numbers, and the decoder that makes it calibrated for a loss matrix.

    loss(y, t) = <targets[y], directions[t]> + costs[t] + levels[y]. A model learns u = E targets[y], by least
    squares; the t with the least <u, directions[t]> + costs[t] has the least expected loss, since

        E loss(y, t) = <E targets[y], directions[t]> + costs[t] + a number that no t changes.

    The paper's Theorem 3 has one constant in place of costs and levels; its proof stands. They save numbers:
    what a row or a column of the matrix has in common need not be learned. Centring rows and columns removes
    both, so that no factorisation of this kind has fewer numbers than the rank of the doubly centred matrix:
    at most n_labels - 1 and n_predictions - 1, and no more than the rank of the matrix itself.

    Parameters
    ----------
    targets
        What u is regressed on, (n_labels, dimension).
    directions
        What u is multiplied by, (n_predictions, dimension).
    costs
        One number per prediction; default 0.
    levels
        One number per label; default 0. No prediction depends on them.
    losses
        The matrix (n_labels, n_predictions) that is meant; default: the one that the parts make up.
    tol
        Singular values up to this share of the largest count as 0.

    References
    ----------
    Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices.

    Examples
    --------
    Four labels, three predictions, and an expensive mistake: two numbers are to be learned.

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
        targets = check_table(self.targets, "targets")
        directions = check_table(self.directions, "directions")
        if targets.shape[1] != directions.shape[1]:
            raise ShapeError("directions", directions.shape, f"{targets.shape[1]} columns, as targets has")
        shape = len(targets), len(directions)
        costs, levels = check_each(self.costs, "costs", shape[1]), check_each(self.levels, "levels", shape[0])
        arrays = {"targets": targets, "directions": directions, "costs": costs, "levels": levels}
        for name, array in arrays.items():
            object.__setattr__(self, name, frozen(array.copy()))
        losses = self.loss_matrix() if self.losses is None else check_losses(self.losses, "losses")
        if losses.shape != shape:
            raise ShapeError("losses", losses.shape, f"{shape}: a row per label, a column per prediction")
        object.__setattr__(self, "losses", frozen(losses.copy()))
        object.__setattr__(self, "tol", check_tolerance(self.tol))

    @classmethod
    def from_loss_matrix(cls, L: ArrayLike, tol: float = 1e-9) -> Self:
        """Give the surrogate of smallest dimension, by singular values of the doubly centred matrix.

        Singular values up to `tol` times the largest, or up to what rounding of the entries may bring about,
        are dropped: `proof.residual` says how much of L that is, and enters the guarantee. A larger `tol`
        buys a smaller dimension. The square root of each value goes to the targets, the other to the
        directions. Levels are the means of the rows, costs what is left of the means of the columns; the mean
        target is 0, so that u = 0 stands for equally probable labels.

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
        losses = check_losses(L, "L")
        rest, costs, levels = centred(losses)
        left, sizes, right = np.linalg.svd(rest, full_matrices=False)
        kept = sizes > threshold(sizes, losses, check_tolerance(tol))
        share = np.sqrt(sizes[kept])
        return cls(left[:, kept] * share, right[kept].T * share, costs, levels, losses, tol)

    @classmethod
    def general(cls, L: ArrayLike) -> Self:
        """Give the surrogate that serves every matrix: u is the probability of each label but the last.

        Its dimension is n_labels - 1; it is what `from_loss_matrix` improves on. Directions and costs are the
        published ones less the mean of each row of L, which changes no prediction and saves digits.

        References
        ----------
        Ramaswamy and Agarwal (2012), Classification calibration dimension for general multiclass losses.
        """
        losses = check_losses(L, "L")
        _, _, levels = centred(losses)
        rest = losses - levels[:, None]
        return cls(np.eye(len(losses))[:, :-1], (rest[:-1] - rest[-1]).T, rest[-1], levels, losses)

    @property
    def dimension(self) -> int:
        """How many numbers u has."""
        return int(self.targets.shape[1])

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.targets)

    @property
    def n_predictions(self) -> int:
        """How many predictions there are."""
        return len(self.directions)

    @functools.cached_property
    def proof(self) -> Calibration:
        """What is guaranteed, and by how much; `proof.verify()` tries to break it."""
        return Calibration.of(self)

    @functools.cached_property
    def net_losses(self) -> FloatArray:
        """Losses less the levels, which no prediction changes and which may be much larger."""
        net: FloatArray = self.losses - self.levels[:, None]
        return frozen(net)

    def loss_matrix(self) -> FloatArray:
        """Give the losses that the parts make up, (n_labels, n_predictions).

        Those of a ranking metric, from its definition, are `concordant.theory.lowrank.loss_matrix`.
        """
        made: FloatArray = self.targets @ self.directions.T + self.costs + self.levels[:, None]
        return made

    def __call__(self, u: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Give the squared distance of u from targets[y], row by row, and its gradient.

        Parameters
        ----------
        u
            Outputs of a model, (n, dimension); a plain column will do where the dimension is 1.
        y
            Numbers of the labels, from 0.

        Examples
        --------
        >>> LowRankSurrogate([[0.0, 1.0]], [[1.0, 1.0]])([[3.0, 0.0]], [0])
        (array([10.]), array([[ 6., -2.]]))
        """
        outputs = self.read_outputs(u)
        hint = f"labels are numbered from 0; there are {self.n_labels}."
        labels = check_whole(y, "y", 0, self.n_labels - 1, hint)
        check_lengths("u", len(outputs), y=labels)
        difference = outputs - self.targets[labels]
        values: FloatArray = (difference**2).sum(axis=1)
        return values, 2.0 * difference

    def decode(self, u: ArrayLike) -> IntArray:
        """Give the prediction of each row: the first t with the least <u, directions[t]> + costs[t].

        At most 2^22 of those numbers (32 MiB), or those of one row, are held at a time.
        """
        outputs = self.read_outputs(u)
        decoded = np.empty(len(outputs), dtype=np.int64)
        for rows in blocks(len(outputs), self.n_predictions):
            decoded[rows] = (outputs[rows] @ self.directions.T + self.costs).argmin(axis=1)
        return decoded

    def regret(self, probs: ArrayLike, u: ArrayLike) -> FloatArray:
        """Give the expected loss of the decoded prediction beyond that of the best one.

        Parameters
        ----------
        probs
            Probabilities of the labels, (n, n_labels).
        u
            As for decoding.
        """
        outputs = self.read_outputs(u)
        shares = check_probabilities(probs, (len(outputs), self.n_labels))
        decoded, regret = self.decode(outputs), np.empty(len(outputs))
        for rows in blocks(len(outputs), self.n_predictions):
            expected = shares[rows] @ self.net_losses
            chosen = np.take_along_axis(expected, decoded[rows, None], axis=1)[:, 0]
            regret[rows] = chosen - expected.min(axis=1)
        return regret

    def surrogate_regret(self, probs: ArrayLike, u: ArrayLike) -> FloatArray:
        """Give the expected surrogate beyond its least value; parameters as `regret`."""
        outputs = self.read_outputs(u)
        shares = check_probabilities(probs, (len(outputs), self.n_labels))
        beyond: FloatArray = ((outputs - shares @ self.targets) ** 2).sum(axis=1)
        return beyond

    def read_outputs(self, u: ArrayLike) -> FloatArray:
        """Outputs of a model, one row per instance."""
        if self.dimension == 1 and np.ndim(u) == 1:  # as regressors give it for one target
            u = check_column(u, "u")[:, None]
        outputs = check_table(u, "u")
        if outputs.shape[1] != self.dimension:
            raise ShapeError("u", outputs.shape, f"{self.dimension} columns, one per number of a target")
        return outputs

    def __repr__(self) -> str:
        counts = f"{self.n_labels} labels, {self.n_predictions} predictions, dimension {self.dimension}"
        return f"LowRankSurrogate({counts})"
