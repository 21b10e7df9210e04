"""Bound: what is guaranteed with a stated probability, term by term, however large the numbers are."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from fractions import Fraction

from concordant._numbers import as_double
from concordant.exceptions import ParameterError

__all__ = ["Bound", "Setting", "Summed", "Term", "check_delta", "check_positive", "check_whole"]

LARGEST_POWER = 308.0  # 10 to this power is a float, and one more is not
LARGEST_PRODUCT = 1e150  # of B and M: its square is a float
DISTINCT = 2**50  # up to here, floats tell the bounds of n and of n + 1 queries apart


@dataclass(frozen=True)
class Term:
    """One summand of a bound: count * factor / sqrt(n).

    Attributes
    ----------
    name, meaning
        "complexity" or "confidence", and what it pays for.
    count
        How many pairs or orders it is paid for; exact, since it may be far beyond any float.
    factor
        What is paid for each, times sqrt(n).
    n
        Number of queries.

    Examples
    --------
    >>> Term("complexity", "an order each", count=math.factorial(500), factor=4.0, n=100)
    Term(complexity = 10^1133.69: an order each)
    """

    name: str
    meaning: str
    count: int
    factor: float
    n: int

    @property
    def log10(self) -> float:
        """Logarithm of the value to base 10; minus infinity where the value is 0."""
        if self.factor == 0.0:
            return -math.inf
        return math.log10(self.count) + math.log10(self.factor) - math.log10(self.n) / 2

    @property
    def value(self) -> float:
        """The value; infinity where it is too large for a float."""
        try:
            return float(self.count) * self.factor / math.sqrt(self.n)
        except OverflowError:
            return power_of_ten(self.log10)

    def __repr__(self) -> str:
        return f"Term({self.name} = {readable(self.value, self.log10)}: {self.meaning})"


class Summed:
    """A sum of terms, `parts`."""

    parts: tuple[Term, ...]

    @property
    def terms(self) -> dict[str, Term]:
        """The terms by name: "complexity" of the class of rankers, "confidence" in the sample."""
        return {term.name: term for term in self.parts}

    @property
    def excess(self) -> float:
        """The sum of the terms; infinity where it is too large for a float."""
        return math.fsum(term.value for term in self.parts)


@dataclass(frozen=True)
class Setting:
    """What a bound is about: n queries of m items, w of length <= B, features of length <= M; checked."""

    n: int
    m: int
    B: float
    M: float
    delta: float

    def __post_init__(self) -> None:
        lengths = {"B": self.B, "M": self.M}
        for name, value in lengths.items():
            if not (is_number(value) and 0.0 <= value < math.inf):
                raise ParameterError(name, value, "a finite number >= 0")
        check_delta(self.delta)
        if self.BM > LARGEST_PRODUCT:
            raise ParameterError("B * M", self.BM, f"at most {LARGEST_PRODUCT:g}")
        plain = {"n": check_whole("n", self.n, 1), "m": check_whole("m", self.m, 2)}
        for name, value in (plain | lengths | {"delta": self.delta}).items():
            object.__setattr__(self, name, value if name in plain else float(value))

    @property
    def BM(self) -> float:  # noqa: N802
        """The largest score."""
        return float(self.B) * float(self.M)


@dataclass(frozen=True, repr=False, kw_only=True)
class Bound(Summed, Setting):
    """With probability 1 - delta, for all w of length <= B: risk <= multiplier * empirical loss + excess.

    Attributes
    ----------
    version
        "published", "corrected", "sharp" or "tight".
    bounds
        The loss whose risk is bounded.
    empirical
        The loss whose mean over the training queries is added.
    multiplier
        Factor of that mean.
    reduction
        "sum" over pairs or orders, mean over "pairs", "max" or "softmax" over orders.
    largest
        The largest value of the bounded loss.
    parts
        The terms whose sum is the excess.
    n, m, B, M, delta
        Queries, items a query, length of w, length of an item's features, probability of failure.
    refuted
        What is wrong with it; empty where it is proven.
    """

    version: str
    bounds: str
    empirical: str
    multiplier: float
    reduction: str
    largest: float
    parts: tuple[Term, ...]
    refuted: str = ""

    @property
    def log10(self) -> float:
        """Logarithm of the excess to base 10, finite even where the excess is not."""
        top = max(term.log10 for term in self.parts)
        return top + math.log10(math.fsum(10.0 ** (term.log10 - top) for term in self.parts))

    @property
    def vacuous(self) -> bool:
        """Whether the excess alone is at least the largest value of the bounded loss: it then says nothing.

        That value is the number of pairs for the 0-1 error, or 1 per pair; the sum (or mean) over pairs of
        the margins r/y_i - r/y_j for the margin-weighted one; `largest` for a prediction loss.
        """
        return self.excess >= self.largest

    def at(self, n: int) -> Bound:
        """Give the same bound for another number of queries."""
        return replace(self, n=n, parts=tuple(replace(term, n=int(n)) for term in self.parts))

    def queries_needed(self, epsilon: float) -> int:
        """Give the smallest number of queries whose excess is at most epsilon.

        Every term falls as 1/sqrt(n), so that n = (excess * sqrt(n) / epsilon)^2: computed in fractions, then
        moved by rounding errors of the excess where a float can tell n from n + 1.

        Examples
        --------
        >>> from concordant.theory.bounds import listwise
        >>> listwise(n=1700, m=40, version="sharp").queries_needed(0.1)
        10883
        """
        target = Fraction(check_positive("epsilon", epsilon))
        rate = sum((term.count * Fraction(term.factor) for term in self.parts), Fraction())
        needed = max(math.ceil((rate / target) ** 2), 1)
        if needed < DISTINCT:
            while self.at(needed).excess > epsilon:
                needed += 1
            while needed > 1 and self.at(needed - 1).excess <= epsilon:
                needed -= 1
        return needed

    def __repr__(self) -> str:
        state = "refuted, " * bool(self.refuted) + "vacuous" * self.vacuous
        told = f"Bound({self.version}: {self.statement}; n={self.n}, m={self.m}"
        return told + (f"; {state.rstrip(', ')})" if state else ")")

    @property
    def statement(self) -> str:
        """The inequality, in words and one number."""
        times = "" if self.multiplier == 1.0 else f"{self.multiplier:g} * "
        return f"{self.bounds} <= {times}{self.empirical} + {readable(self.excess, self.log10)}"

    def __str__(self) -> str:
        setting = f"{self.n} queries of {self.m} items, B = {self.B:g}, M = {self.M:g}"
        lines = [f"{self.version}: {self.statement}", f"  with probability {1.0 - self.delta:g}; {setting}"]
        lines += [f"  {one.name} {readable(one.value, one.log10)}: {one.meaning}" for one in self.parts]
        if self.vacuous:
            lines.append(f"  vacuous: the bounded loss is never above {self.largest:g}")
        if self.refuted:
            lines.append(f"  {self.refuted}")
        return "\n".join(lines)


def power_of_ten(exponent: float) -> float:
    """Give 10 to a power, infinity where that is no float."""
    return 10.0**exponent if exponent < LARGEST_POWER else math.inf


def readable(value: float, log10: float) -> str:
    """Give a value in few digits, as a power of ten where it is huge.

    >>> readable(0.25301, -0.6), readable(math.inf, 1133.69)
    ('0.253', '10^1133.69')
    """
    return f"{value:.4g}" if value < 1e6 else f"10^{log10:.2f}"


def is_number(value: object) -> bool:
    """Whether the value is a real number, a numpy one included."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_whole(name: str, value: int, least: int) -> int:
    """Give a whole number that is at least `least`."""
    if isinstance(value, bool) or not (isinstance(value, numbers.Integral) and value >= least):
        raise ParameterError(name, value, f"a whole number >= {least}")
    return int(value)


def check_delta(value: float) -> None:
    """Refuse what is no probability of failure."""
    if not (is_number(value) and 0.0 < value < 1.0):
        raise ParameterError("delta", value, "a number between 0 and 1, both excluded")


def check_positive(name: str, value: float) -> float:
    """Give a finite number above 0."""
    if not (is_number(value) and 0.0 < as_double(value) < math.inf):
        raise ParameterError(name, value, "a finite number > 0")
    return float(value)
