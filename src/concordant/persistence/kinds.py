"""What a value of a model file may be, stated once and checked before it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "BYTES",
    "FLAG",
    "IDS",
    "NUMBERED",
    "PLAIN",
    "REAL",
    "SCALAR",
    "TEXT",
    "WHOLE",
    "Kind",
    "array",
    "by_name",
    "either",
    "many",
    "maybe",
    "one_of",
    "part",
    "several",
    "up_to",
]


@dataclass(frozen=True)
class Kind:
    """A set of values.

    Attributes
    ----------
    what
        In words, with an article.
    fits
        Whether a value is one.
    """

    what: str
    fits: Callable[[Any], bool]


LARGEST = 2**63  # whole numbers below it are those of compiled code

FLAG = Kind("true or false", lambda value: type(value) is bool)
TEXT = Kind("text", lambda value: type(value) is str)
WHOLE = Kind("a whole number >= 0", lambda value: type(value) is int and 0 <= value < LARGEST)
REAL = Kind("a number", lambda value: type(value) is float or (type(value) is int and abs(value) < LARGEST))
BYTES = Kind("bytes", lambda value: type(value) is bytes)
SCALAR = Kind(
    "a number, text, true, false or null",
    lambda value: value is None or type(value) in (bool, int, float, str),
)
IDS = Kind(
    "a list of ids",
    lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufUSMm",
)


def is_plain(value: Any) -> bool:
    """Tell numbers, text, true, false and null, in arrays, lists, tuples and dictionaries, from the rest."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(SCALAR.fits, value)) and all(map(is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufU"
    return SCALAR.fits(value)


PLAIN = Kind("plain values", is_plain)
NUMBERED = Kind(
    "a list of plain values for some features",
    lambda value: (
        isinstance(value, dict)
        and all(map(WHOLE.fits, value))
        and all(isinstance(one, list) and all(map(SCALAR.fits, one)) for one in value.values())
    ),
)


def up_to(highest: int) -> Kind:
    """Give the whole numbers from 0 to this one."""
    return Kind(f"a whole number <= {highest:,}", lambda value: WHOLE.fits(value) and value <= highest)


def array(dtype: type, ndim: int) -> Kind:
    """Give the arrays of so many axes, in the machine's own order of bytes.

    >>> array(np.float64, 1).fits(np.zeros(3)), array(np.float64, 1).fits(np.zeros(3, np.float32))
    (True, False)
    """
    wanted = np.dtype(dtype)

    def fits(value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.dtype == wanted and value.ndim == ndim

    return Kind(f"an array of {wanted} with {ndim} axes", fits)


def part(*classes: type) -> Kind:
    """Give the objects of these classes."""
    return Kind(" or ".join(one.__name__ for one in classes), lambda value: type(value) in classes)


def maybe(kind: Kind) -> Kind:
    """Give the same, or nothing."""
    return Kind(f"{kind.what}, or null", lambda value: value is None or kind.fits(value))


def many(kind: Kind) -> Kind:
    """Give the lists of such values."""

    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(map(kind.fits, value))

    return Kind(f"a list: each {kind.what}", fits)


def by_name(kind: Kind) -> Kind:
    """Give the dictionaries of such values."""

    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(map(kind.fits, value.values()))

    return Kind(f"values by name: each {kind.what}", fits)


def several(kind: Kind) -> Kind:
    """Give the tuples of such values."""

    def fits(value: Any) -> bool:
        return isinstance(value, tuple) and all(map(kind.fits, value))

    return Kind(f"a tuple: each {kind.what}", fits)


def either(*kinds: Kind) -> Kind:
    """Give what is of one of these kinds."""
    return Kind(
        " or ".join(kind.what for kind in kinds), lambda value: any(kind.fits(value) for kind in kinds)
    )


def one_of(*values: Any) -> Kind:
    """Give these values, and no others of another type."""

    def fits(value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in values)

    return Kind(f"one of {', '.join(map(repr, values))}", fits)
