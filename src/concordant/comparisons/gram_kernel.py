"""Kernels: values, Gram matrices of pairs, scores by support items, and the Nystrom map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import INT32_MAX, as_numpy, check_number, check_whole, list_words
from concordant.exceptions import ParameterError, ShapeError
from concordant.types import FloatArray

KERNELS = ("linear", "rbf", "poly")
BLOCK = 1 << 24  # kernel values computed at a time: 128 MB
SMALLEST = 1e-12  # directions below this share of the largest eigenvalue are rounding


@dataclass(frozen=True)
class Kernel:
    """k(a, b): linear a.b, rbf exp(-gamma d^2), poly (gamma a.b + coef0)^degree, or a user's function.

    A user's function takes two matrices of items and returns the matrix of their kernel values.

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
            raise ParameterError("kernel", self.name, list_words([*map(repr, KERNELS), "a function"]))
        check_number("gamma", self.gamma, above=0.0, also="'scale'")
        check_whole("degree", self.degree, 1, INT32_MAX)
        check_number("coef0", self.coef0, least=0.0)  # else the kernel may not be positive

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Kernel values of all pairs of rows, (len(a), len(b))."""
        from sklearn.metrics import pairwise

        if callable(self.name):
            return _user_kernel_values(self.name, a, b)
        if self.name == "rbf":
            values = pairwise.rbf_kernel(a, b, gamma=self.gamma)
        elif self.name == "poly":
            values = pairwise.polynomial_kernel(a, b, degree=self.degree, gamma=self.gamma, coef0=self.coef0)
        else:
            values = a @ b.T
        result: FloatArray = values
        return result

    def gram(self, pairs: FloatArray) -> FloatArray:
        """Gram matrix of the pairs' differences in the feature space, (n, n): M'KM of the paper.

        >>> Kernel("linear").gram(np.array([[[0.0], [2.0]], [[1.0], [0.0]]])).tolist()
        [[4.0, -2.0], [-2.0, 1.0]]
        """
        left, right = pairs[:, 0], pairs[:, 1]
        mixed, total = self(right, left), self(right, right)
        if callable(self.name):
            _refuse_skewed(self.name, total)
        total -= mixed
        total -= mixed.T
        total += self(left, left)
        return total


def _user_kernel_values(
    function: Callable[[FloatArray, FloatArray], Any], a: FloatArray, b: FloatArray
) -> FloatArray:
    values = np.asarray(as_numpy(function(a, b), "kernel"), dtype=np.float64)
    if values.shape != (len(a), len(b)):
        raise ShapeError("the kernel's matrix", values.shape, f"{(len(a), len(b))}: all pairs of items")
    if not np.isfinite(values).all():
        raise ParameterError("kernel", function, "a function with finite values")
    return values


def _refuse_skewed(function: Callable[[FloatArray, FloatArray], Any], values: FloatArray) -> None:
    size = float(np.abs(values).max(initial=0.0))
    skewed = not np.allclose(values, values.T, atol=1e-8 * size)
    if skewed or values.diagonal().min(initial=0.0) < -1e-8 * size:
        raise ParameterError("kernel", function, "a symmetric, positive semidefinite function")


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """Scoring function r(x) = sum over support items z of coef * k(z, x)."""

    kernel: Kernel
    items: FloatArray  # the support items z
    coef: FloatArray  # one per item

    def __call__(self, items: FloatArray) -> FloatArray:
        """Score items."""
        return _kernel_product(self.kernel, items, self.items, self.coef)


def _kernel_product(kernel: Kernel, items: FloatArray, support: FloatArray, right: FloatArray) -> FloatArray:
    """Multiply the kernel values of items and support items by a vector or matrix, in blocks of items."""
    product = np.zeros((len(items), *right.shape[1:]))
    rows = max(BLOCK // max(len(support), 1), 1)
    for first in range(0, len(items) if len(support) else 0, rows):
        block = slice(first, first + rows)
        product[block] = kernel(items[block], support) @ right
    return product


@dataclass(frozen=True, eq=False)
class NystroemMap:
    """Nystrom map: features whose inner products approximate the kernel, exactly so among the landmarks.

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
    def from_items(
        cls, kernel: Kernel, items: FloatArray, n_landmarks: int, rng: np.random.Generator
    ) -> NystroemMap:
        """Draw landmarks from the distinct items, without replacement.

        >>> items = np.random.default_rng(0).normal(size=(50, 3))
        >>> kernel = Kernel("rbf")
        >>> features = NystroemMap.from_items(kernel, items, 50, np.random.default_rng(0))(items)
        >>> bool(np.allclose(features @ features.T, kernel(items, items)))
        True
        """
        from scipy.linalg import eigh

        distinct = np.unique(items, axis=0)
        sample = np.sort(rng.permutation(len(distinct))[:n_landmarks])
        landmarks = distinct[sample]
        values, vectors = eigh(kernel(landmarks, landmarks))
        significant = values > SMALLEST * max(float(values[-1]), 1e-300)
        return cls(kernel, landmarks, vectors[:, significant] / np.sqrt(values[significant]))

    def __call__(self, items: FloatArray) -> FloatArray:
        """Compute the features of items."""
        return _kernel_product(self.kernel, items, self.landmarks, self.whiten)

    def differences(self, pairs: FloatArray) -> FloatArray:
        """Compute the features of the right side less those of the left."""
        total = self(pairs[:, 1])
        total -= self(pairs[:, 0])
        return total

    def scorer(self, w: FloatArray) -> KernelScorer:
        """Return the scoring function w @ features, as a sum over the landmarks."""
        return KernelScorer(self.kernel, self.landmarks, self.whiten @ w)
