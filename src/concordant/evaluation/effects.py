"""How large a difference is beside its spread, and how many queries show one: by the noncentral t."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["detectable_effect", "effect_interval", "effect_size", "queries_needed", "t_power"]

MANY = 1e6  # queries from which Student's t is the normal distribution to all digits that matter
NOT_A_NUMBER = float("nan")


def effect_size(mean: float, spread: float, n: int) -> float:
    """Give Hedges' g of paired differences: mean / standard deviation, its bias under normality taken off.

    0 where all n differences are 0; infinite where they are equal and not 0; NaN for one query, or for two
    that differ: their ratio has no mean.

    >>> round(effect_size(0.125, 0.25, 4), 4)
    0.3618
    """
    if n < 2:
        return NOT_A_NUMBER
    if spread == 0.0:
        return math.copysign(math.inf, mean) if mean else 0.0
    if n < 3:
        return NOT_A_NUMBER
    half = (n - 1) / 2.0
    bias = math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
    return bias * mean / spread


def effect_interval(t: float, n: int, confidence: float) -> tuple[float, float]:
    """Give an interval for mean / standard deviation: the noncentralities under which t is not extreme.

    Exact for normal differences. `t` is the paired statistic of n queries; NaN where it, or an end of the
    interval, is not finite.

    References
    ----------
    Steiger and Fouladi (1997), Noncentrality interval estimation.
    """
    if n < 2 or not math.isfinite(t):
        return NOT_A_NUMBER, NOT_A_NUMBER
    tail = (1.0 - confidence) / 2.0
    low, high = (noncentrality(n - 1, t, share) for share in (1.0 - tail, tail))
    return low / math.sqrt(n), high / math.sqrt(n)


def noncentrality(freedom: int, t: float, share: float) -> float:
    """Give the noncentrality under which a statistic is below t with probability `share`."""
    step = 1.0 + abs(t) / math.sqrt(freedom)
    while step < math.inf and (below(freedom, t - step, t) < share or below(freedom, t + step, t) > share):
        step *= 2.0
    if step == math.inf:
        return NOT_A_NUMBER
    return root(lambda shift: below(freedom, shift, t) - share, t - step, t + step)


def below(freedom: float, shift: float, t: float) -> float:
    """Give the probability that noncentral t is below t."""
    from scipy import special

    distribution: Any = special.nctdtr
    share = float(distribution(freedom, shift, t))
    return float(t > shift) if math.isnan(share) else share  # scipy gives none for some tails below 1e-13


def critical(freedom: float, level: float) -> float:
    """Give the size of t that is exceeded with probability `level` where there is no difference.

    By the lower tail: 1 - level / 2 is 1 for the smallest levels. Infinite where scipy has no number.
    """
    from scipy import special

    students: Any = special.stdtrit
    return abs(float(students(freedom, level / 2.0)))


def t_power(effect: float, n: float, level: float) -> float:
    """Give the probability that the two-sided paired t-test of n queries finds a difference of this effect.

    >>> round(t_power(0.5, 34, 0.05), 3)  # mean is half a standard deviation
    0.808
    """
    size, shift = critical(n - 1, level), effect * math.sqrt(n)
    return 1.0 - below(n - 1, shift, size) + below(n - 1, shift, -size)


def detectable_effect(n: int, level: float, power: float) -> float:
    """Give mean / standard deviation of the difference that n queries show with probability `power`.

    NaN for fewer than two queries, or where no double is large enough; 0 where the level alone is as large
    as the power.
    """
    if n < 2:
        return NOT_A_NUMBER
    if power <= level:
        return 0.0
    most = 4.0 / math.sqrt(n)
    while most < math.inf and t_power(most, n, level) < power:
        most *= 2.0
    if most == math.inf:
        return NOT_A_NUMBER
    return root(lambda effect: t_power(effect, n, level) - power, 0.0, most)


def queries_needed(effect: float, level: float, power: float) -> int | None:
    """Give the fewest queries that show a difference of this effect with probability `power`.

    None where there is no difference, or none that is a number, or so small a one that no double counts them.

    >>> queries_needed(0.5, 0.05, 0.8)
    34
    """
    if not effect or math.isnan(effect):
        return None
    from scipy import special

    normal: Any = special.ndtri
    usual = -float(normal(level / 2.0))
    ratio = (usual + float(normal(power))) / effect
    guess = ratio * ratio + usual * usual / 2.0  # a power would raise where this is infinite
    if guess > MANY:
        return math.ceil(guess) if guess < math.inf else None
    few, many = 1, 2
    while many < 4.0 * MANY and t_power(abs(effect), many, level) < power:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if t_power(abs(effect), middle, level) >= power else (middle, many)
    return many


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Give where a function that changes its sign between two numbers is 0."""
    from scipy import optimize

    solve: Any = optimize.brentq
    return float(solve(function, low, high, xtol=1e-13, rtol=1e-13))
