"""Parameters that should be numbers, whatever was given."""

from __future__ import annotations

import math
from numbers import Integral, Real

__all__ = ["as_double", "is_whole", "whole_numbers"]

MOST = 2**31 - 1  # what the libraries beneath count with: more is a mistake


def as_double(value: object) -> float:
    """Give a number as a double: infinity where it is too large, NaN where it is no number.

    NaN lies in no range, so that `0.0 <= as_double(value) < math.inf` asks for both.

    >>> as_double(2), as_double(10**400), as_double(-(10**400)), as_double("2")
    (2.0, inf, -inf, nan)
    """
    if not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def is_whole(value: object, least: int, most: int = MOST) -> bool:
    """Tell whether it is a whole number from `least` to `most`; True and False are none.

    >>> is_whole(3, 1), is_whole(0, 1), is_whole(3.0, 1), is_whole(True, 1), is_whole(10**400, 1)
    (True, False, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def whole_numbers(least: int, most: int = MOST) -> str:
    """Say what `is_whole` asks for.

    >>> whole_numbers(1)
    'a whole number >= 1, at most 2147483647'
    """
    return f"a whole number >= {least}, at most {most}"
