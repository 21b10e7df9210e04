"""Tangent planes of a convex loss, and the distance in which steps between them are measured."""

from __future__ import annotations

import numpy as np

from concordant.solvers.precondition import Preconditioner
from concordant.solvers.simplex import best_mixture
from concordant.types import FloatArray

__all__ = ["Distance", "Planes"]

ROUNDED = 1e-15  # share of what is added up that may be lost
IDLE = 50  # rounds after which a plane that bears nothing is dropped


class Planes:
    """Tangent planes of the mean loss: values and slopes at the origin, and shares of the last mixture."""

    def __init__(self, n_features: int, alpha: float) -> None:
        self.alpha = alpha
        self.slopes, self.heights = np.empty((0, n_features)), np.empty(0)
        self.products = np.empty((0, 0))  # of the slopes
        self.shares, self.near, self.idle = np.empty(0), np.empty(0), np.empty(0)
        self.turned = np.empty((0, n_features))  # slopes along the axes of a distance, once it is known

    def add(self, w: FloatArray, value: float, grad: FloatArray, size: float = 0.0) -> None:
        """Add the plane at these weights, given the objective there and its gradient.

        `size` is that of the numbers of which the gradient, times w, is a difference.
        """
        slope, penalty = grad - self.alpha * w, 0.5 * self.alpha * float(w @ w)
        size += abs(value) + penalty + float(np.abs(slope) @ np.abs(w))
        # Far out the height is a small difference of large numbers: what was rounded counts against it.
        height = value - penalty - float(slope @ w) - ROUNDED * size
        crossed = self.slopes @ slope
        self.products = np.block([[self.products, crossed[:, None]], [crossed, slope @ slope]])
        self.slopes, self.heights = np.vstack([self.slopes, slope]), np.r_[self.heights, height]
        first = float(not self.shares.size)
        self.shares, self.near = np.r_[self.shares, first], np.r_[self.near, first]
        self.idle = np.r_[self.idle, 0.0]

    def lower_bound(self) -> float:
        """Minimum of the model: no weights cost less."""
        self.shares = best_mixture(self.products / self.alpha, self.heights, self.shares)
        pull = self.shares @ self.slopes  # its square, unlike one of the products, is never rounded below 0
        return float(self.heights @ self.shares - 0.5 * (pull @ pull) / self.alpha)

    def nearest(self, centre: FloatArray, distance: Distance, weight: float) -> FloatArray:
        """Minimise the model plus weight/2 times the squared distance from the centre."""
        fresh = self.slopes[len(self.turned) :]
        self.turned = np.vstack([self.turned, distance.turn(fresh)])
        shrunk = 1.0 / (self.alpha + weight * distance.curves)
        start = shrunk * (weight * distance.curves) * distance.turn(centre)
        H = (self.turned * shrunk) @ self.turned.T
        self.near = best_mixture(0.5 * (H + H.T), self.heights + self.turned @ start, self.near)
        return distance.back(start - shrunk * (self.near @ self.turned))

    def height(self, w: FloatArray) -> float:
        """Give the model at these weights."""
        return float((self.slopes @ w + self.heights).max() + 0.5 * self.alpha * (w @ w))

    def drop_idle(self) -> None:
        """Forget planes that have not borne anything for long."""
        self.idle = np.where((self.shares > 0.0) | (self.near > 0.0), 0.0, self.idle + 1.0)
        kept = np.flatnonzero(self.idle < IDLE)
        if len(kept) < len(self.idle):
            self.slopes, self.heights, self.idle = self.slopes[kept], self.heights[kept], self.idle[kept]
            self.products = self.products[np.ix_(kept, kept)]
            self.turned = self.turned[kept[kept < len(self.turned)]]
            self.shares, self.near = self.shares[kept], self.near[kept]


class Distance:
    """Squared distance of whitened coordinates, w'(P P')^-1 w: a sum of curves * squares along its axes."""

    def __init__(self, frame: Preconditioner) -> None:
        matrix = frame.matrix
        self.axes: FloatArray | None = None
        if matrix.ndim == 1:
            self.curves = matrix**-2.0
        else:
            self.axes, sizes, _ = np.linalg.svd(matrix)
            self.curves = sizes**-2.0

    def turn(self, w: FloatArray) -> FloatArray:
        """Give vectors, one or one a row, along the axes."""
        turned: FloatArray = w if self.axes is None else w @ self.axes
        return turned

    def back(self, turned: FloatArray) -> FloatArray:
        """Give the vector that is this along the axes."""
        w: FloatArray = turned if self.axes is None else self.axes @ turned
        return w
