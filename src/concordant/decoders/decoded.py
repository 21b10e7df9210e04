"""Decoded: an order, what it is worth, and how near to the best it is known to be."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from concordant.exceptions import NonFiniteError, ParameterError, ShapeError
from concordant.supervision.check import check_features
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["Decoded", "check_number", "check_square"]


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
        Whether no order has a better value: none at all where the numbers that decide are whole, else none by
        more than rounding (after an integer program: by more than 1e-9 of the largest of them, per pair).
    bound
        What no order surpasses: a lower bound where the objective is a loss, an upper one where it is a gain.
    gap
        How far the value may be from the best, as a share of the larger of value and bound; 0 if proven.
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
    def of(cls, order: IntArray, value: float, bound: float, *, proven: bool, started: float) -> Self:
        """Give the order with the gap between its value and the bound.

        Parameters
        ----------
        order, value, bound, proven
            As the attributes.
        started
            `time.perf_counter()` at the start.
        """
        bound = value if proven else bound
        largest = max(abs(value), abs(bound))
        gap = abs(value - bound) / largest if largest else 0.0
        return cls(order, float(value), proven, float(bound), gap, time.perf_counter() - started)

    @property
    def positions(self) -> IntArray:
        """The place of each item, 1 the best."""
        places = np.empty(len(self.order), dtype=np.int64)
        places[self.order] = np.arange(1, len(self.order) + 1)
        return places


def check_number(name: str, value: Any, *, least: int, whole: bool) -> None:
    """Refuse what is no number, or too small a one."""
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:  # type: ignore[operator]
        raise ParameterError(name, value, f"a {'whole ' if whole else ''}number >= {least}")


def check_square(u: ArrayLike, name: str = "u") -> FloatArray:
    """Give a square matrix of finite numbers, whose differences and sums are finite too."""
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
