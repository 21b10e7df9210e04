"""Kernels: scores that are sums over support items, Gram matrices of pairs, and the Nystrom map."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._numbers import as_double, is_whole
from concordant.exceptions import ParameterError, ShapeError
from concordant.supervision.columns import as_numpy
from concordant.types import FloatArray

__all__ = ["KERNELS", "Kernel", "KernelScorer", "NystroemMap"]

KERNELS = ("linear", "rbf", "poly")
BLOCK = 1 << 24  # kernel values computed at a time: 128 MB
SMALLEST = 1e-12  # directions below this share of the largest eigenvalue are rounding


@dataclass(frozen=True)
class Kernel:
    """k(a, b): linear a.b, rbf exp(-gamma d^2), poly (gamma a.b + coef0)^degree, or the caller's own.

    A function of the caller's takes two matrices of items and gives the matrix of all their values.

    Examples
    --------
    >>> Kernel("rbf", gamma=0.5)(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(3).tolist()
    [[1.0, 0.368]]
    """

    name: str | Callable[[FloatArray, FloatArray], Any]
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.name) and not (isinstance(self.name, str) and self.name in KERNELS):
            raise ParameterError("kernel", self.name, f"one of {', '.join(KERNELS)}, or a function")
        if not 0.0 < as_double(self.gamma) < math.inf:
            raise ParameterError("gamma", self.gamma, "'scale', or finite and > 0")
        if not is_whole(self.degree, 1):
            raise ParameterError("degree", self.degree, "a whole number >= 1")
        if not 0.0 <= as_double(self.coef0) < math.inf:
            raise ParameterError("coef0", self.coef0, "finite and >= 0, so that the kernel is positive")

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Give the values of all pairs, (len(a), len(b))."""
        from sklearn.metrics import pairwise

        if callable(self.name):
            return own_values(self.name, a, b)
        if self.name == "rbf":
            values = pairwise.rbf_kernel(a, b, gamma=self.gamma)
        elif self.name == "poly":
            values = pairwise.polynomial_kernel(a, b, degree=self.degree, gamma=self.gamma, coef0=self.coef0)
        else:
            values = a @ b.T
        result: FloatArray = values
        return result

    def gram(self, pairs: FloatArray) -> FloatArray:
        """Inner products of the pairs' differences in the kernel's space, (n, n): M'KM of the paper.

        >>> Kernel("linear").gram(np.array([[[0.0], [2.0]], [[1.0], [0.0]]])).tolist()
        [[4.0, -2.0], [-2.0, 1.0]]
        """
        left, right = pairs[:, 0], pairs[:, 1]
        mixed, total = self(right, left), self(right, right)
        if callable(self.name):
            refuse_skewed(self.name, total)
        total -= mixed
        total -= mixed.T
        total += self(left, left)
        return total


def own_values(function: Callable[[FloatArray, FloatArray], Any], a: FloatArray, b: FloatArray) -> FloatArray:
    """Give the values of a caller's kernel, checked."""
    values = np.asarray(as_numpy(function(a, b), "kernel"), dtype=np.float64)
    if values.shape != (len(a), len(b)):
        raise ShapeError("the kernel's matrix", values.shape, f"{(len(a), len(b))}: all pairs of items")
    if not np.isfinite(values).all():
        raise ParameterError("kernel", function, "a function whose values are finite")
    return values


def refuse_skewed(function: Callable[[FloatArray, FloatArray], Any], values: FloatArray) -> None:
    """Refuse a matrix of items with themselves that shows, at a glance, that it is no kernel's."""
    size = float(np.abs(values).max(initial=0.0))
    skewed = not np.allclose(values, values.T, atol=1e-8 * size)
    if skewed or values.diagonal().min(initial=0.0) < -1e-8 * size:
        raise ParameterError("kernel", function, "symmetric and positive semidefinite")


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """r(x) = sum over support items z of coef * k(z, x).

    Attributes
    ----------
    kernel, items, coef
        The kernel, the support items, and the coefficient of each.
    """

    kernel: Kernel
    items: FloatArray
    coef: FloatArray

    def __call__(self, items: FloatArray) -> FloatArray:
        """Score items, in blocks that bound the memory."""
        scores = np.zeros(len(items))
        if not len(self.items):
            return scores
        rows = max(BLOCK // len(self.items), 1)
        for first in range(0, len(items), rows):
            block = slice(first, first + rows)
            scores[block] = self.kernel(items[block], self.items) @ self.coef
        return scores


@dataclass(frozen=True, eq=False)
class NystroemMap:
    """A fixed number of features whose inner products are the kernel's, exactly so among the landmarks.

    Attributes
    ----------
    kernel, landmarks
        The kernel, and the items that span the features.
    whiten
        Features are k(x, landmarks) @ whiten.
    """

    kernel: Kernel
    landmarks: FloatArray
    whiten: FloatArray

    @classmethod
    def of(cls, kernel: Kernel, items: FloatArray, n_landmarks: int, rng: np.random.Generator) -> NystroemMap:
        """Draw landmarks among the items, without repetition.

        >>> items = np.random.default_rng(0).normal(size=(50, 3))
        >>> kernel = Kernel("rbf")
        >>> features = NystroemMap.of(kernel, items, 50, np.random.default_rng(0))(items)
        >>> bool(np.allclose(features @ features.T, kernel(items, items)))
        True
        """
        from scipy.linalg import eigh

        distinct = np.unique(items, axis=0)
        chosen = np.sort(rng.permutation(len(distinct))[:n_landmarks])
        landmarks = distinct[chosen]
        values, vectors = eigh(kernel(landmarks, landmarks))
        kept = values > SMALLEST * max(float(values[-1]), 1e-300)
        return cls(kernel, landmarks, vectors[:, kept] / np.sqrt(values[kept]))

    def __call__(self, items: FloatArray) -> FloatArray:
        """Give the features of items."""
        features = np.empty((len(items), self.whiten.shape[1]))
        rows = max(BLOCK // max(len(self.landmarks), 1), 1)
        for first in range(0, len(items), rows):
            block = slice(first, first + rows)
            features[block] = self.kernel(items[block], self.landmarks) @ self.whiten
        return features

    def differences(self, pairs: FloatArray) -> FloatArray:
        """Give the features of the right less those of the left."""
        total = self(pairs[:, 1])
        total -= self(pairs[:, 0])
        return total

    def scorer(self, w: FloatArray) -> KernelScorer:
        """Give the scores w @ features, as a sum over the landmarks."""
        return KernelScorer(self.kernel, self.landmarks, self.whiten @ w)
