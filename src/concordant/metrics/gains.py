"""Kinds of gain: numbers, since kernels read them; apart from those, since importing them costs numba."""

__all__ = ["ABOVE", "BINARY", "EXP2", "LINEAR"]

LINEAR = 0  # the grade itself
EXP2 = 1  # 2^grade - 1
BINARY = 2  # 1 from the parameter on, else 0
ABOVE = 3  # how far the grade lies above the parameter
