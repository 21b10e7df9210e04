"""Margin functions phi(t) of t, the lead of the better item, and the facts about them that theorems need."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import as_double
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import ArrayLike

CLIP, LOGISTIC, EXPONENTIAL = 0, 1, 2  # kinds of formula, as kernels read them
# A hinge is a Huber hinge of negligible width: no sum of scores and edge comes this near to the edge. A power
# of two, so that its slope is exactly -1.
NO_WIDTH = 2.0**-200


@dataclass(frozen=True, repr=False)
class Margin:
    """Non-increasing convex function of a score difference, with its properties.

    Margins with quadratic and linear pieces share a form: with d = edge - t and c = d clipped to [0, width],
    phi(t) = scale * c * (2 d - c): a parabola over the first `width` below the edge, and its tangent beyond.

    Attributes
    ----------
    convex, non_increasing, differentiable
        Properties of phi.
    favours_order
        phi(t) < phi(-t) for every t > 0.
    falls_at_zero
        The slope at 0 is negative.
    flat_from
        The smallest t from which the slope is 0; infinite if there is none.
    lipschitz
        The largest absolute slope; infinite if there is none.
    smoothness
        The largest change of slope per unit of t; infinite if there is none.
    """

    name: str
    kind: int
    edge: float = 0.0
    width: float = 0.0
    scale: float = 0.0
    convex: bool = True
    non_increasing: bool = True
    differentiable: bool = True
    favours_order: bool = True
    falls_at_zero: bool = True
    flat_from: float = math.inf
    lipschitz: float = 1.0
    smoothness: float = math.inf

    @property
    def order_preserving(self) -> bool:
        """True if the pairwise loss with this margin is order-preserving.

        References
        ----------
        Buffoni, Calauzènes, Gallinari and Usunier (2011), Theorem 1.
        """
        shape = self.convex and self.non_increasing and self.differentiable
        return shape and self.favours_order and self.falls_at_zero and self.flat_from < math.inf

    @property
    def parameters(self) -> tuple[float, float, float]:
        """Edge, width and scale of the quadratic pieces, as kernels read them."""
        return self.edge, self.width, self.scale

    @property
    def code(self) -> tuple[int, float, float, float]:
        """Kind and parameters, as kernels of long lists read them."""
        return self.kind, *self.parameters

    def value(self, t: ArrayLike) -> Any:
        """Return phi(t), elementwise.

        >>> squared_hinge.value([-1.0, 0.5, 2.0]).tolist()
        [4.0, 0.25, 0.0]
        """
        t = np.asarray(t, dtype=np.float64)
        if self.kind == LOGISTIC:
            return np.logaddexp(0.0, -t)
        if self.kind == EXPONENTIAL:
            with np.errstate(over="ignore"):  # overflow to infinity is its value in doubles
                return np.exp(-t)
        d = np.maximum(self.edge - t, 0.0)
        c = np.minimum(d, self.width)
        return self.scale * c * (2.0 * d - c)

    def slope(self, t: ArrayLike) -> Any:
        """Return phi'(t); at a corner, the slope to the right of it."""
        t = np.asarray(t, dtype=np.float64)
        if self.kind == LOGISTIC:
            return -np.exp(-np.logaddexp(0.0, t))  # accurate if small, unlike 1 - tanh
        if self.kind == EXPONENTIAL:
            return -self.value(t)
        return -2.0 * self.scale * np.clip(self.edge - t, 0.0, self.width)

    def curvature(self, t: ArrayLike) -> Any:
        """Return phi''(t); a generalised second derivative where the slope has a corner."""
        t = np.asarray(t, dtype=np.float64)
        if self.kind == LOGISTIC:
            return 0.25 / np.cosh(np.minimum(0.5 * np.abs(t), 350.0)) ** 2
        if self.kind == EXPONENTIAL:
            return self.value(t)
        d = self.edge - t
        return np.where((d > 0.0) & (d <= self.width), 2.0 * self.scale, 0.0)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"margin({self.name!r})"


def huber_hinge(h: float = 0.5) -> Margin:
    """Hinge whose corner is rounded over [1 - h, 1 + h]: 0 above, (1 + h - t)^2 / 4h within, 1 - t below.

    >>> huber_hinge().value([-1.0, 1.0, 1.5]).tolist(), huber_hinge().order_preserving
    ([2.0, 0.125, 0.0], True)
    """
    if not 1e-100 < as_double(h) < 1e100:
        raise ParameterError("h", h, "a number from 1e-100 to 1e100")
    width = float(h)
    return Margin(
        name="huber_hinge" if width == 0.5 else f"huber_hinge({width!r})",
        kind=CLIP,
        edge=1.0 + width,
        width=2.0 * width,
        scale=0.25 / width,
        flat_from=1.0 + width,
        smoothness=0.5 / width,
    )


squared_hinge = Margin(
    "squared_hinge", CLIP, 1.0, math.inf, 1.0, flat_from=1.0, lipschitz=math.inf, smoothness=2.0
)
hinge = Margin("hinge", CLIP, 1.0, NO_WIDTH, 0.5 / NO_WIDTH, differentiable=False, flat_from=1.0)
overtaken = Margin(
    "overtaken", CLIP, 0.0, NO_WIDTH, 0.5 / NO_WIDTH, differentiable=False, falls_at_zero=False, flat_from=0.0
)  # max(0, -t): a hinge whose margin is part of the scores
logistic = Margin("logistic", LOGISTIC, smoothness=0.25)
exponential = Margin("exponential", EXPONENTIAL, lipschitz=math.inf)

MARGINS: dict[str, Callable[[], Margin]] = {
    "squared_hinge": lambda: squared_hinge,
    "huber_hinge": huber_hinge,
    "logistic": lambda: logistic,
    "exponential": lambda: exponential,
    "hinge": lambda: hinge,
}


def margin(name: str | Margin) -> Margin:
    """Return a margin by its name; `huber_hinge(0.25)` sets the width.

    >>> margin("huber_hinge(0.25)").flat_from
    1.25
    >>> margin("hinge").order_preserving, margin("logistic").order_preserving
    (False, False)
    """
    if isinstance(name, Margin):
        return name
    if isinstance(name, str):
        if name in MARGINS:
            return MARGINS[name]()
        if match := re.fullmatch(r"huber_hinge\((?:h=)?([-+.\deE]+)\)", name):
            try:
                return huber_hinge(float(match[1]))
            except ValueError as error:
                raise ParameterError("h", match[1], "a finite number > 0") from error
    raise UnknownNameError("margin", name, MARGINS)
