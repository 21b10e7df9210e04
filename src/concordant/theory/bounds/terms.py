"""The terms that bounds are made of, each with its words."""

from __future__ import annotations

import math

from concordant.theory.bounds.bound import Setting, Term

__all__ = ["by_differences", "by_pair", "one_sided", "per_function", "scaled", "two_sided", "vector"]


def vector(setting: Setting, slope: float, times: int = 1) -> Term:
    """Give 2 sqrt(2) L BM sqrt(m/n): twice the Rademacher average of an L-Lipschitz loss of m scores.

    Vector contraction (Maurer 2016) gives sqrt(2) L times that of the scores, each with a sign of its
    own, which is at most B/n times the length of a sum of n m vectors no longer than M: BM sqrt(m/n).
    """
    words = f"2 sqrt(2) L B M sqrt(m/n), L = {slope:.4g}: vector contraction"
    factor = 2 * math.sqrt(2 * setting.m) * slope * setting.BM
    return Term("complexity", scaled(times, words), 1, times * factor, setting.n)


def by_differences(setting: Setting, slope: float, variety: float) -> Term:
    """Give 2 sqrt(2) L BM sqrt(V/n): as `vector`, of a loss that is L-Lipschitz in differences of scores.

    V bounds the sum of the squared lengths of the differences of features, for items of length 1.
    """
    words = f"2 sqrt(2) L B M sqrt(V/n), L = {slope:.4g} in differences, V = {variety:.4g}"
    return Term("complexity", words, 1, 2 * math.sqrt(2 * variety) * slope * setting.BM, setting.n)


def by_pair(setting: Setting, variety: float, times: int = 1) -> Term:
    """Give 2 BM sqrt(V/n): twice a sum over pairs of Rademacher averages of their differences."""
    words = f"2 B M sqrt(V/n), V = {variety:.4g}: contraction pair by pair"
    return Term("complexity", scaled(times, words), 1, times * 2 * math.sqrt(variety) * setting.BM, setting.n)


def one_sided(setting: Setting, height: float, times: int = 1) -> Term:
    """Give c sqrt(ln(1/delta) / (2n)): how far the largest deviation is above its mean (McDiarmid)."""
    words = f"c sqrt(ln(1/delta) / (2n)), c = {height:.4g}, the range of the hinge"
    factor = height * math.sqrt(math.log(1 / setting.delta) / 2)
    return Term("confidence", scaled(times, words), 1, times * factor, setting.n)


def per_function(setting: Setting, count: int, slope: float, words: str, times: int = 1) -> Term:
    """Give the complexity that is paid for each of `count` linear functions of w."""
    return Term("complexity", scaled(times, words), count, times * slope * setting.BM, setting.n)


def two_sided(setting: Setting, count: int, height: float, words: str, times: int = 1) -> Term:
    """Give count * c sqrt(8 ln(2/delta) / n), c the range of a hinge (Bartlett and Mendelson, Theorem 8)."""
    factor = height * math.sqrt(8 * math.log(2 / setting.delta))
    return Term(
        "confidence", scaled(times, f"{words} sqrt(8 ln(2/delta) / n)"), count, times * factor, setting.n
    )


def scaled(times: float, words: str) -> str:
    """Give the words with a factor before them, if there is one."""
    return words if times == 1 else f"{times:g} * {words}"
