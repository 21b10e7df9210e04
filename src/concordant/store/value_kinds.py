"""Kinds of values in a model file, each stated once and checked before a value is used."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

WRITTEN_BY = "model files are written by concordant.save, `concordant train` and `concordant compare fit`."


class UnreadableError(Exception):
    """A problem with a model file, raised where the name of the file is not known."""

    def __init__(
        self, problem: str, hint: str = "it is damaged, or was changed by hand: write it again."
    ) -> None:
        super().__init__(problem)
        self.hint = hint


def require(fact: Any, problem: str, *hint: str) -> None:
    """Raise if `fact` is false: the file has this problem."""
    if not fact:
        raise UnreadableError(problem, *hint)


def unique_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build the dictionary of a JSON object; raise if a name occurs twice: readers differ on which counts."""
    unique = dict(pairs)
    require(len(unique) == len(pairs), "it has a name twice in one object")
    return unique


@dataclass(frozen=True)
class Kind:
    """A set of allowed values."""

    what: str  # in words, with an article
    fits: Callable[[Any], bool]


LARGEST = 2**63  # whole numbers below fit in the integers of compiled code

FLAG = Kind("true or false", lambda value: type(value) is bool)
TEXT = Kind("text", lambda value: type(value) is str)
WHOLE = Kind("an integer >= 0", lambda value: type(value) is int and 0 <= value < LARGEST)
REAL = Kind("a number", lambda value: type(value) is float or (type(value) is int and abs(value) < LARGEST))
FINITE = Kind("a finite number", lambda value: REAL.fits(value) and math.isfinite(value))
BYTES = Kind("bytes", lambda value: type(value) is bytes)
PLAIN_TYPES = bool, int, float, str, type(None)
SCALAR = Kind("a number, text, true, false or null", lambda value: type(value) in PLAIN_TYPES)
IDS = Kind(
    "a list of ids",
    lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufUSMm",
)


def _is_plain(value: Any) -> bool:
    """True for numbers, text, true, false and null, also in arrays, lists, tuples and dictionaries."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(SCALAR.fits, value)) and all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufU"
    return SCALAR.fits(value)


PLAIN = Kind("plain values", _is_plain)
NUMBERED = Kind(
    "a list of plain values for some features",
    lambda value: (
        isinstance(value, dict)
        and all(map(WHOLE.fits, value))
        and all(isinstance(entry, list) and all(map(SCALAR.fits, entry)) for entry in value.values())
    ),
)


def up_to(highest: int) -> Kind:
    """Return the kind of whole numbers from 0 to `highest`."""
    return Kind(f"an integer <= {highest:,}", lambda value: WHOLE.fits(value) and value <= highest)


def array(dtype: type, ndim: int, *, finite: bool = True) -> Kind:
    """Return the kind of arrays with `ndim` native axes; without `finite`, NaN and infinity are allowed.

    >>> array(np.float64, 1).fits(np.zeros(3)), array(np.float64, 1).fits(np.zeros(3, np.float32))
    (True, False)
    >>> unknown = np.array([np.nan])
    >>> array(np.float64, 1).fits(unknown), array(np.float64, 1, finite=False).fits(unknown)
    (False, True)
    """
    expected_dtype = np.dtype(dtype)

    def fits(value: Any) -> bool:
        if not (isinstance(value, np.ndarray) and value.dtype == expected_dtype and value.ndim == ndim):
            return False
        return not finite or bool(np.isfinite(value).all())

    return Kind(f"an array of {'finite ' if finite else ''}{expected_dtype} with {ndim} axes", fits)


def part(*classes: type) -> Kind:
    """Return the kind of objects of these classes."""
    return Kind(" or ".join(cls.__name__ for cls in classes), lambda value: type(value) in classes)


def optional(kind: Kind) -> Kind:
    """Return the kind of these values and None."""
    return Kind(f"{kind.what}, or null", lambda value: value is None or kind.fits(value))


def _each(words: str, container: type, kind: Kind) -> Kind:
    def fits(value: Any) -> bool:
        values = value.values() if isinstance(value, dict) else value
        return isinstance(value, container) and all(map(kind.fits, values))

    return Kind(f"{words}: each {kind.what}", fits)


def many(kind: Kind) -> Kind:
    """Return the kind of lists of such values."""
    return _each("a list", list, kind)


def by_name(kind: Kind) -> Kind:
    """Return the kind of dictionaries of such values."""
    return _each("values by name", dict, kind)


def several(kind: Kind) -> Kind:
    """Return the kind of tuples of such values."""
    return _each("a tuple", tuple, kind)


def either(*kinds: Kind) -> Kind:
    """Return the union of these kinds."""
    words = " or ".join(kind.what for kind in kinds)
    return Kind(words, lambda value: any(kind.fits(value) for kind in kinds))


def choice(*values: Any) -> Kind:
    """Return the kind of exactly these values, compared by type too."""

    def fits(value: Any) -> bool:
        return any(type(value) is type(allowed) and value == allowed for allowed in values)

    return Kind(f"one of {', '.join(map(repr, values))}", fits)
