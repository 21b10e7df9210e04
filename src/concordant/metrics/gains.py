"""Kinds of gain: numbers, since kernels read them; apart from those, since importing them costs numba."""

from __future__ import annotations

import numpy as np

from concordant.types import FloatArray

__all__ = ["ABOVE", "BINARY", "EXP2", "LINEAR", "gains"]

LINEAR = 0  # the grade itself
EXP2 = 1  # 2^grade - 1
BINARY = 2  # 1 from the parameter on, else 0
ABOVE = 3  # how far the grade lies above the parameter


def gains(kind: int, parameter: float, grades: FloatArray) -> FloatArray:
    """Gain of each grade, in plain numpy: targets are asked for where numba is absent.

    >>> gains(EXP2, 0.0, np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.0, 3.0]
    """
    if kind == BINARY:
        return (grades >= parameter).astype(np.float64)
    if kind == ABOVE:
        return np.maximum(grades - parameter, 0.0)
    return np.exp2(grades) - 1.0 if kind == EXP2 else grades.copy()  # not the labels themselves
