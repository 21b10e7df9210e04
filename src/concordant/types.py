"""Array aliases shared by every layer, and the protocol between metrics and surrogates."""

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
    """Loss of an order of each query's rows relative to the best order, in a searchable form.

    Rows of equal gain have the same label; an order that never puts a row below a lesser one loses nothing.

    Attributes
    ----------
    kind
        "additive": sum of gains * discounts over the positions, for the best order minus that for this order.
        "precision": 1 - average precision of gains that are 0 or 1. "pairs": sum of the differences of gains
        over the pairs in which the larger gain stands below.
    gains
        One number >= 0 per row, rows of each query adjacent.
    discounts
        One number >= 0 per position, up to the longest query, never increasing; used by "additive" only.
    """

    kind: str
    gains: FloatArray
    discounts: FloatArray


class OrderMetric(Protocol):
    """A metric that can measure the loss of orders."""

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Return the order loss for queries of these sizes, rows of each query adjacent."""
