"""Decoded: an order, its value, and a proof of how close to the optimum it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

import numpy as np

from concordant._base.validate import refuse_unlike_axes
from concordant.data.check import check_features
from concordant.exceptions import NonFiniteError, ShapeError
from concordant.types import ArrayLike, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Decoded:
    """An order of the items of one query, and a proof of how good it is.

    Attributes
    ----------
    order
        Items, best first, counted from 0.
    value
        The decoder's objective at this order.
    proven
        True if it is proven that no order has a better value: none at all if the decisive numbers are whole,
        otherwise none by more than rounding (after an integer program: by more than 1e-9 of the largest of
        them, per pair).
    bound
        Bound on the value of every order: a lower bound if the objective is a loss, an upper one for a gain.
    gap
        Possible distance of the value from the optimum, as a share of the larger of value and bound; 0 if
        proven.
    seconds
        Time taken.
    """

    order: IntArray
    value: float
    proven: bool
    bound: float
    gap: float
    seconds: float

    @classmethod
    def from_order(cls, order: IntArray, value: float, bound: float, *, proven: bool, started: float) -> Self:
        """Build the result from an order, with the gap between its value and the bound.

        Parameters
        ----------
        order, value, bound, proven
            As in the attributes.
        started
            `time.perf_counter()` at the start.
        """
        bound = value if proven else bound
        largest = max(abs(value), abs(bound))
        gap = abs(value - bound) / largest if largest else 0.0
        return cls(order, float(value), proven, float(bound), gap, time.perf_counter() - started)

    @property
    def positions(self) -> IntArray:
        """Position of each item, 1 the best."""
        places = np.empty(len(self.order), dtype=np.int64)
        places[self.order] = np.arange(1, len(self.order) + 1)
        return places


def check_square(u: ArrayLike, name: str = "u") -> FloatArray:
    """Check for a square matrix of finite numbers, whose differences and sums are finite too."""
    refuse_unlike_axes(u, name)
    read = check_features(u, name)
    matrix = np.asarray(read.toarray() if hasattr(read, "toarray") else read, dtype=np.float64)
    n = len(matrix)
    if matrix.shape != (n, n):
        raise ShapeError(name, matrix.shape, "a square matrix: one row and one column per item")
    highest = np.finfo(np.float64).max / (4.0 * n * n)
    if (large := np.abs(matrix) > highest).any():
        i, j = np.argwhere(large)[0]
        hint = "sums of such numbers overflow: rescale the matrix."
        raise NonFiniteError(name, float(matrix[i, j]), f"row {i}, column {j}", int(large.sum()), hint)
    return matrix
