"""Enclosures: intervals with rational ends that certainly contain a real number, such as a logarithm.

>>> third = log2(3)
>>> third.low < Fraction(158496251, 10**8) and (third - Fraction(3, 2)).sign()
1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from concordant._base.validate import check_whole
from concordant.exceptions import ParameterError

BITS = 64  # enclosures are about 2^-BITS wide
GUARD = 32  # bits more, which rounding may spoil
LONGEST = 10**6  # fractions with a larger denominator are also written as decimals
PLACES = 6  # decimals written


@dataclass(frozen=True)
class Enclosure:
    """A real number between `low` and `high`.

    Sums, differences, products and quotients contain those of any numbers enclosed.

    >>> Enclosure(Fraction(1), Fraction(2)) * -3
    Enclosure(low=Fraction(-6, 1), high=Fraction(-3, 1))
    """

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ParameterError("low", self.low, f"at most high={self.high}")

    def sign(self) -> int | None:
        """Return the sign 1, -1 or 0 where it is certain; None where it is not."""
        if self.low > 0 or self.high < 0:
            return 1 if self.low > 0 else -1
        return 0 if self.low == self.high else None

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.high, -self.low)

    def __add__(self, other: Number | int) -> Enclosure:
        return Enclosure(self.low + low(other), self.high + high(other))

    def __sub__(self, other: Number | int) -> Enclosure:
        return Enclosure(self.low - high(other), self.high - low(other))

    def __rsub__(self, other: Number | int) -> Enclosure:
        return -self + other

    def __mul__(self, other: Number | int) -> Enclosure:
        ends = [left * right for left in (self.low, self.high) for right in (low(other), high(other))]
        return Enclosure(min(ends), max(ends))

    def __truediv__(self, other: Number | int) -> Enclosure:
        return self * inverse(other)

    def __rtruediv__(self, other: Number | int) -> Enclosure:
        return inverse(self) * other

    __radd__, __rmul__ = __add__, __mul__


Number: TypeAlias = Fraction | Enclosure
"""A real number: known exactly, or enclosed."""


def low(number: Number | int) -> Fraction:
    """Return the largest fraction known to be no larger."""
    return number.low if isinstance(number, Enclosure) else Fraction(number)


def high(number: Number | int) -> Fraction:
    """Return the smallest fraction known to be no smaller."""
    return number.high if isinstance(number, Enclosure) else Fraction(number)


def sign(number: Number | int) -> int | None:
    """Return the sign 1, -1 or 0 where it is certain; None where it is not.

    >>> sign(Fraction(-1, 3)), sign(0), sign(Enclosure(Fraction(-1), Fraction(1)))
    (-1, 0, None)
    """
    return Enclosure(low(number), high(number)).sign()


def exact(number: Number | int) -> Number:
    """Turn an enclosure into a fraction where both ends are the same."""
    return low(number) if low(number) == high(number) else Enclosure(low(number), high(number))


def round_outward(number: Number | int, bits: int = BITS) -> Number:
    """Round the ends outward to short fractions; a fraction stays as it is.

    >>> round_outward(Enclosure(Fraction(1, 3), Fraction(2, 3)), bits=-30)
    Enclosure(low=Fraction(1, 4), high=Fraction(3, 4))
    """
    least, most, units = low(number), high(number), 1 << bits + GUARD
    if least == most:
        return least
    return Enclosure(Fraction(math.floor(least * units), units), Fraction(math.ceil(most * units), units))


def inverse(number: Number | int) -> Enclosure:
    """Return 1 over the number, which must be known not to be 0."""
    if sign(number) in (0, None):
        raise ParameterError("divisor", text(number), "a number known to differ from 0")
    return Enclosure(1 / high(number), 1 / low(number))


def total(numbers: Iterable[Number | int]) -> Number:
    """Return the sum of the numbers, exact where all numbers are.

    >>> total([Fraction(1, 2), 1])
    Fraction(3, 2)
    """
    summands = list(numbers)
    return exact(Enclosure(sum(map(low, summands), Fraction()), sum(map(high, summands), Fraction())))


def fractions(numbers: Iterable[Number]) -> list[Fraction]:
    """Return the numbers as fractions; raise if a number is only enclosed."""
    all_numbers = list(numbers)
    if any(low(number) != high(number) for number in all_numbers):
        raise ParameterError("numbers", [text(number) for number in all_numbers], "rational numbers")
    return [low(number) for number in all_numbers]


def text(number: Number | int) -> str:
    """Write a number for a person.

    >>> text(Fraction(1, 48)), text(Fraction(5)), text(Fraction(1, 3 * 10**6))
    ('1/48', '5', '1/3000000 (0.000000...)')
    >>> text(log2(3)), text(Enclosure(Fraction(1, 3), Fraction(1, 2)))
    ('about 1.584963', 'between 0.333333 and 0.500000')
    """
    least, most = low(number), high(number)
    if least == most:
        long = least.denominator > LONGEST
        return f"{least} ({decimals(least, math.trunc)}...)" if long else str(least)
    if most - least < Fraction(1, 10**PLACES):
        return f"about {decimals((least + most) / 2, round)}"
    return f"between {decimals(least, math.floor)} and {decimals(most, math.ceil)}"


def decimals(number: Fraction, rounding: Callable[[Fraction], int]) -> str:
    """Write the decimals, rounded by `rounding`."""
    units = rounding(number * 10**PLACES)
    return f"{'-' if units < 0 else ''}{abs(units) // 10**PLACES}.{abs(units) % 10**PLACES:0{PLACES}}"


@lru_cache(maxsize=2**10)
def log2(k: int, bits: int = BITS) -> Enclosure:
    """Return the logarithm of a whole number >= 1 to base 2, about 2^-bits wide; exact for powers of two.

    Squaring a number doubles its logarithm: the next bit is 1 if the square of a number in [1, 2) reaches 2.

    >>> log2(8)
    Enclosure(low=Fraction(3, 1), high=Fraction(3, 1))
    """
    k = check_whole("k", k, 1, math.inf)
    whole = k.bit_length() - 1
    if k == 1 << whole:
        return Enclosure(Fraction(whole), Fraction(whole))
    unit = bits + GUARD + whole
    below = above = k << unit - whole  # k / 2^whole, in units of 2^-unit, as are its bounds from now on
    digits, n_certain = whole, 0
    while n_certain < bits:
        below, above = below * below >> unit, (above * above >> unit) + 1
        if (below >> unit + 1) != (above >> unit + 1):
            break  # this bit is not certain; the bits before it are
        bit = below >> unit + 1
        below, above = below >> bit, (above >> bit) + bit
        digits, n_certain = 2 * digits + bit, n_certain + 1
    return Enclosure(Fraction(digits, 1 << n_certain), Fraction(digits + 1, 1 << n_certain))


@lru_cache(maxsize=2**10)
def power2(exponent: Fraction, bits: int = BITS) -> Enclosure:
    """Return 2^exponent, about 2^-bits of it wide; exact for whole exponents.

    The powers 2^(1/2), 2^(1/4), ... are roots of one another; those of the exponent's bits are multiplied.

    >>> power2(Fraction(-2))
    Enclosure(low=Fraction(1, 4), high=Fraction(1, 4))
    """
    whole = math.floor(exponent)
    scale, unit = Fraction(2) ** whole, bits + GUARD
    if exponent == whole:
        return Enclosure(scale, scale)
    digits = math.floor((exponent - whole) * (1 << unit))  # the exponent lies within 2^-unit above
    below = above = 1 << unit
    root_below = root_above = 2 << unit
    for shift in range(unit - 1, -1, -1):
        root_below, root_above = math.isqrt(root_below << unit), math.isqrt(root_above << unit) + 1
        if digits >> shift & 1:
            below, above = below * root_below >> unit, (above * root_above >> unit) + 1
    above += (above >> unit) + 1  # 2^(2^-unit) < 1 + 2^-unit
    return Enclosure(scale * Fraction(below, 1 << unit), scale * Fraction(above, 1 << unit))
