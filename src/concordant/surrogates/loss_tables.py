"""Checks of what low-rank surrogates are made of: tables of numbers, losses, columns, a tolerance."""

from __future__ import annotations

import numbers

import numpy as np

from concordant.exceptions import NonFiniteError, ParameterError, ShapeError
from concordant.supervision.check import check_features
from concordant.supervision.columns import check_column
from concordant.types import ArrayLike, FloatArray

__all__ = ["check_each", "check_losses", "check_table", "check_tolerance"]

LARGEST = 1e100  # squares of such numbers, added up, are still numbers
LARGEST_LOSS = 1e99  # differences of such losses are no larger


def check_table(values: ArrayLike, name: str, largest: float = LARGEST) -> FloatArray:
    """Give a table of finite numbers, none so large that its squares overflow when added up."""
    given = check_features(values.toarray() if hasattr(values, "toarray") else values, name)
    table = np.asarray(given, dtype=np.float64)
    if (large := ~(np.abs(table) <= largest)).any():
        row, column = np.argwhere(large)[0]
        hint = f"rescale the numbers to at most {largest:g} in size."
        where = f"row {row}, column {column}"
        raise NonFiniteError(name, float(table[row, column]), where, int(large.sum()), hint)
    return table


def check_losses(values: ArrayLike, name: str) -> FloatArray:
    """Give a loss matrix with at least one prediction."""
    losses = check_table(values, name, LARGEST_LOSS)
    if not losses.shape[1]:
        raise ShapeError(name, losses.shape, "a row per label, a column per prediction")
    return losses


def check_each(values: ArrayLike, name: str, count: int) -> FloatArray:
    """Give one finite number each; 0 where none are given."""
    if values is None:
        return np.zeros(count)
    column = check_table(check_column(values, name)[:, None], name)[:, 0]
    if len(column) != count:
        raise ShapeError(name, column.shape, f"{count} numbers")
    return column


def check_tolerance(tol: float) -> float:
    """Give a share of the largest singular value."""
    if not (isinstance(tol, numbers.Real) and 0.0 <= tol < 1.0):
        raise ParameterError("tol", tol, "a number >= 0 and < 1")
    return float(tol)
