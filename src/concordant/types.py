"""Array aliases shared by every layer, and what metrics and surrogates tell one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayLike", "BoolArray", "FloatArray", "IntArray", "OrderLoss", "OrderMetric"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ArrayLike = Any
"""A list, a numpy array, or a pandas, polars or pyarrow column or frame."""


@dataclass(frozen=True, eq=False)
class OrderLoss:
    """What an order of each query's rows loses against the best one, in a form that can be searched.

    Rows of equal gain have the same label; an order that never puts one below a lesser one loses nothing.

    Attributes
    ----------
    kind
        "additive": sum of gains * discounts of the places, the best order's less this one's. "precision":
        1 - average precision of gains that are 0 or 1. "pairs": sum of the differences of gains over the
        pairs in which the larger gain stands below.
    gains
        One number >= 0 per row, rows of each query adjacent.
    discounts
        One number >= 0 per place, up to the longest query, never rising; of "additive" only.
    """

    kind: str
    gains: FloatArray
    discounts: FloatArray


class OrderMetric(Protocol):
    """A metric that can tell what orders lose."""

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Give the loss of orders of queries of these sizes, rows of each adjacent."""
