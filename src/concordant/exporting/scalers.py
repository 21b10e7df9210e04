"""Scalers as what they do to each feature: times a number, plus a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ExportError
from concordant.supervision.readers.text import PathLike
from concordant.types import FloatArray

__all__ = ["Affine", "affine"]

SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


@dataclass(frozen=True, eq=False)
class Affine:
    """x * scale + shift, feature by feature.

    >>> Affine(np.array([2.0]), np.array([1.0])).then(Affine(np.array([3.0]), np.array([0.5]))).shift.tolist()
    [3.5]
    """

    scale: FloatArray
    shift: FloatArray

    @classmethod
    def same(cls, n_features: int) -> Affine:
        """Give what changes nothing."""
        return cls(np.ones(n_features), np.zeros(n_features))

    @property
    def changes(self) -> bool:
        """Whether it does anything."""
        return bool((self.scale != 1.0).any() or self.shift.any())

    def then(self, other: Affine) -> Affine:
        """Give both in one, this one first."""
        return Affine(self.scale * other.scale, self.shift * other.scale + other.shift)


def affine(step: Any, path: PathLike) -> Affine:
    """Give what a fitted scaler does; refuse steps that do more."""
    name = type(step).__name__
    if type(step) not in SCALERS:
        known = ", ".join(made.__name__ for made in SCALERS)
        problem = f"the step {name} cannot be folded into weights"
        raise ExportError(path, problem, f"those that can are {known}; do the rest where features are made.")
    check_is_fitted(step)
    if getattr(step, "clip", False):
        hint = "fit it with clip=False."
        raise ExportError(path, f"{name} with clip=True is not linear, and cannot be folded", hint)
    ones, zeros = np.ones(step.n_features_in_), np.zeros(step.n_features_in_)
    if isinstance(step, MinMaxScaler):
        given = np.asarray(step.scale_, dtype=np.float64), np.asarray(step.min_, dtype=np.float64)
        return finite(Affine(*given), name, path)
    scale = ones if getattr(step, "scale_", None) is None else step.scale_
    middle = getattr(step, "mean_" if isinstance(step, StandardScaler) else "center_", None)
    if isinstance(step, StandardScaler) and not step.with_mean:
        middle = None  # it is measured, but not used
    middle = zeros if middle is None else middle
    return finite(Affine(1.0 / scale, -middle / scale), name, path)


def finite(found: Affine, name: str, path: PathLike) -> Affine:
    """Refuse what a scaler does to features that were missing, or too large, when it was fitted."""
    bad = ~(np.isfinite(found.scale) & np.isfinite(found.shift))
    if bad.any():
        problem = f"{name} takes feature {int(np.argmax(bad))} times {found.scale[bad][0]}, "
        problem += f"plus {found.shift[bad][0]}"
        raise ExportError(path, problem, "fit it on finite numbers.")
    return found
