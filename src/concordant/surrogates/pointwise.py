"""Surrogates that read items one at a time: squared error, and linear plus a convex penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from concordant._numbers import as_double
from concordant._segments import segment_sum
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.supervision.columns import frozen
from concordant.surrogates.surrogate import EXACT_FIRST, Loss, Surrogate, check_choice, repeat
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["PENALTIES", "Duchi", "Penalty", "Squared"]

EXACT = ("exact",)


class SquaredLoss(Loss):
    """Weighted sum of squares, about the query's mean difference if centred."""

    def __init__(self, offsets: IntArray, weights: FloatArray, targets: FloatArray, *, centred: bool) -> None:
        super().__init__(offsets)
        self.weights, self.targets, self.centred = frozen(weights), frozen(targets), centred

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Linear time."""
        from concordant.surrogates.kernels.listwise import squared_chunk

        known = self.weights, self.targets, self.centred, self.offsets
        squared_chunk(scores, *known, first, last, values, grad)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Linear time; the same at all scores."""
        from concordant.surrogates.kernels.listwise import squared_product_chunk

        del scores
        squared_product_chunk(self.weights, self.centred, vector, self.offsets, first, last, product)

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """The same at all scores."""
        del scores, grad
        if kind == "majorising":
            return self.weights.copy()
        check_choice("curvature", kind, EXACT_FIRST)
        if not self.centred:
            return 2.0 * self.weights
        whole = repeat(segment_sum(self.weights, self.offsets), self.offsets)
        others = np.maximum(whole - self.weights, 0.0)
        rest = np.divide(others, whole, out=np.zeros_like(whole), where=whole > 0.0)
        diagonal: FloatArray = 2.0 * self.weights * rest
        return diagonal


@dataclass(frozen=True)
class Squared(Surrogate):
    """Squared error: sum of (d_i - mean d)^2 with d = scores - targets; plain: sum of d_i^2.

    Parameters
    ----------
    centred
        Leave the query's level out, so that no score is spent on it.

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

    @property
    def order_preserving(self) -> bool:
        """The minimiser is the expected target itself, up to the query's level."""
        return True

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Both."""
        return EXACT_FIRST

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weigh each square."""
        return SquaredLoss(offsets, weights, targets, centred=self.centred)


@dataclass(frozen=True)
class Penalty:
    """A strictly convex function of a score that grows faster than any line, with its derivatives."""

    name: str
    value: Callable[[FloatArray], FloatArray] = field(repr=False)
    slope: Callable[[FloatArray], FloatArray] = field(repr=False)
    curvature: Callable[[FloatArray], FloatArray] = field(repr=False)


def double(z: FloatArray) -> FloatArray:
    """Slope of the square."""
    return 2.0 * z


def two(z: FloatArray) -> FloatArray:
    """Curvature of the square."""
    return np.full_like(z, 2.0)


def quartic(z: FloatArray) -> FloatArray:
    """z^2 + z^4."""
    return z * z + z**4


def quartic_slope(z: FloatArray) -> FloatArray:
    """Its slope."""
    return 2.0 * z + 4.0 * z**3


def quartic_curvature(z: FloatArray) -> FloatArray:
    """Its curvature."""
    return 2.0 + 12.0 * z * z


PENALTIES = {  # of named functions: a lambda could not be pickled
    "square": Penalty("square", np.square, double, two),
    "cosh": Penalty("cosh", np.cosh, np.sinh, np.cosh),
    "quartic": Penalty("quartic", quartic, quartic_slope, quartic_curvature),
}


def weighed(weights: FloatArray, terms: FloatArray) -> FloatArray:
    """Give weights * terms, 0 where the weight is: a term may be infinite."""
    return np.multiply(weights, terms, out=np.zeros_like(terms), where=weights > 0.0)


class DuchiLoss(Loss):
    """Weighted sum of nu * penalty(score) - target * score."""

    def __init__(
        self, offsets: IntArray, weights: FloatArray, targets: FloatArray, penalty: Penalty, nu: float
    ) -> None:
        super().__init__(offsets)
        self.weights, self.targets, self.penalty, self.nu = weights, targets, penalty, nu

    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Plain numpy: the penalty may be the caller's."""
        offsets = self.offsets[first : last + 1]
        rows = slice(offsets[0], offsets[-1])
        weights, targets, z = self.weights[rows], self.targets[rows], scores[rows]
        with np.errstate(over="ignore"):  # infinite: that is the penalty's value in doubles
            terms = weighed(weights, self.nu * self.penalty.value(z) - targets * z)
            values[first:last] = segment_sum(terms, offsets - offsets[0])
            grad[rows] = weighed(weights, self.nu * self.penalty.slope(z) - targets)

    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """The Hessian is diagonal."""
        rows = slice(self.offsets[first], self.offsets[last])
        with np.errstate(over="ignore"):
            diagonal = weighed(self.weights[rows], self.nu * self.penalty.curvature(scores[rows]))
            product[rows] = diagonal * vector[rows]

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """The Hessian itself."""
        del grad
        check_choice("curvature", kind, EXACT)
        with np.errstate(over="ignore"):
            return weighed(self.weights, self.nu * self.penalty.curvature(self.per_row(scores, "scores")))


@dataclass(frozen=True)
class Duchi(Surrogate):
    """Linear loss with a convex penalty: sum of nu * penalty(s_i) - targets[i] * s_i.

    With preferences a[i, j] and targets[i] = sum over k of a[i, k] - a[k, i], the linear part is the sum over
    pairs of a[i, j] (s_j - s_i). With the penalty z^2 and nu = 1 the minimiser is that of the squared loss on
    half the targets.

    Parameters
    ----------
    penalty
        "square", "cosh", "quartic" (z^2 + z^4), or a `Penalty` of your own: strictly convex, 1-coercive.
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

    def __post_init__(self) -> None:
        if isinstance(self.penalty, str):
            if self.penalty not in PENALTIES:
                raise UnknownNameError("penalty", self.penalty, PENALTIES)
            object.__setattr__(self, "penalty", PENALTIES[self.penalty])
        if not isinstance(self.penalty, Penalty):
            raise ParameterError("penalty", self.penalty, "a Penalty or the name of one")
        if not 0.0 < as_double(self.nu) < np.inf:
            raise ParameterError("nu", self.nu, "a finite number > 0")

    @property
    def order_preserving(self) -> bool:
        """The minimiser is an increasing function of the expected target."""
        return True

    @property
    def curvatures(self) -> tuple[str, ...]:
        """The Hessian is diagonal; the penalty may be of any steepness."""
        return EXACT

    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Weigh each item's term."""
        penalty = self.penalty if isinstance(self.penalty, Penalty) else PENALTIES[self.penalty]
        return DuchiLoss(offsets, weights, targets, penalty, float(self.nu))
