"""Surrogates that treat items independently: squared error, and linear loss plus a convex penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import check_choice, check_number, freeze
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.surrogates.surrogate import EXACT_FIRST, Loss, Surrogate, repeat
from concordant.types import ArrayLike, FloatArray, IntArray

EXACT = ("exact",)


class BoundSquared(Loss):
    """Weighted sum of squares, about the query's mean difference if centred."""

    def __init__(self, offsets: IntArray, weights: FloatArray, targets: FloatArray, *, centred: bool) -> None:
        super().__init__(offsets)
        self.weights, self.targets, self.centred = freeze(weights), freeze(targets), centred

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Evaluate in linear time."""
        from concordant.surrogates.listwise_kernels import squared_chunk

        chunk = self.offsets, first, last
        squared_chunk(scores, self.weights, self.targets, self.centred, chunk, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Multiply in linear time; the Hessian does not depend on the scores."""
        from concordant.surrogates.listwise_kernels import squared_product_chunk

        del scores
        squared_product_chunk(self.weights, self.centred, vector, (self.offsets, first, last), product)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Return the curvature, which does not depend on the scores."""
        del scores, grad
        if kind == "majorising":
            return self.weights.copy()
        check_choice("curvature", kind, EXACT_FIRST)
        if not self.centred:
            return 2.0 * self.weights
        query_weights = repeat(segment_sum(self.weights, self.offsets), self.offsets)
        others = np.maximum(query_weights - self.weights, 0.0)
        rest = np.divide(others, query_weights, out=np.zeros_like(query_weights), where=query_weights > 0.0)
        diagonal: FloatArray = 2.0 * self.weights * rest
        return diagonal


@dataclass(frozen=True)
class Squared(Surrogate):
    """Squared error: sum of (d_i - mean d)^2 with d = scores - targets; plain: sum of d_i^2.

    Parameters
    ----------
    centred
        Ignore the query's level, so that no score is spent on it.

    References
    ----------
    Cossock and Zhang (2008).

    Examples
    --------
    >>> [Squared(centred)([5.0, 6.0], [0.0, 1.0])[0].tolist() for centred in (True, False)]
    [[0.0], [50.0]]
    """

    centred: bool = True
    name: ClassVar[str] = "squared"
    signed: ClassVar[bool] = True
    weighs: ClassVar[str] = "terms"

    @property
    def order_preserving(self) -> bool:
        """True: the minimiser is the expected target, up to the query's level."""
        return True

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Exact and majorising."""
        return EXACT_FIRST

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weight each square."""
        return BoundSquared(offsets, weights, targets, centred=self.centred)


@dataclass(frozen=True)
class Penalty:
    """Strictly convex function of a score that grows faster than linearly, with its derivatives.

    It must be differentiable everywhere: at a corner, like that of abs(z) + z^2 at 0, items of different
    targets are tied. Certificates cover only the named penalties.
    """

    name: str
    value: Callable[[FloatArray], FloatArray] = field(repr=False)
    slope: Callable[[FloatArray], FloatArray] = field(repr=False)
    curvature: Callable[[FloatArray], FloatArray] = field(repr=False)


def double(z: FloatArray) -> FloatArray:
    """Slope of the square penalty."""
    return 2.0 * z


def two(z: FloatArray) -> FloatArray:
    """Curvature of the square penalty."""
    return np.full_like(z, 2.0)


def quartic(z: FloatArray) -> FloatArray:
    """The quartic penalty z^2 + z^4."""
    return z * z + z**4


def _quartic_slope(z: FloatArray) -> FloatArray:
    return 2.0 * z + 4.0 * z**3


def _quartic_curvature(z: FloatArray) -> FloatArray:
    return 2.0 + 12.0 * z * z


PENALTIES = {  # named functions, because a lambda cannot be pickled
    "square": Penalty("square", np.square, double, two),
    "cosh": Penalty("cosh", np.cosh, np.sinh, np.cosh),
    "quartic": Penalty("quartic", quartic, _quartic_slope, _quartic_curvature),
}


def multiply_weights(weights: FloatArray, terms: FloatArray) -> FloatArray:
    """Return weights * terms, 0 where the weight is 0: a term may be infinite."""
    return np.multiply(weights, terms, out=np.zeros_like(terms), where=weights > 0.0)


class DuchiLoss(Loss):
    """Weighted sum of nu * penalty(score) - target * score."""

    def __init__(
        self, offsets: IntArray, weights: FloatArray, targets: FloatArray, penalty: Penalty, nu: float
    ) -> None:
        super().__init__(offsets)
        self.weights, self.targets, self.penalty, self.nu = weights, targets, penalty, nu

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Evaluate in numpy, since the penalty may be user-defined."""
        offsets = self.offsets[first : last + 1]
        rows = slice(offsets[0], offsets[-1])
        weights, targets, z = self.weights[rows], self.targets[rows], scores[rows]
        with np.errstate(over="ignore"):  # overflow to infinity is the penalty's value in doubles
            terms = multiply_weights(weights, self.nu * self.penalty.value(z) - targets * z)
            values[first:last] = segment_sum(terms, offsets - offsets[0])
            grad[rows] = multiply_weights(weights, self.nu * self.penalty.slope(z) - targets)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Multiply by the Hessian, which is diagonal."""
        rows = slice(self.offsets[first], self.offsets[last])
        with np.errstate(over="ignore"):
            diagonal = multiply_weights(self.weights[rows], self.nu * self.penalty.curvature(scores[rows]))
            product[rows] = diagonal * vector[rows]

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Return the Hessian, which is diagonal."""
        del grad
        check_choice("curvature", kind, EXACT)
        with np.errstate(over="ignore"):
            return multiply_weights(
                self.weights, self.nu * self.penalty.curvature(self.per_row(scores, "scores"))
            )


@dataclass(frozen=True)
class Duchi(Surrogate):
    """Linear loss with a convex penalty: sum of nu * penalty(s_i) - targets[i] * s_i.

    With preferences a[i, j] and targets[i] = sum over k of a[i, k] - a[k, i], the linear part is the sum over
    pairs of a[i, j] (s_j - s_i). With the penalty z^2 and nu = 1 the minimiser is that of the squared loss
    with half the targets.

    Parameters
    ----------
    penalty
        "square", "cosh", "quartic" (z^2 + z^4), or a user-defined `Penalty`: strictly convex, differentiable,
        1-coercive.
    nu
        Weight of the penalty.

    References
    ----------
    Duchi, Mackey and Jordan (2010).

    Examples
    --------
    >>> Duchi()([0.5, 0.0], [1.0, 0.0])[1].tolist()
    [0.0, 0.0]
    """

    penalty: Penalty | str = "square"
    nu: float = 1.0
    name: ClassVar[str] = "duchi"
    signed: ClassVar[bool] = True
    weighs: ClassVar[str] = "terms"

    def __post_init__(self) -> None:
        if isinstance(self.penalty, str):
            if self.penalty not in PENALTIES:
                raise UnknownNameError("penalty", self.penalty, PENALTIES)
            object.__setattr__(self, "penalty", PENALTIES[self.penalty])
        if not isinstance(self.penalty, Penalty):
            raise ParameterError("penalty", self.penalty, "a Penalty or the name of one")
        check_number("nu", self.nu, above=0.0)

    @property
    def order_preserving(self) -> bool:
        """True: the minimiser is an increasing function of the expected target."""
        return True

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Exact only: the Hessian is diagonal, but the penalty may be arbitrarily steep."""
        return EXACT

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weight the term of each item."""
        penalty = self.penalty if isinstance(self.penalty, Penalty) else PENALTIES[self.penalty]
        return DuchiLoss(offsets, weights, targets, penalty, float(self.nu))
