"""Parse decimal text to the nearest double in numba, bit for bit like Python's `float`.

Three tiers, as in Lemire, *Number parsing at a gigabyte per second* (2021): Clinger's exact product for short
numbers, the Eisel-Lemire 128-bit product for the rest, and, if that product cannot decide (almost never:
subnormals, exact halfway cases beyond 19 digits), a "hard" mark that defers the token to `float`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from concordant._base.files import Bytes
from concordant._base.segments import kernel
from concordant.types import FloatArray

Word = Any  # an np.uint64 in a kernel; mixing it with an int would give a float, hence the constants

SOLVED, HARD, BAD, OVERFLOW = 0, 1, 2, 3  # parse status of a token

SMALLEST_POWER, LARGEST_POWER = -342, 308  # beyond these powers, 19 digits give 0 or infinity
EXACT_POWERS = np.array([10.0**power for power in range(23)])  # each is an exact double
EXACT_DIGITS = 1 << 53  # up to here every whole number is a double
MOST_DIGITS = 19  # always fit in 64 bits
LARGEST_DOUBLE = float(np.finfo(np.float64).max)
EXPONENT_CAP = 100_000  # longer exponents are not read further
HARD_MARK = np.uint64(0xFFF8000000000001)  # a NaN with its sign set: neither a value nor np.nan
TOKEN = re.compile(rb"[^ \t\r\n#]+")
LOW_HALF = np.uint64(0xFFFFFFFF)
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
HALF_WORD = np.uint64(32)
ONE, TEN = np.uint64(1), np.uint64(10)
UNDECIDED_BITS = np.uint64(0x1FF)  # 9 bits below a 55-bit mantissa; all ones: the next word may carry
IMPLICIT_BIT = np.uint64(1 << 52)


def _five_to_the(power: int) -> int:
    """Return the 128 leading bits of 5**power: truncated if power >= 0, rounded up below (Lemire)."""
    if power >= 0:
        five: int = 5**power
        excess = five.bit_length() - 128
        return five >> excess if excess > 0 else five << -excess
    five = 5**-power
    size = (five - 1).bit_length()
    if power >= -27:
        return (1 << (size + 127)) // five + 1
    reciprocal = (1 << (2 * size + 128)) // five + 1
    return reciprocal >> (reciprocal.bit_length() - 128)


_POWERS = [_five_to_the(power) for power in range(SMALLEST_POWER, LARGEST_POWER + 1)]
POWER_HIGH = np.array([power >> 64 for power in _POWERS], dtype=np.uint64)
POWER_LOW = np.array([power & int(ALL_BITS) for power in _POWERS], dtype=np.uint64)


@kernel
def _product(a: Word, b: Word) -> tuple[Word, Word]:
    """Return the high and low word of a 64 x 64 bit product, computed from four 32-bit products."""
    a_high, a_low, b_high, b_low = a >> HALF_WORD, a & LOW_HALF, b >> HALF_WORD, b & LOW_HALF
    middle = a_high * b_low + ((a_low * b_low) >> HALF_WORD)
    cross = a_low * b_high + (middle & LOW_HALF)
    return a_high * b_high + (middle >> HALF_WORD) + (cross >> HALF_WORD), a * b


@kernel
def _leading_zeros(word: Word) -> int:
    """Count the zero bits above the highest set bit of a non-zero word."""
    count = 0
    for width in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - width) == 0:
            word = word << np.uint64(width)
            count += width
    return count


@kernel
def _eisel_lemire(digits: Word, power: int) -> tuple[Word, int]:
    """Return the bits of the double nearest to digits * 10**power (digits > 0), and the status."""
    if power < SMALLEST_POWER:
        return np.uint64(0), SOLVED
    if power > LARGEST_POWER:
        return np.uint64(0), OVERFLOW
    shift = _leading_zeros(digits)
    word = digits << np.uint64(shift)
    row = power - SMALLEST_POWER
    high, low = _product(word, POWER_HIGH[row])
    if high & UNDECIDED_BITS == UNDECIDED_BITS:  # the lower half of the power may carry into the mantissa
        carry, _ = _product(word, POWER_LOW[row])
        low = low + carry
        high = high + ONE if carry > low else high
    top = high >> np.uint64(63)
    drop = top + np.uint64(9)
    mantissa = high >> drop  # 54 bits: 53 and the rounding bit
    exponent = ((217706 * power) >> 16) + 1086 + np.int64(top) - shift  # floor(log2(10**power)), biased
    # Deferred to Python: subnormals, products that more bits could change, and possible exact halves.
    halfway = low <= ONE and mantissa & np.uint64(3) == ONE and mantissa << drop == high
    if exponent <= 0 or halfway or (low == ALL_BITS and (power < -27 or power > 55)):
        return np.uint64(0), HARD
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >> np.uint64(53) == ONE:  # rounded up to the next power of two
        mantissa = mantissa >> ONE
        exponent += 1
    if exponent >= 2047:
        return np.uint64(0), OVERFLOW
    return (mantissa & (IMPLICIT_BIT - ONE)) | (np.uint64(exponent) << np.uint64(52)), SOLVED


@kernel
def _read_long(buffer: Bytes, first: int, last: int, power: int) -> tuple[Word, int]:
    """Parse a number of more than 19 digits; `power` is its exponent if all digits were kept.

    The first 19 significant digits bound the number from below, and incrementing the last from above: if both
    round to the same double, that is the result.
    """
    digits, n_digits, dropped = np.uint64(0), 0, 0
    for at in range(first, last):
        if buffer[at] == 46:  # decimal point
            continue
        if n_digits == MOST_DIGITS:
            dropped += 1
        else:
            digits = digits * TEN + np.uint64(buffer[at] - 48)
            n_digits += 1 if digits > 0 else 0  # leading zeros are not significant
    if digits == 0:
        return digits, SOLVED
    below, status = _eisel_lemire(digits, power + dropped)
    if dropped > 0:
        above, status_above = _eisel_lemire(digits + ONE, power + dropped)
        if below != above or status != status_above:
            return below, HARD
    return below, status


@kernel
def _read_exponent(buffer: Bytes, at: int) -> tuple[int, int]:
    """Return the exponent after the letter e and its end; the end is -1 if there is no exponent."""
    negative = buffer[at] == 45
    if negative or buffer[at] == 43:
        at += 1
    first, power = at, 0
    while 48 <= buffer[at] <= 57:
        power = min(power * 10 + int(buffer[at]) - 48, EXPONENT_CAP)
        at += 1
    return -power if negative else power, at if at > first else -1


@kernel
def _read_digits(buffer: Bytes, at: int, digits: int) -> tuple[int, int]:
    """Append digits to `digits`, which may wrap beyond 19 (then unused); return it and the end."""
    digit = int(buffer[at]) - 48
    while 0 <= digit <= 9:
        digits = digits * 10 + digit
        at += 1
        digit = int(buffer[at]) - 48
    return digits, at


@kernel
def read_number(buffer: Bytes, at: int) -> tuple[float, int, int]:
    """Parse the decimal number at `at`; return its value, end and status.

    The grammar is that of Python's `float` without nan, inf and underscores. The buffer must continue with a
    byte that belongs to no number. A hard number is a NaN that carries its offset.
    """
    start, power = at, 0
    negative = buffer[at] == 45
    first = at + 1 if negative or buffer[at] == 43 else at
    digits, last = _read_digits(buffer, first, 0)
    count = last - first
    if buffer[last] == 46:
        point = last + 1
        digits, last = _read_digits(buffer, point, digits)
        power = point - last
        count -= power
    if count == 0:
        return 0.0, start, BAD
    at = last
    if buffer[at] == 101 or buffer[at] == 69:  # "e" or "E"
        shift, at = _read_exponent(buffer, at + 1)
        if at < 0:
            return 0.0, start, BAD
        if abs(shift) == EXPONENT_CAP:  # as many digits may precede it: deferred to Python
            return np.uint64(HARD_MARK + np.uint64(start)).view(np.float64), at, HARD
        power += shift
    if count <= MOST_DIGITS and 0 <= digits <= EXACT_DIGITS and -22 <= power <= 22:
        value = np.float64(digits)  # both factors are exact, so the only rounding is correct (Clinger)
        value = value / EXACT_POWERS[-power] if power < 0 else value * EXACT_POWERS[power]
        return -value if negative else value, at, SOLVED
    if count > MOST_DIGITS:
        bits, status = _read_long(buffer, first, last, power)
    elif digits == 0:
        bits, status = np.uint64(0), SOLVED
    else:
        bits, status = _eisel_lemire(np.uint64(digits), power)
    if status == HARD:
        bits = HARD_MARK + np.uint64(start)
    value = np.uint64(bits).view(np.float64)
    return -value if negative and status == SOLVED else value, at, status


def resolve_hard_numbers(buffer: Bytes, values: FloatArray, smallest: float = -LARGEST_DOUBLE) -> int:
    """Parse the hard numbers with Python, in place; return the offset of the first out of range, or -1.

    >>> values = np.array([np.nan, 1.0])
    >>> resolve_hard_numbers(np.zeros(1, dtype=np.uint8), values), values.tolist()
    (-1, [nan, 1.0])
    """
    bits = values.view(np.uint64)
    for entry in np.flatnonzero(bits >= HARD_MARK).tolist():
        offset = int(bits[entry] - HARD_MARK)
        token = TOKEN.match(buffer.data, offset)
        values[entry] = float(token[0]) if token else np.nan
        if not smallest <= values[entry] < np.inf:
            return offset
    return -1
