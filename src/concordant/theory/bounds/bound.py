"""Bound: a guarantee with a stated probability, term by term, however large the numbers are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from concordant._base.validate import check_number, check_share, check_whole
from concordant.exceptions import ParameterError

# The terms of the bounds, each with its description.


def vector(setting: BoundSetting, slope: float) -> Term:
    """Return 2 sqrt(2) L BM sqrt(m/n): twice the Rademacher average of an L-Lipschitz loss of m scores.

    Vector contraction (Maurer 2016) gives sqrt(2) L times that of the scores, with a separate sign for each
    score, which is at most B/n times the length of a sum of n m vectors no longer than M: BM sqrt(m/n).
    """
    words = f"2 sqrt(2) L B M sqrt(m/n), L = {slope:.4g}: vector contraction"
    factor = 2 * math.sqrt(2 * setting.m) * slope * setting.BM
    return Term("complexity", words, 1, factor, setting.n)


def by_differences(setting: BoundSetting, slope: float, variety: float) -> Term:
    """Return 2 sqrt(2) L BM sqrt(V/n): like `vector`, for a loss L-Lipschitz in differences of scores.

    V bounds the sum of the squared lengths of the differences of features, for items of length 1.
    """
    words = f"2 sqrt(2) L B M sqrt(V/n), L = {slope:.4g} in differences, V = {variety:.4g}"
    return Term("complexity", words, 1, 2 * math.sqrt(2 * variety) * slope * setting.BM, setting.n)


def by_pair(setting: BoundSetting, variety: float) -> Term:
    """Return 2 BM sqrt(V/n): twice a sum over pairs of Rademacher averages of their differences."""
    words = f"2 B M sqrt(V/n), V = {variety:.4g}: contraction pair by pair"
    return Term("complexity", words, 1, 2 * math.sqrt(variety) * setting.BM, setting.n)


def one_sided(setting: BoundSetting, height: float) -> Term:
    """Return c sqrt(ln(1/delta) / (2n)): how far the largest deviation is above its mean (McDiarmid)."""
    words = f"c sqrt(ln(1/delta) / (2n)), c = {height:.4g}, the range of the hinge"
    return Term("confidence", words, 1, height * math.sqrt(math.log(1 / setting.delta) / 2), setting.n)


def per_function(
    setting: BoundSetting, count: int, slope: float, slope_words: str, height: float, height_words: str
) -> tuple[Term, Term]:
    """Return the terms that are paid for each of `count` linear functions of w.

    They are count * slope BM / sqrt(n), and count * c sqrt(8 ln(2/delta) / n) with c the hinge's range, the
    height (Bartlett and Mendelson, Theorem 8).
    """
    deviation = height * math.sqrt(8 * math.log(2 / setting.delta))
    return (
        Term("complexity", f"{slope_words}BM / sqrt(n)", count, slope * setting.BM, setting.n),
        Term("confidence", f"{height_words} sqrt(8 ln(2/delta) / n)", count, deviation, setting.n),
    )


LARGEST_POWER = 308.0  # the largest whole power of 10 that is a float
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
        Number of pairs or orders that the term is paid for; exact, since it may be far beyond any float.
    factor
        Price of each of them, times sqrt(n).
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

    def scaled(self, times: float) -> Term:
        """Multiply by a factor, which the description then begins with, unless it is 1."""
        if times == 1:
            return self
        return replace(self, meaning=f"{times:g} * {self.meaning}", factor=times * self.factor)

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
            return 10.0**self.log10 if self.log10 < LARGEST_POWER else math.inf

    def __repr__(self) -> str:
        return f"Term({self.name} = {format_value(self.value, self.log10)}: {self.meaning})"

    @property
    def line(self) -> str:
        """Name, value and meaning, indented, for the description of a bound."""
        return f"  {self.name} {format_value(self.value, self.log10)}: {self.meaning}"


class TermSum:
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
class BoundSetting:
    """Setting of a bound, checked: n queries of m items, w of length <= B, features of length <= M."""

    n: int
    m: int
    B: float
    M: float
    delta: float

    def __post_init__(self) -> None:
        lengths = {"B": self.B, "M": self.M}
        for name, value in lengths.items():
            check_number(name, value, least=0.0)
        check_share("delta", self.delta, 0.05)
        if self.BM > LARGEST_PRODUCT:
            raise ParameterError("B * M", self.BM, f"at most {LARGEST_PRODUCT:g}")
        plain = {"n": check_whole("n", self.n, 1, math.inf), "m": check_whole("m", self.m, 2)}
        for name, value in (plain | lengths | {"delta": self.delta}).items():
            object.__setattr__(self, name, value if name in plain else float(value))

    @property
    def BM(self) -> float:  # noqa: N802
        """The largest score."""
        return float(self.B) * float(self.M)


@dataclass(frozen=True, repr=False, kw_only=True)
class Bound(TermSum, BoundSetting):
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
        """True if the excess alone is at least the largest value of the bounded loss.

        That value is the number of pairs for the 0-1 error, or 1 per pair; the sum (or mean) over pairs of
        the margins r/y_i - r/y_j for the margin-weighted one; `largest` for a prediction loss.
        """
        return self.excess >= self.largest

    def at(self, n: int) -> Bound:
        """Return the same bound for another number of queries."""
        return replace(self, n=n, parts=tuple(replace(term, n=int(n)) for term in self.parts))

    def queries_needed(self, epsilon: float) -> int:
        """Return the smallest number of queries whose excess is at most epsilon.

        Every term falls as 1/sqrt(n), so n = (excess * sqrt(n) / epsilon)^2. It is computed in fractions,
        then corrected for rounding errors of the excess where a float can tell n from n + 1.

        Examples
        --------
        >>> from concordant.theory.bounds import listwise
        >>> listwise(n=1700, m=40, version="sharp").queries_needed(0.1)
        10883
        """
        target = Fraction(check_number("epsilon", epsilon, above=0.0))
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
        summary = f"Bound({self.version}: {self.statement}; n={self.n}, m={self.m}"
        return summary + (f"; {state.rstrip(', ')})" if state else ")")

    @property
    def statement(self) -> str:
        """The inequality, in words and one number."""
        times = "" if self.multiplier == 1.0 else f"{self.multiplier:g} * "
        return f"{self.bounds} <= {times}{self.empirical} + {format_value(self.excess, self.log10)}"

    def __str__(self) -> str:
        setting = f"{self.n} queries of {self.m} items, B = {self.B:g}, M = {self.M:g}"
        lines = [f"{self.version}: {self.statement}", f"  with probability {1.0 - self.delta:g}; {setting}"]
        lines += [term.line for term in self.parts]
        if self.vacuous:
            lines.append(f"  vacuous: the bounded loss is never above {self.largest:g}")
        if self.refuted:
            lines.append(f"  {self.refuted}")
        return "\n".join(lines)


def format_value(value: float, log10: float) -> str:
    """Format a value in few digits, as a power of ten where it is huge.

    >>> format_value(0.25301, -0.6), format_value(math.inf, 1133.69)
    ('0.253', '10^1133.69')
    """
    return f"{value:.4g}" if value < 1e6 else f"10^{log10:.2f}"
